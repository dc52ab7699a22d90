package pipeline_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/port"
	"github.com/reeve-project/reeve/reconciler/sim"
)

// writes are the calls that change something outside of the process.
var writes = []string{
	"Append", "Push", "Put", "Apply", "CreateClaim", "MarkLaunched", "MarkLaunchFailed", "Register", "Register/claim",
	"Initialize", "Initialize/claim", "DeleteClaim", "Finalize", "Finalize/claim", "Taint", "Untaint", "Label", "SetCondition",
	"Evict", "DeletePod", "Launch", "Terminate", "Tag", "Delete",
}

// mortal has the leader die right after its nth write. A dead leader's calls
// have no effect any more.
type mortal struct {
	r     *rig
	left  int
	dead  bool
	death string
	// seen are the writes so far. Unless every write counts, one that is of the
	// same sort as an earlier one does not: to die after the second eviction is
	// no other death than after the first.
	seen  map[string]int
	every bool
}

func (m *mortal) arm(n int) { m.left, m.dead, m.death, m.seen = n, false, "", map[string]int{} }

// counts says whether the write is one to die after.
func (m *mortal) counts(op string) bool {
	if !slices.Contains(writes, op) {
		return false
	}
	m.seen[op]++
	most := 1
	if op == "Append" || op == "Push" {
		most = 3 // the decision, and what became of it
	}
	return m.every || m.seen[op] <= most
}

// script is asked about every call of the simulated ports.
func (m *mortal) script(c sim.Call) *sim.Fault {
	if m.r.reading {
		return nil // that is the test, and not the leader
	}
	if m.dead {
		return &sim.Fault{Err: errCrash}
	}
	if m.left > 0 && m.counts(c.Op) {
		if m.left--; m.left == 0 {
			m.dead, m.death = true, c.Op+" "+c.Subject
			return &sim.Fault{Err: errCrash, After: true}
		}
	}
	return nil
}

// mortalLedger makes commits and pushes writes like the others.
type mortalLedger struct {
	port.Ledger
	m *mortal
}

func (l mortalLedger) call(op string, do func() error) error {
	f := l.m.script(sim.Call{Op: op})
	if f != nil && !f.After {
		return f.Err
	}
	if err := do(); err != nil || f == nil {
		return err
	}
	return f.Err
}

func (l mortalLedger) Append(ctx context.Context, e port.Entry) error {
	return l.call("Append", func() error { return l.Ledger.Append(ctx, e) })
}

func (l mortalLedger) Push(ctx context.Context, now time.Time, force bool) error {
	return l.call("Push", func() error { return l.Ledger.Push(ctx, now, force) })
}

// chapter is one thing that happens and what it leads to.
type chapter struct {
	name string
	kind decision.Kind
	// begin makes it happen, done says whether all that follows has.
	begin func(r *rig)
	done  func(r *rig) bool
}

// chapters lead from an empty cluster back to it, by every kind of decision of
// the story.
func chapters() []chapter {
	var gone string
	replaced := func(r *rig) bool {
		c := r.claims()
		return len(c) == 1 && c[0] != gone && r.running() > 0
	}
	first := func(r *rig) string { gone = r.claims()[0]; return gone }
	return []chapter{
		{"a spec commit", decision.Accept,
			func(r *rig) { r.push("Say hello", map[string]string{"README": fmt.Sprint(r.world.Now())}) },
			func(r *rig) bool { return r.pipeline.Fleet() != nil && r.pipeline.Fleet().Commit == r.tip.String() }},
		{"pending pods", decision.Provision,
			func(r *rig) { r.must(r.world.Scale("default/inflate", 5)) },
			func(r *rig) bool { return r.running() == 5 && len(r.claims()) == 1 }},
		{"a warning", decision.Interrupt,
			func(r *rig) {
				first(r)
				r.queue.Send(cluster.Interruption{Kind: cluster.HealthEvent, Instance: r.instanceOf(gone), Action: "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED"})
			},
			func(r *rig) bool { return replaced(r) && r.queue.Len() == 0 }},
		{"a deletion by hand", decision.Delete,
			func(r *rig) { r.must(r.world.Delete(sim.KindNodeClaim, first(r))) }, replaced},
		{"a node that is too large", decision.Consolidate,
			func(r *rig) { first(r); r.must(r.world.Scale("default/inflate", 1)) }, replaced},
		{"an orphan", decision.Reclaim,
			func(r *rig) {
				id := r.instanceOf(first(r))
				r.must(r.world.Delete(sim.KindNodeClaim, gone))
				r.must(r.api.Finalize(r.ctx, gone))
				r.orphan = id
			},
			func(r *rig) bool { return replaced(r) && !r.runs(r.orphan) }},
		{"an instance that ends", decision.Liveness,
			func(r *rig) {
				// Nobody tells of it: it is found by looking.
				r.cloud.Attach(nil)
				r.cloud.Kill(r.instanceOf(first(r)))
			},
			func(r *rig) bool {
				if !replaced(r) || r.pipeline.Open() {
					return false
				}
				r.cloud.Attach(r.queue)
				return true
			}},
		{"an empty node", decision.Consolidate,
			func(r *rig) { r.must(r.world.Scale("default/inflate", 0)) },
			func(r *rig) bool { return len(r.claims()) == 0 && len(r.alive()) == 0 }},
	}
}

