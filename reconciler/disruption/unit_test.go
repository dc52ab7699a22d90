package disruption

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/resources"
)

func TestWhatEvictionCosts(t *testing.T) {
	tests := []struct {
		name     string
		deletion string
		priority int32
		want     int64
	}{
		{"a plain pod", "", 0, 1000},
		{"a deletion cost that doubles it", "134217728", 0, 2000},
		{"a deletion cost that takes it away", "-134217728", 0, 0},
		{"nearly nothing is still something", "-134217727", 0, 1},
		{"nearly nothing below is nothing", "-134217729", 0, 0},
		{"the least deletion cost is clamped", "-2147483647", 0, -10000},
		{"the largest deletion cost is clamped", "2147483647", 0, 10000},
		{"a deletion cost that is no number", "high", 0, 1000},
		{"a priority that doubles it", "", 1 << 25, 2000},
		{"a priority that takes it away", "", -(1 << 25), 0},
		{"the priority of the system", "", 2_000_001_000, 10000},
		{"both", "134217728", -(1 << 25), 1000},
	}
	for _, tc := range tests {
		sh := &cluster.Shape{Priority: tc.priority}
		if tc.deletion != "" {
			sh.Annotations = map[string]string{corev1.PodDeletionCost: tc.deletion}
		}
		if got := evictionCost(sh); got != tc.want {
			t.Errorf("%s: %d thousandths, want %d", tc.name, got, tc.want)
		}
	}
}

