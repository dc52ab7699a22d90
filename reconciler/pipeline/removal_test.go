package pipeline_test

import (
	"testing"
	"time"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/sim"
)

// running starts a cluster with so many replicas on nodes of ours.
func withReplicas(t *testing.T, n int32) *rig {
	t.Helper()
	r := started(t)
	r.must(r.world.Scale("default/inflate", n))
	r.settle()
	if got := r.running(); got != int(n) {
		t.Fatalf("%d pods run, want %d", got, n)
	}
	return r
}

// claims are the names of the NodeClaims there are.
func (r *rig) claims() []string {
	r.t.Helper()
	snap, err := r.api.Snapshot(r.ctx)
	r.must(err)
	var out []string
	for _, n := range snap.Nodes {
		if n.Claim != nil {
			out = append(out, n.Claim.Name)
		}
	}
	return out
}

// states are those that the outcome of the decision went through for the
// subject.
func (r *rig) states(d *decision.Decision, subject string) []decision.State {
	r.t.Helper()
	var out []decision.State
	for _, s := range r.steps[d.ID] {
		if s.Claim == subject || s.Claim == "" && s.Instance == subject {
			out = append(out, s.State)
		}
	}
	return out
}

func wantStates(t *testing.T, got []decision.State, want ...decision.State) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("states %v, want %v", got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("states %v, want %v", got, want)
		}
	}
}

func TestWhatAPersonDeletesIsDrainedAndReplaced(t *testing.T) {
	for _, kind := range []sim.Kind{sim.KindNodeClaim, sim.KindNode} {
		t.Run(string(kind), func(t *testing.T) {
			r := withReplicas(t, 5)
			claim := r.claims()[0]
			key := claim
			if kind == sim.KindNode {
				key = r.nodeOf(claim)
			}
			r.must(r.world.Delete(kind, key))
			r.settle()
			d := r.last(decision.Delete)
			wantStates(t, r.states(d, claim), decision.Tainted, decision.Drained, decision.Terminated)
			if got := r.claims(); len(got) != 1 || got[0] == claim || r.running() != 5 {
				t.Errorf("claims %v, %d pods", got, r.running())
			}
			r.run(time.Minute)
			if n := len(r.instances()); n != 1 {
				t.Errorf("%d instances are left", n)
			}
			r.finish()
		})
	}
}

func TestAnOrphanIsReclaimedAfterThirtySeconds(t *testing.T) {
	r := withReplicas(t, 5)
	claim := r.claims()[0]
	// Somebody takes the finalizer off by hand: the claim goes, the instance stays.
	r.must(r.world.Delete(sim.KindNodeClaim, claim))
	r.must(r.api.Finalize(r.ctx, claim))
	r.settle()
	r.run(3 * time.Minute)
	d := r.last(decision.Reclaim)
	wantStates(t, r.states(d, d.Proposal.Instances[0].ID), decision.Terminated)
	if n := len(r.instances()); n != 1 || r.running() != 5 {
		t.Errorf("%d instances, %d pods", n, r.running())
	}
	r.finish()
}

// CASES D17: the finalizer goes at once, nothing is waited for.
func TestANodeWhoseInstanceWasEndedOutsideIsGivenUp(t *testing.T) {
	r := withReplicas(t, 5)
	claim := r.claims()[0]
	r.cloud.Attach(nil) // nobody tells of it
	r.cloud.Kill(r.instances()[0].ID)
	at := r.world.Now()
	for range 300 {
		r.run(time.Second)
		if c := r.claims(); len(c) == 1 && c[0] != claim && r.running() == 5 {
			break
		}
	}
	if took := r.world.Now().Sub(at); took > 5*time.Minute {
		t.Errorf("it took %s", took)
	}
	d := r.last(decision.Liveness)
	if d.Proposal.Reason != "instance_gone" {
		t.Errorf("reason %q", d.Proposal.Reason)
	}
	r.settle()
	r.finish()
}
