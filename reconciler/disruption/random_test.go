package disruption

import (
	"cmp"
	"fmt"
	"math/rand"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/resources"
)

// world makes random clusters.
type world struct{ *rand.Rand }

func pick[T any](w world, from ...T) T { return from[w.Intn(len(from))] }

func (w world) pool(name string) *karpv1.NodePool {
	np := nodePool(name, requirement(karpv1.CapacityTypeLabelKey, corev1.NodeSelectorOpIn, pick(w, [][]string{{"on-demand"}, {"on-demand"}, {"spot", "on-demand"}, {"spot"}}...)...))
	np.Spec.Disruption.Budgets = []karpv1.Budget{budget(pick(w, "100%", "100%", "40%", "10%", "3", "0"), "", "", 0)}
	np.Spec.Disruption.ConsolidationPolicy = pick(w, karpv1.ConsolidationPolicyWhenEmptyOrUnderutilized, karpv1.ConsolidationPolicyWhenEmptyOrUnderutilized, karpv1.ConsolidationPolicyBalanced, karpv1.ConsolidationPolicyWhenEmpty)
	if w.Intn(4) == 0 {
		np.Spec.Template.Spec.Taints = []corev1.Taint{{Key: "team", Value: name, Effect: corev1.TaintEffectNoSchedule}}
	}
	return np
}

func (w world) shape(i int) *cluster.Shape {
	sh := &cluster.Shape{
		Namespace: "default", Owner: cluster.Owner{Kind: pick(w, "ReplicaSet", "ReplicaSet", "StatefulSet"), Name: fmt.Sprintf("app%d", i)},
		Labels:   map[string]string{"app": fmt.Sprintf("app%d", i)},
		Requests: resources.List{"cpu": pick(w, int64(100), 250, 500, 1000, 2000), "memory": pick(w, gib/4, gib/2, gib, 2*gib), "pods": 1},
	}
	switch w.Intn(8) {
	case 0:
		sh.NodeSelector = map[string]string{corev1.LabelTopologyZone: pick(w, "a", "b")}
	case 1:
		sh.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: sh.Labels}}}}}
	case 2:
		sh.Annotations = map[string]string{pick(w, "karpenter.sh/do-not-disrupt", "controller.kubernetes.io/pod-deletion-cost"): pick(w, "true", "-2147483647", "1000000000")}
	case 3:
		sh.Priority = pick(w, int32(1_000_000), -1_000_000_000)
	}
	sh.Tolerations = []corev1.Toleration{{Key: "team", Operator: corev1.TolerationOpExists}}
	if w.Intn(3) == 0 {
		sh.Tolerations = nil
	}
	return sh.Sealed()
}

// input is a random cluster whose pods all are where they may be.
func (w world) input() Input {
	types := commonTypes()
	for _, it := range types {
		for i := range it.Offerings {
			it.Offerings[i].Price += resources.Price(w.Intn(20)) * 1_000_000
			it.Offerings[i].Available = w.Intn(12) > 0
		}
		slices.SortFunc(it.Offerings, func(a, b catalog.Offering) int { return cmp.Compare(a.Price, b.Price) })
	}
	pools := []*karpv1.NodePool{w.pool("a"), w.pool("b")}
	var shapes []*cluster.Shape
	for i := range 6 {
		shapes = append(shapes, w.shape(i))
	}
	in := Input{Snapshot: &cluster.Snapshot{Time: t0}, Fleet: &fleet.Fleet{NodePools: pools}, Types: map[string][]*catalog.InstanceType{"default": types}}
	in.Fleet.Cluster.Engine.SpotToSpot = w.Intn(2) == 0
	daemon := (&cluster.Shape{Namespace: "kube-system", Owner: cluster.Owner{Kind: "DaemonSet", Name: "agent"},
		Requests: resources.List{"cpu": 50, "pods": 1}, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}}).Sealed()
	in.Snapshot.DaemonSets = []*cluster.DaemonSet{{Namespace: "kube-system", Name: "agent", Shape: daemon}}
	for i := range 2 + w.Intn(pick(w, 6, 6, 40)) {
		in.Snapshot.Nodes = append(in.Snapshot.Nodes, w.node(in, fmt.Sprintf("n%02d", i), shapes, daemon))
	}
	if w.Intn(3) == 0 {
		in.Snapshot.Budgets = []*cluster.PodDisruptionBudget{{Namespace: "default", Name: "pdb", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "app1"}}, Allowed: int32(w.Intn(2))}}
	}
	for i := range w.Intn(3) {
		in.Snapshot.Pending = append(in.Snapshot.Pending, &cluster.Pod{Namespace: "default", Name: fmt.Sprintf("pending-%d", i), Shape: pick(w, shapes...)})
	}
	in.Snapshot.Seal()
	return in
}

