package aws_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/aws"
	"github.com/reeve-project/reeve/reconciler/port"
	"github.com/reeve-project/reeve/reconciler/sim/awsapi"
)

// TestNothingIsLaunchedTwice repeats the launch of one token through faults of
// every kind, with restarts in between, until it is answered.
func TestNothingIsLaunchedTwice(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 3))
			a := newAccount(t)
			req := a.request(t, 1+r.IntN(5), karpv1.CapacityTypeOnDemand, "c5a.2xlarge", "m6g.2xlarge", "m5.2xlarge")
			a.SetFaults(faulty(r))
			cloud := a.newCloud(t, 1+r.IntN(3))
			out := launchThroughFaults(t, r, a, cloud, req)
			if len(out.Instances) != len(req.Claims) || len(a.Instances()) != len(req.Claims) {
				t.Errorf("%d claims: %d instances in the answer, %d in EC2", len(req.Claims), len(out.Instances), len(a.Instances()))
			}
		})
	}
}

// faulty is a script that has half of the calls fail, before or after their
// effect.
func faulty(r *rand.Rand) awsapi.Script {
	all := []awsapi.Fault{
		{}, {After: true}, {After: true, Truncate: true}, {Code: "RequestLimitExceeded"}, {Code: "RequestLimitExceeded", After: true},
		{Code: "InternalError"}, {Code: "InternalError", After: true}, {Code: "Unavailable", After: true}, {Code: "ExpiredToken", Status: 403},
	}
	return func(awsapi.Call) *awsapi.Fault {
		if r.IntN(2) == 0 {
			return nil
		}
		return &all[r.IntN(len(all))]
	}
}

func launchThroughFaults(t *testing.T, r *rand.Rand, a *account, cloud *aws.Cloud, req port.LaunchRequest) port.LaunchResult {
	t.Helper()
	for range 200 {
		if r.IntN(4) == 0 {
			cloud = a.newCloud(t, 1+r.IntN(3))
		}
		out, err := cloud.Launch(ctx, req)
		if err == nil {
			return out
		}
		if port.IsTerminal(err) || errors.Is(err, port.ErrInsufficientCapacity) || errors.Is(err, port.ErrTokenUsed) {
			t.Fatalf("a fault that goes away is %v", err)
		}
		check(t, a.world.Clock.Advance(10*time.Second))
	}
	t.Fatal("the launch was never answered")
	return port.LaunchResult{}
}

func TestAnEndpointThatHangsHoldsUpACallForItsTimeOnly(t *testing.T) {
	a := newAccount(t)
	req := a.request(t, 1, karpv1.CapacityTypeOnDemand, "m5.large")
	a.SetFaults(awsapi.Every("CreateFleet", awsapi.Fault{Hang: true}))
	t.Run("that of the caller", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		defer cancel()
		if _, err := a.cloud.Launch(ctx, req); !errors.Is(err, context.DeadlineExceeded) || port.IsTerminal(err) {
			t.Errorf("launch: %v", err)
		}
	})
	t.Run("or that of the options", func(t *testing.T) {
		begin := time.Now()
		_, err := a.newCloud(t, 3, func(o *aws.Options) { o.CallTimeout = 20 * time.Millisecond }).Launch(ctx, req)
		if !errors.Is(err, context.DeadlineExceeded) || port.IsTerminal(err) || time.Since(begin) > 20*time.Second {
			t.Errorf("launch: %v after %s", err, time.Since(begin))
		}
	})
	a.SetFaults(nil)
	out, err := a.cloud.Launch(ctx, req)
	check(t, err)
	if len(out.Instances) != 1 || len(a.Instances()) != 1 {
		t.Errorf("launched %v", a.Instances())
	}
}

// TestEveryErrorOfCreateFleetSaysWhatToDo goes through the codes.
func TestEveryErrorOfCreateFleetSaysWhatToDo(t *testing.T) {
	const (
		noCapacity = "no capacity"
		retry      = "retry"
		wait       = "wait"
		terminal   = "terminal"
		spent      = "another token"
	)
	tests := map[string]string{}
	for kind, codes := range map[string][]string{
		noCapacity: {
			"InsufficientInstanceCapacity", "MaxSpotInstanceCountExceeded", "VcpuLimitExceeded", "UnfulfillableCapacity", "Unsupported",
			"InsufficientFreeAddressesInSubnet", "MaxFleetCountExceeded", "ReservationCapacityExceeded", "AuthFailure.ServiceLinkedRoleCreationNotPermitted",
		},
		retry: {
			"RequestLimitExceeded", "Throttling", "ThrottlingException", "TooManyRequestsException", "SlowDown", "InternalError", "InternalFailure",
			"ServiceUnavailable", "Unavailable", "RequestTimeout", "InvalidLaunchTemplateName.NotFoundException",
		},
		wait:  {"ExpiredToken", "ExpiredTokenException", "RequestExpired", "InvalidClientTokenId", "UnrecognizedClientException", "AuthFailure", "SignatureDoesNotMatch", "ResourceLimitExceeded"},
		spent: {"IdempotentParameterMismatch"},
		terminal: {
			"UnauthorizedOperation", "AccessDenied", "InvalidParameter", "InvalidParameterValue", "InvalidParameterCombination", "MissingParameter",
			"InvalidLaunchTemplateId.NotFound", "InvalidCapacityReservationId.NotFound", "InvalidAMIID.NotFound", "InvalidUserData.Malformed", "InvalidSubnetID.NotFound", "SomethingNew",
		},
	} {
		for _, c := range codes {
			tests[c] = kind
		}
	}
	for code, want := range tests {
		t.Run(code, func(t *testing.T) {
			a := newAccount(t)
			req := a.request(t, 1, karpv1.CapacityTypeSpot, "m5.large", "c5.large")
			a.SetFaults(awsapi.Every("CreateFleet", awsapi.Fault{Code: code}))
			out, err := a.cloud.Launch(ctx, req)
			var waiting *port.WaitError
			got := retry
			switch {
			case err == nil:
				t.Fatal("no error")
			case errors.Is(err, port.ErrInsufficientCapacity) && !port.IsTerminal(err):
				got = noCapacity
			case errors.Is(err, port.ErrTokenUsed) && !port.IsTerminal(err):
				got = spent
			case port.IsTerminal(err):
				got = terminal
			case errors.As(err, &waiting) && waiting.After > 0:
				got = wait
			}
			if got != want || (want == noCapacity) != (len(out.Refused) == len(req.Offerings)) || !strings.Contains(err.Error(), code) {
				t.Errorf("%s, want %s: %v; refused %d of %d", got, want, err, len(out.Refused), len(req.Offerings))
			}
		})
	}
}

