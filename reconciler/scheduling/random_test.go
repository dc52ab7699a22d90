package scheduling

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/requirements"
	"github.com/reeve-project/reeve/reconciler/resources"
)

// world makes random inputs that touch every rule the engine handles.
type world struct{ *rand.Rand }

func (w world) chance(percent int) bool { return w.Intn(100) < percent }

func pickOne[T any](w world, list ...T) T { return list[w.Intn(len(list))] }

func (w world) types() []*catalog.InstanceType {
	var out []*catalog.InstanceType
	for i := range 3 + w.Intn(10) {
		cpu := int64(1) << w.Intn(6)
		mem := cpu * pickOne(w, int64(2), 4, 8)
		it := plainType(fmt.Sprintf("t%02d.%d", i, cpu), cpu, mem, resources.Price(10_000_000*(2*cpu+mem)+w.Int63n(40_000_000)))
		reqs := []requirements.Requirement{requirements.In(awsv1.LabelInstanceFamily, fmt.Sprintf("f%d", i%4))}
		it.Requirements = it.Requirements.Without(corev1.LabelArchStable, awsv1.LabelInstanceSize)
		reqs = append(reqs, requirements.In(corev1.LabelArchStable, pickOne(w, "amd64", "amd64", "arm64")), requirements.In(awsv1.LabelInstanceSize, pickOne(w, "large", "large", "metal")))
		it.Requirements = it.Requirements.With(reqs...)
		it.Allocatable = it.Capacity.Minus(resources.List{"cpu": 80, "memory": gib / 4})
		it.Allocatable["pods"] = pickOne(w, int64(8), 29, 110)
		if w.chance(15) {
			it.Capacity, it.Allocatable = it.Capacity.Clone(), it.Allocatable.Clone()
			it.Capacity["nvidia.com/gpu"], it.Allocatable["nvidia.com/gpu"] = 2, 2
		}
		for j := range it.Offerings {
			it.Offerings[j].Available = !w.chance(15)
			it.Offerings[j].Price += resources.Price(w.Int63n(3) * 1_000_000)
		}
		out = append(out, it)
	}
	return out
}

func (w world) pools() []*karpv1.NodePool {
	var out []*karpv1.NodePool
	for i := range 1 + w.Intn(3) {
		var reqs []karpv1.NodeSelectorRequirementWithMinValues
		if w.chance(50) {
			reqs = append(reqs, requirement(capacityTypeLabel, corev1.NodeSelectorOpIn, "on-demand"))
		}
		if w.chance(30) {
			reqs = append(reqs, requirement(corev1.LabelTopologyZone, corev1.NodeSelectorOpIn, "a", "b"))
		}
		if w.chance(30) {
			reqs = append(reqs, requirement("team", pickOne(w, corev1.NodeSelectorOpExists, corev1.NodeSelectorOpNotIn), []string{"x"}...))
			if last := &reqs[len(reqs)-1]; last.Operator == corev1.NodeSelectorOpExists {
				last.Values = nil
			}
		}
		if w.chance(15) {
			n := 2
			reqs = append(reqs, karpv1.NodeSelectorRequirementWithMinValues{Key: awsv1.LabelInstanceFamily, Operator: corev1.NodeSelectorOpExists, MinValues: &n})
		}
		np := nodePool(fmt.Sprintf("pool%d", i), reqs...)
		if w.chance(40) {
			weight := int32(1 + w.Intn(3))
			np.Spec.Weight = &weight
		}
		if w.chance(30) {
			np.Spec.Template.Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: pickOne(w, "x", "y"), Effect: pickOne(w, corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule)}}
		}
		if w.chance(30) {
			np.Spec.Template.Labels = map[string]string{"tier": pickOne(w, "gold", "lead")}
		}
		if w.chance(40) {
			np.Spec.Limits = karpv1.Limits{}
			name := pickOne(w, corev1.ResourceCPU, resourceNodes)
			np.Spec.Limits[name] = resource.MustParse(fmt.Sprint(2 + w.Intn(20)))
		}
		out = append(out, np)
	}
	return out
}

func (w world) shape(i int) func(*cluster.Shape) {
	return func(sh *cluster.Shape) {
		if w.chance(20) {
			sh.NodeSelector = map[string]string{pickOne(w, corev1.LabelArchStable, "tier", corev1.LabelTopologyZone): pickOne(w, "amd64", "gold", "a", "b")}
		}
		if w.chance(20) {
			sh.Tolerations = []corev1.Toleration{{Key: pickOne(w, "dedicated", ""), Operator: corev1.TolerationOpExists}}
		}
		if w.chance(15) {
			sh.HostPorts = []cluster.HostPort{{IP: pickOne(w, "0.0.0.0", "10.0.0.1"), Port: int32(8080 + w.Intn(2)), Protocol: "TCP"}}
		}
		if w.chance(25) {
			sh.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
				{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{pickOne(w, "a", "c", "z")}}}},
				{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: pickOne(w, "team", capacityTypeLabel), Operator: corev1.NodeSelectorOpNotIn, Values: []string{pickOne(w, "x", "spot")}}}},
			}}}}
		}
		if w.chance(15) {
			sh.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
				{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprintf("app%d", pickOne(w, i, 0))}}},
			}}}
		}
		if w.chance(8) {
			sh.Requests["nvidia.com/gpu"] = 1
		}
	}
}

