package pipeline

import (
	"context"
	"slices"
	"time"

	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/decision"
)

// decide makes the decisions of a pass that say something new.
func (p *Pipeline) decide(ctx context.Context, snap *cluster.Snapshot) ([]*decision.Decision, error) {
	w := p.world(snap)
	var out []*decision.Decision
	for _, propose := range []func(context.Context) ([]*decision.Decision, error){w.Interrupt, w.Liveness, w.Delete, w.Reclaim} {
		ds, err := propose(ctx)
		if err != nil {
			return nil, err
		}
		out = append(out, slices.DeleteFunc(ds, p.underWay)...)
	}
	interrupted := slices.ContainsFunc(out, func(d *decision.Decision) bool { return d.Kind == decision.Interrupt && d.Verdict.Allowed })
	e := p.fleet.Cluster.Engine
	// A node that is taken away leaves no time to wait for more pods.
	full := p.batch.closed(snap.Time, append(movingPods(snap), snap.Pending...), time.Duration(e.BatchIdle), time.Duration(e.BatchMax))
	if !p.beginning(snap) && (full || interrupted) {
		ds, err := w.Provision(ctx)
		if err != nil {
			return nil, err
		}
		out = append(out, ds...)
	}
	ds, err := p.disrupt(ctx, w)
	if err != nil {
		return nil, err
	}
	return p.novel(snap.Time, snap.Recent, append(out, ds...), p.fleet.Cluster.Mode), nil
}

// underWay says whether an open decision of that kind removes the same claims.
func (p *Pipeline) underWay(d *decision.Decision) bool {
	for _, r := range p.open {
		if r.Decision.Kind == d.Kind && slices.Equal(r.Decision.Subjects(), d.Subjects()) {
			return true
		}
	}
	return false
}

// beginning says whether a claim of an open decision is not in the cluster yet.
// Until it is, or is given up, its pods look as if nobody had planned for them:
// another plan would launch for them twice.
func (p *Pipeline) beginning(snap *cluster.Snapshot) bool {
	for _, r := range p.open {
		if r.Decision.Kind == decision.Consolidate && len(r.Outcome.Steps) == 0 {
			continue // it waits to be confirmed, and its pods have a place
		}
		for i := range r.Decision.Proposal.Claims {
			name := r.Decision.Proposal.Claims[i].Name
			if !r.Outcome.Final && snap.NodeOf(name) == nil && !r.Outcome.Ended(name) {
				return true
			}
		}
	}
	return false
}
