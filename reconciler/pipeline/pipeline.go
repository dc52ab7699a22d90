// Package pipeline is the one road that every decision takes: snapshot,
// propose, judge, record, act, outcome. Production, the demo, tests and replay
// differ only in the ports it is given.
//
// A Pipeline is driven by calling Pass, one pass after the other, from one
// goroutine. What it holds in memory is either a cache or can be read again
// from the ledger and the cluster: after a crash a new one goes on.
package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/disruption"
	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/policy"
	"github.com/reeve-project/reeve/reconciler/port"
)

// Deps are what a Pipeline acts through. All but Queue are required.
type Deps struct {
	Specs   port.Specs
	Cluster port.Cluster
	Cloud   port.Cloud
	// Queue announces interruptions; nil for none.
	Queue  port.Queue
	Ledger port.Ledger
	Clock  clock.PassiveClock
	Log    *slog.Logger
}

// Options of a Pipeline.
type Options struct {
	// Cluster is the name of the cluster whose fleet is reconciled.
	Cluster string
	// Identity of this process, for the handover record.
	Identity string
	// Pod is "namespace/name" of the pod that this process runs in, which tells
	// policies where the controller is; empty when it is unknown or none.
	Pod string
	// PullInterval is the longest time between two looks at the spec branch;
	// zero looks in every pass. Wake brings the next look forward.
	PullInterval time.Duration
	// Observer is told of everything that happens, in order; nil for none.
	Observer func(Event)
}

// Event is something that happened in a pass, for people who watch.
type Event struct {
	Time time.Time
	// Decision is set when one was recorded.
	Decision *decision.Decision
	// Outcome and Step are set when an outcome advanced.
	Outcome *decision.Outcome
	Step    *decision.Step
	// Err is set when something failed and will be tried again.
	Err error
}

// Pipeline reconciles one cluster.
type Pipeline struct {
	Deps
	opts Options

	fleet  *fleet.Fleet
	judge  *policy.Engine
	source *port.Source
	// head is the spec commit that was judged last, accepted or not; pulled is
	// when the branch was looked at last, and woken that it has moved since.
	head    string
	pulled  time.Time
	woken   atomic.Bool
	catalog *catalog.Data
	caches  *caches
	batch   batch
	// unavailable are offerings that EC2 refused.
	unavailable []cluster.Unavailable
	// pauses are the classes that EC2 refuses to launch with.
	pauses map[string]pause
	// holds are the nodes that are left alone after an attempt that failed.
	holds holds
	// instances are what EC2 says that runs; ending are those to be ended when
	// the pass is over.
	instances instances
	ending    []ending
	// messages of the queue that are not answered yet.
	messages []received
	// blocked is what was last told of the nodes that stay.
	blocked map[disruption.Blocked]bool
	// disrupted is when wasteful nodes were last looked for, and swept when the
	// cloud was last swept.
	disrupted, swept time.Time
	// open are the decisions that are not closed, with outcomes as they stand
	// here; dirty are those that the ledger does not have yet.
	open  []*port.Record
	dirty map[string]bool
	// repeats counts proposals that came again since they were recorded.
	repeats map[string]int
	// unpushed is the last push that was made at once.
	unpushed attempt
	// stopped is why nothing may be acted on any more.
	stopped error
}

// New makes a Pipeline. Start must be called before the first Pass.
func New(deps Deps, opts Options) *Pipeline {
	return &Pipeline{Deps: deps, opts: opts, caches: newCaches(), pauses: map[string]pause{}, holds: holds{}, dirty: map[string]bool{}, repeats: map[string]int{}}
}

// Fleet is the accepted fleet, nil before the first.
func (p *Pipeline) Fleet() *fleet.Fleet { return p.fleet }

// Open says whether a decision is open.
func (p *Pipeline) Open() bool { return len(p.open) > 0 || len(p.dirty) > 0 }

// Wake makes the next pass look at the spec branch: a webhook has said that it
// moved. It may be called from any goroutine.
func (p *Pipeline) Wake() { p.woken.Store(true) }

// Start takes over: it records a handover, whose push fences every earlier
// leader, and reads back the accepted fleet and the open decisions. It fails
// with port.ErrFenced if another leader was faster.
func (p *Pipeline) Start(ctx context.Context) error {
	for _, r := range p.Ledger.Open() {
		p.open = append(p.open, &port.Record{Decision: r.Decision, Outcome: r.Outcome.Clone()})
	}
	if err := p.readAccepted(ctx); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	if err := p.handover(ctx); err != nil {
		return fmt.Errorf("handover: %w", err)
	}
	return nil
}

// readAccepted loads the fleet that was in force, so that a spec branch that
// is broken or gone does not stop a new leader.
func (p *Pipeline) readAccepted(ctx context.Context) error {
	src, err := p.Ledger.Accepted()
	if err != nil {
		return fmt.Errorf("accepted fleet: %w", err)
	}
	if src == nil {
		return nil
	}
	f, judge, err := p.load(ctx, src)
	if found := port.Findings(err); len(found) > 0 {
		// This release refuses what an earlier one accepted. Nothing is acted on
		// until a commit is pushed that it accepts.
		p.report(p.Clock.Now(), fmt.Errorf("accepted commit %s cannot be used any more, push one that can: %w", src.Commit, err))
		return nil
	}
	if err != nil {
		return fmt.Errorf("accepted commit %s: %w", src.Commit, err)
	}
	p.fleet, p.judge, p.source, p.head = f, judge, src, src.Commit
	return nil
}

