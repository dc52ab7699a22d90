package awsapi

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/reeve-project/reeve/reconciler/sim"
)

func TestASpotInstanceIsWarnedTwoMinutesBeforeItsEnd(t *testing.T) {
	a := newAccount(t)
	var got []string
	note := func(what string) func(Instance) {
		return func(in Instance) { got = append(got, a.world.Now().Sub(t0).String()+" "+what+in.State) }
	}
	a.OnState(note(""))
	a.OnWarning(note("warned while "))
	a.template("nodes")
	out, err := a.ec2.CreateFleet(ctx, a.fleetOf(1, "spot", a.over("m5.large", zoneA)))
	check(t, err)
	id := out.Instances[0].InstanceIds[0]
	a.pass(time.Minute)
	check(t, a.SpotWarning(id))
	a.pass(5 * time.Minute)
	want := []string{"0s pending", "5s running", "1m0s warned while running", "3m0s shutting-down", "3m20s terminated"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what happened (-want +got):\n%s", diff)
	}
	if nodes := sim.List[*corev1.Node](a.world.API); len(nodes) != 0 {
		t.Errorf("%d nodes are left", len(nodes))
	}
	if err := a.SpotWarning(id); err == nil {
		t.Error("an instance that is gone was warned")
	}
}

func TestANodeOfAManagedGroupIsNoneOfOurs(t *testing.T) {
	a := newAccount(t)
	name, err := a.AddManaged("system", "m5.large", zoneA)
	check(t, err)
	n := a.node(name)
	if n.Labels["eks.amazonaws.com/nodegroup"] != "system" || len(n.Spec.Taints) != 0 || n.Status.Allocatable.Cpu().String() != "1930m" || n.Status.Allocatable.Memory().String() != "6903Mi" {
		t.Errorf("node %s: labels %v, taints %v, allocatable %v", name, n.Labels, n.Spec.Taints, n.Status.Allocatable)
	}
	if left := a.Leftovers(); len(left) != 0 {
		t.Errorf("left over: %v", left)
	}
	_, err = a.ec2.CreateTags(ctx, &ec2.CreateTagsInput{Resources: []string{a.Instances()[0].ID}, Tags: []types.Tag{{Key: new("karpenter.sh/nodepool"), Value: new("x")}}})
	check(t, err)
	if left := a.Leftovers(); len(left) != 1 {
		t.Errorf("left over: %v, want the tag", left)
	}
	for _, bad := range [][2]string{{"m5.huge", zoneA}, {"m5.large", "moon-1a"}} {
		if _, err := a.AddManaged("system", bad[0], bad[1]); err == nil {
			t.Errorf("%v was added", bad)
		}
	}
}

func TestAnInstanceWhoseUserDataIsWrongRunsWithoutANode(t *testing.T) {
	a := newAccount(t)
	a.template("nodes", func(d *types.RequestLaunchTemplateData) { d.UserData = encoded(bottlerocketWithoutCluster) })
	over := a.over("m5.large", zoneA)
	for _, im := range a.Endpoint.ec2.images {
		if im.Family == "bottlerocket" && im.Architecture == "x86_64" {
			over.ImageId = new(im.ID)
			break
		}
	}
	out, err := a.ec2.CreateFleet(ctx, a.fleetOf(1, "on-demand", over))
	check(t, err)
	a.pass(10 * time.Minute)
	in, _ := a.Instance(out.Instances[0].InstanceIds[0])
	if in.State != "running" || in.Trouble == "" || len(sim.List[*corev1.Node](a.world.API)) != 0 {
		t.Errorf("instance is %s with trouble %q and %d nodes", in.State, in.Trouble, len(sim.List[*corev1.Node](a.world.API)))
	}
	if _, ok := a.Instance("i-0"); ok {
		t.Error("there is an instance i-0")
	}
}

const bottlerocketWithoutCluster = "[settings.kubernetes]\napi-server = 'https://x'\n"

func TestStatusChecksTellWhatIsImpairedAndPlanned(t *testing.T) {
	a := newAccount(t)
	a.template("nodes")
	out, err := a.ec2.CreateFleet(ctx, a.fleetOf(2, "on-demand", a.over("m5.large", zoneA)))
	check(t, err)
	bad, planned := out.Instances[0].InstanceIds[0], out.Instances[0].InstanceIds[1]
	found := func(all bool, f ...types.Filter) (ids []string) {
		out, err := a.ec2.DescribeInstanceStatus(ctx, &ec2.DescribeInstanceStatusInput{Filters: f, IncludeAllInstances: &all})
		check(t, err)
		for _, s := range out.InstanceStatuses {
			ids = append(ids, *s.InstanceId)
		}
		return ids
	}
	if got := found(false); len(got) != 0 {
		t.Errorf("pending instances are told of: %v", got)
	}
	if got := found(true); len(got) != 2 {
		t.Errorf("all instances are %v", got)
	}
	a.pass(time.Minute)
	check(t, a.SetHealth(bad, Health{System: "impaired", Since: new(t0)}))
	check(t, a.SetHealth(planned, Health{Events: []HealthEvent{{Code: "instance-retirement", NotBefore: t0.Add(time.Hour), Description: "old"}}}))
	if diff := cmp.Diff([]string{bad}, found(false, filter("system-status.status", "impaired"))); diff != "" {
		t.Errorf("impaired (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{planned}, found(false, filter("event.code", "instance-reboot", "instance-retirement"))); diff != "" {
		t.Errorf("planned (-want +got):\n%s", diff)
	}
	if got := found(false, filter("instance-status.status", "impaired")); len(got) != 0 {
		t.Errorf("instance checks are impaired of %v", got)
	}
	status, err := a.ec2.DescribeInstanceStatus(ctx, &ec2.DescribeInstanceStatusInput{InstanceIds: []string{bad}})
	check(t, err)
	if d := status.InstanceStatuses[0].SystemStatus.Details[0]; d.Status != types.StatusTypeFailed || !d.ImpairedSince.Equal(t0) {
		t.Errorf("details %+v", d)
	}
	if err := a.SetHealth("i-0", Health{}); err == nil {
		t.Error("an unknown instance has health")
	}
}

func TestTwoRunsAreEqual(t *testing.T) {
	run := func() []Instance {
		a := newAccount(t)
		a.template("nodes")
		in := a.fleetOf(3, "spot", a.over("m5.large", zoneA), a.over("c5.large", zoneB))
		in.ClientToken = new("token")
		_, err := a.ec2.CreateFleet(ctx, in)
		check(t, err)
		a.pass(time.Minute)
		return a.Instances()
	}
	if diff := cmp.Diff(run(), run()); diff != "" {
		t.Errorf("instances (-first +second):\n%s", diff)
	}
}
