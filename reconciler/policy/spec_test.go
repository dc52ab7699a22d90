package policy

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/fleet"
)

func judgeSpec(t *testing.T, e *Engine, f *fleet.Fleet) Result {
	t.Helper()
	r, err := e.Spec(context.Background(), Case{Fleet: f, Now: noon}, NewSpecInput(f, nil, Diff{}, noon))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestAMovingImageIsRefusedInProductionAtItsLine(t *testing.T) {
	e := engine(t, nil)
	r := judgeSpec(t, e, newFleet(t, "al2023@latest"))
	want := []decision.Finding{{
		Rule: "REEVE-AMI-001", Severity: "error", Title: "The image is not pinned",
		Message:     `the image "al2023@latest" changes by itself; in environment "production" pin an alias with a version or an AMI id`,
		Resource:    "EC2NodeClass/default",
		Path:        fleet.Path{"nodeClasses", "default", "spec", "amiSelectorTerms", "0", "alias"},
		Position:    &fleet.Position{File: "clusters/myeks/fleet.cue", Line: 22, Column: 3},
		Remediation: "Name a version, such as al2023@v20260318, or an AMI id. Move to a newer image by a commit of its own, so that the change can be seen and undone.",
		Source:      r.Violations[0].Source,
	}}
	if diff := cmp.Diff(want, r.Violations); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
	if !strings.HasPrefix(r.Violations[0].Source, "shipped/ami_pinning.rego:") {
		t.Errorf("source %q", r.Violations[0].Source)
	}
	if len(r.Warnings) > 0 || r.Verdict().Allowed {
		t.Errorf("warnings %v, verdict %+v", r.Warnings, r.Verdict())
	}
	if v := judgeSpec(t, e, newFleet(t, "al2023@v20260318")).Verdict(); !v.Allowed || len(v.Violations)+len(v.Warnings) > 0 {
		t.Errorf("a pinned image: %+v", v)
	}
}

func TestAnExceptionLetsAFindingPassUntilItExpires(t *testing.T) {
	e := engine(t, nil)
	f := newFleet(t, "al2023@latest")
	ex := fleet.Exception{Rule: "REEVE-AMI-001", Resource: "EC2NodeClass/default", Reason: "pinning comes with TICKET-1", Owner: "team-a", Expires: noon.Add(time.Hour)}
	f.NodeClasses = append(f.NodeClasses, &ec2v1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "other"}})
	f.Exceptions = []fleet.Exception{{Rule: "REEVE-AMI-001", Resource: "EC2NodeClass/other", Expires: noon.Add(time.Hour)}, ex}
	f.Positions.Set(fleet.Path{"exceptions", "1"}, fleet.Position{File: "clusters/myeks/exceptions.cue", Line: 4, Column: 2})
	r := judgeSpec(t, e, f)
	if len(r.Violations) != 0 || len(r.Warnings) != 1 {
		t.Fatalf("violations %v, warnings %v", r.Violations, r.Warnings)
	}
	if w := r.Warnings[0]; w.Rule != "REEVE-AMI-001" || w.Severity != "warning" || cmp.Diff(&ex, w.Exception) != "" {
		t.Errorf("warning %+v", w)
	}

	f.Exceptions[1].Expires = noon
	r = judgeSpec(t, e, f)
	if len(r.Violations) != 1 || len(r.Warnings) != 1 {
		t.Fatalf("violations %v, warnings %v", r.Violations, r.Warnings)
	}
	want := decision.Finding{
		Rule: "REEVE-EXC-001", Severity: "warning", Title: "An exception has expired",
		Message:  "the exception to REEVE-AMI-001 for EC2NodeClass/default expired on 2026-05-01 12:00 UTC and no longer holds",
		Resource: "EC2NodeClass/default", Path: fleet.Path{"exceptions", "1"},
		Position:    &fleet.Position{File: "clusters/myeks/exceptions.cue", Line: 4, Column: 2},
		Remediation: "Remove it, or ask team-a whether it is still needed.",
	}
	if diff := cmp.Diff(want, r.Warnings[0]); diff != "" {
		t.Errorf("warning (-want +got):\n%s", diff)
	}
}

