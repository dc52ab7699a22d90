package aws_test

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/port"
	"github.com/reeve-project/reeve/reconciler/sim/awsapi"
)

func TestInstancesAreThoseOfTheCluster(t *testing.T) {
	a := newAccount(t)
	_, err := a.AddManaged("group", "m5.large", zoneA)
	check(t, err)
	spot := a.request(t, 2, karpv1.CapacityTypeSpot, "c5a.2xlarge")
	_, err = a.cloud.Launch(ctx, next(spot, 7, 2))
	check(t, err)
	foreign := next(spot, 8, 1)
	foreign.Tags = map[string]string{"karpenter.sh/nodepool": "default", "karpenter.k8s.aws/ec2nodeclass": "default", "eks:eks-cluster-name": "another"}
	_, err = a.cloud.Launch(ctx, foreign)
	check(t, err)
	list := mustList(t, a.cloud)
	if len(list) != 2 || !slices.IsSorted(ids(list)) {
		t.Fatalf("listed %v", ids(list))
	}
	real, _ := a.Instance(list[0].ID)
	want := port.Instance{
		ID: real.ID, ProviderID: real.ProviderID, InstanceType: "c5a.2xlarge", Zone: real.Zone, CapacityType: "spot", ImageID: imageX86,
		Tags: real.Tags, Launched: t0.Truncate(time.Millisecond), State: "pending", Decision: decided, Group: 7,
	}
	if diff := cmp.Diff(want, list[0]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	t.Run("with the claim that they were tagged for", func(t *testing.T) {
		check(t, a.cloud.Tag(ctx, real.ID, map[string]string{"karpenter.sh/nodeclaim": "default-abc", "Name": "ip-10-0-0-4"}))
		if in := mustList(t, a.cloud)[0]; in.Claim != "default-abc" || in.Tags["Name"] != "ip-10-0-0-4" {
			t.Errorf("claim %q, tags %v", in.Claim, in.Tags)
		}
	})
}

func TestAnInstanceThatIsNotOursToNumberHasNoGroup(t *testing.T) {
	for value, want := range map[string]int{"": -1, "x": -1, "-3": -1, "12": 12} {
		a := newAccount(t)
		out, err := a.cloud.Launch(ctx, a.request(t, 1, karpv1.CapacityTypeOnDemand, "m5.large"))
		check(t, err)
		check(t, a.cloud.Tag(ctx, out.Instances[0].ID, map[string]string{port.GroupTag: value}))
		if in := mustList(t, a.cloud)[0]; in.Group != want {
			t.Errorf("tag %q: group %d, want %d", value, in.Group, want)
		}
	}
}

func TestTagOfAnInstanceThatIsGone(t *testing.T) {
	a := newAccount(t)
	if err := a.cloud.Tag(ctx, "i-0123456789abcdef0", map[string]string{"a": "b"}); !errors.Is(err, port.ErrNotFound) {
		t.Errorf("tag: %v", err)
	}
	check(t, a.cloud.Tag(ctx, "i-0123456789abcdef0", nil))
}

func TestTerminate(t *testing.T) {
	a := newAccount(t)
	out, err := a.cloud.Launch(ctx, a.request(t, 5, karpv1.CapacityTypeOnDemand, "m5.large"))
	check(t, err)
	all := ids(out.Instances)
	running := func() int {
		n := 0
		for _, in := range a.Instances() {
			if in.State == "pending" || in.State == "running" {
				n++
			}
		}
		return n
	}
	t.Run("what is gone is success and does not keep others alive", func(t *testing.T) {
		check(t, a.cloud.Terminate(ctx, []string{"i-0aaaaaaaaaaaaaaaa", all[0], "i-0bbbbbbbbbbbbbbbb", all[1], all[1]}))
		if running() != 3 || a.Calls()["TerminateInstances"] != 3 {
			t.Errorf("%d run, calls %v", running(), a.Calls())
		}
	})
	t.Run("what has been terminated already is success", func(t *testing.T) {
		check(t, a.cloud.Terminate(ctx, all[:2]))
	})
	t.Run("nothing is success without a call", func(t *testing.T) {
		before := a.Calls()["TerminateInstances"]
		check(t, a.cloud.Terminate(ctx, nil))
		if a.Calls()["TerminateInstances"] != before {
			t.Error("EC2 was called")
		}
	})
	t.Run("one that EC2 does not let go keeps only itself", func(t *testing.T) {
		a.SetFaults(func(c awsapi.Call) *awsapi.Fault {
			if c.Action == "TerminateInstances" && strings.Contains(c.Body, all[3]) {
				return &awsapi.Fault{Code: "OperationNotPermitted", Message: "The instance '" + all[3] + "' may not be terminated."}
			}
			return nil
		})
		err := a.cloud.Terminate(ctx, all)
		if !port.IsTerminal(err) || !strings.Contains(err.Error(), "instance "+all[3]) || running() != 1 {
			t.Errorf("terminate: %v; %d run", err, running())
		}
		var refused *port.TerminateError
		if !errors.As(err, &refused) || !slices.Equal(refused.Instances, all[3:4]) {
			t.Errorf("the error names %+v, want only %s", refused, all[3])
		}
	})
	t.Run("a throttle is tried again later as it was", func(t *testing.T) {
		a.SetFaults(awsapi.Every("TerminateInstances", awsapi.Fault{Code: "RequestLimitExceeded"}))
		before := a.Calls()["TerminateInstances"]
		if err := a.cloud.Terminate(ctx, all); err == nil || port.IsTerminal(err) || a.Calls()["TerminateInstances"] != before+1 {
			t.Errorf("terminate: %v", err)
		}
	})
	t.Run("nor does a missing permission lead to more calls", func(t *testing.T) {
		a.SetFaults(awsapi.Every("TerminateInstances", awsapi.Fault{Code: "UnauthorizedOperation"}))
		before := a.Calls()["TerminateInstances"]
		if err := a.cloud.Terminate(ctx, all); !port.IsTerminal(err) || a.Calls()["TerminateInstances"] != before+1 {
			t.Errorf("terminate: %v", err)
		}
	})
}

func TestTerminateNamesAtMostFiveHundred(t *testing.T) {
	a := newAccount(t)
	var gone []string
	for i := range 1100 {
		gone = append(gone, fmt.Sprintf("i-0%016x", i))
	}
	// EC2 names all that it does not find.
	a.SetFaults(func(c awsapi.Call) *awsapi.Fault {
		form, err := url.ParseQuery(c.Body)
		check(t, err)
		var named []string
		for key, v := range form {
			if strings.HasPrefix(key, "InstanceId.") {
				named = append(named, v[0])
			}
		}
		if len(named) > 500 {
			t.Errorf("%d instances in one call", len(named))
		}
		return &awsapi.Fault{Code: "InvalidInstanceID.NotFound", Message: "The instance IDs '" + strings.Join(named, ", ") + "' do not exist"}
	})
	check(t, a.cloud.Terminate(ctx, gone))
	if n := a.Calls()["TerminateInstances"]; n != 3 {
		t.Errorf("%d calls", n)
	}
}

func TestMoreThanAPageOfInstances(t *testing.T) {
	a := newAccount(t, func(o *awsapi.Options) {
		o.Subnets = []awsapi.Subnet{{ID: subnetA1, Zone: zoneA, Free: 5000}, {ID: subnetB1, Zone: zoneB}}
	})
	req := a.request(t, 1, karpv1.CapacityTypeOnDemand, "m5.large")
	for group := range 3 {
		_, err := a.cloud.Launch(ctx, next(req, group, 500))
		check(t, err)
	}
	if list := mustList(t, a.cloud); len(list) != 1500 || a.Calls()["DescribeInstances"] != 2 {
		t.Errorf("listed %d by %v", len(list), a.Calls())
	}
	a.SetFaults(awsapi.Nth("DescribeInstances", 4, awsapi.Fault{Code: "Unavailable"}))
	if list, err := a.cloud.Instances(ctx); err == nil || list != nil {
		t.Errorf("a page is missing and there is no error; %d listed", len(list))
	}
}

func TestSweep(t *testing.T) {
	a := newAccount(t)
	one := a.request(t, 1, karpv1.CapacityTypeOnDemand, "m5.large")
	_, err := a.cloud.Launch(ctx, one)
	check(t, err)
	lost := again(a.request(t, 1, karpv1.CapacityTypeSpot, "m5.large"))
	a.SetFaults(awsapi.Every("CreateFleet", awsapi.Fault{Code: "Unavailable"}))
	if _, err := a.cloud.Launch(ctx, lost); err == nil {
		t.Fatal("no error")
	}
	a.SetFaults(nil)
	deleted := func() int { return a.Calls()["DeleteLaunchTemplate"] }
	t.Run("what was used within a minute stays", func(t *testing.T) {
		check(t, a.world.Clock.Advance(time.Minute))
		check(t, a.cloud.Sweep(ctx, nil))
		if deleted() != 0 {
			t.Errorf("%d deleted", deleted())
		}
	})
	t.Run("what an open launch needs stays", func(t *testing.T) {
		check(t, a.world.Clock.Advance(time.Minute))
		check(t, a.cloud.Sweep(ctx, nil))
		if deleted() != 1 {
			t.Errorf("%d deleted", deleted())
		}
	})
	t.Run("until it is answered", func(t *testing.T) {
		_, err := a.cloud.Launch(ctx, lost)
		check(t, err)
		check(t, a.world.Clock.Advance(2*time.Minute))
		check(t, a.cloud.Sweep(ctx, nil))
		check(t, a.cloud.Sweep(ctx, nil))
		if deleted() != 2 {
			t.Errorf("%d deleted", deleted())
		}
	})
	t.Run("or has waited for an hour", func(t *testing.T) {
		a.SetFaults(awsapi.Every("CreateFleet", awsapi.Fault{Code: "Unavailable"}))
		if _, err := a.cloud.Launch(ctx, again(lost)); err == nil {
			t.Fatal("no error")
		}
		check(t, a.world.Clock.Advance(2*time.Hour))
		check(t, a.cloud.Sweep(ctx, nil))
		if deleted() != 3 {
			t.Errorf("%d deleted", deleted())
		}
	})
}

func TestSweepTakesUpWhatAnEarlierProcessLeft(t *testing.T) {
	a := newAccount(t)
	req := a.request(t, 1, karpv1.CapacityTypeOnDemand, "m5.large", "m6g.large")
	_, err := a.cloud.Launch(ctx, req)
	check(t, err)
	foreign := next(req, 1, 1)
	foreign.Tags = map[string]string{"eks:eks-cluster-name": "another", "karpenter.k8s.aws/ec2nodeclass": "default"}
	_, err = a.cloud.Launch(ctx, foreign)
	check(t, err)
	other := a.newCloud(t, 1)
	check(t, other.Sweep(ctx, nil))
	check(t, a.world.Clock.Advance(2*time.Minute))
	a.SetFaults(awsapi.Nth("DeleteLaunchTemplate", 1, awsapi.Fault{After: true}))
	if err := other.Sweep(ctx, nil); err == nil || a.Calls()["DeleteLaunchTemplate"] != 2 {
		t.Errorf("sweep: %v, calls %v", err, a.Calls())
	}
	// The lost answer was to a call that did its work.
	check(t, other.Sweep(ctx, nil))
	check(t, other.Sweep(ctx, nil))
	if n := a.Calls()["DeleteLaunchTemplate"]; n != 3 {
		t.Errorf("%d calls", n)
	}
	if left := strings.Join(a.Leftovers(), "\n"); strings.Count(left, "launch template") != 2 {
		t.Errorf("left:\n%s", left)
	}
}
