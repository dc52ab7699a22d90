package scheduling

import (
	"cmp"
	"math/rand"
	"slices"
	"testing"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/requirements"
	"github.com/reeve-project/reeve/reconciler/resources"
)

// growing packs pods as Karpenter does: pod by pod in its queue's order onto
// open claims, fewest pods first, else a new claim from the NodePools by
// weight; a claim grows until no type holds another pod. It is written from
// the description of that behaviour, on concrete nodes, for inputs without
// existing nodes and limits.
type growing struct {
	in     Input
	claims []*Claim
	left   int
}

func (g *growing) run() resources.Price {
	queue := slices.Clone(g.in.Snapshot.Pending)
	slices.SortStableFunc(queue, func(a, b *cluster.Pod) int {
		return cmp.Or(cmp.Compare(b.Shape.Requests["cpu"], a.Shape.Requests["cpu"]), cmp.Compare(b.Shape.Requests["memory"], a.Shape.Requests["memory"]))
	})
	for _, pod := range queue {
		if !g.place(pod) {
			g.left++
		}
	}
	var sum resources.Price
	for _, c := range g.claims {
		sum += g.price(c)
	}
	return sum
}

func (g *growing) place(pod *cluster.Pod) bool {
	terms, _ := requirements.PodTerms(pod.Shape.NodeSelector, pod.Shape.Affinity)
	for _, term := range terms {
		slices.SortStableFunc(g.claims, func(a, b *Claim) int { return cmp.Compare(len(a.Pods), len(b.Pods)) })
		for _, c := range g.claims {
			if g.grow(c, pod, term) {
				return true
			}
		}
		for _, np := range g.in.Fleet.ByWeight() {
			reqs, _ := requirements.FromKarpenter(np.Spec.Template.Spec.Requirements)
			c := &Claim{NodePool: np.Name, Requirements: reqs.Merge(requirements.FromLabels(np.Spec.Template.Labels)).With(requirements.In(nodePoolLabel, np.Name))}
			if g.grow(c, pod, term) {
				g.claims = append(g.claims, c)
				return true
			}
		}
	}
	return false
}

func (g *growing) grow(c *Claim, pod *cluster.Pod, term requirements.Set) bool {
	if g.in.Exclusions.Pods[c.NodePool][pod.Key()] != "" || !g.template(c).IsCompatible(term, requirements.WellKnown) || c.Requirements.Intersects(term) != nil {
		return false
	}
	next := *c
	next.Requirements = c.Requirements.Merge(term)
	next.Pods = append(slices.Clone(c.Pods), pod)
	if next.Types = g.holding(&next); len(next.Types) == 0 || len(next.Requirements.Shortfalls(func(key string) int {
		return requirements.DistinctValues(key, func(yield func(requirements.Set) bool) {
			for _, it := range next.Types {
				if !yield(it.Requirements) {
					return
				}
			}
		})
	})) > 0 {
		return false
	}
	*c = next
	return true
}

func (g *growing) template(c *Claim) requirements.Set {
	np := g.in.Fleet.NodePool(c.NodePool)
	reqs, _ := requirements.FromKarpenter(np.Spec.Template.Spec.Requirements)
	return reqs.Merge(requirements.FromLabels(np.Spec.Template.Labels)).With(requirements.In(nodePoolLabel, np.Name))
}

// holding are the types that hold the claim's pods in some offering.
func (g *growing) holding(c *Claim) []*catalog.InstanceType {
	np := g.in.Fleet.NodePool(c.NodePool)
	var out []*catalog.InstanceType
	for _, it := range g.in.Types["default"] {
		if slices.ContainsFunc(it.Offerings, func(o catalog.Offering) bool {
			n, ok := nodeOf(g.in, np, c, it, o)
			return ok && n.check(g.in, false) == nil
		}) {
			out = append(out, it)
		}
	}
	return out
}

// price is that of the cheapest offering of the capacity type that is asked
// for, bare metal and accelerators left out where others do.
func (g *growing) price(c *Claim) resources.Price {
	np := g.in.Fleet.NodePool(c.NodePool)
	least := map[string]resources.Price{}
	exotic := func(it *catalog.InstanceType) bool {
		return it.Capacity["nvidia.com/gpu"] > 0 || it.Requirements.Get("karpenter.k8s.aws/instance-size").Has("metal")
	}
	onlyExotic := !slices.ContainsFunc(c.Types, func(it *catalog.InstanceType) bool { return !exotic(it) })
	for _, it := range c.Types {
		if exotic(it) && !onlyExotic && !c.Requirements.HasMinValues() {
			continue
		}
		for _, o := range it.Offerings {
			if _, ok := nodeOf(g.in, np, c, it, o); ok && (least[o.CapacityType] == 0 || o.Price < least[o.CapacityType]) {
				least[o.CapacityType] = o.Price
			}
		}
	}
	spot, onDemand := least["spot"], least["on-demand"]
	if spot > 0 && (onDemand == 0 || spot <= onDemand || c.Requirements.HasMinValues()) {
		return spot
	}
	return onDemand
}

// With several pools the comparison is only of the sum: Karpenter's order of
// pods decides which pool's claims happen to be open, so that pods end up in a
// cheaper pool although the one they should go to first would take them.
func TestPlansAreNeverDearerThanGrowingNodes(t *testing.T) {
	for _, pools := range []int{1, 3} {
		var ours, theirs resources.Price
		for seed := range int64(40) {
			in := world{rand.New(rand.NewSource(seed))}.withoutNodes(pools)
			plan, g := solve(t, in), &growing{in: in}
			cost, left := g.run(), 0
			for _, u := range plan.Unplaced {
				left += len(u.Pods)
			}
			if left > g.left {
				t.Errorf("seed %d: %d pods are left, growing leaves %d", seed, left, g.left)
			}
			if pools == 1 && left == g.left && plan.Cost() > cost {
				t.Errorf("seed %d: %s, growing costs %s (%s)", seed, plan.Cost(), cost, plan.Solver)
			}
			if left == g.left {
				ours, theirs = ours+plan.Cost(), theirs+cost
			}
		}
		t.Logf("up to %d pools: all plans cost %s, growing nodes cost %s", pools, ours, theirs)
		if ours*100 > theirs*90 {
			t.Errorf("up to %d pools: all plans cost %s, which is not 10 %% below the %s of growing nodes", pools, ours, theirs)
		}
	}
}

// withoutNodes is a random input with at most so many pools, and without what
// growing does not know.
func (w world) withoutNodes(pools int) Input {
	in := w.input()
	in.Snapshot.Nodes = nil
	in.Fleet.Cluster.Engine.NodeFee = "0"
	in.Fleet.NodePools = in.Fleet.NodePools[:min(pools, len(in.Fleet.NodePools))]
	for i, np := range in.Fleet.NodePools {
		c := *np
		c.Spec.Limits = nil
		in.Fleet.NodePools[i] = &c
	}
	return in
}
