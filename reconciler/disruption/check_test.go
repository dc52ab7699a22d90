package disruption

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/resources"
)

// check tests a command against the rules as they are documented. It shares no
// code with the engine: pods are put on concrete nodes and compared in their
// API form.
func check(in Input, cmd *Command) error {
	if err := checkMoves(in, cmd); err != nil {
		return err
	}
	if err := checkPrice(in, cmd); err != nil {
		return err
	}
	if err := checkBudgets(in, cmd); err != nil {
		return err
	}
	for _, p := range cmd.Placements {
		n := in.Snapshot.Node(p.Node)
		if n == nil || n.Deleting || n.Removing != "" || !n.Initialized() || slices.Contains(cmd.Keys(), p.Node) {
			return fmt.Errorf("pods go to %s, which is no place", p.Node)
		}
		if err := fits(in, n.Labels, n.Taints, n.Allocatable, n.Pods, p.Pods); err != nil {
			return fmt.Errorf("on %s: %w", p.Node, err)
		}
	}
	for _, c := range cmd.Claims {
		for _, it := range c.Types {
			for _, o := range it.Offerings {
				if ct, ok := c.Requirements.Lookup("karpenter.sh/capacity-type"); !o.Available || (ok && !ct.Has(o.CapacityType)) {
					continue
				}
				if zone, ok := c.Requirements.Lookup(corev1.LabelTopologyZone); ok && !zone.Has(o.Zone) {
					continue
				}
				l := it.Requirements.Labels()
				for key, v := range c.Requirements.Labels() {
					l[key] = v
				}
				l[corev1.LabelTopologyZone], l["karpenter.sh/capacity-type"] = o.Zone, o.CapacityType
				taints := in.Fleet.NodePool(c.NodePool).Spec.Template.Spec.Taints
				if err := fits(in, l, taints, it.Allocatable, nil, c.Pods); err != nil {
					return fmt.Errorf("on a new %s: %w", it.Name, err)
				}
			}
		}
	}
	return nil
}

// checkMoves: every pod that has to move is somewhere, once, and no other is.
func checkMoves(in Input, cmd *Command) error {
	if len(cmd.Nodes) == 0 || len(cmd.Claims) > 1 {
		return fmt.Errorf("%d nodes, %d claims", len(cmd.Nodes), len(cmd.Claims))
	}
	if cmd.Method == Empty {
		return nil
	}
	seen := map[string]int{}
	for _, p := range cmd.Placements {
		for _, pod := range p.Pods {
			seen[pod.Key()]++
		}
	}
	for _, c := range cmd.Claims {
		for _, pod := range c.Pods {
			seen[pod.Key()]++
		}
	}
	want := 0
	for _, c := range cmd.Nodes {
		for _, pod := range c.Node.Pods {
			kind := pod.Shape.Owner.Kind
			if kind == "DaemonSet" || kind == "Node" || (pod.Terminating && kind != "StatefulSet") {
				continue
			}
			want++
			if seen[pod.Key()] != 1 {
				return fmt.Errorf("pod %s is placed %d times", pod.Key(), seen[pod.Key()])
			}
		}
	}
	waiting := len(in.Snapshot.Pending)
	for _, n := range in.Snapshot.Nodes {
		if n.Deleting || n.Removing != "" {
			waiting += len(n.Pods)
		}
	}
	if len(seen) > want+waiting {
		return fmt.Errorf("%d pods are placed, %d move and %d wait", len(seen), want, waiting)
	}
	return nil
}

// checkPrice: the dearest way to launch the claim is cheaper than the nodes.
func checkPrice(in Input, cmd *Command) error {
	var old resources.Price
	for _, c := range cmd.Nodes {
		old += offeringPrice(in, c.Node)
	}
	saved := old
	for _, c := range cmd.Claims {
		saved -= c.Offering.Price
		for _, it := range c.Types {
			for _, o := range it.Offerings {
				ct, zone := c.Requirements.Get("karpenter.sh/capacity-type"), c.Requirements.Get(corev1.LabelTopologyZone)
				if o.Available && ct.Has(o.CapacityType) && zone.Has(o.Zone) && o.Price >= old {
					return fmt.Errorf("%s in %s (%s) costs %s, the nodes cost %s", it.Name, o.Zone, o.CapacityType, o.Price, old)
				}
			}
		}
		if saved <= 0 {
			return fmt.Errorf("a replacement saves %s", saved)
		}
	}
	if saved != cmd.Savings || saved < 0 {
		return fmt.Errorf("it says it saves %s, it saves %s", cmd.Savings, saved)
	}
	return nil
}

