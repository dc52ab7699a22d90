package awsapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/google/go-cmp/cmp"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/sim"
)

func TestCallsFailAsTheScriptSays(t *testing.T) {
	tests := []struct {
		name  string
		fault Fault
		// want is the code, or "connection" for an answer that never came.
		want string
		// launched is how many instances there are after the call.
		launched int
	}{
		{"throttled", Fault{Code: "RequestLimitExceeded"}, "RequestLimitExceeded", 0},
		{"expired credentials", Fault{Code: "ExpiredToken", Message: "The security token included in the request is expired"}, "ExpiredToken", 0},
		{"an error after the effect", Fault{Code: "InternalError", After: true}, "InternalError", 1},
		{"a connection that breaks before the effect", Fault{}, "connection", 0},
		{"an answer that is lost", Fault{After: true}, "connection", 1},
		{"half an answer", Fault{After: true, Truncate: true}, "connection", 1},
	}
	for _, tc := range tests {
		for _, way := range []string{"in process", "over a socket"} {
			t.Run(tc.name+" "+way, func(t *testing.T) {
				a := newAccount(t)
				if way == "over a socket" {
					a.ec2 = overSocket(t, a.Endpoint)
				}
				a.template("nodes")
				a.SetFaults(Nth("CreateFleet", 2, tc.fault))
				fleet := func() *ec2.CreateFleetInput { return a.fleetOf(1, "on-demand", a.over("m5.large", zoneA)) }
				_, err := a.ec2.CreateFleet(ctx, fleet())
				check(t, err)
				// The SDK writes a client token into the input: each call needs its own.
				_, err = a.ec2.CreateFleet(ctx, fleet())
				got := "connection"
				var send interface{ ConnectionError() bool }
				switch {
				case err == nil:
					got = ""
				case !errors.As(err, &send) && !errors.Is(err, io.ErrUnexpectedEOF) && !strings.Contains(err.Error(), "deserialization failed"):
					got = code(t, err)
				}
				if got != tc.want || len(a.Instances()) != 1+tc.launched {
					t.Errorf("got %q (%v) and %d instances, want %q and %d", got, err, len(a.Instances()), tc.want, 1+tc.launched)
				}
			})
		}
	}
}

// overSocket is a client that reaches the endpoint over the network.
func overSocket(t *testing.T, e *Endpoint) *ec2.Client {
	t.Helper()
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	return ec2.NewFromConfig(config(region, server.Client()), func(o *ec2.Options) { o.BaseEndpoint = aws.String(server.URL) })
}

func TestTheRetriesOfTheSDKGetTheSameFleet(t *testing.T) {
	a := newAccount(t)
	a.template("nodes")
	a.SetFaults(Scripts(Nth("CreateFleet", 1, Fault{After: true}), Nth("CreateFleet", 2, Fault{Code: "RequestLimitExceeded"})))
	retrying := ec2.NewFromConfig(config(region, a.HTTPClient()), func(o *ec2.Options) {
		o.Retryer = retry.NewStandard(func(o *retry.StandardOptions) {
			o.Backoff = retry.BackoffDelayerFunc(func(int, error) (time.Duration, error) { return 0, nil })
		})
	})
	_, err := retrying.CreateFleet(ctx, a.fleetOf(1, "on-demand", a.over("m5.large", zoneA)))
	check(t, err)
	if n := len(a.Instances()); n != 1 {
		t.Errorf("%d instances, want 1", n)
	}
	if diff := cmp.Diff(map[string]int{"CreateLaunchTemplate": 1, "CreateFleet": 3}, a.Calls()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	log := a.Log()
	if len(log) != 4 || log[1].Fault == nil || log[2].Fault.Code != "RequestLimitExceeded" || log[3].Fault != nil || !strings.Contains(log[3].Body, "Action=CreateFleet") {
		t.Errorf("log: %+v", log)
	}
}

func TestACallThatHangsEndsWithItsContext(t *testing.T) {
	a := newAccount(t)
	a.SetFaults(Every("DescribeSubnets", Fault{Hang: true}))
	short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	_, err := a.ec2.DescribeSubnets(short, &ec2.DescribeSubnetsInput{})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the end of the context", err)
	}
	a.SetFaults(nil)
	_, err = a.ec2.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{})
	check(t, err)
}

func TestManyClientsAtOnce(t *testing.T) {
	a := newAccount(t)
	a.template("nodes")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := a.ec2.CreateFleet(ctx, a.fleetOf(2, "on-demand", a.over("m5.large", zoneA))); err != nil {
				t.Error(err)
			}
			if _, err := a.ec2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	a.pass(time.Minute)
	if n := len(a.Instances()); n != 16 {
		t.Errorf("%d instances, want 16", n)
	}
}

func TestCallsThatAreForNobodyAreRefused(t *testing.T) {
	a := newAccount(t)
	_, err := ec2.NewFromConfig(config("eu-west-1", a.HTTPClient())).DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{})
	wantRefusal(t, err, "SignatureDoesNotMatch")
	for _, tc := range []struct {
		name, authorization, want string
	}{
		{"without a signature", "", "MissingAuthenticationToken"},
		{"with half a signature", "AWS4-HMAC-SHA256 Credential=A/20260406, SignedHeaders=host", "MissingAuthenticationToken"},
		{"for another service", "AWS4-HMAC-SHA256 Credential=A/20260406/ap-northeast-2/s3/aws4_request, SignedHeaders=host", "UnknownOperationException"},
	} {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.Header.Set("Authorization", tc.authorization)
		w := httptest.NewRecorder()
		a.ServeHTTP(w, r)
		if got := w.Header().Get("X-Amzn-ErrorType"); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
}

func TestAnAccountNeedsAPlace(t *testing.T) {
	data, err := catalog.Embedded(region)
	check(t, err)
	w := sim.NewWorld(sim.Options{Start: t0})
	for name, o := range map[string]Options{
		"no catalog":                   {Cluster: "myeks"},
		"no cluster":                   {Catalog: data},
		"a zone that does not exist":   {Cluster: "myeks", Catalog: data, Zones: []string{"moon-1a"}},
		"a subnet in an unknown place": {Cluster: "myeks", Catalog: data, Subnets: []Subnet{{ID: "subnet-1", Zone: "moon-1a"}}},
	} {
		if _, err := New(w, o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
