package policy

import (
	"context"
	"testing"
)

func TestShippedPoliciesPassTheirTestsAndAreCovered(t *testing.T) {
	report, err := Test(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range report.Tests {
		if !r.Passed {
			t.Errorf("%s: %s: failed at %v %s\n%s", r.Position, r.Name, r.FailedAt, r.Error, r.Output)
		}
	}
	for _, f := range report.Coverage {
		if f.Missed > 0 {
			t.Errorf("%s: lines %v are covered by no test", f.File, f.Lines)
		}
	}
	if !report.Passed() || len(report.Tests) < 30 || len(report.Coverage) < 3 {
		t.Errorf("%d tests, %d files", len(report.Tests), len(report.Coverage))
	}
}