func (w world) daemons() []*cluster.DaemonSet {
	var out []*cluster.DaemonSet
	for i := range w.Intn(3) {
		name := fmt.Sprintf("ds%d", i)
		sh := &cluster.Shape{Namespace: "kube-system", Owner: cluster.Owner{Kind: "DaemonSet", Name: name}, Requests: resources.List{"cpu": 50 * (1 + w.Int63n(4)), "memory": gib / 8, "pods": 1}}
		if w.chance(70) {
			sh.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		}
		if w.chance(30) {
			sh.NodeSelector = map[string]string{corev1.LabelArchStable: "amd64"}
		}
		if i == 0 && w.chance(20) {
			sh.HostPorts = []cluster.HostPort{{IP: "0.0.0.0", Port: 8081, Protocol: "TCP"}}
		}
		out = append(out, &cluster.DaemonSet{Namespace: "kube-system", Name: name, Shape: sh.Sealed()})
	}
	return out
}

func (w world) input() Input {
	types := w.types()
	var pending []*cluster.Pod
	for i := range 1 + w.Intn(6) {
		requests := resources.List{"cpu": 100 * (1 + w.Int63n(30)), "memory": gib / 4 * (1 + w.Int63n(20))}
		pending = append(pending, pods(fmt.Sprintf("app%d", i), 1+w.Intn(pickOne(w, 3, 12, 60)), requests, w.shape(i))...)
	}
	in := input(pending, types, w.pools()...)
	slices.SortFunc(in.Fleet.NodePools, func(a, b *karpv1.NodePool) int { return strings.Compare(a.Name, b.Name) })
	in.Snapshot.DaemonSets = w.daemons()
	for i := range w.Intn(4) {
		in.Snapshot.Nodes = append(in.Snapshot.Nodes, w.node(in, fmt.Sprintf("node%d", i), pickOne(w, types...)))
	}
	if w.chance(30) {
		it := pickOne(w, types...)
		in.Snapshot.Unavailable = []cluster.Unavailable{{InstanceType: it.Name, Zone: "a", CapacityType: "spot", Until: t0.Add(time.Duration(w.Intn(3)-1) * time.Minute)}}
	}
	if w.chance(30) {
		in.Exclusions.Offerings = map[string][]OfferingExclusion{"pool0": {{Type: pickOne(w, "", types[0].Name), Zone: pickOne(w, "", "a"), CapacityType: "on-demand", Rule: "R1"}}}
	}
	if w.chance(20) {
		in.Exclusions.Pods = map[string]map[string]string{"pool0": {pickOne(w, pending...).Key(): "R2"}}
	}
	in.Fleet.Cluster.Engine.NodeFee = json.Number(pickOne(w, "0", "0", "0.02", ""))
	in.Snapshot.Seal()
	return in
}

// node is a node of some pool with some pods of its own, at some stage.
func (w world) node(in Input, name string, it *catalog.InstanceType) *cluster.Node {
	np := pickOne(w, in.Fleet.NodePools...)
	labels := it.Requirements.Without(corev1.LabelTopologyZone, capacityTypeLabel).Labels()
	labels[corev1.LabelTopologyZone], labels[capacityTypeLabel], labels[nodePoolLabel] = pickOne(w, "a", "b"), "on-demand", np.Name
	for k, v := range np.Spec.Template.Labels {
		labels[k] = v
	}
	stage := w.Intn(3)
	taints := slices.Clone(np.Spec.Template.Spec.Taints)
	startup := []corev1.Taint{{Key: "cni", Value: "pending", Effect: corev1.TaintEffectNoSchedule}}
	n := &cluster.Node{
		Labels: labels, Taints: taints, Ready: true,
		Claim: &cluster.Claim{
			Name: name, NodePool: np.Name, NodeClass: "default", Labels: labels, Taints: append(slices.Clone(taints), startup...), StartupTaints: startup,
			InstanceType: it.Name, Zone: labels[corev1.LabelTopologyZone], CapacityType: "on-demand", Capacity: it.Capacity, Allocatable: it.Allocatable,
			Conditions: cluster.Conditions{Launched: true, Registered: stage > 0, Initialized: stage > 1},
		},
	}
	if stage > 0 {
		n.Name, n.Capacity, n.Allocatable = name, it.Capacity, it.Allocatable
	}
	if stage > 1 && w.chance(80) {
		n.Pods = pods("old-"+name, 1+w.Intn(2), resources.List{"cpu": 300, "memory": gib / 2}, func(sh *cluster.Shape) {
			sh.Labels = map[string]string{"app": pickOne(w, "app0", "app1")}
			if w.chance(20) {
				sh.HostPorts = []cluster.HostPort{{IP: "0.0.0.0", Port: 8080, Protocol: "TCP"}}
			}
		})[:1]
	}
	if w.chance(20) {
		for range 3 {
			n.Nominated = append(n.Nominated, pickOne(w, in.Snapshot.Pending...).Key())
		}
	}
	n.Deleting = w.chance(10)
	return n
}

