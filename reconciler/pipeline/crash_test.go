package pipeline_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/port"
	"github.com/reeve-project/reeve/reconciler/sim"
)

// Whatever write fails, before or after its effect, and whether the same leader
// goes on or another takes over: nothing is launched twice, nothing is lost and
// nothing is left unrecorded.
func TestAFaultAtAnyWriteLosesAndDoublesNothing(t *testing.T) {
	for _, op := range []string{"Put", "CreateClaim", "Launch", "MarkLaunched", "Register", "Register/claim", "Initialize", "Initialize/claim"} {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s fails %s its effect", op, map[bool]string{false: "before", true: "after"}[after]), func(t *testing.T) {
				r := started(t)
				hit := false
				r.world.SetFaults(func(c sim.Call) *sim.Fault {
					if c.Op != op || hit {
						return nil
					}
					hit = true
					return &sim.Fault{Err: sim.ErrTimeout, After: after}
				})
				r.must(r.world.Scale("default/inflate", 30))
				for range 60 {
					r.run(time.Second)
					if hit {
						break
					}
				}
				if !hit {
					t.Fatalf("%s was never called", op)
				}
				if after {
					r.lead() // the leader dies with the call
				}
				r.settle()
				if n := r.running(); n != 30 {
					t.Errorf("%d pods run, want 30", n)
				}
				r.finish()
			})
		}
	}
}

// loseLaunchAnswer runs until five pods have had a node launched for them and the
// answer of EC2 was lost.
func (r *rig) loseLaunchAnswer() {
	r.t.Helper()
	hit := false
	r.world.SetFaults(func(c sim.Call) *sim.Fault {
		if c.Op != "Launch" || hit {
			return nil
		}
		hit = true
		return &sim.Fault{Err: sim.ErrTimeout, After: true}
	})
	r.must(r.world.Scale("default/inflate", 5))
	for !hit {
		r.run(time.Second)
	}
}

// A launch whose answer is lost is repeated with the same token; where the
// parameters have changed since, what was launched is found by its tags.
func TestALaunchWhoseAnswerWasLostIsFound(t *testing.T) {
	r := started(t)
	r.loseLaunchAnswer()
	// The price of everything moves, so the repeated request is another one.
	data, err := r.cloud.Catalog(r.ctx)
	r.must(err)
	dearer := catalog.OnDemandPrices{}
	for _, it := range data.Types() {
		if p, ok := data.OnDemandPrice(it.Name); ok {
			dearer[it.Name] = 2 * p
		}
	}
	data, err = data.WithPrices(dearer, nil)
	r.must(err)
	r.cloud.SetCatalog(data)
	r.settle()
	if n := len(r.instances()); n != 1 || r.running() != 5 {
		t.Errorf("%d instances and %d pods", n, r.running())
	}
	r.finish()
}

// A leader dies with the answer to its launch, and the next one finds nothing on
// sale any more: what was launched is used all the same.
func TestALaunchWhoseOfferingsAreGoneIsFound(t *testing.T) {
	r := started(t)
	r.loseLaunchAnswer()
	data, err := r.cloud.Catalog(r.ctx)
	r.must(err)
	unsold, err := data.WithPrices(catalog.OnDemandPrices{}, nil)
	r.must(err)
	r.cloud.SetCatalog(unsold)
	r.lead()
	r.run(10 * time.Second)
	r.cloud.SetCatalog(data)
	r.settle()
	if n := len(r.instances()); n != 1 || r.running() != 5 || r.made(decision.Reclaim)+r.made(decision.Liveness) != 0 {
		t.Errorf("%d instances and %d pods, %d instances reclaimed, %d claims given up", n, r.running(), r.made(decision.Reclaim), r.made(decision.Liveness))
	}
	r.finish()
}

