package pipeline_test

import (
	"testing"
	"time"

	"github.com/reeve-project/reeve/reconciler/decision"
)

// A rule that excludes every type of a replacement, without denying anything,
// leaves nothing to do: what it excluded must not go ahead.
func TestAReplacementWhoseTypesAreAllExcludedIsNotMade(t *testing.T) {
	r := withReplicas(t, 5)
	r.push("Make no node in place of others", map[string]string{"policies/keep.rego": `package reeve.decision.keep
exclude contains {"msg": "keep what runs", "instanceTypes": names} if {
	input.kind == "consolidate"
	names := object.keys(input.prices)
	count(names) > 0
}
`})
	r.run(15 * time.Second)
	r.must(r.world.Scale("default/inflate", 30))
	r.settle()
	r.run(3 * time.Minute)
	if d := r.replacement(); d != nil && d.Verdict.Allowed {
		t.Errorf("%s is allowed, steps %+v", d.Summary, r.steps[d.ID])
	}
	if n := r.made(decision.Liveness); n != 0 || r.running() != 30 {
		t.Errorf("%d claims failed, %d pods run", n, r.running())
	}
	r.finish()
}

// The second judgement of a replacement may exclude what the first let pass.
func TestAReplacementThatIsExcludedTheSecondTimeIsDropped(t *testing.T) {
	r := withReplicas(t, 5)
	r.push("Make no node in place of others after a while", map[string]string{"policies/keep.rego": `package reeve.decision.keep
exclude contains {"msg": "too late", "instanceTypes": names} if {
	input.kind == "consolidate"
	some d in input.recent
	d.kind == "consolidate"
	names := object.keys(input.prices)
	count(names) > 0
}
`})
	r.run(15 * time.Second)
	r.must(r.world.Scale("default/inflate", 30))
	r.settle()
	r.until(3*time.Minute, func() bool { return r.replacement() != nil && len(r.steps[r.replacement().ID]) > 0 })
	d := r.replacement()
	for _, n := range d.Proposal.Nodes {
		wantStates(t, r.states(d, n.Claim), decision.Dropped)
	}
	r.run(30 * time.Second)
	r.finish()
}