func TestAnExceptionThatLiftsNothingIsAFinding(t *testing.T) {
	e := engine(t, map[string]string{"policies/a.rego": "package reeve.decision.own\n\ndeny contains \"x\" if input.kind == \"drift\"\n"})
	f := newFleet(t, "al2023@v20260318")
	for _, ex := range [][2]string{
		{"REEVE-AMI-01", "EC2NodeClass/default"},
		{"ACME-1", "Pod/default/web"},
		{"REEVE-AMI-001", "EC2NodeClass/defualt"},
		{"REEVE-LIMIT-001", "NodePool/gone"},
		{"REEVE-LIMIT-001", "Cluster/green"},
		// These are right, or cannot be known.
		{"reeve.decision.own.deny", "NodePool/default"},
		{"REEVE-TYPE-001", "NodePool/default"},
		{"REEVE-FREEZE-001", "Node/ip-10-0-0-1"},
		{"REEVE-GUARD-001", "Policy/amiPinning"},
		{"REEVE-GUARD-001", "Cluster/myeks"},
	} {
		f.Exceptions = append(f.Exceptions, fleet.Exception{Rule: ex[0], Resource: ex[1], Reason: "r", Owner: "o", Expires: noon.Add(time.Hour)})
	}
	f.Positions.Set(fleet.Path{"exceptions", "2"}, fleet.Position{File: "clusters/myeks/exceptions.cue", Line: 7, Column: 2})
	var got []string
	for _, w := range judgeSpec(t, e, f).Warnings {
		at := ""
		if w.Position != nil {
			at = w.Position.String()
		}
		got = append(got, w.Rule+" "+w.Path.String()+" "+at+" "+w.Message)
	}
	want := []string{
		"REEVE-EXC-002 exceptions.0  the exception for EC2NodeClass/default is to the rule REEVE-AMI-01, and no policy has a rule of that id; is it REEVE-AMI-001?",
		"REEVE-EXC-002 exceptions.1  the exception for Pod/default/web is to the rule ACME-1, and no policy has a rule of that id",
		"REEVE-EXC-003 exceptions.2 clusters/myeks/exceptions.cue:7:2 the exception to REEVE-AMI-001 is for EC2NodeClass/defualt, which is not in the fleet; is it EC2NodeClass/default?",
		"REEVE-EXC-003 exceptions.3  the exception to REEVE-LIMIT-001 is for NodePool/gone, which is not in the fleet",
		"REEVE-EXC-003 exceptions.4  the exception to REEVE-LIMIT-001 is for Cluster/green, which is not in the fleet",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	r, err := e.Spec(context.Background(), Case{Fleet: f, Now: noon, Former: true}, NewSpecInput(f, nil, Diff{}, noon))
	if err != nil || len(r.Warnings) != 0 {
		t.Errorf("of exceptions of the fleet before: %+v, %v", r.Warnings, err)
	}
}

func TestEachFindingKnowsTheBodyItComesFrom(t *testing.T) {
	e := engine(t, map[string]string{"policies/org.rego": `# METADATA
# scope: subpackages
# title: Of the package
# custom:
#   id: ORG-0
package reeve.spec.org

# METADATA
# title: First
# custom:
#   id: ORG-1
#   severity: warning
#   remediation: |
#     Do
#     this.
deny contains {"msg": "one", "path": "nodePools.default.spec"} if true

# METADATA
# title: Second
# custom:
#   id: ORG-2
deny contains {"msg": "two", "resource": "NodePool/default"} if true

deny contains "three"

warn contains {"msg": sprintf("%d denied", [count(deny)]), "path": ["nodePools", "default", "spec", 0]}
`, "policies/plain.rego": "package reeve.spec\n\nwarn contains \"plain\"\n"})
	r := judgeSpec(t, e, newFleet(t, "al2023@v20260318"))
	pool := &fleet.Position{File: "clusters/myeks/fleet.cue", Line: 10, Column: 3}
	want := []decision.Finding{
		{Rule: "ORG-0", Severity: "error", Title: "Of the package", Message: "three", Source: "policies/org.rego:24"},
		{Rule: "ORG-1", Severity: "warning", Title: "First", Message: "one", Resource: "NodePool/default", Path: fleet.Path{"nodePools", "default", "spec"}, Position: pool, Remediation: "Do this.", Source: "policies/org.rego:16"},
		{Rule: "ORG-2", Severity: "error", Title: "Second", Message: "two", Resource: "NodePool/default", Path: fleet.Path{"nodePools", "default"}, Position: pool, Source: "policies/org.rego:22"},
	}
	if diff := cmp.Diff(want, r.Violations); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
	want = []decision.Finding{
		{Rule: "reeve.spec.warn", Severity: "warning", Message: "plain", Source: "policies/plain.rego:3"},
		{Rule: "ORG-0", Severity: "warning", Title: "Of the package", Message: "3 denied", Resource: "NodePool/default", Path: fleet.Path{"nodePools", "default", "spec", "0"}, Position: pool, Source: "policies/org.rego:26"},
	}
	if diff := cmp.Diff(want, r.Warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	var ids, own []string
	for _, rule := range e.Rules() {
		ids = append(ids, rule.ID)
		if !strings.HasPrefix(rule.ID, "REEVE-") {
			own = append(own, rule.ID)
		}
	}
	if diff := cmp.Diff([]string{"ORG-0", "ORG-0", "ORG-1", "ORG-2", "reeve.spec.warn"}, own); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	if !slices.IsSorted(ids) || !slices.Contains(ids, "REEVE-TYPE-004") || len(ids) < 30 {
		t.Errorf("rules %v", ids)
	}
}

func TestPoliciesOfConftestJudgeEachObject(t *testing.T) {
	e := engine(t, map[string]string{"policies/main.rego": `package main

deny_arch[msg] {
	input.kind == "NodePool"
	req := input.spec.template.spec.requirements[i]
	req.values[_] == "amd64"
	msg := {"msg": "amd64 is not allowed", "path": ["spec", "template", "spec", "requirements", i]}
}

violation[{"msg": msg, "details": {"role": input.spec.role}}] {
	input.kind == "EC2NodeClass"
	msg := "role"
}

warn_name[msg] { msg := sprintf("%s is seen", [input.metadata.name]) }

deny_old[msg] { msg := "old" }

exception[rules] { rules := ["old"] }
`})
	r := judgeSpec(t, e, newFleet(t, "al2023@v20260318"))
	var got []string
	for _, f := range r.Violations {
		got = append(got, f.Rule+" "+f.Resource+" "+f.Path.String()+" "+f.Message)
	}
	want := []string{
		"main.deny_arch NodePool/default nodePools.default.spec.template.spec.requirements.0 amd64 is not allowed",
		"main.violation EC2NodeClass/default nodeClasses.default role",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
	got = nil
	for _, f := range r.Warnings {
		got = append(got, f.Rule+" "+f.Resource+" "+f.Message)
	}
	want = []string{
		"REEVE-REGO-002  the file parses only in the syntax before Rego v1 and is taken as that",
		"main.deny_old NodePool/default old (let pass by the rule exception)",
		"main.warn_name NodePool/default default is seen",
		"main.deny_old EC2NodeClass/default old (let pass by the rule exception)",
		"main.warn_name EC2NodeClass/default default is seen",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	if at := r.Warnings[0].Position; at == nil || at.String() != "policies/main.rego:1:1" {
		t.Errorf("the old file is at %v", at)
	}
}

func TestThePreviousFleetAndTheDiffAreInputs(t *testing.T) {
	e := engine(t, map[string]string{"policies/a.rego": `package reeve.spec

deny contains sprintf("%s was there, %s differs, now %s", [name, input.diff.resources[0].resource, input.now]) if {
	some name, _ in input.previous.nodePools
}
`})
	f := newFleet(t, "al2023@v20260318")
	in := NewSpecInput(f, f, Diff{Resources: []decision.Change{{Op: "change", Resource: "NodePool/default"}}}, noon)
	r, err := e.Spec(context.Background(), Case{Fleet: f, Now: noon}, in)
	if err != nil || len(r.Violations) != 1 || r.Violations[0].Message != "default was there, NodePool/default differs, now 2026-05-01T12:00:00Z" {
		t.Errorf("%v %+v", err, r.Violations)
	}
	if r := judgeSpec(t, e, f); len(r.Violations) != 0 {
		t.Errorf("without a previous fleet: %+v", r.Violations)
	}
}

func TestAnEvaluationIsRecordedAsOPADoes(t *testing.T) {
	e := engine(t, map[string]string{"policies/a.rego": `package reeve.spec

warn contains {"msg": "a < b", "list": {3, 1, 2}, "exact": 0.1}
`})
	f := newFleet(t, "al2023@latest")
	r := judgeSpec(t, e, f)
	ev := r.Evaluation
	wantResult := `{"deny":[{"rule":"REEVE-AMI-001","value":{"msg":"the image \"al2023@latest\" changes by itself; in environment \"production\" pin an alias with a version or an AMI id",` +
		`"path":["nodeClasses","default","spec","amiSelectorTerms","0","alias"],"resource":"EC2NodeClass/default"}}],` +
		`"warn":[{"rule":"reeve.spec.warn","value":{"exact":0.1,"list":[1,2,3],"msg":"a < b"}}]}`
	want := decision.Evaluation{
		Labels:     map[string]string{"app": "reeve", "version": "v0.1.0"},
		DecisionID: ev.DecisionID,
		Bundles:    map[string]decision.Bundle{"reeve": {Revision: e.Digest()}},
		Path:       "reeve/spec",
		Result:     json.RawMessage(wantResult),
		Erased:     []string{"/input"},
		Timestamp:  noon,
		Custom:     decision.EvaluationCustom{Stage: "spec", InputDigest: ev.Custom.InputDigest},
	}
	if diff := cmp.Diff(want, ev); diff != "" {
		t.Errorf("evaluation (-want +got):\n%s", diff)
	}
	if len(ev.DecisionID) != 16 || !strings.HasPrefix(ev.Custom.InputDigest, "sha256:") {
		t.Errorf("id %q, input %q", ev.DecisionID, ev.Custom.InputDigest)
	}
	again := judgeSpec(t, engine(t, map[string]string{"policies/a.rego": string(e.Bundle().Files()["fleet/policies/a.rego"])}), newFleet(t, "al2023@latest"))
	if diff := cmp.Diff(r, again); diff != "" {
		t.Errorf("the same question has another answer:\n%s", diff)
	}
	if other := judgeSpec(t, e, newFleet(t, "al2023@v20260318")); other.Evaluation.DecisionID == ev.DecisionID {
		t.Error("another input has the same id")
	}
}
