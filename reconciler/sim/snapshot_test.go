package sim

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/cluster"
)

func snapshot(t *testing.T, e *estate) *cluster.Snapshot {
	t.Helper()
	s, err := e.cluster.Snapshot(ctx)
	check(t, err)
	return s
}

func TestASnapshotHoldsTheBudgets(t *testing.T) {
	e := newEstate(t)
	check(t, e.AddNode(machine("n", "cpu=4 memory=8Gi pods=10")))
	check(t, e.Apply(NewDeployment("default", "web", 3, amounts("cpu=1"))))
	amount := func(s string) *intstr.IntOrString { v := intstr.Parse(s); return &v }
	always := policyv1.AlwaysAllow
	for name, edit := range map[string]func(*policyv1.PodDisruptionBudgetSpec){
		"one-away": func(b *policyv1.PodDisruptionBudgetSpec) {
			b.MaxUnavailable, b.UnhealthyPodEvictionPolicy = amount("1"), &always
		},
		"none-away": func(b *policyv1.PodDisruptionBudgetSpec) { b.MinAvailable = amount("100%") },
		"too-many":  func(b *policyv1.PodDisruptionBudgetSpec) { b.MinAvailable = amount("7") },
		"malformed": func(b *policyv1.PodDisruptionBudgetSpec) { b.MinAvailable = amount("x") },
	} {
		check(t, e.Apply(pdb(name, edit)))
	}
	pass(t, e.World, 10*time.Second)
	value := func(name string, allowed int32) *cluster.PodDisruptionBudget {
		return &cluster.PodDisruptionBudget{Namespace: "default", Name: name, Selector: selectorOf("app=web"), Allowed: allowed, AlwaysAllow: name == "one-away"}
	}
	want := []*cluster.PodDisruptionBudget{value("malformed", 0), value("none-away", 0), value("one-away", 1), value("too-many", 0)}
	if diff := cmp.Diff(want, snapshot(t, e).Budgets); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestASnapshotSaysSinceWhenANodeIsDeleted(t *testing.T) {
	e := newEstate(t)
	e.provision(t, 60, "a", "b", "c")
	check(t, e.cluster.CreateClaim(ctx, claimOf("d", "d1", "3")))
	nodeOf := func(claim string) string { return snapshot(t, e).Node(claim).Name }
	check(t, e.Delete(KindNode, nodeOf("b")))
	pass(t, e.World, 10*time.Second)
	check(t, e.Delete(KindNodeClaim, "b"))
	check(t, e.Delete(KindNodeClaim, "c"))
	check(t, e.Delete(KindNodeClaim, "d"))
	check(t, e.Delete(KindNode, nodeOf("a")))
	got := map[string]string{}
	for _, n := range snapshot(t, e).Nodes {
		got[n.Key()] = "live"
		if n.Deleting {
			got[n.Key()] = n.DeletedAt.Sub(t0).String()
		}
	}
	// Of b the claim's time counts, of a the node's for want of another.
	if diff := cmp.Diff(map[string]string{"a": "1m10s", "b": "1m10s", "c": "1m10s", "d": "1m10s"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The events are those of Karpenter's podevents controller.
func TestPodEventsAreOnTheClaim(t *testing.T) {
	e := newEstate(t)
	check(t, e.Apply(NewDaemonSet("proxy", amounts("cpu=150m"))))
	e.provision(t, 60, "c")
	last := func() string {
		at := snapshot(t, e).Node("c").Claim.LastPodEvent
		if at.IsZero() {
			return "never"
		}
		return at.Sub(t0).String()
	}
	got := []string{"with daemons only: " + last()}
	step := func(what string, wait time.Duration, do func()) {
		pass(t, e.World, wait)
		do()
		pass(t, e.World, 3*time.Second)
		got = append(got, what+": "+last())
	}
	step("bound", 0, func() { check(t, e.Apply(pod(named("a")))) })
	step("another within ten seconds", 0, func() { check(t, e.Apply(pod(named("b")))) })
	step("another later", 10*time.Second, func() { check(t, e.Apply(pod(named("c")))) })
	step("ended", 10*time.Second, func() {
		check(t, Update(e.API, "test", "default/a", "", func(p *corev1.Pod) error { p.Status.Phase = corev1.PodSucceeded; return nil }))
	})
	step("an ended pod is removed", 10*time.Second, func() { check(t, e.Delete(KindPod, "default/a")) })
	step("begins to end", 10*time.Second, func() { check(t, e.Delete(KindPod, "default/b")) })
	step("a daemon ends", 10*time.Second, func() { check(t, e.Delete(KindDaemonSet, "kube-system/proxy")) })
	want := []string{
		"with daemons only: never", "bound: 1m0s", "another within ten seconds: 1m0s", "another later: 1m16s", "ended: 1m29s",
		"an ended pod is removed: 1m29s", "begins to end: 1m55s", "a daemon ends: 1m55s",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAPreemptingPodIsListedWithItsNode(t *testing.T) {
	e := newEstate(t)
	check(t, e.AddNode(machine("n", "cpu=4 memory=8Gi pods=10")))
	nominated := pod(named("vip"), func(p *corev1.Pod) {
		p.Spec.NodeSelector = labelsOf("not=here")
		p.Status.NominatedNodeName = "n"
	})
	check(t, e.API.Create("test", nominated))
	s := snapshot(t, e)
	n := s.Node("n")
	if len(s.Pending) != 0 || len(n.Pods) != 1 || !n.Pods[0].Preempting || n.Pods[0].Name != "vip" {
		t.Errorf("pending %v, on the node %v", s.Pending, n.Pods)
	}
	pods, err := e.cluster.Pods(ctx, "n")
	check(t, err)
	if len(pods) != 0 {
		t.Errorf("the API lists with the node %v", pods)
	}
}

func TestAPodEventOfNobodysNodeIsNobodys(t *testing.T) {
	e := newEstate(t)
	check(t, e.AddNode(machine("n", "cpu=4 memory=8Gi pods=10")))
	check(t, e.Apply(pod()))
	pass(t, e.World, time.Minute)
	if n := len(List[*karpv1.NodeClaim](e.API)); n != 0 {
		t.Errorf("%d claims", n)
	}
}
