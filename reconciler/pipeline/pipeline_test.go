package pipeline_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/port"
	"github.com/reeve-project/reeve/reconciler/sim"
)

const (
	nodePools   = "clusters/myeks/nodepools.cue"
	nodeClasses = "clusters/myeks/nodeclasses.cue"
	policyFile  = "clusters/myeks/policy.cue"
	clusterFile = "clusters/myeks/cluster.cue"
)

// started is a rig whose fleet is accepted.
func started(t *testing.T) *rig {
	t.Helper()
	r := newRig(t)
	r.push("Describe the fleet", nil)
	r.lead()
	r.settle()
	return r
}

func TestPodsGetNodesAndEveryStepIsRecorded(t *testing.T) {
	r := started(t)
	r.must(r.world.Scale("default/inflate", 5))
	r.settle()
	if r.running() != 5 || len(r.instances()) != 1 {
		t.Errorf("%d pods run on %d instances, want 5 on 1", r.running(), len(r.instances()))
	}
	r.finish()
	show := r.git("show", "reeve/myeks~1", "--stat") // the last one holds the summaries
	if !strings.Contains(show, "outcome.json") {
		t.Errorf("the last commit of the pipeline does not record an outcome:\n%s", show)
	}
	d := r.last(decision.Provision)
	outcome := r.git("grep", "-h", "\"state\"", "reeve/myeks", "--", "decisions/*"+strings.Split(d.ID, "-")[1]+"*.outcome.json")
	for _, want := range []decision.State{decision.Claimed, decision.Launched, decision.Registered, decision.Initialized} {
		if !strings.Contains(outcome, string(want)) {
			t.Errorf("the outcome lacks %s:\n%s", want, outcome)
		}
	}
}