func (w world) node(in Input, name string, shapes []*cluster.Shape, daemon *cluster.Shape) *cluster.Node {
	np := pick(w, in.Fleet.NodePools...)
	n := nodeOf(name, np, pick(w, in.Types["default"]...), pick(w, "a", "b", "c"), pick(w, "on-demand", "on-demand", "spot"), nil)
	n.Taints = np.Spec.Template.Spec.Taints
	n.Pods = []*cluster.Pod{{Namespace: "kube-system", Name: "agent-" + name, Started: t0, Shape: daemon}}
	for i := range w.Intn(10) {
		sh := pick(w, shapes...)
		pod := &cluster.Pod{Namespace: "default", Name: fmt.Sprintf("%s-%s-%d", sh.Owner.Name, name, i), Started: t0, Shape: sh, Terminating: w.Intn(15) == 0}
		if fits(in, n.Labels, n.Taints, n.Allocatable, n.Pods, []*cluster.Pod{pod}) == nil {
			n.Pods = append(n.Pods, pod)
		}
	}
	switch w.Intn(20) {
	case 0:
		n.Deleting = true
	case 1:
		n.Removing = "decision"
	case 2:
		n.Claim.Conditions.Initialized = false
	case 3:
		n.Ready = false
	case 4:
		n.Nominated = []string{"default/pending-0"}
	}
	return n
}

// Whatever the cluster, each command is right by an independent check,
// saves money, and the same input gives the same command.
func TestCommandsOnRandomClusters(t *testing.T) {
	commands := map[Method]int{}
	for seed := range int64(400) {
		w := world{rand.New(rand.NewSource(seed))}
		in := w.input()
		for i := range 50 {
			cmd, blocked, err := Propose(in)
			if err != nil {
				t.Fatal(err)
			}
			if cmd != nil {
				if err := check(in, cmd); err != nil {
					t.Fatalf("seed %d: the command breaks a rule: %v\n%s", seed, err, commandText(cmd))
				}
			}
			again, blockedAgain, err := Propose(w.shuffled(in))
			if err != nil {
				t.Fatal(err)
			}
			if diff := gocmp.Diff(commandText(cmd), commandText(again)) + gocmp.Diff(blocked, blockedAgain); diff != "" {
				t.Fatalf("seed %d: the order of the input matters:\n%s", seed, diff)
			}
			if cmd == nil {
				break
			}
			commands[cmd.Method]++
			validateAsIs(t, in, cmd)
			before := priceOfNodes(in.Snapshot)
			in = apply(in, cmd, fmt.Sprintf("new-%02d", i))
			if after := priceOfNodes(in.Snapshot); after > before || after != before-cmd.Savings {
				t.Fatalf("seed %d: the price goes from %s to %s by a command that saves %s", seed, before, after, cmd.Savings)
			}
		}
	}
	for _, m := range []Method{Empty, Multi, Single} {
		if commands[m] < 50 {
			t.Errorf("only %d commands of method %s: %v", commands[m], m, commands)
		}
	}
}

// A command is valid as long as nothing changed.
func validateAsIs(t *testing.T, in Input, cmd *Command) {
	t.Helper()
	prev := Previous{Method: cmd.Method, Nodes: cmd.Keys()}
	for _, c := range cmd.Claims {
		for _, it := range c.Types {
			prev.Types = append(prev.Types, it.Name)
		}
	}
	valid, why, err := Validate(in, prev)
	if err != nil || valid == nil {
		t.Fatalf("%s of %v is dropped at once: %s, %v", cmd.Method, cmd.Keys(), why, err)
	}
	if diff := gocmp.Diff(commandText(cmd), commandText(valid)); diff != "" {
		t.Fatalf("it changed while nothing did (-proposed +validated):\n%s", diff)
	}
}

func (w world) shuffled(in Input) Input {
	s := *in.Snapshot
	s.Nodes = slices.Clone(s.Nodes)
	for i, n := range s.Nodes {
		c := *n
		c.Pods = slices.Clone(n.Pods)
		w.Shuffle(len(c.Pods), func(a, b int) { c.Pods[a], c.Pods[b] = c.Pods[b], c.Pods[a] })
		s.Nodes[i] = &c
	}
	w.Shuffle(len(s.Nodes), func(a, b int) { s.Nodes[a], s.Nodes[b] = s.Nodes[b], s.Nodes[a] })
	in.Snapshot = s.Seal()
	return in
}

// commandText is a command without its effort.
func commandText(cmd *Command) string {
	if cmd == nil {
		return "nothing"
	}
	text := fmt.Sprintf("%s (%s) %v saves %s, budgets %+v\n", cmd.Method, cmd.Reason, cmd.Keys(), cmd.Savings, cmd.Budgets)
	for _, p := range cmd.Placements {
		text += fmt.Sprintf("%s: %v\n", p.Node, podNames(p.Pods))
	}
	for _, c := range cmd.Claims {
		text += fmt.Sprintf("new %s %s in %s:", c.NodePool, c.InstanceType, c.Offering.Zone)
		for _, it := range c.Types {
			text += " " + it.Name
		}
		text += fmt.Sprintf(" (%s) %v\n", c.Requirements, podNames(c.Pods))
	}
	return text
}
