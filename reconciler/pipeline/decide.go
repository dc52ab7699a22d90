package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/decision"
)

// proposer proposes and judges decisions of one kind.
type proposer func(context.Context) ([]*decision.Decision, error)

// decide makes the decisions of a pass that say something new. A kind that
// cannot be decided on does not hold up the others: they come with the error.
func (p *Pipeline) decide(ctx context.Context, snap *cluster.Snapshot) ([]*decision.Decision, error) {
	w := p.world(snap)
	out, err := proposed(ctx, w.Interrupt, w.Liveness, w.Delete, w.Reclaim)
	out = slices.DeleteFunc(out, p.underWay)
	interrupted := slices.ContainsFunc(out, func(d *decision.Decision) bool { return d.Kind == decision.Interrupt && d.Verdict.Allowed })
	e := p.fleet.Cluster.Engine
	// A node that is taken away leaves no time to wait for more pods.
	full := p.batch.closed(snap.Time, append(movingPods(snap), snap.Pending...), time.Duration(e.BatchIdle), time.Duration(e.BatchMax))
	rest := []proposer{func(ctx context.Context) ([]*decision.Decision, error) { return p.disrupt(ctx, w) }}
	if !p.beginning(snap) && (full || interrupted) {
		rest = slices.Insert(rest, 0, w.Provision)
	}
	more, merr := proposed(ctx, rest...)
	return p.novel(snap.Time, snap.Recent, append(out, more...), p.fleet.Cluster.Mode), errors.Join(err, merr)
}

// proposed is what the proposers propose, in their order, and why some of them
// could not.
func proposed(ctx context.Context, from ...proposer) ([]*decision.Decision, error) {
	var out []*decision.Decision
	var errs []error
	for _, propose := range from {
		ds, err := propose(ctx)
		if err != nil {
			errs = append(errs, fmt.Errorf("decide: %w", err))
			continue
		}
		out = append(out, ds...)
	}
	return out, errors.Join(errs...)
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
