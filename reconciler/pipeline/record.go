package pipeline

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/port"
)

// Proposals that lead to nothing are recorded again after that long.
const repeatInterval = time.Hour

// novel drops decisions that change nothing and say nothing new: a denied or
// unplaceable proposal is recorded when it is new, and then hourly with a
// count.
func (p *Pipeline) novel(now time.Time, recent []cluster.Recent, decisions []*decision.Decision, mode fleet.Mode) []*decision.Decision {
	last := map[string]time.Time{}
	for _, r := range recent {
		last[r.Fingerprint] = r.Time
	}
	// What was not proposed again within the hour need not be counted further.
	maps.DeleteFunc(p.repeats, func(f string, _ int) bool {
		_, known := last[f]
		return !known && !slices.ContainsFunc(decisions, func(d *decision.Decision) bool { return d.Fingerprint == f })
	})
	out := decisions[:0]
	for _, d := range decisions {
		at, known := last[d.Fingerprint]
		acted := d.Verdict.Allowed && mode == fleet.Enforce
		if known && !acted && now.Sub(at) < repeatInterval {
			p.repeats[d.Fingerprint]++
			continue
		}
		out = append(out, d)
	}
	return out
}

// known says whether the same was recorded a short while ago: a new leader
// meets the commit again that its predecessor has refused.
func (p *Pipeline) known(now time.Time, d *decision.Decision) bool {
	for _, r := range p.Ledger.Recent(now) {
		if r.Fingerprint == d.Fingerprint && now.Sub(r.Time) < repeatInterval {
			return true
		}
	}
	return false
}

// record appends the decisions of a pass and the outcomes that have advanced.
// When it returns, everything may be acted on that the durability lets go.
func (p *Pipeline) record(ctx context.Context, snap *cluster.Snapshot, decisions []*decision.Decision) error {
	if len(decisions) == 0 && len(p.dirty) == 0 {
		return nil
	}
	e := port.Entry{Time: snap.Time, Snapshot: snap, Decisions: decisions, Inputs: p.inputs()}
	for _, r := range p.open {
		if p.dirty[r.Decision.ID] {
			e.Outcomes = append(e.Outcomes, r.Outcome.Clone())
		}
	}
	if err := p.Ledger.Append(ctx, e); err != nil {
		return err
	}
	p.recorded(decisions)
	for _, d := range decisions {
		p.tell(Event{Time: snap.Time, Decision: d})
	}
	return nil
}

// recorded takes over what the ledger now has.
func (p *Pipeline) recorded(decisions []*decision.Decision) {
	clear(p.dirty)
	open := p.open[:0]
	for _, r := range p.open {
		if !r.Outcome.Final {
			open = append(open, r)
		}
	}
	p.open = open
	for _, d := range decisions {
		delete(p.repeats, d.Fingerprint)
		if IsOpen(d) {
			p.open = append(p.open, &port.Record{Decision: d, Outcome: decision.NewOutcome(d.ID)})
		}
	}
}

// IsOpen says whether a decision that was just made waits for an outcome.
func IsOpen(d *decision.Decision) bool {
	return d.Verdict.Allowed && d.Kind.HasOutcome() && d.Kind != decision.Handover && d.Mode == fleet.Enforce
}

// step adds steps to the outcome of an open decision.
func (p *Pipeline) step(r *port.Record, steps ...decision.Step) {
	for i := range steps {
		if steps[i].State == decision.Claimed || steps[i].State == decision.Tainted {
			r.Outcome.Unpushed = r.Outcome.Unpushed || waitsForPush(r.Decision.Kind, p.durability()) && p.awaitsPush(r.Decision)
		}
	}
	r.Outcome.Advance(r.Decision.Subjects(), steps...)
	p.dirty[r.Decision.ID] = true
	for i := range steps {
		p.tell(Event{Time: steps[i].Time, Decision: r.Decision, Outcome: r.Outcome, Step: &steps[i]})
	}
}
