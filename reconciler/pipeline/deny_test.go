package pipeline_test

import (
	"testing"
	"time"

	"github.com/reeve-project/reeve/reconciler/decision"
)

func TestADenyAboutNothingInTheProposalDeniesAllOfIt(t *testing.T) {
	for _, resource := range []string{"NodeClaim/default-abcdefgh", "NodeClaim/7", "Pod/inflate", "Pod/default/another"} {
		t.Run(resource, func(t *testing.T) {
			r := newRig(t)
			r.push("Deny by a name that is not there", map[string]string{"policies/odd.rego": `package reeve.decision.odd

deny contains {"msg": "not this one", "resource": "` + resource + `"} if input.kind == "provision"
`})
			r.lead()
			r.settle()
			r.must(r.world.Scale("default/inflate", 2))
			r.run(10 * time.Second)
			if n := len(r.instances()); n != 0 {
				t.Errorf("%d instances although policy denied them", n)
			}
			if d := r.last(decision.Provision); d.Verdict.Allowed || len(d.Verdict.Violations) == 0 {
				t.Errorf("verdict of %s: %+v", d.Summary, d.Verdict)
			}
			r.finish()
		})
	}
}

func TestADecisionTellsOfTheNodePoolThatPolicyTalkedOutOfIt(t *testing.T) {
	r := newRig(t)
	files := r.edit(nodePools, "nodePools: default:", "nodePools: default: {}\nnodePools: heavy: spec: weight: 50\nnodePools: [\"default\" | \"heavy\"]:")
	files["policies/heavy.rego"] = `package reeve.decision.heavy

deny contains {"msg": "not from heavy"} if input.proposal.nodePool == "heavy"
`
	r.push("Prefer a NodePool that policy refuses", files)
	r.lead()
	r.settle()
	r.must(r.world.Scale("default/inflate", 2))
	r.settle()
	d := r.last(decision.Provision)
	if d.Proposal.NodePool != "default" || !d.Verdict.Allowed {
		t.Fatalf("decision %s", d.Summary)
	}
	if len(d.Rounds) != 1 || len(d.Rounds[0].Denied) != 1 || d.Rounds[0].NodePool != "heavy" {
		t.Errorf("rounds %+v, want the denial of heavy", d.Rounds)
	}
	r.finish()
}
