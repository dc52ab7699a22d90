package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/lifecycle"
	"github.com/reeve-project/reeve/reconciler/port"
)

// Bounds of DESIGN.md section 7 on acting while pushes do not get through.
const (
	maxUnpushedAge   = 15 * time.Minute
	maxUnpushedCount = 500
	// What a decision has not begun after that long is not begun any more.
	staleAfter = 2 * time.Minute
)

func (p *Pipeline) durability() fleet.Durability {
	if p.fleet == nil {
		return fleet.Ahead
	}
	return p.fleet.Cluster.Ledger.Durability
}

// waitsForPush says whether actions of the kind wait until their record is
// pushed.
func waitsForPush(k decision.Kind, d fleet.Durability) bool {
	switch {
	case k == decision.Interrupt || d == fleet.Async:
		return false
	case d == fleet.Strict:
		return true
	default:
		return k != decision.Provision && k != decision.Reclaim && k != decision.Accept
	}
}

// act begins what was just recorded.
func (p *Pipeline) act(ctx context.Context, snap *cluster.Snapshot, decisions []*decision.Decision) error {
	snap = p.marked(snap)
	var errs []error
	for _, d := range decisions {
		i := slices.IndexFunc(p.open, func(r *port.Record) bool { return r.Decision.ID == d.ID })
		if i < 0 {
			continue
		}
		if err := p.permitted(ctx, snap.Time, d); err != nil {
			errs = append(errs, fmt.Errorf("%s %s waits: %w", d.Kind, d.ID, err))
			continue
		}
		if err := p.carryOn(ctx, snap, p.open[i]); err != nil {
			p.report(snap.Time, fmt.Errorf("%s %s: %w", d.Kind, d.ID, err))
		}
	}
	return errors.Join(append(errs, p.flush(ctx))...)
}

// marked is the snapshot with the decisions of this pass noted on the nodes
// that they remove. What was recorded stays as it is.
func (p *Pipeline) marked(snap *cluster.Snapshot) *cluster.Snapshot {
	out := *snap
	out.Nodes = make([]*cluster.Node, len(snap.Nodes))
	for i, n := range snap.Nodes {
		c := *n
		out.Nodes[i] = &c
	}
	markRemoving(&out, p.open)
	return &out
}

// awaitsPush says whether the record of the decision is not pushed yet. What became
// of it since may wait for the next push.
func (p *Pipeline) awaitsPush(d *decision.Decision) bool {
	_, since := p.Ledger.Unpushed()
	return !since.IsZero() && !since.After(d.Time)
}

// permitted fails while the ledger does not let actions of the kind begin.
func (p *Pipeline) permitted(ctx context.Context, now time.Time, d *decision.Decision) error {
	k := d.Kind
	if waitsForPush(k, p.durability()) && p.awaitsPush(d) {
		if err := p.pushOnce(ctx, now); err != nil && (p.stopped != nil || p.durability() == fleet.Strict) {
			return err
		}
	}
	n, since := p.Ledger.Unpushed()
	late := n > maxUnpushedCount || !since.IsZero() && now.Sub(since) > maxUnpushedAge
	if late && k != decision.Interrupt && k != decision.Provision {
		return fmt.Errorf("%d decisions are not pushed, the oldest since %s: only provision and interrupt go on until Git takes them", n, since.Format(time.RFC3339))
	}
	return p.stopped
}

// advance carries on with every open decision and says whether anything in the
// cluster was changed. One decision that fails does not hold up the others.
func (p *Pipeline) advance(ctx context.Context, snap *cluster.Snapshot) (bool, error) {
	before := p.steps()
	var errs []error
	for _, r := range p.open {
		if r.Outcome.Final {
			continue
		}
		if err := p.permitted(ctx, snap.Time, r.Decision); err != nil {
			errs = append(errs, err)
			continue
		}
		if err := p.carryOn(ctx, snap, r); err != nil {
			errs = append(errs, fmt.Errorf("%s %s: %w", r.Decision.Kind, r.Decision.ID, err))
		}
	}
	errs = append(errs, p.flush(ctx))
	return p.steps() != before, errors.Join(errs...)
}

func (p *Pipeline) steps() int {
	n := 0
	for _, r := range p.open {
		n += len(r.Outcome.Steps)
	}
	return n
}

// carryOn does what comes next for an open decision. It may be called any
// number of times, and by another leader than the one who began.
func (p *Pipeline) carryOn(ctx context.Context, snap *cluster.Snapshot, r *port.Record) error {
	if p.fleet.Cluster.Mode == fleet.Observe {
		return p.drop(ctx, snap, r, "the fleet was switched to observe")
	}
	switch r.Decision.Kind {
	case decision.Provision:
		return p.provision(ctx, snap, r)
	case decision.Liveness, decision.Interrupt, decision.Delete:
		return p.remove(ctx, snap, r)
	case decision.Reclaim:
		p.reclaim(snap, r)
		return nil
	case decision.Consolidate:
		return p.consolidate(ctx, snap, r)
	case decision.Accept:
		if r.Decision.Proposal.Spec.Commit != p.fleet.Commit {
			p.step(r, decision.Step{Time: snap.Time, State: decision.Dropped, Message: "commit " + p.fleet.Commit + " was accepted before this one was applied"})
			return nil
		}
		if err := p.Cluster.Apply(ctx, p.fleet); err != nil {
			return fmt.Errorf("apply the fleet: %w", err)
		}
		p.step(r, decision.Step{Time: snap.Time, State: decision.Applied})
		return nil
	default:
		// A ledger written by a later release may hold kinds that this one
		// does not act on. They stay open for it.
		return fmt.Errorf("this release cannot carry out decisions of kind %q: run the release that made it", r.Decision.Kind)
	}
}