func TestTheOrderOfCandidates(t *testing.T) {
	it := commonTypes()
	np := nodePool("default", onDemand())
	node := func(name, instanceType string, pods int) *cluster.Node {
		return nodeOf(name, np, typeNamed(it, instanceType), "a", "on-demand", podsOf(name, pods, resources.List{"cpu": 10}))
	}
	in := input(it, []*cluster.Node{
		node("c-twice-the-price-and-cost", "s4", 3), node("b-same", "s2", 1), node("a-same", "s2", 1), node("d-best", "s8", 0), node("e-worst", "s1", 4),
	}, np)
	p, err := newPass(in)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range p.candidates {
		got = append(got, c.Node.Name)
	}
	if diff := cmp.Diff([]string{"d-best", "a-same", "b-same", "c-twice-the-price-and-cost", "e-worst"}, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	if compareProducts(math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64-1) != 1 {
		t.Error("large products are not compared")
	}
}

func TestNodePoolsTakeTurns(t *testing.T) {
	tr := &tries{}
	for _, name := range []string{"b", "a", "b", "b", "a", "c"} {
		tr.nodes = append(tr.nodes, &Candidate{NodePool: nodePool(name)})
	}
	if diff := cmp.Diff([]int{1, 0, 5, 4, 2, 3}, tr.inTurns()); diff != "" {
		t.Errorf("turns (-want +got):\n%s", diff)
	}
}

func TestIncompleteInputIsAnError(t *testing.T) {
	if _, _, err := Propose(Input{}); err == nil {
		t.Error("Propose takes nothing")
	}
	if _, _, err := Validate(Input{}, Previous{}); err == nil {
		t.Error("Validate takes nothing")
	}
	in := input(commonTypes(), []*cluster.Node{nodeOf("n1", nodePool("default"), commonTypes()[0], "a", "spot", podsOf("web", 1, resources.List{"cpu": 1}))}, nodePool("default"))
	in.Fleet.Cluster.Engine.NodeFee = "-1"
	for _, m := range []Method{Single, Multi} {
		if _, _, err := Validate(in, Previous{Method: m, Nodes: []string{"n1"}}); err == nil || !strings.Contains(err.Error(), "nodeFee") {
			t.Errorf("Validate: %v", err)
		}
	}
	if _, _, err := Propose(in); err == nil || !strings.Contains(err.Error(), "nodeFee") {
		t.Errorf("Propose: %v", err)
	}
}

// Where both capacity types are allowed but no spot offering can be launched,
// the replacement is pinned to what its price is about.
func TestAReplacementWithoutSpotIsPinnedToOnDemand(t *testing.T) {
	types := commonTypes()
	for _, it := range types {
		for i := range it.Offerings {
			it.Offerings[i].Available = it.Offerings[i].CapacityType == "on-demand"
		}
	}
	np := nodePool("default", requirement(karpv1.CapacityTypeLabelKey, corev1.NodeSelectorOpIn, "spot", "on-demand"))
	in := input(types, []*cluster.Node{nodeOf("n1", np, typeNamed(types, "s8"), "a", "on-demand", podsOf("web", 1, resources.List{"cpu": 900}))}, np)
	cmd, _ := propose(t, in)
	if cmd == nil || len(cmd.Claims) != 1 {
		t.Fatalf("got %+v", cmd)
	}
	if got := cmd.Claims[0].Requirements.Get(karpv1.CapacityTypeLabelKey).Values(); !cmp.Equal(got, []string{"on-demand"}) {
		t.Errorf("capacity types %v", got)
	}
}

// The price of a node is what its offering costs now; without one in the
// catalog it is what its launch cost.
func TestThePriceOfANode(t *testing.T) {
	it := typeNamed(commonTypes(), "s4")
	claim := &cluster.Claim{Zone: "a", CapacityType: "spot", Price: 7}
	if got := priceOf(claim, it); got.Decimal() != "0.06" {
		t.Errorf("with an offering: %s", got)
	}
	claim.Zone = "elsewhere"
	if got := priceOf(claim, it); got != 7 {
		t.Errorf("without an offering: %d", got)
	}
	claim.Price = -7
	if got := priceOf(claim, nil); got != 0 {
		t.Errorf("without a type: %d", got)
	}
}

// Pods that the drain of a node leaves alone are not looked at for budgets.
func TestPodsThatAreNotEvictedDoNotBlock(t *testing.T) {
	all := &cluster.Shape{Namespace: "default", Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}}
	key := &cluster.Shape{Namespace: "default", Tolerations: []corev1.Toleration{{Key: "karpenter.sh/disrupted", Effect: corev1.TaintEffectNoSchedule}}}
	other := &cluster.Shape{Namespace: "default", Tolerations: []corev1.Toleration{{Key: "karpenter.sh/disrupted", Effect: corev1.TaintEffectNoExecute}, {Key: "x"}}}
	static := &cluster.Shape{Namespace: "default", Owner: cluster.Owner{Kind: "Node"}}
	b := newPodBudgets(&cluster.Snapshot{Budgets: []*cluster.PodDisruptionBudget{{Namespace: "default", Name: "all", Selector: everything()}}})
	for name, tc := range map[string]struct {
		shape *cluster.Shape
		want  bool
	}{"tolerates everything": {all, false}, "tolerates the taint": {key, false}, "tolerates something else": {other, true}, "is static": {static, false}} {
		if got := b.blocks(&cluster.Pod{Namespace: "default", Shape: tc.shape}, t0) != ""; got != tc.want {
			t.Errorf("a pod that %s: blocks %t", name, got)
		}
	}
}

// A gate that was closed while a command waited stops it.
func TestSpotToSpotIsValidatedAgain(t *testing.T) {
	types := commonTypes()
	np := nodePool("default", requirement(karpv1.CapacityTypeLabelKey, corev1.NodeSelectorOpIn, "spot"))
	nodes := []*cluster.Node{
		nodeOf("n1", np, typeNamed(types, "s16"), "a", "spot", podsOf("one", 1, resources.List{"cpu": 500})),
		nodeOf("n2", np, typeNamed(types, "s16"), "a", "spot", podsOf("two", 1, resources.List{"cpu": 500})),
	}
	for _, n := range nodes {
		n.Allocatable = n.Pods[0].Shape.Requests
	}
	in := input(types, nodes, np)
	prev := Previous{Method: Multi, Nodes: []string{"n1", "n2"}, Types: []string{"s1", "s2"}}
	if cmd, why, err := Validate(in, prev); err != nil || cmd != nil || !strings.Contains(why, "SpotToSpotConsolidation is disabled") {
		t.Errorf("with the gate closed: %+v, %q, %v", cmd, why, err)
	}
	in.Fleet.Cluster.Engine.SpotToSpot = true
	if cmd, why, err := Validate(in, prev); err != nil || cmd == nil {
		t.Errorf("with the gate open: %q, %v", why, err)
	}
}