func TestRandomPlansKeepEveryRule(t *testing.T) {
	for seed := range int64(400) {
		w := world{rand.New(rand.NewSource(seed))}
		in := w.input()
		plan, err := Solve(in)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if err := check(in, plan); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if err := checkMessages(plan); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if err := checkNothingLeftOut(in, plan); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

func checkMessages(plan *Plan) error {
	for _, u := range plan.Unplaced {
		if u.Reason == ReasonPolicy && len(u.Rules) == 0 {
			return fmt.Errorf("policy keeps pods pending but no rule is named: %s", u.Message)
		}
	}
	return nil
}

// checkNothingLeftOut looks for a node that could be made for a pod which the
// plan leaves pending.
func checkNothingLeftOut(in Input, plan *Plan) error {
	for _, u := range plan.Unplaced {
		if u.Reason == ReasonUnhandled || u.Reason == ReasonLimits || u.Reason == ReasonMinValues {
			continue
		}
		pod := u.Pods[0]
		for _, np := range in.Fleet.NodePools {
			if in.Exclusions.Pods[np.Name][pod.Key()] != "" {
				continue
			}
			if it := couldRun(in, np, pod); it != nil {
				return fmt.Errorf("pod %s (%s: %s) could run in pool %s on %s", pod.Key(), u.Reason, u.Message, np.Name, it.Name)
			}
		}
	}
	return nil
}

func couldRun(in Input, np *karpv1.NodePool, pod *cluster.Pod) *catalog.InstanceType {
	template, err := requirements.FromKarpenter(np.Spec.Template.Spec.Requirements)
	if err != nil {
		return nil
	}
	template = template.Merge(requirements.FromLabels(np.Spec.Template.Labels)).With(requirements.In(nodePoolLabel, np.Name))
	terms, err := requirements.PodTerms(pod.Shape.NodeSelector, pod.Shape.Affinity)
	if err != nil {
		return nil
	}
	for _, term := range terms {
		claim := &Claim{Requirements: template.Merge(term), Pods: []*cluster.Pod{pod}}
		for _, it := range in.Types["default"] {
			for _, o := range it.Offerings {
				if node, ok := nodeOf(in, np, claim, it, o); ok && template.IsCompatible(term, requirements.WellKnown) && node.check(in, false) == nil {
					return it
				}
			}
		}
	}
	return nil
}

func TestTheSameInputGivesTheSamePlan(t *testing.T) {
	for seed := range int64(60) {
		w := world{rand.New(rand.NewSource(seed))}
		in := w.input()
		first, err := Solve(in)
		if err != nil {
			t.Fatal(err)
		}
		shuffled := in
		snapshot := *in.Snapshot
		shuffled.Snapshot = &snapshot
		snapshot.Pending, snapshot.Nodes, snapshot.DaemonSets = slices.Clone(snapshot.Pending), slices.Clone(snapshot.Nodes), slices.Clone(snapshot.DaemonSets)
		w.Shuffle(len(snapshot.Pending), func(i, j int) {
			snapshot.Pending[i], snapshot.Pending[j] = snapshot.Pending[j], snapshot.Pending[i]
		})
		w.Shuffle(len(snapshot.Nodes), func(i, j int) { snapshot.Nodes[i], snapshot.Nodes[j] = snapshot.Nodes[j], snapshot.Nodes[i] })
		snapshot.Seal()
		second, err := Solve(shuffled)
		if err != nil {
			t.Fatal(err)
		}
		opts := cmp.Options{cmpopts.EquateEmpty(), cmp.Comparer(func(a, b *catalog.InstanceType) bool { return a == b }), cmp.Comparer(func(a, b *cluster.Pod) bool { return a == b })}
		if diff := cmp.Diff(first, second, opts); diff != "" {
			t.Fatalf("seed %d: plans differ (-first +second):\n%s", seed, diff)
		}
	}
}