// drop ends a decision as it stands. Nodes that were only tainted for it take
// pods again, since nobody else knows why they do not; all else that was begun
// is left to whoever acts now.
func (p *Pipeline) drop(ctx context.Context, snap *cluster.Snapshot, r *port.Record, why string) error {
	if removes(r.Decision.Kind) {
		for _, n := range r.Decision.Proposal.Nodes {
			node := snap.NodeOf(n.Claim)
			if node == nil || node.Deleting || r.Outcome.Ended(n.Claim) || !isDisrupted(node) {
				continue
			}
			if err := p.release(ctx, n, why); err != nil {
				return err
			}
			p.step(r, decision.Step{Time: snap.Time, State: decision.Dropped, Claim: n.Claim, Node: n.Name, Message: why + ", and its taint was taken off"})
		}
	}
	p.leave(snap, r, decision.Dropped, why)
	return nil
}

// provision creates the claims of a decision, launches them group by group and
// follows them until they are initialized.
func (p *Pipeline) provision(ctx context.Context, snap *cluster.Snapshot, r *port.Record) error {
	d := r.Decision
	if p.outdated(snap, d) && p.untouched(snap, r) {
		p.step(r, decision.Step{Time: snap.Time, State: decision.Abandoned, Message: "nothing was begun before the specs changed or two minutes had passed"})
		return nil
	}
	return p.raise(ctx, snap, r)
}

// raise does what comes next for each claim of a decision.
func (p *Pipeline) raise(ctx context.Context, snap *cluster.Snapshot, r *port.Record) error {
	d := r.Decision
	var errs []error
	var launch []*decision.Claim
	for i := range d.Proposal.Claims {
		c := &d.Proposal.Claims[i]
		if r.Outcome.Has(c.Name, decision.Failed) || r.Outcome.Has(c.Name, decision.Initialized) {
			continue
		}
		ready, err := p.claim(ctx, snap, r, c)
		if err != nil {
			errs = append(errs, err)
		}
		if ready {
			launch = append(launch, c)
		}
	}
	return errors.Join(append(errs, p.launch(ctx, snap, r, launch))...)
}

// outdated says whether the decision is too old to begin anything of it: the
// cluster or the specs it was made for are gone.
func (p *Pipeline) outdated(snap *cluster.Snapshot, d *decision.Decision) bool {
	return snap.Time.Sub(d.Time) > staleAfter || d.Inputs.SpecCommit != p.fleet.Commit
}

// untouched says whether nothing of the decision exists.
func (p *Pipeline) untouched(snap *cluster.Snapshot, r *port.Record) bool {
	if len(r.Outcome.Steps) > 0 {
		return false
	}
	return !slices.ContainsFunc(r.Decision.Proposal.Claims, func(c decision.Claim) bool { return snap.NodeOf(c.Name) != nil })
}

// claim does what comes next for one claim and says whether it is ready to be
// launched.
func (p *Pipeline) claim(ctx context.Context, snap *cluster.Snapshot, r *port.Record, c *decision.Claim) (bool, error) {
	node := snap.NodeOf(c.Name)
	switch {
	case node == nil && r.Outcome.Has(c.Name, decision.Claimed):
		if snap.Time.After(lastStep(r.Outcome, c.Name)) {
			p.step(r, decision.Step{Time: snap.Time, State: decision.Failed, Claim: c.Name, Message: "the NodeClaim is gone"})
			return false, nil
		}
		return false, nil
	case node == nil && p.outdated(snap, r.Decision):
		p.step(r, decision.Step{Time: snap.Time, State: decision.Failed, Claim: c.Name, Message: "the NodeClaim was not created before the specs changed or two minutes had passed"})
		return false, nil
	case node == nil:
		obj, err := nodeClaim(p.fleet, r.Decision, c)
		if err != nil {
			p.step(r, decision.Step{Time: snap.Time, State: decision.Failed, Claim: c.Name, Message: err.Error()})
			return false, nil
		}
		if err := p.Cluster.CreateClaim(ctx, obj); err != nil {
			return false, fmt.Errorf("create NodeClaim %s: %w", c.Name, err)
		}
		p.step(r, decision.Step{Time: snap.Time, State: decision.Claimed, Claim: c.Name})
		return true, nil
	case node.Deleting:
		p.step(r, decision.Step{Time: snap.Time, State: decision.Failed, Claim: c.Name, Message: "the NodeClaim is being deleted"})
		return false, nil
	case !r.Outcome.Has(c.Name, decision.Claimed):
		// It was created by a leader that did not live to say so.
		p.step(r, decision.Step{Time: snap.Time, State: decision.Claimed, Claim: c.Name})
	}
	step := lifecycle.Next(node, lifecycle.EvidenceOf(snap, node), snap.Time)
	if step.Action == lifecycle.Launch {
		return true, nil
	}
	return false, p.follow(ctx, snap, r, step)
}

func lastStep(o *decision.Outcome, claim string) time.Time {
	var at time.Time
	for _, s := range o.Steps {
		if s.Claim == claim {
			at = s.Time
		}
	}
	return at
}