func (p *Pipeline) handover(ctx context.Context) error {
	now := p.Clock.Now()
	d := Handover(p.opts.Cluster, p.opts.Identity, p.Ledger.Epoch(), now)
	if err := d.Seal(); err != nil {
		return err
	}
	o := decision.NewOutcome(d.ID)
	o.Advance(d.Subjects(), decision.Step{Time: now, State: decision.Applied})
	if err := p.Ledger.Append(ctx, port.Entry{Time: now, Decisions: []*decision.Decision{d}, Outcomes: []*decision.Outcome{o}, Inputs: p.inputs()}); err != nil {
		return err
	}
	p.tell(Event{Time: now, Decision: d})
	return p.Ledger.Push(ctx, now, true)
}

// Pass makes one pass. An error that is port.ErrFenced or port.ErrConflict is
// final: nothing may be acted on any more. All others are for the caller to
// report; the next pass tries again.
func (p *Pipeline) Pass(ctx context.Context) error {
	if p.stopped != nil {
		return p.stopped
	}
	now := decision.Milliseconds(p.Clock.Now())
	err := errors.Join(p.pull(ctx, now), p.reconcile(ctx, now))
	if perr := p.push(ctx, now, false); perr != nil {
		err = errors.Join(err, perr)
	}
	return err
}

// reconcile is the part of a pass that looks at the cluster.
func (p *Pipeline) reconcile(ctx context.Context, now time.Time) error {
	if p.fleet == nil {
		return nil
	}
	p.receive(ctx, now)
	snap, err := p.observe(ctx, now)
	if err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	moved, err := p.advance(ctx, snap)
	if err != nil {
		p.report(now, err)
	}
	if moved {
		if snap, err = p.observe(ctx, now); err != nil {
			return fmt.Errorf("snapshot: %w", err)
		}
	}
	decisions, err := p.decide(ctx, snap)
	if rerr := p.record(ctx, snap, decisions); rerr != nil {
		return errors.Join(err, fmt.Errorf("record: %w", rerr))
	}
	if err == nil {
		// Otherwise a message may be without its decision: it comes again.
		err = p.answered(ctx, snap)
	}
	return errors.Join(err, p.act(ctx, snap, decisions), p.tidy(ctx, snap))
}

// sweepEvery is how often what was made in AWS on the side is looked through.
const sweepEvery = time.Minute

// tidy removes what nobody needs any more: taints of decisions that were
// dropped, and what was made in AWS on the side.
func (p *Pipeline) tidy(ctx context.Context, snap *cluster.Snapshot) error {
	if p.fleet.Cluster.Mode == fleet.Observe || p.stopped != nil {
		return nil
	}
	err := p.untaintLeftovers(ctx, p.marked(snap))
	if snap.Time.Sub(p.swept) < sweepEvery {
		return err
	}
	p.swept = snap.Time
	if serr := p.Cloud.Sweep(ctx, p.fleet.NodeClasses); serr != nil {
		err = errors.Join(err, fmt.Errorf("sweep: %w", serr))
	}
	return err
}

// Stop records what is not recorded yet, pushes everything and closes the
// ledger. No pass may follow.
func (p *Pipeline) Stop(ctx context.Context) error {
	if p.stopped != nil {
		return p.stopped
	}
	now := decision.Milliseconds(p.Clock.Now())
	if len(p.dirty) > 0 {
		snap, err := p.observe(ctx, now)
		if err != nil {
			return fmt.Errorf("snapshot: %w", err)
		}
		if err := p.record(ctx, snap, nil); err != nil {
			return fmt.Errorf("record: %w", err)
		}
	}
	if err := p.Ledger.Close(ctx, now); err != nil {
		return fmt.Errorf("close the ledger: %w", err)
	}
	return nil
}

// push pushes and remembers when acting has to end.
func (p *Pipeline) push(ctx context.Context, now time.Time, force bool) error {
	err := p.Ledger.Push(ctx, now, force)
	if errors.Is(err, port.ErrFenced) || errors.Is(err, port.ErrConflict) {
		p.stopped = err
	}
	if err != nil {
		return fmt.Errorf("push: %w", err)
	}
	return nil
}

// attempt is when something was tried, and how it went.
type attempt struct {
	at  time.Time
	err error
}

// pushOnce pushes at once, unless that has failed in this pass already: a remote
// that hangs holds a pass up once, and not for every decision.
func (p *Pipeline) pushOnce(ctx context.Context, now time.Time) error {
	if p.unpushed.err == nil || !p.unpushed.at.Equal(now) {
		p.unpushed = attempt{now, p.push(ctx, now, true)}
	}
	return p.unpushed.err
}

func (p *Pipeline) tell(e Event) {
	if p.opts.Observer != nil {
		p.opts.Observer(e)
	}
}

// report tells of an error that the next pass will meet again if it lasts.
func (p *Pipeline) report(now time.Time, err error) {
	p.Log.Error("pass", "error", err)
	p.tell(Event{Time: now, Err: err})
}

func (p *Pipeline) inputs() port.Inputs {
	in := port.Inputs{Catalog: p.catalog}
	if p.source != nil {
		in.FleetTree = p.source.Tree
	}
	if p.judge != nil {
		in.Policies = p.judge.Bundle().Files()
	}
	return in
}