func TestABatchIsPlannedAsOne(t *testing.T) {
	r := started(t)
	r.must(r.world.Scale("default/inflate", 2))
	r.run(500 * time.Millisecond)
	r.must(r.world.Scale("default/inflate", 5))
	r.settle()
	r.finish()
	n := 0
	for _, d := range r.decisions {
		if d.Kind == decision.Provision {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d provision decisions, want 1", n)
	}
}

func TestADeniedPodStaysPendingWithTheRule(t *testing.T) {
	r := started(t)
	own := sim.NewDeployment("kube-system", "reeve", 1, cpu("1"))
	own.Spec.Template.Labels["app.kubernetes.io/name"] = "reeve"
	r.must(r.world.Apply(own))
	r.must(r.world.Scale("default/inflate", 2))
	r.run(90 * time.Second)
	if n := len(r.instances()); n != 1 || r.running() != 2 {
		t.Errorf("%d instances and %d pods of inflate run, want 1 and 2", n, r.running())
	}
	r.finish()
	var denied []*decision.Decision
	for _, d := range r.decisions {
		if d.Kind == decision.Provision && !d.Verdict.Allowed {
			denied = append(denied, d)
		}
	}
	if len(denied) != 1 {
		t.Fatalf("%d denied decisions, want one and no repeats within the hour", len(denied))
	}
	d := denied[0]
	if len(d.Proposal.Unplaced) != 1 || len(d.Proposal.Unplaced[0].Rules) != 1 || d.Proposal.Unplaced[0].Rules[0] != "REEVE-CTRL-001" {
		t.Errorf("unplaced: %+v", d.Proposal.Unplaced)
	}
	if len(d.Verdict.Violations) != 1 || d.Verdict.Violations[0].Position == nil {
		t.Errorf("violations: %+v", d.Verdict.Violations)
	}
}

func TestRepeatsAreRecordedHourlyWithACount(t *testing.T) {
	r := started(t)
	own := sim.NewDeployment("kube-system", "reeve", 1, cpu("1"))
	own.Spec.Template.Labels["app.kubernetes.io/name"] = "reeve"
	r.must(r.world.Apply(own))
	r.run(6 * time.Second)
	r.must(r.world.Clock.Advance(61 * time.Minute))
	r.run(3 * time.Second)
	r.finish()
	d := r.last(decision.Provision)
	if d.Repeats == 0 || !d.Time.After(noon.Add(time.Hour)) {
		t.Errorf("the last denial is of %s with %d repeats", d.Time, d.Repeats)
	}
}

func TestABadCommitLeavesTheLastGoodFleetInForce(t *testing.T) {
	tests := []struct {
		name   string
		change func(*rig) map[string]string
		rule   string
		where  string
	}{
		{"a moving image in production", func(r *rig) map[string]string {
			return r.edit(nodeClasses, "al2023@v20260318", "al2023@latest")
		}, "REEVE-AMI-001", nodeClasses + ":"},
		{"a NodePool that names a missing EC2NodeClass", func(r *rig) map[string]string {
			return r.edit(nodeClasses, "nodeClasses: default:", "nodeClasses: other:")
		}, "REEVE-SPEC-001", nodePools + ":"},
		{"a pool that turns static", func(r *rig) map[string]string {
			return r.edit(nodePools, `limits: cpu:                  "200"`, "replicas: 2")
		}, "REEVE-SPEC-001", nodePools + ":"},
		{"decisions on the branch of the specs", func(r *rig) map[string]string {
			return r.edit(clusterFile, `environment:       "production"`, "environment: \"production\"\n\tledger: branch: \"main\"")
		}, "REEVE-SPEC-001", clusterFile + ":11:10"},
		{"a misspelled field", func(r *rig) map[string]string {
			return r.edit(clusterFile, "environment:", "enviroment:")
		}, "REEVE-SPEC-001", clusterFile + ":"},
		{"CUE that does not parse", func(*rig) map[string]string { return map[string]string{policyFile: "package fleet\n{{{\n"} }, "REEVE-SPEC-001", policyFile + ":"},
		{"a cycle", func(r *rig) map[string]string {
			return map[string]string{"clusters/myeks/more.cue": "package fleet\n_a: _b + 1\n_b: _a + 1\ncluster: ledger: branch: \"x\\(_a)\"\n"}
		}, "REEVE-SPEC-001", "clusters/myeks/more.cue:"},
		{"Rego that reaches for the network", func(*rig) map[string]string {
			return map[string]string{"policies/net.rego": "package reeve.spec.net\n\ndeny contains \"x\" if http.send({\"method\": \"GET\", \"url\": \"http://example.com\"})\n"}
		}, "REEVE-REGO-001", "policies/net.rego:3"},
		{"Rego that does not parse", func(*rig) map[string]string {
			return map[string]string{"policies/bad.rego": "package reeve.spec.bad\n\ndeny contains {\n"}
		}, "REEVE-REGO-001", "policies/bad.rego:"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			r := started(t)
			good := r.pipeline.Fleet()
			r.push("Break it", tc.change(r))
			r.run(3 * time.Second)
			if r.pipeline.Fleet() != good {
				t.Error("another fleet is in force")
			}
			d := r.last(decision.Reject)
			v := d.Verdict.Violations[0]
			if v.Rule != tc.rule || v.Position == nil || !strings.HasPrefix(v.Position.String(), tc.where) {
				t.Errorf("rule %s at %v: %s; want %s at %s", v.Rule, v.Position, v.Message, tc.rule, tc.where)
			}
			r.must(r.world.Scale("default/inflate", 1))
			r.settle()
			r.finish()
		})
	}
}

func TestALikelyMistakeInTheSpecsIsAWarningInTheRecord(t *testing.T) {
	r := started(t)
	r.push("Keep drift for the night", map[string]string{
		"clusters/myeks/more.cue": `package fleet

nodePools: more: spec: {
	template: nodePools.graviton.spec.template
	disruption: {consolidateAfter: "1m", budgets: [{nodes: "0", reasons: ["Drifted"]}]}
}
`,
	})
	r.settle()
	d := r.last(decision.Accept)
	if len(d.Verdict.Warnings) == 0 || !strings.Contains(d.Verdict.Warnings[0].Message, "no budget limits Empty or Underutilized") ||
		d.Verdict.Warnings[0].Resource != "NodePool/more" {
		t.Errorf("warnings %+v", d.Verdict.Warnings)
	}
	r.finish()
}

