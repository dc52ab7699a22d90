package scheduling

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/resources"
)

// check tests a plan against the rules as the Kubernetes documentation states
// them. It shares no code with the engine: labels, taints, ports and amounts
// are compared in their API form, on concrete nodes: a claim has to be right
// for every launchable type in every zone that the cloud may pick.
func check(in Input, plan *Plan) error {
	if err := checkOnce(in, plan); err != nil {
		return err
	}
	for i, c := range plan.Claims {
		if err := checkClaim(in, c); err != nil {
			return fmt.Errorf("claim %d (%s, %s): %w", i, c.NodePool, c.InstanceType, err)
		}
	}
	for _, pl := range plan.Placements {
		if err := checkPlacement(in, pl); err != nil {
			return fmt.Errorf("placement on %s: %w", pl.Node, err)
		}
	}
	return checkLimits(in, plan)
}

func checkOnce(in Input, plan *Plan) error {
	seen := map[string]int{}
	count := func(pods []*cluster.Pod) {
		for _, p := range pods {
			seen[p.Key()]++
		}
	}
	for _, c := range plan.Claims {
		if len(c.Pods) == 0 {
			return fmt.Errorf("a claim of pool %s has no pods", c.NodePool)
		}
		count(c.Pods)
	}
	for _, pl := range plan.Placements {
		count(pl.Pods)
	}
	for _, u := range plan.Unplaced {
		if u.Reason == "" || u.Message == "" || len(u.Pods) == 0 {
			return fmt.Errorf("unplaced without words or pods: %+v", u)
		}
		count(u.Pods)
	}
	for _, p := range in.Snapshot.Pending {
		if seen[p.Key()] != 1 {
			return fmt.Errorf("pod %s is in the plan %d times", p.Key(), seen[p.Key()])
		}
	}
	if len(seen) != len(in.Snapshot.Pending) {
		return fmt.Errorf("the plan has %d pods, %d are pending", len(seen), len(in.Snapshot.Pending))
	}
	return nil
}

// concrete is a node with everything fixed.
type concrete struct {
	labels map[string]string
	taints []corev1.Taint
	room   resources.List
	pods   []*cluster.Pod
}

func checkClaim(in Input, c *Claim) error {
	np := in.Fleet.NodePool(c.NodePool)
	if np == nil {
		return fmt.Errorf("there is no such pool")
	}
	if len(c.Types) == 0 || len(c.Types) > 60 || c.Types[0].Name == "" {
		return fmt.Errorf("it has %d types", len(c.Types))
	}
	if !slices.ContainsFunc(c.Types, func(it *catalog.InstanceType) bool { return it.Name == c.InstanceType }) {
		return fmt.Errorf("the planned type is not launchable")
	}
	for _, pod := range c.Pods {
		if rule := in.Exclusions.Pods[c.NodePool][pod.Key()]; rule != "" {
			return fmt.Errorf("pod %s is kept off by %s", pod.Key(), rule)
		}
	}
	for _, it := range c.Types {
		launched := 0
		for _, o := range it.Offerings {
			node, ok := nodeOf(in, np, c, it, o)
			if !ok {
				continue
			}
			launched++
			if err := node.check(in, false); err != nil {
				return fmt.Errorf("as %s in %s (%s): %w", it.Name, o.Zone, o.CapacityType, err)
			}
		}
		if launched == 0 {
			return fmt.Errorf("type %s has no offering to launch", it.Name)
		}
	}
	return nil
}

