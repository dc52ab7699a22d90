package pipeline_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/port"
	"github.com/reeve-project/reeve/reconciler/sim"
)

// noCapacity has EC2 launch nothing any more.
func (r *rig) noCapacity() {
	r.t.Helper()
	data, err := r.cloud.Catalog(r.ctx)
	r.must(err)
	for _, it := range data.Types() {
		for _, z := range data.Zones() {
			r.cloud.SetCapacity(sim.Pool{InstanceType: it.Name, Zone: z.Name, CapacityType: "on-demand"}, 0)
		}
	}
}

// A node that a person deletes while its replacement is made goes even when the
// replacement fails.
func TestANodeThatIsDeletedWhileItsReplacementFailsGoes(t *testing.T) {
	r := withReplicas(t, 5)
	r.must(r.world.Scale("default/inflate", 30))
	r.settle()
	r.noCapacity()
	r.world.SetFaults(func(c sim.Call) *sim.Fault {
		if c.Op == "Launch" {
			return &sim.Fault{Err: sim.ErrTimeout}
		}
		return nil
	})
	r.until(3*time.Minute, func() bool { return r.replacement() != nil && len(r.steps[r.replacement().ID]) > 3 })
	d := r.replacement()
	gone := d.Proposal.Nodes[0].Claim
	r.must(r.world.Delete(sim.KindNodeClaim, gone))
	r.world.SetFaults(nil)
	r.until(2*time.Minute, func() bool { snap, err := r.api.Snapshot(r.ctx); r.must(err); return snap.Node(gone) == nil })
	wantStates(t, r.states(d, gone), decision.Tainted, decision.Dropped)
	for _, n := range d.Proposal.Nodes[1:] {
		wantStates(t, r.states(d, n.Claim), decision.Tainted, decision.Failed)
	}
	if got := r.last(decision.Delete).Proposal.Nodes[0].Claim; got != gone {
		t.Errorf("deleted %s, want %s", got, gone)
	}
	r.finish()
}

// Neither a removal by hand nor the loss of the instance is stuck on a node that
// has not registered yet.
func TestADeletedClaimWhoseInstanceIsGoneBeforeItRegistersGoes(t *testing.T) {
	r := started(t)
	r.boot = sim.Boot{Never: true}
	r.must(r.world.Scale("default/inflate", 1))
	r.until(time.Minute, func() bool { return len(r.instances()) == 1 })
	claim := r.claims()[0]
	r.run(2 * time.Minute)
	r.cloud.Attach(nil) // nobody tells of it
	r.cloud.Kill(r.instances()[0].ID)
	r.until(5*time.Minute, func() bool {
		snap, err := r.api.Snapshot(r.ctx)
		r.must(err)
		return len(r.instances()) == 0 && snap.Node(claim) != nil
	})
	r.run(10 * time.Second)
	r.must(r.world.Delete(sim.KindNodeClaim, claim))
	r.boot = sim.Boot{}
	r.until(3*time.Minute, func() bool { snap, err := r.api.Snapshot(r.ctx); r.must(err); return snap.Node(claim) == nil })
	r.settle()
	r.finish()
}

// Whoever may create nodes may name one as a claim is named.
func TestANodeThatIsNamedAsAClaimIsNotTakenForIt(t *testing.T) {
	r := withReplicas(t, 5)
	claim := r.claims()[0]
	r.must(r.world.Apply(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: claim}}))
	r.must(r.world.Delete(sim.KindNodeClaim, claim))
	r.until(3*time.Minute, func() bool { return len(r.claims()) == 1 && r.claims()[0] != claim && !r.pipeline.Open() })
	wantStates(t, r.states(r.last(decision.Delete), claim), decision.Tainted, decision.Drained, decision.Terminated)
	r.finish()
}

// A node that cannot be tainted must not leave the others tainted, nor hold up
// the nodes that pods wait for.
func TestAReplacementOfANodeThatCannotBeTaintedIsGivenUp(t *testing.T) {
	r := withReplicas(t, 5)
	r.must(r.world.Scale("default/inflate", 30))
	r.settle()
	r.until(3*time.Minute, func() bool { return r.replacement() != nil })
	d := r.replacement()
	stubborn := d.Proposal.Nodes[1].Name
	r.world.SetFaults(func(c sim.Call) *sim.Fault {
		if (c.Op == "Taint" || c.Op == "Untaint") && c.Subject == stubborn {
			return &sim.Fault{Err: sim.ErrTimeout}
		}
		return nil
	})
	r.run(150 * time.Second)
	for _, n := range d.Proposal.Nodes {
		if s := r.states(d, n.Claim); len(s) == 0 || s[len(s)-1] != decision.Failed {
			t.Errorf("states of %s: %v", n.Claim, s)
		}
	}
	r.world.SetFaults(nil)
	r.run(3 * time.Minute)
	r.finish()
}

// What is known of instances serves while EC2 does not answer.
func TestANodeIsDrainedWhileInstancesCannotBeListed(t *testing.T) {
	r := withReplicas(t, 5)
	claim := r.claims()[0]
	r.failing("Instances")
	r.must(r.world.Delete(sim.KindNodeClaim, claim))
	r.run(90 * time.Second)
	wantStates(t, r.states(r.last(decision.Delete), claim), decision.Tainted, decision.Drained)
	r.world.SetFaults(nil)
	r.settle()
	r.finish()
}

// hanging is a ledger that cannot push and counts the attempts.
type hanging struct {
	port.Ledger
	away   bool
	pushes int
}

func (h *hanging) Push(ctx context.Context, now time.Time, force bool) error {
	if !h.away {
		return h.Ledger.Push(ctx, now, force)
	}
	h.pushes++
	return sim.ErrTimeout
}

func TestARemoteThatHangsHoldsAPassUpOnce(t *testing.T) {
	h := &hanging{}
	r := newRig(t)
	r.wrap = func(l port.Ledger) port.Ledger { h.Ledger = l; return h }
	r.push("Describe the fleet", nil)
	r.lead()
	r.settle()
	for _, n := range []int32{5, 30} {
		r.must(r.world.Scale("default/inflate", n))
		r.settle()
	}
	for _, c := range r.claims() {
		r.must(r.world.Delete(sim.KindNodeClaim, c))
	}
	r.run(time.Second)
	if n := r.made(decision.Delete); n < 2 {
		t.Fatalf("%d deletions, want several", n)
	}
	h.away = true
	r.run(time.Second)
	// One at once, and the one that every pass ends with.
	if h.pushes > 2 {
		t.Errorf("%d pushes in one pass", h.pushes)
	}
	h.away = false
	r.settle()
	r.finish()
}
