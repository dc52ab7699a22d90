package plan

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/disruption"
	"github.com/reeve-project/reeve/reconciler/pipeline"
	"github.com/reeve-project/reeve/reconciler/report"
)

// maxLater bounds how many removals are followed into the future.
const maxLater = 100

// run is decisions one after the other, and the cluster that they lead to.
type run struct {
	decisions []*decision.Decision
	steps     []report.PlanStep
	staying   []report.PlanStaying
	// fitting is how many pods find room on nodes that exist.
	fitting int
	snap    *cluster.Snapshot
}

// foresee makes the decisions of one pass over the world, and then the removals
// that follow from them as if each were carried out and nothing else changed.
func foresee(ctx context.Context, w *pipeline.World) (*run, error) {
	r, there := &run{snap: w.Snapshot}, w.Snapshot
	ds, err := w.Foresee(ctx)
	if err != nil {
		return nil, err
	}
	if err := r.take(w, false, ds...); err != nil {
		return nil, err
	}
	removing := slices.ContainsFunc(ds, allowedRemoval)
	for range maxLater {
		if !removing {
			break
		}
		w = w.With(w.Fleet, w.Judge, w.Catalog, r.snap)
		if ds, err = w.Consolidate(ctx); err != nil {
			return nil, err
		}
		if err := r.take(w, true, ds...); err != nil {
			return nil, err
		}
		removing = slices.ContainsFunc(ds, allowedRemoval)
	}
	r.staying = staying(there, w.Blocked())
	return r, nil
}

func allowedRemoval(d *decision.Decision) bool {
	return d.Kind == decision.Consolidate && d.Verdict.Allowed
}

// take adds decisions and what is allowed of them to the cluster.
func (r *run) take(w *pipeline.World, later bool, ds ...*decision.Decision) error {
	pending := len(w.Snapshot.Pending)
	for _, d := range ds {
		step, err := stepOf(d, later)
		if err != nil {
			return err
		}
		r.decisions, r.steps = append(r.decisions, d), append(r.steps, step)
		if d.Kind == decision.Provision {
			pending -= podsOf(d)
		}
		if d.Verdict.Allowed {
			if r.snap, err = after(w, r.snap, d); err != nil {
				return err
			}
		}
	}
	if !later {
		r.fitting = max(pending, 0)
	}
	return nil
}

// podsOf is how many pods a provision has an answer for, other than a node that
// exists.
func podsOf(d *decision.Decision) int {
	n := 0
	for i := range d.Proposal.Claims {
		n += d.Proposal.Claims[i].PodCount()
	}
	for _, u := range d.Proposal.Unplaced {
		for _, g := range u.Pods {
			n += len(g.Names)
		}
	}
	return n
}

// stepOf takes from a decision what a reader of a plan asks for.
func stepOf(d *decision.Decision, later bool) (report.PlanStep, error) {
	p := &d.Proposal
	out := report.PlanStep{
		Kind: d.Kind, Summary: d.Summary, NodePool: p.NodePool, Reason: p.Reason, Method: p.Method,
		Allowed: d.Verdict.Allowed, Later: later, Removals: p.Nodes, Placements: p.Placements, Pending: p.Unplaced, Cost: p.Cost,
		Violations: d.Verdict.Violations, Warnings: d.Verdict.Warnings,
	}
	for i := range p.Claims {
		c := &p.Claims[i]
		l := report.PlanLaunch{
			NodePool: c.NodePool, InstanceType: c.InstanceType, Zone: c.Zone, CapacityType: c.CapacityType, Price: c.Price,
			Choices: c.Launchable.Count, Filters: c.Filters, Requests: c.Requests, Pods: c.Pods,
		}
		if len(c.Cheapest) > 1 {
			l.NextBest = c.Cheapest[1:]
		}
		out.Launches = append(out.Launches, l)
	}
	for _, x := range d.Verdict.Exclusions {
		names, err := x.Types.Resolve(p.Lists)
		if err != nil {
			return out, fmt.Errorf("exclusion by %s: %w", x.Rule, err)
		}
		x.Types = decision.TypeSet{Count: len(names), Names: names}
		out.Exclusions = append(out.Exclusions, x)
	}
	return out, nil
}

// staying groups why nodes that are there stay by the reason. Those that the
// plan itself would make are on their way, which is no news to its reader.
func staying(there *cluster.Snapshot, blocked []disruption.Blocked) []report.PlanStaying {
	var out []report.PlanStaying
	for _, b := range blocked {
		if !slices.ContainsFunc(there.Nodes, func(n *cluster.Node) bool { return n.Key() == b.Node }) {
			continue
		}
		i := slices.IndexFunc(out, func(s report.PlanStaying) bool { return s.Message == b.Message })
		if i < 0 {
			i = len(out)
			out = append(out, report.PlanStaying{Message: b.Message})
		}
		out[i].Nodes = append(out[i].Nodes, b.Node)
	}
	slices.SortFunc(out, func(a, b report.PlanStaying) int { return cmp.Compare(a.Message, b.Message) })
	return out
}
