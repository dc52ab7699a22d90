package scheduling

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/resources"
)

// unlaunched is a claim that was only just made for two pods of a CPU.
func unlaunched(instanceType string, nominated ...string) *cluster.Node {
	return &cluster.Node{Nominated: nominated, Claim: &cluster.Claim{
		Name: "default-1", NodePool: "default", NodeClass: "default", InstanceType: instanceType,
		Labels: map[string]string{nodePoolLabel: "default"}, Requests: cores(2000).Plus(resources.List{"pods": 2}),
	}}
}

func TestAClaimBeforeItsLaunch(t *testing.T) {
	inZone := func(sh *cluster.Shape) { sh.NodeSelector = map[string]string{corev1.LabelTopologyZone: "a"} }
	tests := []struct {
		name     string
		node     *cluster.Node
		pending  []*cluster.Pod
		limit    string
		placed   int
		claims   int
		unplaced int
	}{
		{"holds the pods it was made for, whatever zone they ask for", unlaunched("", "default/web-00000", "default/web-00001"), pods("web", 2, cores(1000), inZone), "10", 2, 0, 0},
		{"holds no others in a zone that is still open", unlaunched(""), pods("web", 2, cores(1000), inZone), "10", 0, 1, 0},
		{"has room for what it was made for", unlaunched(""), pods("web", 3, cores(1000)), "10", 2, 1, 0},
		{"has the room of its type once that is known", unlaunched("s4"), pods("web", 3, cores(1000)), "10", 3, 0, 0},
		{"counts in the limits with what it was made for", unlaunched(""), pods("web", 4, cores(1000)), "3", 2, 1, 1},
		{"counts in the limits with its type", unlaunched("s4"), pods("web", 5, cores(1000)), "4", 4, 0, 1},
		{"keeps no pod that it has no room for", unlaunched("", "default/big-00000"), pods("big", 1, cores(3000)), "10", 0, 1, 0},
	}
	for _, tc := range tests {
		np := onDemandPool("default")
		np.Spec.Limits = karpv1.Limits{"cpu": resource.MustParse(tc.limit)}
		in := input(tc.pending, commonTypes(), np)
		in.Snapshot.Nodes = []*cluster.Node{tc.node}
		plan, err := Solve(in)
		if err != nil {
			t.Fatal(err)
		}
		placed, unplaced := 0, 0
		for _, p := range plan.Placements {
			placed += len(p.Pods)
		}
		for _, u := range plan.Unplaced {
			unplaced += len(u.Pods)
		}
		if placed != tc.placed || len(plan.Claims) != tc.claims || unplaced != tc.unplaced {
			t.Errorf("a claim before its launch %s: %d placed, %d claims, %d unplaced; want %d, %d, %d", tc.name, placed, len(plan.Claims), unplaced, tc.placed, tc.claims, tc.unplaced)
		}
	}
}

// While a node starts it reports less than it will have; its claim knows.
func TestAStartingNodeHasTheRoomItsClaimExpects(t *testing.T) {
	n := asNode("n1", solve(t, input(pods("first", 1, cores(4000)), commonTypes(), onDemandPool("default"))).Claims[0])
	n.Pods, n.Claim.Conditions.Initialized = nil, false
	n.Capacity, n.Allocatable = resources.List{"cpu": 4000}, resources.List{"cpu": 4000}
	in := input(pods("web", 4, cores(1000)), commonTypes(), onDemandPool("default"))
	in.Snapshot.Nodes = []*cluster.Node{n}
	plan := solve(t, in)
	if len(plan.Placements) != 1 || len(plan.Placements[0].Pods) != 4 {
		t.Errorf("got %+v and %d claims", plan.Placements, len(plan.Claims))
	}
	n.Claim.Conditions.Initialized = true
	plan, err := Solve(in)
	if err != nil || len(plan.Placements) != 0 {
		t.Errorf("initialized without memory, but got %+v, %v", plan.Placements, err)
	}
}

func TestAntiAffinityThatIsNotHandledIsNamed(t *testing.T) {
	term := corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}
	zone, selector, keys, everywhere := term, term, term, term
	zone.TopologyKey = corev1.LabelTopologyZone
	selector.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "x"}}
	keys.MatchLabelKeys = []string{"version"}
	everywhere.NamespaceSelector = &metav1.LabelSelector{}
	for want, term := range map[string]corev1.PodAffinityTerm{
		"required pod anti-affinity over topology.kubernetes.io/zone is not handled yet": zone,
		"required pod anti-affinity with a namespace selector is not handled yet":        selector,
		"required pod anti-affinity with label keys to match is not handled yet":         keys,
		"": everywhere,
	} {
		plan := solve(t, input(pods("web", 2, cores(1000), func(sh *cluster.Shape) {
			sh.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}}
		}), commonTypes(), onDemandPool("default")))
		switch {
		case want == "" && len(plan.Claims) != 2:
			t.Errorf("%+v: %d claims, unplaced %+v", term, len(plan.Claims), plan.Unplaced)
		case want != "" && (len(plan.Unplaced) != 1 || plan.Unplaced[0].Reason != ReasonUnhandled || plan.Unplaced[0].Message != want):
			t.Errorf("want %q, got %+v", want, plan.Unplaced)
		}
	}
}

func TestTolerations(t *testing.T) {
	taint := corev1.Taint{Key: "team", Value: "x", Effect: corev1.TaintEffectNoSchedule}
	for _, tc := range []struct {
		toleration corev1.Toleration
		want       bool
	}{
		{corev1.Toleration{Operator: corev1.TolerationOpExists}, true},
		{corev1.Toleration{Key: "team", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}, false},
		{corev1.Toleration{Key: "team", Value: "x"}, true},
		{corev1.Toleration{Key: "team", Value: "y"}, false},
		{corev1.Toleration{Key: "other", Value: "x"}, false},
		{corev1.Toleration{Key: "team", Operator: "Gt", Value: "1"}, false},
	} {
		if got := untolerated([]corev1.Taint{taint}, []corev1.Toleration{tc.toleration}) == nil; got != tc.want {
			t.Errorf("%+v: tolerated %t", tc.toleration, got)
		}
	}
}
