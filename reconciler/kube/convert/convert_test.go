package convert

import (
	"testing"
	"time"

	"github.com/awslabs/operatorpkg/status"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/resources"
)

var at = time.Date(2026, 4, 6, 12, 0, 0, 0, time.UTC)

func cpus(q string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(q)}
}

func pod(name string, change func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: cpus("1")}}}
	if change != nil {
		change(p)
	}
	return p
}

func scheduled(reason string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{
			{Type: corev1.PodReady, Reason: corev1.PodReasonUnschedulable},
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason},
		}
	}
}

func TestAPodHasOneState(t *testing.T) {
	pending := scheduled(corev1.PodReasonUnschedulable)
	tests := []struct {
		name   string
		change func(*corev1.Pod)
		want   State
	}{
		{"the scheduler found no room", pending, Pending},
		{"the scheduler has not looked", nil, Unseen},
		{"a gate holds it", scheduled(corev1.PodReasonSchedulingGated), Gated},
		{"it is on a node", func(p *corev1.Pod) { pending(p); p.Spec.NodeName = "n" }, Bound},
		{"it has ended on a node", func(p *corev1.Pod) { p.Spec.NodeName, p.Status.Phase = "n", corev1.PodSucceeded }, Ended},
		{"it was evicted", func(p *corev1.Pod) { pending(p); p.Status.Phase = corev1.PodFailed }, Ended},
		{"it was deleted before it was bound", func(p *corev1.Pod) { pending(p); p.DeletionTimestamp = &metav1.Time{Time: at} }, Ending},
		{"others make room for it", func(p *corev1.Pod) { pending(p); p.Status.NominatedNodeName = "n" }, Preempting},
		{"a DaemonSet makes it for a node", func(p *corev1.Pod) {
			pending(p)
			p.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet"}}
		}, OfNode},
		{"a kubelet runs it by itself", func(p *corev1.Pod) { pending(p); p.OwnerReferences = []metav1.OwnerReference{{Kind: "Node"}} }, OfNode},
	}
	for _, tc := range tests {
		if got := StateOf(pod("a", tc.change)); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
}

func node(name, provider string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"a": "b"}}}
	n.Spec.ProviderID = provider
	n.Status.Capacity, n.Status.Allocatable = cpus("4"), cpus("3900m")
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return n
}

func claim(name, provider string) *karpv1.NodeClaim {
	c := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.Status.ProviderID = provider
	c.Status.Conditions = []status.Condition{{Type: karpv1.ConditionTypeLaunched, Status: metav1.ConditionTrue, LastTransitionTime: metav1.Time{Time: at}}}
	return c
}

// joined are node and claim by key.
func joined(s *cluster.Snapshot) map[string][2]string {
	out := map[string][2]string{}
	for _, n := range s.Nodes {
		c := ""
		if n.Claim != nil {
			c = n.Claim.Name
		}
		out[n.Key()] = [2]string{n.Name, c}
	}
	return out
}

