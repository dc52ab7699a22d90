package policy

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reeve-project/reeve/reconciler/fleet"
)

func sortedLines(lines []string) []string { return slices.Sorted(slices.Values(lines)) }

// said is what a result says, a line for each finding.
func said(r Result) []string {
	var out []string
	for _, f := range r.Violations {
		out = append(out, "deny "+f.Rule+" "+f.Resource+": "+f.Message)
	}
	for _, f := range r.Warnings {
		out = append(out, "warn "+f.Rule+" "+f.Resource+": "+f.Message)
	}
	return out
}

func TestExceptionsOfConftestNameRulesByWhatFollowsTheKind(t *testing.T) {
	const rules = `package main

deny contains "plain" if input.kind == "NodePool"

violation_role contains {"msg": "role", "details": {"x": 1}} if input.kind == "NodePool"

warn_age contains "age" if input.kind == "NodePool"

exception contains names if {
	input.metadata.name == "default"
	names := NAMES
}
`
	const plain, role, age = "deny main.deny NodePool/default: plain", "deny main.violation_role NodePool/default: role", "warn main.warn_age NodePool/default: age"
	const pass = " (let pass by the rule exception)"
	for _, tc := range []struct {
		name, names string
		want        []string
	}{
		{"none", `[]`, []string{plain, role, age}},
		{"the rule without a name by the empty word", `[""]`, []string{role, "warn main.deny NodePool/default: plain" + pass, age}},
		{"or by its own", `["deny"]`, []string{role, "warn main.deny NodePool/default: plain" + pass, age}},
		{"a violation", `["role"]`, []string{plain, "warn main.violation_role NodePool/default: role" + pass, age}},
		{"a warning", `["age"]`, []string{plain, role, age + pass}},
		{"no rule by its whole name", `["violation_role"]`, []string{plain, role, age}},
		{"several as a set", `{"role", "age"}`, []string{plain, age + pass, "warn main.violation_role NodePool/default: role" + pass}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := engine(t, map[string]string{"policies/main.rego": strings.Replace(rules, "NAMES", tc.names, 1)})
			got := said(judgeSpec(t, e, newFleet(t, "al2023@v20260318")))
			if diff := cmp.Diff(sortedLines(tc.want), sortedLines(got)); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatIsWrittenForConftestRunsAsItIs(t *testing.T) {
	e := engine(t, map[string]string{
		// A library with a variable that is not used.
		"policies/lib.rego": "package lib.pools\n\nimport data.lib.names\n\nis_pool if {\n\tunused := 1\n\tinput.kind == names.pool\n}\n",
		"policies/nam.rego": "package lib.names\n\npool := \"NodePool\"\n",
		// The syntax before v1, with a builtin that is out of use.
		"policies/old.rego": "package main\n\nimport data.lib.pools\n\ndeny[msg] {\n\tpools.is_pool\n\tre_match(\"def.*\", input.metadata.name)\n\tmsg := sprintf(\"%v is of the old kind\", [input.metadata.name])\n}\n",
	})
	want := []string{
		"deny main.deny NodePool/default: default is of the old kind",
		"warn REEVE-REGO-002 : the file parses only in the syntax before Rego v1 and is taken as that",
		"warn REEVE-REGO-004 : assigned var unused unused",
		"warn REEVE-REGO-004 : deprecated built-in function calls in expression: re_match",
	}
	if diff := cmp.Diff(want, said(judgeSpec(t, e, newFleet(t, "al2023@v20260318")))); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

func TestOtherNamespacesOfConftestAreRunWhereTheFleetListsThem(t *testing.T) {
	files := map[string][]byte{
		"policies/main.rego": []byte("package main\n\ndeny_a contains \"of main\" if input.kind == \"NodePool\"\n\nexception contains [\"b\"]\n"),
		"policies/aws.rego":  []byte("package team.aws\n\ndeny_a contains \"of team.aws\" if input.kind == \"EC2NodeClass\"\n\ndeny_b contains \"excepted in main only\" if input.kind == \"EC2NodeClass\"\n"),
	}
	run := func(data string) []string {
		e, err := New(NewBundle(files, json.RawMessage(data)), Options{})
		if err != nil {
			t.Fatal(err)
		}
		f := newFleet(t, "al2023@v20260318")
		f.Positions.Set(fleet.Path{"policy", "conftest", "namespaces"}, fleet.Position{File: "clusters/myeks/policy.cue", Line: 3, Column: 5})
		r := judgeSpec(t, e, f)
		for _, w := range r.Warnings {
			if w.Rule == RuleNamespace && w.Position.String() != "clusters/myeks/policy.cue:3:5" {
				t.Errorf("the warning is at %v", w.Position)
			}
		}
		return said(r)
	}
	ofMain := "deny main.deny_a NodePool/default: of main"
	if diff := cmp.Diff([]string{ofMain}, run(`{}`)); diff != "" {
		t.Errorf("main alone (-want +got):\n%s", diff)
	}
	want := []string{
		ofMain,
		"deny team.aws.deny_a EC2NodeClass/default: of team.aws",
		"deny team.aws.deny_b EC2NodeClass/default: excepted in main only",
	}
	if diff := cmp.Diff(want, sortedLines(run(`{"conftest":{"namespaces":["team.aws"]}}`))); diff != "" {
		t.Errorf("both (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{ofMain, "warn REEVE-REGO-005 : no file below policies/ is of package team.awz"}, run(`{"conftest":{"namespaces":["team.awz"]}}`)); diff != "" {
		t.Errorf("a namespace that there is not (-want +got):\n%s", diff)
	}
}

func TestATestMayBeWrittenLoosely(t *testing.T) {
	report, err := Test(context.Background(), map[string][]byte{
		"policies/main.rego":      []byte("package main\n\ndeny[msg] {\n\tinput.kind == \"NodePool\"\n\tx := 1\n\tmsg := \"no\"\n}\n"),
		"policies/main_test.rego": []byte("package main\n\ntest_deny {\n\tdeny[\"no\"] with input as {\"kind\": \"NodePool\"}\n}\n"),
	})
	if err != nil || !report.Passed() {
		t.Errorf("report %+v, %v", report, err)
	}
}
