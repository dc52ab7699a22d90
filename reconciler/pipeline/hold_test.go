package pipeline_test

import (
	"testing"
	"time"

	"github.com/reeve-project/reeve/reconciler/decision"
)

// secondThoughts denies a removal at its second look only.
const secondThoughts = `package reeve.decision.thoughts
deny contains {"msg": "on second thoughts, no"} if {
	input.kind == "consolidate"
	some earlier in input.recent
	earlier.kind == "consolidate"
	age := time.parse_rfc3339_ns(input.now) - time.parse_rfc3339_ns(earlier.time)
	age >= 14000000000
	age < 18000000000
}
`

// A removal that its second look drops is not proposed again every few seconds,
// but ever more seldom; another commit may have changed what dropped it.
func TestARemovalThatIsDroppedIsHeldOff(t *testing.T) {
	r := withReplicas(t, 5)
	r.push("Second thoughts", map[string]string{"policies/thoughts.rego": secondThoughts})
	r.run(15 * time.Second)
	r.must(r.world.Scale("default/inflate", 0))
	r.until(3*time.Minute, func() bool { return r.made(decision.Consolidate) > 0 })
	r.run(8 * time.Minute)
	if n := r.made(decision.Consolidate); n < 3 || n > 4 {
		t.Errorf("it was proposed %d times in eight minutes, want after one, two and four minutes", n)
	}
	if n := len(r.instances()); n != 1 {
		t.Errorf("%d instances", n)
	}
	r.push("No second thoughts", map[string]string{"policies/thoughts.rego": ""})
	r.until(2*time.Minute, func() bool { return len(r.claims()) == 0 && !r.pipeline.Open() })
	r.finish()
}

// A replacement whose node dies is not made again at once.
func TestAReplacementThatDiesIsHeldOff(t *testing.T) {
	r := withReplicas(t, 5)
	r.must(r.world.Scale("default/inflate", 30))
	r.settle()
	made := map[string]bool{}
	kill := func() {
		d := r.replacement()
		if d == nil {
			return
		}
		name := d.Proposal.Claims[0].Name
		snap, err := r.api.Snapshot(r.ctx)
		r.must(err)
		if n := snap.NodeOf(name); n != nil && !n.Deleting && !made[name] {
			made[name] = true
			r.must(r.api.DeleteClaim(r.ctx, name))
		}
	}
	for range 200 {
		kill()
		r.run(time.Second)
	}
	if len(made) < 1 || len(made) > 2 {
		t.Errorf("%d replacements were made in little more than three minutes, want at most two", len(made))
	}
	r.until(5*time.Minute, func() bool { return !r.pipeline.Open() })
	r.finish()
}

// A rule about the size of a removal lets a smaller one go, however large the
// first was.
func TestARuleAboutTheNumberOfNodesLetsFewerGo(t *testing.T) {
	r := newRig(t)
	files := r.edit(nodePools, `operator: "Gt", values: ["2"]},`, `operator: "Gt", values: ["2"]},
			{key: "karpenter.k8s.aws/instance-cpu", operator: "In", values: ["2"]},`)
	files["policies/few.rego"] = `package reeve.decision.few
deny contains {"msg": "one node at a time"} if {
	input.kind == "consolidate"
	count(input.proposal.nodes) > 1
}
`
	r.push("Remove one node at a time", files)
	r.lead()
	r.settle()
	r.must(r.world.Scale("default/inflate", 24))
	r.settle()
	if n := len(r.instances()); n != 24 {
		t.Fatalf("%d instances, want one for each pod", n)
	}
	r.must(r.world.Scale("default/inflate", 0))
	r.until(3*time.Minute, func() bool { return r.made(decision.Consolidate) > 0 })
	d := r.last(decision.Consolidate)
	var sizes []string
	for _, round := range d.Rounds {
		sizes = append(sizes, round.Summary)
	}
	if !d.Verdict.Allowed || len(d.Proposal.Nodes) != 1 || len(d.Rounds) != 4 {
		t.Errorf("%s after rounds %q, want one node after 24, 12, 6 and 3", d.Summary, sizes)
	}
	r.run(time.Minute)
	r.finish()
}