func TestAStaleLeaderStopsActing(t *testing.T) {
	r := started(t)
	old := r.pipeline
	r.must(r.world.Clock.Advance(time.Minute))
	r.lead()
	r.must(r.world.Scale("default/inflate", 5))
	r.settle()
	r.pipeline, old = old, r.pipeline
	r.must(r.world.Scale("default/inflate", 30))
	var fenced error
	for range 30 {
		if fenced = r.pipeline.Pass(r.ctx); errors.Is(fenced, port.ErrFenced) {
			break
		}
		r.must(r.world.Clock.Advance(time.Second))
	}
	if !errors.Is(fenced, port.ErrFenced) {
		t.Fatalf("the stale leader goes on: %v", fenced)
	}
	n := len(r.instances())
	r.must(r.world.Clock.Advance(time.Minute))
	if err := r.pipeline.Pass(r.ctx); !errors.Is(err, port.ErrFenced) || len(r.instances()) != n {
		t.Errorf("a fenced leader made a pass: %v", err)
	}
	r.pipeline = old
	r.settle()
}

func TestADecisionBranchThatIsTamperedWithStopsActing(t *testing.T) {
	tests := map[string]func(*rig){
		"the branch is deleted": func(r *rig) { r.git("update-ref", "-d", "refs/heads/reeve/myeks") },
		"the branch is moved back": func(r *rig) {
			r.git("update-ref", "refs/heads/reeve/myeks", r.git("rev-parse", "reeve/myeks~1"))
		},
	}
	for name, tamper := range tests {
		t.Run(name, func(t *testing.T) {
			r := started(t)
			r.run(15 * time.Second) // everything is pushed
			tamper(r)
			r.must(r.world.Scale("default/inflate", 5))
			r.run(30 * time.Second)
			var conflict error
			for _, err := range r.errs {
				if errors.Is(err, port.ErrConflict) {
					conflict = err
				}
			}
			if conflict == nil {
				t.Fatalf("nobody noticed: %v", r.errs)
			}
			n := len(r.instances())
			r.must(r.world.Scale("default/inflate", 60))
			r.run(10 * time.Second)
			if got := len(r.instances()); got != n {
				t.Errorf("%d instances became %d after the conflict", n, got)
			}
		})
	}
}

func TestForeignCommitsOnTheDecisionBranchAreBuiltUpon(t *testing.T) {
	r := started(t)
	r.run(15 * time.Second)
	repo := r.open()
	heads, err := repo.Fetch(r.ctx, "reeve/myeks", 1)
	r.must(err)
	tree, err := repo.TreeID(heads.New)
	r.must(err)
	ed, err := repo.Edit(tree)
	r.must(err)
	r.must(ed.Set("CODEOWNERS", []byte("* @platform\n")))
	next, err := ed.Write()
	r.must(err)
	c, err := repo.ReadCommit(heads.New)
	r.must(err)
	c.Tree, c.Message = next, "Say who owns this\n"
	c.Parents = append(c.Parents[:0:0], heads.New)
	hash, err := repo.WriteCommit(c, nil)
	r.must(err)
	r.must(repo.Push(r.ctx, "reeve/myeks", heads.New, hash))
	r.must(r.world.Scale("default/inflate", 5))
	r.settle()
	r.finish()
	if got := r.git("show", "reeve/myeks:CODEOWNERS"); got != "* @platform" {
		t.Errorf("CODEOWNERS: %q", got)
	}
	if r.git("rev-list", "--count", "reeve/myeks", "^"+hash.String()) == "0" {
		t.Error("nothing was pushed on top")
	}
}

func TestAnOldDecisionThatNobodyBeganIsAbandoned(t *testing.T) {
	r := started(t)
	r.world.SetFaults(func(c sim.Call) *sim.Fault {
		if c.Op == "CreateClaim" {
			return &sim.Fault{Err: errCrash}
		}
		return nil
	})
	r.must(r.world.Scale("default/inflate", 5))
	r.run(4 * time.Second)
	d := r.last(decision.Provision)
	r.must(r.world.Clock.Advance(3 * time.Minute))
	r.world.SetFaults(nil)
	r.lead()
	r.settle()
	r.finish()
	if out := r.git("grep", "-l", "abandoned", "reeve/myeks", "--", "decisions"); out == "" {
		t.Error("no outcome is abandoned")
	}
	if again := r.last(decision.Provision); again.ID == d.ID || r.running() != 5 {
		t.Errorf("%d pods run, last decision %s", r.running(), again.ID)
	}
}
