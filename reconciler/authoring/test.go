package authoring

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/policy"
)

// TestOptions say which tests to run.
type TestOptions struct {
	// Path is the directory of the fleet repository.
	Path string
	// Shipped runs the tests of the policies that come with Reeve instead.
	Shipped bool
	// Coverage keeps in the result which lines the tests ran through.
	Coverage bool
	// Threshold is the least share of lines, in percent, that the tests of the
	// files together have to run through; 0 for none.
	Threshold int
}

// TestRun is what the tests said.
type TestRun struct {
	Tests    []Test     `json:"tests"`
	Coverage []Coverage `json:"coverage,omitempty"`
	Passed   int        `json:"passed"`
	Failed   int        `json:"failed"`
	Skipped  int        `json:"skipped"`
	// Covered is the share of lines that the tests ran through, in percent and
	// rounded down.
	Covered int `json:"covered"`
	// Threshold is that of the options.
	Threshold int `json:"threshold,omitempty"`
}

// Test is one test.
type Test struct {
	// Name is the package and the rule: "reeve.spec.teams_test.test_a".
	Name     string         `json:"name"`
	Position fleet.Position `json:"position"`
	// Result is "pass", "fail", "skip" or "error".
	Result string `json:"result"`
	// FailedAt is the last expression of the test that did not hold.
	FailedAt *fleet.Position `json:"failedAt,omitempty"`
	// Error is why there is no result.
	Error string `json:"error,omitempty"`
	// Output is what the test printed.
	Output string `json:"output,omitempty"`
}

// Coverage is how much of a file the tests ran through.
type Coverage struct {
	File    string `json:"file"`
	Covered int    `json:"covered"`
	Missed  int    `json:"missed"`
	// Lines are those that were missed.
	Lines []int `json:"lines,omitempty"`
}

// OK says whether no test failed and the coverage is as asked for.
func (r *TestRun) OK() bool { return r.Failed == 0 && r.Covered >= r.Threshold }

// RunTests runs the tests of a fleet repository beside the shipped policies.
// When the Rego cannot be compiled the error has the place of each fault. It is
// ErrNothing when there are no tests.
func RunTests(ctx context.Context, o TestOptions) (*TestRun, error) {
	var files map[string][]byte
	if !o.Shipped {
		root, err := open(o.Path)
		if err != nil {
			return nil, err
		}
		defer root.Close()
		if files, err = rules(root); err != nil {
			return nil, err
		}
		if len(files) == 0 {
			return nil, fmt.Errorf("%s: %w: there is no Rego below policies/", o.Path, ErrNothing)
		}
	}
	report, err := policy.Test(ctx, files)
	if err != nil {
		return nil, err
	}
	if len(report.Tests) == 0 {
		return nil, fmt.Errorf("%s: %w: there are no tests: they are rules test_… in files *%s below policies/", o.Path, ErrNothing, testSuffix)
	}
	return newTestRun(report, o), nil
}

func newTestRun(report policy.TestReport, o TestOptions) *TestRun {
	out := &TestRun{Threshold: o.Threshold}
	for _, t := range report.Tests {
		r := Test{Name: t.Package + "." + t.Name, Position: t.Position, Result: "pass", FailedAt: t.FailedAt, Error: t.Error, Output: t.Output}
		switch {
		case t.Skipped:
			r.Result = "skip"
			out.Skipped++
		case t.Error != "":
			r.Result = "error"
			out.Failed++
		case !t.Passed:
			r.Result = "fail"
			out.Failed++
		default:
			out.Passed++
		}
		out.Tests = append(out.Tests, r)
	}
	covered, all := 0, 0
	for _, f := range report.Coverage {
		covered, all = covered+f.Covered, all+f.Covered+f.Missed
		if o.Coverage || o.Threshold > 0 {
			out.Coverage = append(out.Coverage, Coverage(f))
		}
	}
	if all > 0 {
		out.Covered = covered * 100 / all
	}
	return out
}

// TestsText writes the tests for people, one a line with its place.
func TestsText(w io.Writer, r *TestRun) error {
	for _, t := range r.Tests {
		fmt.Fprintf(w, "%s: %s: %s", t.Position, t.Result, t.Name)
		switch {
		case t.Error != "":
			fmt.Fprintf(w, ": %s", t.Error)
		case t.FailedAt != nil:
			fmt.Fprintf(w, ": %s does not hold", t.FailedAt)
		}
		fmt.Fprintln(w)
		for line := range strings.Lines(t.Output) {
			fmt.Fprintf(w, "    %s\n", strings.TrimRight(line, "\n"))
		}
	}
	for _, f := range r.Coverage {
		fmt.Fprintf(w, "%s: %d of %d lines covered", f.File, f.Covered, f.Covered+f.Missed)
		if len(f.Lines) > 0 {
			fmt.Fprintf(w, ", not %s", ranges(f.Lines))
		}
		fmt.Fprintln(w)
	}
	_, err := fmt.Fprintf(w, "%d passed, %d failed, %d skipped", r.Passed, r.Failed, r.Skipped)
	if len(r.Coverage) > 0 {
		fmt.Fprintf(w, "; %d %% of the lines covered", r.Covered)
	}
	if r.Covered < r.Threshold {
		fmt.Fprintf(w, ", less than the %d %% asked for", r.Threshold)
	}
	fmt.Fprintln(w)
	return err
}

// ranges writes line numbers shortly: "3-5, 9".
func ranges(lines []int) string {
	var out []string
	for i := 0; i < len(lines); {
		j := i
		for j+1 < len(lines) && lines[j+1] == lines[j]+1 {
			j++
		}
		text := strconv.Itoa(lines[i])
		if j > i {
			text += "-" + strconv.Itoa(lines[j])
		}
		out = append(out, text)
		i = j + 1
	}
	return strings.Join(out, ", ")
}

// TestsJSON writes the tests for machines.
func TestsJSON(w io.Writer, r *TestRun) error { return writeJSON(w, r) }

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