// instanceOf is the id of the claim's instance.
func (r *rig) instanceOf(claim string) string {
	r.t.Helper()
	for _, in := range r.alive() {
		snap, err := r.api.Snapshot(r.ctx)
		r.must(err)
		if n := snap.Node(claim); n != nil && n.Claim.ProviderID == in.ProviderID {
			return in.ID
		}
	}
	r.t.Fatalf("claim %s has no instance", claim)
	return ""
}

// alive are the instances of ours that EC2 has not ended.
func (r *rig) alive() []port.Instance {
	return slices.DeleteFunc(r.instances(), func(in port.Instance) bool { return in.State == "shutting-down" || in.State == "terminated" })
}

func (r *rig) runs(id string) bool {
	return slices.ContainsFunc(r.alive(), func(in port.Instance) bool { return in.ID == id })
}

// Whatever write the leader dies after, and whatever it was about: nothing is
// doubled, nothing lost, nothing unrecorded, and no decision stays open. Each
// cycle goes through every chapter with the death one write later; it ends when
// no chapter has that many writes. What must hold all the time is watched by
// the invariants; the ledger is verified and replayed at the end. The test of
// every change takes each second sort of write, the nightly one every write.
func TestALeaderMayDieAfterAnyWrite(t *testing.T) {
	r := newRig(t)
	m := &mortal{r: r, every: os.Getenv("REEVE_NIGHTLY") != ""}
	// One chapter leaves an orphan behind, and EC2 is asked every two minutes.
	r.watch.OrphanGrace = 3 * time.Minute
	r.wrap = func(l port.Ledger) port.Ledger { return mortalLedger{l, m} }
	r.push("Describe the fleet", r.edit("clusters/myeks/nodepools.cue", "consolidateAfter:    \"1m\"", "consolidateAfter: \"5s\""))
	r.lead()
	r.settle()
	deaths := map[string]int{}
	step := 2
	if m.every {
		step = 1
	}
	for n := 1; ; n += step {
		died := 0
		for _, c := range chapters() {
			r.decisions = nil
			m.arm(n)
			c.begin(r)
			r.play(c, m)
			if m.death != "" {
				died++
				deaths[c.name]++
			}
		}
		if died == 0 {
			break
		}
	}
	for _, c := range chapters() {
		if deaths[c.name] < 3 {
			t.Errorf("%s: only %d deaths", c.name, deaths[c.name])
		}
	}
	t.Log(deaths)
	r.finish()
}

// play runs a chapter to its end, with a new leader when one dies.
func (r *rig) play(c chapter, m *mortal) {
	r.t.Helper()
	r.world.SetFaults(m.script)
	begin := r.world.Now()
	end := r.world.Now().Add(8 * time.Minute)
	for r.world.Now().Before(end) {
		r.run(time.Second)
		if m.dead {
			death := m.death
			m.arm(0)
			r.lead()
			m.death = death
		}
		if _, starting, pending := r.world.Pods("default", nil); c.done(r) && !r.pipeline.Open() && starting+pending == 0 {
			r.world.SetFaults(nil)
			if !slices.ContainsFunc(r.ledger.Recent(r.world.Now()), func(d cluster.Recent) bool { return d.Kind == string(c.kind) && !d.Time.Before(begin) }) {
				r.t.Errorf("%s (death after %q): no decision of kind %s", c.name, m.death, c.kind)
			}
			return
		}
		r.world.SetFaults(m.script)
	}
	r.t.Fatalf("%s: not over after eight minutes; the leader died after %q; errors: %v", c.name, m.death, last(r.errs, 3))
}

func last(errs []error, n int) []error { return errs[max(0, len(errs)-n):] }