func TestNodesAndClaimsAreJoinedByTheirProvider(t *testing.T) {
	o := Objects{
		Nodes: []*corev1.Node{node("one", "aws:///a/i-1"), node("two", "aws:///a/i-2"), node("twin", "aws:///a/i-3"), node("twin2", "aws:///a/i-3"), node("bare", "")},
		NodeClaims: []*karpv1.NodeClaim{
			claim("c-1", "aws:///a/i-1"), claim("c-1-again", "aws:///a/i-1"), claim("c-3", "aws:///a/i-3"), claim("c-new", ""), claim("c-4", "aws:///a/i-4"),
		},
	}
	want := map[string][2]string{
		"c-1": {"one", "c-1"}, "c-1-again": {"", "c-1-again"}, "two": {"two", ""}, "twin": {"twin", ""}, "twin2": {"twin2", ""},
		"c-3": {"", "c-3"}, "c-new": {"", "c-new"}, "c-4": {"", "c-4"}, "bare": {"bare", ""},
	}
	if diff := cmp.Diff(want, joined(o.Snapshot(at))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestANodeIsAsItsObjectsSay(t *testing.T) {
	earlier, later := metav1.Time{Time: at.Add(-time.Hour)}, metav1.Time{Time: at}
	n, c := node("one", "p"), claim("c", "p")
	n.DeletionTimestamp, c.DeletionTimestamp = &earlier, &later
	n.Spec.Unschedulable = true
	n.Spec.Taints = []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoSchedule}}
	got := (&Objects{Nodes: []*corev1.Node{n}, NodeClaims: []*karpv1.NodeClaim{c}, Pods: []*corev1.Pod{
		pod("b", func(p *corev1.Pod) { p.Spec.NodeName = "one" }),
		pod("a", func(p *corev1.Pod) { p.Status.NominatedNodeName = "one" }),
		pod("elsewhere", func(p *corev1.Pod) { p.Spec.NodeName = "gone" }),
	}}).Snapshot(at).Nodes
	want := []*cluster.Node{{
		Name: "one", ProviderID: "p", Labels: map[string]string{"a": "b"},
		Taints:   []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoSchedule}, {Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}},
		Capacity: resources.List{"cpu": 4000}, Allocatable: resources.List{"cpu": 3900},
		Ready: true, Deleting: true, DeletedAt: at,
	}}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(cluster.Node{}, "Claim", "Pods")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if keys := []string{got[0].Pods[0].Key(), got[0].Pods[1].Key()}; len(got[0].Pods) != 2 || !cmp.Equal(keys, []string{"default/a", "default/b"}) || !got[0].Pods[0].Preempting {
		t.Errorf("pods %v", keys)
	}
	if len(n.Spec.Taints) != 1 {
		t.Error("the object was changed")
	}
	n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
	if got := (&Objects{Nodes: []*corev1.Node{n}}).Snapshot(at).Nodes[0]; len(got.Taints) != 2 {
		t.Errorf("a cordon that is there already is added: %v", got.Taints)
	}
}

func TestABudgetIsAsEvictionsMeetIt(t *testing.T) {
	budget := func(change func(*policyv1.PodDisruptionBudget)) *policyv1.PodDisruptionBudget {
		b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "b", Generation: 2}}
		b.Status.ObservedGeneration, b.Status.DisruptionsAllowed = 2, 3
		change(b)
		return b
	}
	always, healthy := policyv1.AlwaysAllow, policyv1.IfHealthyBudget
	tests := []struct {
		name   string
		change func(*policyv1.PodDisruptionBudget)
		want   cluster.PodDisruptionBudget
	}{
		{"its status counts", func(*policyv1.PodDisruptionBudget) {}, cluster.PodDisruptionBudget{Allowed: 3}},
		{"its controller has not seen the latest change", func(b *policyv1.PodDisruptionBudget) { b.Generation = 3 }, cluster.PodDisruptionBudget{}},
		{"less than nothing is nothing", func(b *policyv1.PodDisruptionBudget) { b.Status.DisruptionsAllowed = -1 }, cluster.PodDisruptionBudget{}},
		{"unready pods may always go", func(b *policyv1.PodDisruptionBudget) { b.Spec.UnhealthyPodEvictionPolicy = &always }, cluster.PodDisruptionBudget{Allowed: 3, AlwaysAllow: true}},
		{"unready pods count", func(b *policyv1.PodDisruptionBudget) { b.Spec.UnhealthyPodEvictionPolicy = &healthy }, cluster.PodDisruptionBudget{Allowed: 3}},
	}
	for _, tc := range tests {
		tc.want.Namespace, tc.want.Name = "n", "b"
		got := (&Objects{Budgets: []*policyv1.PodDisruptionBudget{budget(tc.change)}}).Snapshot(at).Budgets
		if diff := cmp.Diff([]*cluster.PodDisruptionBudget{&tc.want}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

func daemonSet(name string) *appsv1.DaemonSet {
	ds := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name, UID: types.UID("uid-" + name)}}
	spec := &ds.Spec.Template.Spec
	spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Limits: cpus("100m")}}}
	spec.InitContainers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: cpus("50m"), Limits: cpus("1")}}}
	spec.PriorityClassName = "system-node-critical"
	spec.HostNetwork = true
	spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}
	return ds
}

