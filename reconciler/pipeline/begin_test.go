package pipeline_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/port"
	"github.com/reeve-project/reeve/reconciler/sim"
)

// count is how many decisions of the kind were made.
func (r *rig) count(k decision.Kind) int {
	n := 0
	for _, d := range r.decisions {
		if d.Kind == k {
			n++
		}
	}
	return n
}

// failing makes every call of the operation fail.
func (r *rig) failing(op string) {
	r.world.SetFaults(func(c sim.Call) *sim.Fault {
		if c.Op == op {
			return &sim.Fault{Err: sim.ErrTimeout}
		}
		return nil
	})
}

func TestPodsOfADecisionThatCannotBeginAreNotPlannedAgain(t *testing.T) {
	t.Run("claims cannot be created", func(t *testing.T) {
		r := started(t)
		r.failing("CreateClaim")
		r.must(r.world.Scale("default/inflate", 5))
		r.run(20 * time.Second)
		r.must(r.world.Scale("default/inflate", 6))
		r.run(20 * time.Second)
		if n := r.count(decision.Provision); n != 1 {
			t.Errorf("%d provision decisions for the same pods, want 1", n)
		}
		r.world.SetFaults(nil)
		r.settle()
		r.finish()
	})
	t.Run("claims can never be created", func(t *testing.T) {
		r := started(t)
		r.failing("CreateClaim")
		r.must(r.world.Scale("default/inflate", 1))
		r.run(10 * time.Second)
		r.must(r.world.Clock.Advance(3 * time.Minute))
		r.run(10 * time.Second)
		if n := r.count(decision.Provision); n != 2 {
			t.Errorf("%d provision decisions in three minutes, want 2", n)
		}
		r.world.SetFaults(nil)
		r.settle()
		r.finish()
	})
	t.Run("the record cannot be pushed and must be", func(t *testing.T) {
		r := newRig(t)
		r.push("Be strict", r.edit(clusterFile, `environment:       "production"`, "environment: \"production\"\n\tledger: durability: \"strict\""))
		r.lead()
		r.settle()
		r.must(os.Rename(r.repo, r.repo+".away"))
		r.must(r.world.Scale("default/inflate", 5))
		r.run(30 * time.Second)
		if n := len(r.instances()); n != 0 {
			t.Errorf("%d instances before the record was pushed", n)
		}
		r.must(os.Rename(r.repo+".away", r.repo))
		r.settle()
		if n := len(r.instances()); n != 1 || r.count(decision.Provision) != 1 {
			t.Errorf("%d instances by %d decisions, want 1 by 1", n, r.count(decision.Provision))
		}
		r.finish()
	})
}

func TestARemovalThatFailsIsNotDecidedAgain(t *testing.T) {
	r := started(t)
	r.world.SetFaults(func(c sim.Call) *sim.Fault {
		switch {
		case c.Op == "Launch" && c.N == 1:
			return &sim.Fault{Err: port.ErrInsufficientCapacity}
		case c.Op == "DeleteClaim" && c.N < 20:
			return &sim.Fault{Err: sim.ErrTimeout}
		}
		return nil
	})
	r.must(r.world.Scale("default/inflate", 5))
	r.settle()
	if n := r.count(decision.Liveness); n != 1 {
		t.Errorf("%d liveness decisions about one claim, want 1", n)
	}
	r.finish()
}

func TestAnAcceptedFleetThatWasReplacedIsNotApplied(t *testing.T) {
	r := started(t)
	r.failing("Apply")
	r.push("Raise the limit", r.edit(nodePools, `cpu: "1000"`, `cpu: "2000"`))
	r.run(3 * time.Second)
	r.push("Observe", r.edit(clusterFile, `environment:       "production"`, "environment: \"production\"\n\tmode: \"observe\""))
	r.run(3 * time.Second)
	r.world.SetFaults(nil)
	r.settle()
	r.finish()
	if out := r.git("grep", "-l", `"state": "dropped"`, "reeve/myeks", "--", "decisions"); len(strings.Fields(out)) != 1 {
		t.Errorf("dropped outcomes: %q, want one", out)
	}
}

func TestSwitchingToObserveEndsWhatIsOpen(t *testing.T) {
	r := started(t)
	r.failing("Launch")
	r.must(r.world.Scale("default/inflate", 5))
	r.run(4 * time.Second)
	r.push("Only observe", r.edit(clusterFile, `environment:       "production"`, "environment: \"production\"\n\tmode: \"observe\""))
	r.run(3 * time.Second)
	r.world.SetFaults(nil)
	r.run(30 * time.Second)
	if n := len(r.instances()); n != 0 {
		t.Errorf("%d instances were launched in observe", n)
	}
	if r.pipeline.Open() {
		t.Error("a decision is still open")
	}
	r.finish()
}

func TestAClaimThatAPersonDeletesEndsItsDecision(t *testing.T) {
	r := started(t)
	r.failing("Launch")
	r.must(r.world.Scale("default/inflate", 1))
	r.run(4 * time.Second)
	d := r.last(decision.Provision)
	r.must(r.world.Scale("default/inflate", 0))
	r.run(2 * time.Second)
	r.must(r.world.Delete(sim.KindNodeClaim, d.Proposal.Claims[0].Name))
	r.run(5 * time.Second)
	if r.pipeline.Open() {
		t.Errorf("the decision is still open: %v", r.errs)
	}
	r.finish()
}