func TestACommitCannotLoosenTheRuleThatStopsIt(t *testing.T) {
	r := started(t)
	change := r.edit(nodeClasses, "al2023@v20260318", "al2023@latest")
	for name, content := range r.edit(policyFile, `environments: ["production"]`, `environments: []`) {
		change[name] = content
	}
	r.push("Loosen the rule and break it at once", change)
	r.run(3 * time.Second)
	if d := r.last(decision.Reject); d.Verdict.Violations[0].Rule != "REEVE-AMI-001" {
		t.Errorf("violations: %+v", d.Verdict.Violations)
	}
	r.push("Only loosen it", r.edit(nodeClasses, "al2023@latest", "al2023@v20260318"))
	r.settle()
	if d := r.last(decision.Accept); len(d.Proposal.Spec.Policies) == 0 {
		t.Error("the record does not say that a policy was loosened")
	}
	r.push("Now follow the newest image", r.edit(nodeClasses, "al2023@v20260318", "al2023@latest"))
	r.settle()
	if d := r.last(decision.Accept); d.Proposal.Spec.Subject != "Now follow the newest image" {
		t.Errorf("last accepted: %s", d.Proposal.Spec.Subject)
	}
	r.finish()
}

func TestASpecBranchThatVanishesOrIsRewrittenKeepsTheFleet(t *testing.T) {
	r := started(t)
	good := r.pipeline.Fleet().Commit
	r.git("update-ref", "-d", "refs/heads/main")
	r.run(15 * time.Second)
	if r.pipeline.Fleet().Commit != good {
		t.Error("the fleet is gone with its branch")
	}
	if len(r.errs) == 0 || !errors.Is(r.errs[len(r.errs)-1], port.ErrBranchMissing) {
		t.Errorf("errors %v do not say that the branch is missing", r.errs)
	}
	// A new leader finds it in the ledger.
	r.must(r.pipeline.Stop(r.ctx))
	r.lead()
	if f := r.pipeline.Fleet(); f == nil || f.Commit != good {
		t.Fatalf("the new leader has fleet %v", f)
	}
	r.must(r.world.Scale("default/inflate", 1))
	r.settle()
	// The branch comes back with another history.
	r.tip = [20]byte{}
	r.push("Another beginning", nil)
	r.run(15 * time.Second)
	if f := r.pipeline.Fleet(); f.Commit != r.tip.String() {
		t.Errorf("fleet of %s, want %s", f.Commit, r.tip)
	}
	r.settle()
	r.finish()
}

func TestNoCapacityIsAnOutcomeAndTheNextPassDoesWithout(t *testing.T) {
	r := started(t)
	r.cloud.SetCapacity(sim.Pool{InstanceType: "c5a.2xlarge", Zone: "ap-northeast-2a", CapacityType: "on-demand"}, 0)
	r.world.SetFaults(func(c sim.Call) *sim.Fault {
		if c.Op == "Launch" && c.N == 1 {
			return &sim.Fault{Err: port.ErrInsufficientCapacity}
		}
		return nil
	})
	r.must(r.world.Scale("default/inflate", 5))
	r.settle()
	if r.running() != 5 {
		t.Errorf("%d pods run", r.running())
	}
	d := r.last(decision.Liveness)
	if !strings.Contains(d.Summary, "InsufficientCapacity") || !d.Verdict.Allowed {
		t.Errorf("liveness: %s", d.Summary)
	}
	r.finish()
}

func TestANodeThatNeverJoinsIsGivenUp(t *testing.T) {
	r := started(t)
	r.boot = sim.Boot{Never: true}
	r.must(r.world.Scale("default/inflate", 1))
	r.run(5 * time.Second)
	r.boot = sim.Boot{}
	r.must(r.world.Clock.Advance(15 * time.Minute))
	r.settle()
	d := r.last(decision.Liveness)
	if !strings.Contains(d.Summary, "registration_timeout") {
		t.Errorf("liveness: %s", d.Summary)
	}
	if len(r.instances()) != 1 || r.running() != 1 {
		t.Errorf("%d instances, %d pods", len(r.instances()), r.running())
	}
	r.finish()
}

func TestObserveRecordsAndDoesNothing(t *testing.T) {
	r := newRig(t)
	r.push("Observe", r.edit(clusterFile, `environment:       "production"`, "environment: \"production\"\n\tmode: \"observe\""))
	r.lead()
	r.run(3 * time.Second)
	r.must(r.world.Scale("default/inflate", 5))
	r.run(60 * time.Second)
	if n := len(r.instances()); n != 0 {
		t.Errorf("%d instances", n)
	}
	if d := r.last(decision.Provision); d.Mode != "observe" || len(d.Proposal.Claims) != 1 {
		t.Errorf("decision %s in mode %s", d.Summary, d.Mode)
	}
	r.finish()
}