func TestADaemonSetIsThePodThatItWouldMake(t *testing.T) {
	gone := daemonSet("gone")
	gone.DeletionTimestamp = &metav1.Time{Time: at}
	ds := daemonSet("logs")
	got := (&Objects{DaemonSets: []*appsv1.DaemonSet{ds, gone}}).Snapshot(at).DaemonSets
	if len(got) != 1 || got[0].Key() != "kube-system/logs" {
		t.Fatalf("%v", got)
	}
	sh := got[0].Shape
	if diff := cmp.Diff(resources.List{"cpu": 100, "pods": 1}, sh.Requests); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if sh.Owner != (cluster.Owner{Kind: "DaemonSet", Name: "logs"}) || sh.Priority != 2_000_001_000 || *sh.GracePeriodSeconds != 30 || sh.SchedulerName != "" {
		t.Errorf("%+v", sh)
	}
	if n := len(sh.Tolerations); n != 7 {
		t.Errorf("%d tolerations: %v", n, sh.Tolerations)
	}
	if ds.Spec.Template.Spec.Containers[0].Resources.Requests != nil || ds.Spec.Template.Spec.Tolerations != nil {
		t.Error("the object was changed")
	}
}

func TestPodsOfADaemonSetShareAShape(t *testing.T) {
	ds := daemonSet("logs")
	on := func(node string) *corev1.Pod {
		p := pod("logs-"+node, nil)
		p.Spec.NodeName = node
		p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(ds, appsv1.SchemeGroupVersion.WithKind("DaemonSet"))}
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}}},
		}}}
		return p
	}
	for _, sets := range [][]*appsv1.DaemonSet{{ds}, nil} {
		s := (&Objects{Nodes: []*corev1.Node{node("a", "1"), node("b", "2")}, Pods: []*corev1.Pod{on("a"), on("b")}, DaemonSets: sets}).Snapshot(at)
		a, b := s.Nodes[0].Pods[0].Shape, s.Nodes[1].Pods[0].Shape
		if a != b {
			t.Errorf("with %d DaemonSets: shapes %s and %s", len(sets), a.ID, b.ID)
		}
		if want := len(sets) > 0; (a.Affinity != nil) != want {
			t.Errorf("with %d DaemonSets: affinity %v", len(sets), a.Affinity)
		}
	}
}

func TestAPodThatNobodyHasSeenIsCompleted(t *testing.T) {
	o := Objects{PriorityClasses: []*schedulingv1.PriorityClass{
		{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 1000},
		{ObjectMeta: metav1.ObjectMeta{Name: "usual"}, Value: 10, GlobalDefault: true},
	}}
	tests := []struct {
		class string
		own   *int32
		want  int32
	}{
		{"high", nil, 1000}, {"", nil, 10}, {"system-cluster-critical", nil, 2_000_000_000}, {"unknown", nil, 0}, {"high", new(int32(7)), 7},
	}
	for _, tc := range tests {
		p := pod("a", func(p *corev1.Pod) { p.Spec.PriorityClassName, p.Spec.Priority = tc.class, tc.own })
		p.Spec.Tolerations = []corev1.Toleration{{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists}}
		o.Complete(p)
		if *p.Spec.Priority != tc.want {
			t.Errorf("class %q: priority %d, want %d", tc.class, *p.Spec.Priority, tc.want)
		}
		if n := len(p.Spec.Tolerations); n != 2 || p.Spec.Tolerations[1].Key != corev1.TaintNodeUnreachable || *p.Spec.Tolerations[1].TolerationSeconds != 300 {
			t.Errorf("tolerations %v", p.Spec.Tolerations)
		}
	}
	bare := pod("a", func(p *corev1.Pod) { p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: cpus("2")} })
	o.Complete(bare)
	if got := cluster.NewShape(bare).Requests; got["cpu"] != 2000 {
		t.Errorf("a limit without a request: %v", got)
	}
}
