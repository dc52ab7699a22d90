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
	out, err := w.Liveness(ctx)
	if err != nil {
		return nil, err
	}
	out = slices.DeleteFunc(out, p.underWay)
	e := p.fleet.Cluster.Engine
	if !p.beginning(snap) && p.batch.closed(snap.Time, snap.Pending, time.Duration(e.BatchIdle), time.Duration(e.BatchMax)) {
		ds, err := w.Provision(ctx)
		if err != nil {
			return nil, err
		}
		out = append(out, ds...)
	}
	return p.novel(snap.Time, snap.Recent, out, p.fleet.Cluster.Mode), nil
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
		for i := range r.Decision.Proposal.Claims {
			name := r.Decision.Proposal.Claims[i].Name
			if !r.Outcome.Final && snap.Node(name) == nil && !r.Outcome.Has(name, decision.Failed) && !r.Outcome.Has(name, decision.Initialized) {
				return true
			}
		}
	}
	return false
}