// nodeOf is the node that the claim becomes on an offering; false when the
// claim or the cloud does not admit it.
func nodeOf(in Input, np *karpv1.NodePool, c *Claim, it *catalog.InstanceType, o catalog.Offering) (*concrete, bool) {
	if !o.Available {
		return nil, false
	}
	for _, u := range in.Snapshot.Unavailable {
		if u.InstanceType == it.Name && u.Zone == o.Zone && u.CapacityType == o.CapacityType && u.Until.After(in.Snapshot.Time) {
			return nil, false
		}
	}
	for _, x := range in.Exclusions.Offerings[np.Name] {
		if (x.Type == "" || x.Type == it.Name) && (x.Zone == "" || x.Zone == o.Zone) && (x.CapacityType == "" || x.CapacityType == o.CapacityType) {
			return nil, false
		}
	}
	labels := it.Requirements.Labels()
	labels[corev1.LabelTopologyZone], labels["karpenter.sh/capacity-type"] = o.Zone, o.CapacityType
	if o.ZoneID != "" {
		labels["topology.k8s.aws/zone-id"] = o.ZoneID
	}
	for key, v := range c.Requirements.Labels() {
		if have, ok := labels[key]; ok && have != v {
			return nil, false
		}
		labels[key] = v
	}
	for key, v := range labels {
		if r, ok := c.Requirements.Lookup(key); ok && !r.Has(v) {
			return nil, false
		}
	}
	for r := range c.Requirements.All() {
		if _, ok := labels[r.Key()]; !ok && !r.AllowsAbsent() {
			labels[r.Key()] = r.Any("x")
		}
	}
	return &concrete{labels: labels, taints: np.Spec.Template.Spec.Taints, room: it.Allocatable, pods: c.Pods}, true
}

// check tests the pods of a node, and the daemons it will get.
func (n *concrete) check(in Input, existing bool) error {
	var used resources.List
	var shapes []*cluster.Shape
	for _, d := range in.Snapshot.DaemonSets {
		onIt := slices.ContainsFunc(n.pods, func(p *cluster.Pod) bool { return p.Shape.Owner == cluster.Owner{Kind: "DaemonSet", Name: d.Name} })
		if !onIt && n.tolerated(d.Shape) == nil && n.selected(d.Shape) {
			used = used.Plus(d.Shape.Requests)
			shapes = append(shapes, d.Shape)
		}
	}
	for _, p := range n.pods {
		used = used.Plus(p.Shape.Requests).Plus(resources.List{"pods": 1 - p.Shape.Requests["pods"]})
		shapes = append(shapes, p.Shape)
	}
	for name, amount := range used {
		if amount > n.room[name] && amount > 0 {
			return fmt.Errorf("%s: %d asked for, %d there", name, amount, n.room[name])
		}
	}
	for i, a := range shapes {
		for j, b := range shapes {
			if i != j && keptApart(a, b) {
				return fmt.Errorf("%s and %s cannot share a node", a, b)
			}
		}
	}
	if existing {
		return nil
	}
	for _, p := range n.pods {
		if t := n.tolerated(p.Shape); t != nil {
			return fmt.Errorf("%s does not tolerate %s", p.Key(), t.ToString())
		}
		if !n.selected(p.Shape) {
			return fmt.Errorf("%s does not select a node with labels %v", p.Key(), n.labels)
		}
	}
	return nil
}

func (n *concrete) tolerated(sh *cluster.Shape) *corev1.Taint {
	for i, t := range n.taints {
		ok := t.Effect == corev1.TaintEffectPreferNoSchedule
		for _, o := range sh.Tolerations {
			same := (o.Key == t.Key || o.Key == "") && (o.Effect == t.Effect || o.Effect == "")
			ok = ok || same && (o.Operator == corev1.TolerationOpExists || o.Value == t.Value && o.Key != "")
		}
		if !ok {
			return &n.taints[i]
		}
	}
	return nil
}

func (n *concrete) selected(sh *cluster.Shape) bool {
	for key, v := range sh.NodeSelector {
		if n.labels[key] != v {
			return false
		}
	}
	if sh.Affinity == nil || sh.Affinity.NodeAffinity == nil || sh.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return true
	}
	terms := sh.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	return slices.ContainsFunc(terms, func(t corev1.NodeSelectorTerm) bool {
		return !slices.ContainsFunc(t.MatchExpressions, func(e corev1.NodeSelectorRequirement) bool { return !n.meets(e) })
	})
}

func (n *concrete) meets(e corev1.NodeSelectorRequirement) bool {
	v, there := n.labels[e.Key]
	switch e.Operator {
	case corev1.NodeSelectorOpIn:
		return there && slices.Contains(e.Values, v)
	case corev1.NodeSelectorOpNotIn:
		return !there || !slices.Contains(e.Values, v)
	case corev1.NodeSelectorOpExists:
		return there
	case corev1.NodeSelectorOpDoesNotExist:
		return !there
	default:
		var have, bound int64
		if _, err := fmt.Sscan(v, &have); err != nil {
			return false
		}
		if _, err := fmt.Sscan(e.Values[0], &bound); err != nil {
			return false
		}
		return (e.Operator == corev1.NodeSelectorOpGt) == (have > bound) && have != bound
	}
}

