package sim

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/port"
)

func TestAClaimBecomesANodeThatRunsPods(t *testing.T) {
	e := newEstate(t)
	check(t, e.Apply(NewDaemonSet("proxy", amounts("cpu=150m"))))
	deploy(t, e, 5)
	pass(t, e.World, time.Second)
	e.provision(t, 60, "default-one")
	got := lines(e.World, func(w Write) bool { return w.Kind == KindNodeClaim || w.Kind == KindNode })
	node := "ip-10-0-0-4.ap-northeast-2.compute.internal"
	want := []string{
		"1s reeve create NodeClaim default-one",
		"2s reeve update NodeClaim default-one (launched)",
		"31s kubelet create Node " + node,
		"31s reeve update Node " + node + " (Register)",
		"31s reeve update NodeClaim default-one (Register)",
		"41s kubelet update Node " + node + " (KubeletReady)",
		"41s kubelet update Node " + node + " (devices)",
		"41s pod-events update NodeClaim default-one (pod event)",
		"41s reeve update Node " + node + " (Initialize)",
		"41s reeve update NodeClaim default-one (Initialize)",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if running, _, _ := e.Pods("default", nil); running != 5 {
		t.Errorf("%d pods run", running)
	}
	n, err := Get[*corev1.Node](e.API, node)
	check(t, err)
	for label, value := range map[string]string{
		"karpenter.sh/nodepool": "default", "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true", "team": "a",
		"node.kubernetes.io/instance-type": "c5a.2xlarge", "topology.kubernetes.io/zone": zoneA, "karpenter.sh/capacity-type": "on-demand",
		"kubernetes.io/arch": "amd64", "kubernetes.io/hostname": node, "node-restriction.kubernetes.io/x": "y",
	} {
		if n.Labels[label] != value {
			t.Errorf("label %s is %q, want %q", label, n.Labels[label], value)
		}
	}
	if len(n.Spec.Taints) != 0 {
		t.Errorf("taints are left: %v", n.Spec.Taints)
	}
	nc, err := Get[*karpv1.NodeClaim](e.API, "default-one")
	check(t, err)
	if nc.Annotations["reeve.dev/price"] != "0.344" || nc.Status.NodeName != node || !strings.HasPrefix(nc.Status.ImageID, "ami-") {
		t.Errorf("claim: %+v", nc)
	}
}

func TestTheSnapshotIsTheCluster(t *testing.T) {
	e := newEstate(t)
	managed, err := e.cloud.AddManaged("system", "m5.large", zoneA)
	check(t, err)
	check(t, e.Apply(NewDaemonSet("proxy", amounts("cpu=150m"))))
	check(t, e.Apply(pod(named("gated"), func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "g"}} })))
	check(t, e.Apply(pod(named("other"), func(p *corev1.Pod) { p.Spec.SchedulerName = "other" })))
	check(t, e.Apply(pod(named("small"))))
	deploy(t, e, 5)
	e.provision(t, 35, "default-one", "default-two")
	check(t, Update(e.API, "test", managed, "", func(n *corev1.Node) error { n.Spec.Unschedulable = true; return nil }))
	e.cloud.Kill(e.cloud.list()[0].ID)
	pass(t, e.World, 0)

	s, err := e.cluster.Snapshot(ctx)
	check(t, err)
	var got []string
	for _, n := range s.Nodes {
		line := fmt.Sprintf("%s named %q ready=%v deleting=%v taints=%v", n.Key(), n.Name, n.Ready, n.Deleting, n.Taints)
		if c := n.Claim; c != nil {
			line += fmt.Sprintf(" claim %s/%d %s %s %s %v registered=%v", c.Decision, c.Index, c.InstanceType, c.Zone, c.Price, c.Allocatable["cpu"], c.Conditions.Registered)
		}
		for _, p := range n.Pods {
			line += " " + p.Shape.Owner.Kind + ":" + p.Namespace
		}
		got = append(got, line)
	}
	for _, p := range s.Pending {
		got = append(got, "pending "+p.Shape.Owner.Kind+" "+p.Shape.Requests.String())
	}
	want := []string{
		`default-one named "ip-10-0-0-5.ap-northeast-2.compute.internal" ready=false deleting=false taints=[{node.kubernetes.io/not-ready  NoSchedule <nil>}] claim d1/0 c5a.2xlarge ap-northeast-2a $0.344/h 7910 registered=true DaemonSet:kube-system`,
		`default-two named "ip-10-0-0-6.ap-northeast-2.compute.internal" ready=false deleting=false taints=[{node.kubernetes.io/not-ready  NoSchedule <nil>}] claim d1/1 c5a.2xlarge ap-northeast-2a $0.344/h 7910 registered=true DaemonSet:kube-system`,
		managed + ` named "` + managed + `" ready=true deleting=false taints=[{node.kubernetes.io/unschedulable  NoSchedule <nil>}] :default DaemonSet:kube-system`,
		"pending ReplicaSet cpu 1, pods 1", "pending ReplicaSet cpu 1, pods 1", "pending ReplicaSet cpu 1, pods 1", "pending ReplicaSet cpu 1, pods 1", "pending ReplicaSet cpu 1, pods 1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(s.DaemonSets) != 1 || s.DaemonSets[0].Shape != s.Nodes[2].Pods[1].Shape {
		t.Error("a daemon's pods do not have the shape of the DaemonSet")
	}
	if !s.Time.Equal(e.Now()) {
		t.Errorf("time %s", s.Time)
	}
}