func TestAnErrorTellsWhichPermissionIsMissing(t *testing.T) {
	for _, action := range []string{"CreateFleet", "CreateLaunchTemplate", "DescribeLaunchTemplates"} {
		a := newAccount(t)
		req := a.request(t, 1, karpv1.CapacityTypeOnDemand, "m5.large")
		a.SetFaults(awsapi.Every(action, awsapi.Fault{Code: "UnauthorizedOperation", Message: "You are not authorized to perform this operation."}))
		_, err := a.cloud.Launch(ctx, req)
		if !port.IsTerminal(err) || !strings.Contains(err.Error(), "allow ec2:"+action+" in its IAM policy") {
			t.Errorf("%s: %v", action, err)
		}
	}
}

func TestAnUnauthorizedImageIsNoMatterOfCredentials(t *testing.T) {
	a := newAccount(t)
	req := a.request(t, 1, karpv1.CapacityTypeOnDemand, "m5.large")
	a.SetFaults(awsapi.Every("CreateFleet", awsapi.Fault{Code: "AuthFailure", Message: "Not authorized for images: [ami-0123]"}))
	if _, err := a.cloud.Launch(ctx, req); !port.IsTerminal(err) {
		t.Errorf("launch: %v", err)
	}
}

func TestWhatIsWrongWithSomeOfTheOfferingsIsSaid(t *testing.T) {
	a := newAccount(t)
	req := a.request(t, 1, karpv1.CapacityTypeOnDemand, "m5.large", "m6g.large")
	req.Class.Status.AMIs[1].ID = "ami-0000000000000dead"
	out, err := a.cloud.Launch(ctx, req)
	check(t, err)
	if len(out.Instances) != 1 || len(out.Refused) != 0 || !strings.Contains(a.log.String(), "InvalidAMIID.NotFound") {
		t.Errorf("launched %v, refused %v, log %s", out.Instances, out.Refused, a.log)
	}
	t.Run("and when nothing else is left it is a terminal error", func(t *testing.T) {
		a.resolve(t, &req, "m6g.large")
		_, err := a.cloud.Launch(ctx, next(req, 1, 1))
		if !port.IsTerminal(err) || !strings.Contains(err.Error(), "correct the EC2NodeClass") {
			t.Errorf("launch: %v", err)
		}
	})
}

func TestACrashBetweenTemplatesAndFleetLeavesNothingBehind(t *testing.T) {
	a := newAccount(t)
	req := a.request(t, 2, karpv1.CapacityTypeOnDemand, "c5a.2xlarge", "m6g.2xlarge")
	for n := 1; n <= 2; n++ {
		a.SetFaults(awsapi.Nth("CreateLaunchTemplate", n, awsapi.Fault{After: true}))
		if _, err := a.newCloud(t, 1).Launch(ctx, req); err == nil {
			t.Fatal("no error")
		}
	}
	a.SetFaults(nil)
	cloud := a.newCloud(t, 1)
	_, err := cloud.Launch(ctx, req)
	check(t, err)
	check(t, cloud.Terminate(ctx, ids(mustList(t, cloud))))
	check(t, a.world.Clock.Advance(time.Hour))
	check(t, cloud.Sweep(ctx, nil))
	if left := a.Leftovers(); len(left) > 0 {
		t.Errorf("left behind: %s", strings.Join(left, "; "))
	}
}

func TestSpotIsRefusedAsAWholeWithoutItsRole(t *testing.T) {
	a := newAccount(t)
	req := a.request(t, 1, karpv1.CapacityTypeSpot, "m5.large", "c5.large")
	a.SetFaults(awsapi.Every("CreateFleet", awsapi.Fault{Code: "AuthFailure.ServiceLinkedRoleCreationNotPermitted", Message: "no role"}))
	out, err := a.cloud.Launch(ctx, req)
	if !errors.Is(err, port.ErrInsufficientCapacity) || len(out.Refused) != len(req.Offerings) || !strings.Contains(err.Error(), "create-service-linked-role") {
		t.Errorf("launch: %v, refused %v", err, out.Refused)
	}
	if !slices.ContainsFunc(out.Refused, func(r port.Refusal) bool { return r.Message == "no role" }) {
		t.Errorf("refused %+v", out.Refused)
	}
}

func mustList(t *testing.T, cloud *aws.Cloud) []port.Instance {
	t.Helper()
	list, err := cloud.Instances(ctx)
	check(t, err)
	return list
}