func keptApart(a, b *cluster.Shape) bool {
	for _, x := range a.HostPorts {
		for _, y := range b.HostPorts {
			wild := strings.Contains(" 0.0.0.0 :: ", " "+x.IP+" ") || strings.Contains(" 0.0.0.0 :: ", " "+y.IP+" ")
			if x.Port == y.Port && x.Protocol == y.Protocol && (x.IP == y.IP || wild) {
				return true
			}
		}
	}
	return repels(a, b) || repels(b, a)
}

func repels(a, b *cluster.Shape) bool {
	if a.Affinity == nil || a.Affinity.PodAntiAffinity == nil {
		return false
	}
	for _, t := range a.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
		sel, err := metav1.LabelSelectorAsSelector(t.LabelSelector)
		if err == nil && sel.Matches(labels.Set(b.Labels)) && (a.Namespace == b.Namespace || slices.Contains(t.Namespaces, b.Namespace)) {
			return true
		}
	}
	return false
}

func checkPlacement(in Input, pl Placement) error {
	n := in.Snapshot.Node(pl.Node)
	if n == nil || n.Deleting {
		return fmt.Errorf("there is no such node")
	}
	room, labels, taints := n.Allocatable, n.Labels, n.Taints
	if n.Claim != nil && !n.Claim.Conditions.Initialized {
		room = n.Claim.Allocatable
		labels = n.Claim.Labels
		if !n.Claim.Conditions.Registered {
			taints = n.Claim.Taints
		}
		taints = slices.DeleteFunc(slices.Clone(taints), func(t corev1.Taint) bool {
			passing := strings.Contains(" node.kubernetes.io/not-ready node.kubernetes.io/unreachable karpenter.sh/unregistered node.cloudprovider.kubernetes.io/uninitialized ", " "+t.Key+" ")
			return passing || strings.HasPrefix(t.Key, "readiness.k8s.io/") || slices.Contains(n.Claim.StartupTaints, t)
		})
	}
	all := &concrete{labels: labels, taints: taints, room: room, pods: slices.Concat(n.Pods, pl.Pods)}
	if err := all.check(in, true); err != nil {
		return err
	}
	for _, p := range pl.Pods {
		if t := all.tolerated(p.Shape); t != nil {
			return fmt.Errorf("%s does not tolerate %s", p.Key(), t.ToString())
		}
		if !all.selected(p.Shape) {
			return fmt.Errorf("%s does not select it", p.Key())
		}
	}
	return nil
}

// checkLimits adds up the largest launchable type of each claim.
func checkLimits(in Input, plan *Plan) error {
	for _, np := range in.Fleet.NodePools {
		used := resources.List{}
		for _, n := range in.Snapshot.Nodes {
			if n.Claim != nil && n.Claim.NodePool == np.Name {
				used = used.Plus(n.Claim.Capacity.Max(n.Capacity)).Plus(resources.List{"nodes": 1})
			}
		}
		fresh := false
		for _, c := range plan.Claims {
			if c.NodePool == np.Name {
				fresh = true
				var largest resources.List
				for _, it := range c.Types {
					largest = largest.Max(it.Capacity)
				}
				used = used.Plus(largest).Plus(resources.List{"nodes": 1})
			}
		}
		for name, limit := range resources.From(corev1.ResourceList(np.Spec.Limits)) {
			if fresh && used[name] > limit {
				return fmt.Errorf("pool %s: limit of %s is %d, the plan may use %d", np.Name, name, limit, used[name])
			}
		}
	}
	return nil
}

// sortedNames helps comparing sets.
func sortedNames[T any](list []T, name func(T) string) []string {
	var out []string
	for _, x := range list {
		out = append(out, name(x))
	}
	slices.SortFunc(out, cmp.Compare)
	return out
}