func TestAProviderIDOfTwoNodesJoinsNone(t *testing.T) {
	e := newEstate(t)
	e.provision(t, 2, "default-one")
	in := e.cloud.list()[0]
	for _, n := range []string{"x", "y"} {
		m := machine(n, "cpu=1")
		m.ProviderID = in.ProviderID
		check(t, e.AddNode(m))
	}
	s, err := e.cluster.Snapshot(ctx)
	check(t, err)
	var got []string
	for _, n := range s.Nodes {
		got = append(got, fmt.Sprint(n.Key(), " ", n.Name, " ", n.Claim != nil))
	}
	if diff := cmp.Diff([]string{"default-one  true", "x x false", "y y false"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCreatingAClaimTwiceIsCreatingItOnce(t *testing.T) {
	e := newEstate(t)
	check(t, e.cluster.CreateClaim(ctx, claimOf("c", "d1", "0")))
	check(t, e.cluster.CreateClaim(ctx, claimOf("c", "d1", "0")))
	for _, other := range []*karpv1.NodeClaim{claimOf("c", "d2", "0"), claimOf("c", "d1", "1")} {
		if err := e.cluster.CreateClaim(ctx, other); !port.IsTerminal(err) {
			t.Errorf("another decision's claim: %v", err)
		}
	}
	stray := claimOf("d", "d1", "0")
	stray.Labels[karpv1.NodePoolLabelKey] = "gone"
	if err := e.cluster.CreateClaim(ctx, stray); err == nil {
		t.Error("a claim was created for a NodePool that is not there")
	}
	got := lines(e.World, func(w Write) bool { return w.Kind == KindNodeClaim })
	if diff := cmp.Diff([]string{"0s reeve create NodeClaim c"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	nc, err := Get[*karpv1.NodeClaim](e.API, "c")
	check(t, err)
	if nc.OwnerReferences[0].Name != "default" || nc.Finalizers[0] != "karpenter.sh/termination" {
		t.Errorf("claim %+v", nc.ObjectMeta)
	}
}

func TestLaunchesAreMarkedOnce(t *testing.T) {
	e := newEstate(t)
	e.provision(t, 2, "c")
	in := e.cloud.list()[0]
	n := len(e.API.Audit())
	check(t, e.cluster.MarkLaunched(ctx, "c", in))
	if len(e.API.Audit()) != n {
		t.Error("the same launch was written again")
	}
	in.ProviderID = "aws:///a/other"
	if err := e.cluster.MarkLaunched(ctx, "c", in); !port.IsTerminal(err) {
		t.Errorf("another instance: %v", err)
	}
	if err := e.cluster.MarkLaunchFailed(ctx, "c", "X", "y"); !port.IsTerminal(err) {
		t.Errorf("a launched claim's launch failed: %v", err)
	}
	check(t, e.cluster.CreateClaim(ctx, claimOf("d", "d1", "1")))
	check(t, e.cluster.MarkLaunchFailed(ctx, "d", "InsufficientCapacity", "none"))
	s, err := e.cluster.Snapshot(ctx)
	check(t, err)
	if got := s.Node("d").Claim.Conditions.LaunchFailed; got != "InsufficientCapacity: none" {
		t.Errorf("got %q", got)
	}
	for _, err := range []error{
		e.cluster.MarkLaunched(ctx, "x", in), e.cluster.MarkLaunchFailed(ctx, "x", "", ""), e.cluster.Register(ctx, "x", "n"),
		e.cluster.Register(ctx, "c", "n"), e.cluster.Taint(ctx, "n", corev1.Taint{}), e.cluster.Untaint(ctx, "n", corev1.Taint{}),
	} {
		if !errors.Is(err, port.ErrNotFound) {
			t.Errorf("something that is not there: %v", err)
		}
	}
	check(t, e.AddNode(machine("n", "cpu=1")))
	if err := e.cluster.Register(ctx, "c", "n"); !port.IsTerminal(err) {
		t.Errorf("a node of another instance: %v", err)
	}
}

func TestAClaimIsRemovedWithItsNode(t *testing.T) {
	e := newEstate(t)
	deploy(t, e, 2)
	e.provision(t, 60, "c")
	node := "ip-10-0-0-4.ap-northeast-2.compute.internal"
	disrupted := corev1.Taint{Key: karpv1.DisruptedTaintKey, Effect: corev1.TaintEffectNoSchedule}
	if err := e.cluster.Finalize(ctx, "c"); !port.IsTerminal(err) {
		t.Fatalf("a live claim was let go: %v", err)
	}
	from := len(e.API.Audit())
	for range 2 {
		check(t, e.cluster.Taint(ctx, node, disrupted))
		check(t, e.cluster.DeleteClaim(ctx, "c"))
	}
	pods, err := e.cluster.Pods(ctx, node)
	check(t, err)
	for _, p := range pods {
		check(t, e.cluster.Evict(ctx, p))
		check(t, e.cluster.Evict(ctx, p))
	}
	pass(t, e.World, 5*time.Second)
	for _, p := range pods {
		check(t, e.cluster.Evict(ctx, p))
	}
	pods, err = e.cluster.Pods(ctx, node)
	check(t, err)
	if len(pods) != 0 {
		t.Errorf("%d pods are left", len(pods))
	}
	in := e.cloud.list()[0]
	check(t, e.cloud.Terminate(ctx, []string{in.ID, "i-unknown"}))
	check(t, e.cloud.Terminate(ctx, []string{in.ID}))
	pass(t, e.World, time.Second)
	if got := e.cloud.list()[0].State; got != "shutting-down" {
		t.Errorf("state %s", got)
	}
	pass(t, e.World, time.Minute)
	for range 2 {
		check(t, e.cluster.Finalize(ctx, "c"))
	}
	check(t, e.cluster.DeleteClaim(ctx, "c"))
	pass(t, e.World, time.Minute)
	list, err := e.cloud.Instances(ctx)
	check(t, err)
	if n := len(List[*karpv1.NodeClaim](e.API)) + len(List[*corev1.Node](e.API)) + len(list); n != 0 {
		t.Errorf("%d things are left", n)
	}
	var verbs []string
	for _, w := range e.API.Audit()[from:] {
		if w.Kind == KindNode || w.Kind == KindNodeClaim {
			verbs = append(verbs, w.Actor+" "+w.Verb+" "+string(w.Kind))
		}
	}
	want := []string{
		"reeve update Node", "reeve delete NodeClaim", "pod-events update NodeClaim", "node-controller update Node", "node-controller delete Node",
		"reeve update Node", "reeve remove Node", "reeve update NodeClaim", "reeve remove NodeClaim",
	}
	if diff := cmp.Diff(want, verbs); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTaintsComeAndGoOnce(t *testing.T) {
	e := newEstate(t)
	check(t, e.AddNode(machine("n", "cpu=1")))
	for range 2 {
		check(t, e.cluster.Taint(ctx, "n", taint("a=b:NoSchedule")))
	}
	for range 2 {
		check(t, e.cluster.Untaint(ctx, "n", taint("a:NoSchedule")))
	}
	got := lines(e.World, func(w Write) bool { return w.Kind == KindNode })
	want := []string{"0s kubelet create Node n", "0s reeve update Node n (Taint a=b:NoSchedule)", "0s reeve update Node n (Untaint a:NoSchedule)"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestApplyMakesTheObjectsThoseOfTheFleet(t *testing.T) {
	e := newEstate(t)
	check(t, e.cluster.Apply(ctx, e.fleet))
	f := testFleet()
	f.NodePools[0].Spec.Weight = new(int32(5))
	second := f.NodePools[0].DeepCopy()
	second.Name = "second"
	f.NodePools = append(f.NodePools, second)
	check(t, e.cluster.Apply(ctx, f))
	check(t, e.cluster.CreateClaim(ctx, claimOf("c", "d1", "0")))
	f.NodePools = f.NodePools[1:]
	f.NodeClasses[0].Labels = labelsOf("a=b")
	check(t, e.cluster.Apply(ctx, f))
	pass(t, e.World, time.Second)
	got := lines(e.World, func(w Write) bool {
		return w.Kind == KindNodePool || w.Kind == KindNodeClass || w.Kind == KindNodeClaim
	})
	want := []string{
		"0s reeve create EC2NodeClass default", "0s reeve create NodePool default",
		"0s reeve update NodePool default (apply)", "0s reeve create NodePool second",
		"0s reeve create NodeClaim c",
		"0s reeve update EC2NodeClass default (apply)", "0s reeve remove NodePool default",
		"0s garbage-collector delete NodeClaim c",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEventsAreKept(t *testing.T) {
	e := newEstate(t)
	e.cluster.Event(ctx, "NodePool/default", true, "Denied", "no")
	want := []Event{{Time: t0, Resource: "NodePool/default", Warning: true, Reason: "Denied", Message: "no"}}
	if diff := cmp.Diff(want, e.API.Events()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheSameRunGivesTheSameWrites(t *testing.T) {
	run := func() string {
		e := newEstate(t)
		_, err := e.cloud.AddManaged("system", "m5.large", zoneB)
		check(t, err)
		check(t, e.Apply(NewDaemonSet("proxy", amounts("cpu=150m"))))
		deploy(t, e, 12)
		e.cloud.SetCapacity(Pool{"c5a.2xlarge", zoneA, "on-demand"}, 1)
		e.provision(t, 60, "one", "two")
		check(t, e.Scale("default/inflate", 3))
		e.cloud.Kill(e.cloud.list()[1].ID)
		pass(t, e.World, time.Minute)
		s, err := e.cluster.Snapshot(ctx)
		check(t, err)
		list, err := e.cloud.Instances(ctx)
		check(t, err)
		return fmt.Sprint(strings.Join(lines(e.World, func(Write) bool { return true }), "\n"), "\n", len(s.Nodes), summary(port.LaunchResult{Instances: list}))
	}
	first := run()
	for range 3 {
		if diff := cmp.Diff(first, run()); diff != "" {
			t.Fatalf("two runs differ (-first +second):\n%s", diff)
		}
	}
	if strings.Count(first, "\n") < 100 {
		t.Errorf("too little happened:\n%s", first)
	}
}
