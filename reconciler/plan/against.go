package plan

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/disruption"
	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/pipeline"
	"github.com/reeve-project/reeve/reconciler/report"
	"github.com/reeve-project/reeve/reconciler/resources"
)

// NodePoolRemoved is the cause of nodes whose NodePool leaves the fleet: they
// are deleted with it, whatever its budgets say.
const NodePoolRemoved = "NodePoolRemoved"

// replacing marks nodes that go because they are not what the fleet says.
const replacing = "replacing"

// Against says what a change from base to head does to the cluster in the
// recorded state: which nodes drift, what is decided, and what it costs in the
// end. A nil base is the fleet that was in force.
func Against(ctx context.Context, st *State, base, head *Revision) (*report.Impact, error) {
	if base == nil {
		base = st.Accepted
	}
	before, err := outcomeOf(ctx, st, base)
	if err != nil {
		return nil, fmt.Errorf("without the change: %w", err)
	}
	with, err := outcomeOf(ctx, st, head)
	if err != nil {
		return nil, fmt.Errorf("with the change: %w", err)
	}
	out := &report.Impact{
		Branch: st.Branch, Commit: st.Commit, Time: st.Snapshot.Time, Assumptions: with.assumptions,
		Drift: []report.PlanDrift{}, Steps: append([]report.PlanStep{}, with.steps...),
		Now: costOf(st.Catalog, st.Snapshot), Base: before.rest, Head: with.rest,
	}
	out.Nodes = count(st.Snapshot.Nodes, func(n *cluster.Node) bool { return n.Claim != nil })
	for _, d := range with.drift {
		d.New = !slices.ContainsFunc(before.drift, func(b report.PlanDrift) bool { return b.Node == d.Node && b.Cause == d.Cause })
		out.Drift = append(out.Drift, d)
	}
	return out, nil
}

// outcome is what one fleet does to a cluster.
type outcome struct {
	drift       []report.PlanDrift
	steps       []report.PlanStep
	assumptions []string
	// rest is what the nodes cost in the end.
	rest resources.Price
}

func outcomeOf(ctx context.Context, st *State, rev *Revision) (*outcome, error) {
	own := *st.Snapshot
	own.NodeClasses = slices.Clone(st.Snapshot.NodeClasses)
	s := &scene{fleet: rev.Fleet, data: st.Catalog, snap: &own}
	s.given(st.Accepted.Fleet)
	w := pipeline.NewWorld(rev.Fleet, rev.Judge, st.Catalog, s.snap)
	out := &outcome{drift: driftOf(w, st.Accepted.Fleet), assumptions: s.assumptions}
	run, err := foresee(ctx, w.With(rev.Fleet, rev.Judge, st.Catalog, leaving(s.snap, out.drift)))
	if err != nil {
		return nil, err
	}
	out.steps = run.steps
	rest := *run.snap
	rest.Nodes = slices.DeleteFunc(slices.Clone(run.snap.Nodes), func(n *cluster.Node) bool { return n.Removing != "" })
	out.rest = costOf(st.Catalog, &rest)
	return out, nil
}

// driftOf finds the nodes that are not what the fleet of the world says, and
// those whose NodePool it does not have, sorted by node.
func driftOf(w *pipeline.World, inForce *fleet.Fleet) []report.PlanDrift {
	in := disruption.DriftInput{Snapshot: w.Snapshot, Fleet: w.Fleet, Types: map[string][]*catalog.InstanceType{}, Before: map[string]*ec2v1.EC2NodeClass{}}
	for _, class := range w.Fleet.NodeClasses {
		if types, err := w.InstanceTypes(class.Name); err == nil {
			in.Types[class.Name] = types // a class that is not ready has none
		}
	}
	for _, class := range inForce.NodeClasses {
		in.Before[class.Name] = class
	}
	found := map[string]report.PlanDrift{}
	for _, d := range disruption.Drift(in) {
		found[d.Node.Key()] = driftValue(w.Catalog, d.Node, string(d.Cause), d.Detail)
	}
	for _, n := range w.Snapshot.Nodes {
		if n.Claim != nil && !n.Deleting && w.Fleet.NodePool(n.Claim.NodePool) == nil {
			found[n.Key()] = driftValue(w.Catalog, n, NodePoolRemoved, fmt.Sprintf("NodePool %s is not in the fleet any more", n.Claim.NodePool))
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b report.PlanDrift) int { return cmp.Compare(a.Node, b.Node) })
}

func driftValue(data *catalog.Data, n *cluster.Node, cause, detail string) report.PlanDrift {
	return report.PlanDrift{
		Node: n.Key(), NodePool: n.Claim.NodePool, InstanceType: n.Claim.InstanceType, Price: listPrice(data, n.Claim),
		Cause: cause, Detail: detail,
	}
}

// leaving is the snapshot with the nodes on their way out, so that room is
// planned for their pods and nobody else removes them.
func leaving(s *cluster.Snapshot, drift []report.PlanDrift) *cluster.Snapshot {
	going := map[string]bool{}
	for _, d := range drift {
		going[d.Node] = true
	}
	out := *s
	out.Nodes = nil
	for _, n := range s.Nodes {
		c := *n
		if c.Claim != nil && going[c.Key()] {
			c.Deleting, c.DeletedAt, c.Removing = true, s.Time, cmp.Or(c.Removing, replacing)
		}
		out.Nodes = append(out.Nodes, &c)
	}
	return &out
}