func offeringPrice(in Input, n *cluster.Node) resources.Price {
	for _, it := range in.Types["default"] {
		for _, o := range it.Offerings {
			if it.Name == n.Labels[corev1.LabelInstanceTypeStable] && o.Zone == n.Labels[corev1.LabelTopologyZone] && o.CapacityType == n.Labels["karpenter.sh/capacity-type"] {
				return o.Price
			}
		}
	}
	return n.Claim.Price
}

// checkBudgets knows budgets without reasons and schedules.
func checkBudgets(in Input, cmd *Command) error {
	for _, np := range in.Fleet.NodePools {
		total, going := 0, 0
		for _, n := range in.Snapshot.Nodes {
			if n.Claim == nil || n.Claim.NodePool != np.Name || !n.Claim.Conditions.Initialized {
				continue
			}
			total++
			if !n.Ready || n.Deleting || n.Removing != "" || slices.Contains(cmd.Keys(), n.Key()) {
				going++
			}
		}
		for _, b := range np.Spec.Disruption.Budgets {
			var limit int
			percent := strings.HasSuffix(b.Nodes, "%")
			if _, err := fmt.Sscan(strings.TrimSuffix(b.Nodes, "%"), &limit); err != nil || b.Schedule != nil || b.Reasons != nil {
				continue
			}
			if percent {
				limit = (total*limit + 99) / 100
			}
			used := slices.ContainsFunc(cmd.Nodes, func(c *Candidate) bool { return c.NodePool.Name == np.Name })
			if used && going > limit {
				return fmt.Errorf("pool %s: %d of %d nodes go, %s may", np.Name, going, total, b.Nodes)
			}
		}
	}
	return nil
}

// fits tests pods that join others on a node.
func fits(in Input, l map[string]string, taints []corev1.Taint, room resources.List, there, join []*cluster.Pod) error {
	used := resources.List{}
	onIt := map[string]bool{}
	for _, p := range slices.Concat(there, join) {
		used = used.Plus(p.Shape.Requests)
		if p.Shape.Owner.Kind == "DaemonSet" {
			onIt[p.Shape.Owner.Name] = true
		}
	}
	for _, d := range in.Snapshot.DaemonSets {
		if !onIt[d.Name] && tolerates(d.Shape, taints) && selects(d.Shape, l) {
			used = used.Plus(d.Shape.Requests)
		}
	}
	for name, amount := range used {
		if amount > room[name] {
			return fmt.Errorf("%s: %d asked for, %d there", name, amount, room[name])
		}
	}
	for _, p := range join {
		if !tolerates(p.Shape, taints) || !selects(p.Shape, l) {
			return fmt.Errorf("pod %s is not let in", p.Key())
		}
		for _, o := range slices.Concat(there, join) {
			if o != p && (repels(p.Shape, o.Shape) || repels(o.Shape, p.Shape)) {
				return fmt.Errorf("pods %s and %s keep apart", p.Key(), o.Key())
			}
		}
	}
	return nil
}

func tolerates(sh *cluster.Shape, taints []corev1.Taint) bool {
	for _, t := range taints {
		ok := t.Effect == corev1.TaintEffectPreferNoSchedule
		for _, o := range sh.Tolerations {
			same := (o.Key == t.Key || o.Key == "") && (o.Effect == t.Effect || o.Effect == "")
			ok = ok || same && (o.Operator == corev1.TolerationOpExists || o.Value == t.Value && o.Key != "")
		}
		if !ok {
			return false
		}
	}
	return true
}

func selects(sh *cluster.Shape, l map[string]string) bool {
	for key, v := range sh.NodeSelector {
		if l[key] != v {
			return false
		}
	}
	return true
}

func repels(a, b *cluster.Shape) bool {
	if a.Affinity == nil || a.Affinity.PodAntiAffinity == nil {
		return false
	}
	for _, t := range a.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
		sel, err := metav1.LabelSelectorAsSelector(t.LabelSelector)
		if err == nil && sel.Matches(labels.Set(b.Labels)) && a.Namespace == b.Namespace {
			return true
		}
	}
	return false
}

// cheapestFor is the price of the cheapest type that holds the amounts.
func cheapestFor(types []*catalog.InstanceType, amounts resources.List) (resources.Price, bool) {
	best, found := resources.Price(0), false
	for _, it := range types {
		if !amounts.Fits(it.Allocatable) {
			continue
		}
		for _, o := range it.Offerings {
			if o.CapacityType == "on-demand" && o.Available && (!found || o.Price < best) {
				best, found = o.Price, true
			}
		}
	}
	return best, found
}
