package policy

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reeve-project/reeve/reconciler/fleet"
)

func TestTestsOfAFleetRunBesideTheShippedPolicies(t *testing.T) {
	report, err := Test(context.Background(), map[string][]byte{
		"policies/org.rego": []byte(`package reeve.spec.org

deny contains "x" if input.fleet.policy.x

deny contains "y" if {
	input.fleet.policy.y
	input.fleet.policy.z
}
`),
		"policies/org_test.rego": []byte(`package reeve.spec.org_test

import data.reeve.spec.ami_pinning
import data.reeve.spec.org

test_good if org.deny == {"x"} with input as {"fleet": {"policy": {"x": true}}}

test_bad if {
	print("seen", input)
	count(org.deny) == 1
}

test_error if to_number("x") == 1

todo_test_later if false

test_shipped if count(ami_pinning.deny) == 0
`),
		"README.md": []byte("no Rego"),
	})
	if err != nil {
		t.Fatal(err)
	}
	at := func(line int) fleet.Position {
		return fleet.Position{File: "policies/org_test.rego", Line: line, Column: 1}
	}
	const pkg = "reeve.spec.org_test"
	for i := range report.Tests {
		if r := &report.Tests[i]; r.Name == "test_error" && strings.Contains(r.Error, "to_number") {
			r.Error = "to_number"
		}
	}
	want := TestReport{
		Tests: []TestResult{
			{Package: pkg, Name: "test_good", Position: at(6), Passed: true},
			{Package: pkg, Name: "test_bad", Position: at(8), Output: "seen <undefined>\n",
				FailedAt: &fleet.Position{File: "policies/org_test.rego", Line: 10, Column: 2}},
			{Package: pkg, Name: "test_error", Position: at(13), Error: "to_number"},
			{Package: pkg, Name: "todo_test_later", Position: at(15), Skipped: true},
			{Package: pkg, Name: "test_shipped", Position: at(17), Passed: true},
		},
		Coverage: []FileCoverage{{File: "policies/org.rego", Covered: 1, Missed: 3, Lines: []int{5, 6, 7}}},
	}
	if diff := cmp.Diff(want, report); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	if report.Passed() || (TestReport{}).Passed() {
		t.Error("a failure passes")
	}
}

func TestTestsThatDoNotCompileAreRefused(t *testing.T) {
	for name, files := range map[string]map[string][]byte{
		"syntax":            {"policies/a_test.rego": []byte("package a_test\n\ntest_a if {")},
		"the network":       {"policies/a_test.rego": []byte("package a_test\n\ntest_a if http.send({})\n")},
		"a shipped package": {"policies/a.rego": []byte("package reeve.spec.ami_pinning\n\non := false\n")},
	} {
		var le *LoadError
		if _, err := Test(context.Background(), files); !errors.As(err, &le) || le.Findings()[0].Position == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