func TestBudgetsGovernWhatIsDoneWhen(t *testing.T) {
	types := commonTypes()
	np := nodePool("default", onDemand())
	np.Spec.Disruption.Budgets = []karpv1.Budget{budget("0", "U", "0 9 * * *", 8*time.Hour)}
	in := input(types, []*cluster.Node{nodeOf("n1", np, typeNamed(types, "s8"), "a", "on-demand", podsOf("web", 1, resources.List{"cpu": 500}))}, np)
	cmd, blocked := propose(t, in)
	want := []Blocked{{"n1", EventBlocked, "No allowed disruptions for disruption reason Underutilized due to blocking budget"}}
	if diff := cmp.Diff(want, blocked); cmd != nil || diff != "" {
		t.Errorf("inside the window: %+v, (-want +got)\n%s", cmd, diff)
	}
	in.Snapshot.Time = t0.Add(5 * time.Hour)
	if cmd, _ = propose(t, in); cmd == nil || len(cmd.Budgets) != 1 || !cmd.Budgets[0].Unlimited {
		t.Errorf("after the window: %+v", cmd)
	}
}

// A node that is held off for a reason stays, the others go, and it may go for
// another reason or when the hold is over.
func TestANodeThatIsHeldOffStaysWhileOthersGo(t *testing.T) {
	types := commonTypes()
	tests := map[string]struct {
		held []cluster.Hold
		want []string
	}{
		"no hold":                {nil, []string{"a", "b"}},
		"held for that reason":   {[]cluster.Hold{{Reason: ReasonEmpty, Until: t0.Add(time.Second)}}, []string{"b"}},
		"the hold is over":       {[]cluster.Hold{{Reason: ReasonEmpty, Until: t0}}, []string{"a", "b"}},
		"held for another cause": {[]cluster.Hold{{Reason: ReasonUnderutilized, Until: t0.Add(time.Hour)}}, []string{"a", "b"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			np := nodePool("default", onDemand())
			a := nodeOf("a", np, typeNamed(types, "s4"), "a", "on-demand", nil)
			a.Held = tc.held
			b := nodeOf("b", np, typeNamed(types, "s4"), "a", "on-demand", nil)
			cmd, blocked := propose(t, input(types, []*cluster.Node{a, b}, np))
			if diff := cmp.Diff(tc.want, cmd.Keys()); diff != "" {
				t.Errorf("nodes (-want +got):\n%s", diff)
			}
			if len(tc.want) == 1 && !slices.ContainsFunc(blocked, func(b Blocked) bool { return strings.Contains(b.Message, "came to nothing") }) {
				t.Errorf("nothing says why it stays: %+v", blocked)
			}
		})
	}
}

// A budget whose selector does not parse covers no pod, here as everywhere.
func TestABudgetThatSelectsNothingBlocksNothing(t *testing.T) {
	s := &cluster.Snapshot{Budgets: []*cluster.PodDisruptionBudget{{Namespace: "default", Name: "odd", Selector: &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Resembles"}},
	}}}}
	p := podsOf("web", 1, nil)[0]
	if why := newPodBudgets(s).blocks(p, t0); why != "" || !s.Evictable(p) {
		t.Errorf("it blocks (%q) or the pod is not evictable (%v)", why, s.Evictable(p))
	}
}
