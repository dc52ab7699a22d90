package policy

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/cover"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/tester"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/reeve-project/reeve/policies"
	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/fleet"
)

// testTimeout is for one test of a policy.
const testTimeout = 10 * time.Second

// TestReport is what the tests of policies say.
type TestReport struct {
	// Tests are sorted by position.
	Tests []TestResult
	// Coverage of the files that are no tests, sorted by file.
	Coverage []FileCoverage
}

// TestResult is one test: a rule whose name begins with test_.
type TestResult struct {
	Package  string
	Name     string
	Position fleet.Position
	// Passed is false for a failure, an error and a skipped test.
	Passed bool
	// Skipped is true for a rule whose name begins with todo_test_.
	Skipped bool
	// Error is why the test has no result.
	Error string
	// FailedAt is the last expression of the test that did not hold.
	FailedAt *fleet.Position
	// Output is what the test printed.
	Output string
}

// FileCoverage is how much of a file the tests ran through.
type FileCoverage struct {
	File string
	// Covered and Missed count lines.
	Covered, Missed int
	// Lines are the lines that were missed.
	Lines []int
}

// Passed says whether no test failed. No tests at all do not pass.
func (r TestReport) Passed() bool {
	return len(r.Tests) > 0 && !slices.ContainsFunc(r.Tests, func(t TestResult) bool { return !t.Passed && !t.Skipped })
}

// Test runs the tests among Rego files of a fleet repository, which are given
// by their path there, beside the shipped policies. With no files it runs the
// tests of the shipped policies. When a file cannot be compiled the error is a
// *LoadError.
func Test(ctx context.Context, files map[string][]byte) (TestReport, error) {
	modules, own, err := testModules(files)
	if err != nil {
		return TestReport{}, err
	}
	compiler, _, err := compile(modules, true)
	if err != nil {
		return TestReport{}, err
	}
	coverage := cover.New()
	run := func() *tester.Runner {
		return tester.NewRunner().SetCompiler(compiler).SetModules(modules).
			CapturePrintOutput(true).RaiseBuiltinErrors(true).SetTimeout(testTimeout).SetParallel(1)
	}
	results, err := runTests(ctx, run().SetCoverageQueryTracer(coverage))
	if err != nil {
		return TestReport{}, err
	}
	if slices.ContainsFunc(results, func(r *tester.Result) bool { return r.Fail }) {
		// A trace takes time and memory, and is no use where all is well.
		traced, err := runTests(ctx, run().EnableTracing(true))
		if err != nil {
			return TestReport{}, err
		}
		markFailures(results, traced)
	}
	return testReport(results, coverage.Report(own), own), nil
}

func runTests(ctx context.Context, runner *tester.Runner) ([]*tester.Result, error) {
	var results []*tester.Result
	store := inmem.New()
	err := storage.Txn(ctx, store, storage.TransactionParams{}, func(txn storage.Transaction) error {
		ch, err := runner.SetStore(store).RunTests(ctx, txn)
		if err != nil {
			return err
		}
		for r := range ch {
			results = append(results, r)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("test policies: %w", err)
	}
	return results, nil
}

// markFailures finds in the traces the last expression of each failed test that
// did not hold.
func markFailures(results, traced []*tester.Result) {
	for _, r := range results {
		i := slices.IndexFunc(traced, func(t *tester.Result) bool { return t.Package == r.Package && t.Name == r.Name })
		if !r.Fail || r.Error != nil || i < 0 || r.Location == nil {
			continue
		}
		for _, e := range traced[i].Trace {
			if expr, ok := e.Node.(*ast.Expr); ok && e.Op == topdown.FailOp && expr.Location != nil && expr.Location.File == r.Location.File {
				r.FailedAt = expr
			}
		}
	}
}

// testModules are all modules, and those whose coverage is reported.
func testModules(files map[string][]byte) (all, own map[string]*ast.Module, err error) {
	b := NewBundle(files, nil)
	dir, tests := FleetDir, map[string][]byte{}
	for name, content := range files {
		tests[name] = content
	}
	if len(files) == 0 {
		dir, tests = ShippedDir, policies.Tests()
	}
	for name, content := range tests {
		if strings.HasSuffix(name, testSuffix) {
			b.files[dir+name] = content
		}
	}
	all, _, faults := parse(b)
	if len(faults) == 0 {
		faults = checkPackages(withoutTests(all))
	}
	if len(faults) > 0 {
		return nil, nil, newLoadError(faults)
	}
	declareSchemas(withoutTests(all))
	own = map[string]*ast.Module{}
	for name, m := range withoutTests(all) {
		if strings.HasPrefix(name, dir) {
			own[name] = m
		}
	}
	return all, own, nil
}

// withoutTests leaves out tests: they may stand in any package.
func withoutTests(modules map[string]*ast.Module) map[string]*ast.Module {
	out := map[string]*ast.Module{}
	for name, m := range modules {
		if !strings.HasSuffix(name, testSuffix) {
			out[name] = m
		}
	}
	return out
}

func testReport(results []*tester.Result, coverage cover.Report, own map[string]*ast.Module) TestReport {
	var out TestReport
	for _, r := range results {
		t := TestResult{
			Package: strings.TrimPrefix(r.Package, "data."), Name: r.Name, Position: *cmp.Or(position(r.Location), &fleet.Position{}),
			Passed: r.Pass(), Skipped: r.Skip, Output: string(r.Output),
		}
		if r.Error != nil {
			t.Error = strings.ReplaceAll(r.Error.Error(), FleetDir, "")
		}
		if r.FailedAt != nil {
			t.FailedAt = position(r.FailedAt.Location)
		}
		out.Tests = append(out.Tests, t)
	}
	slices.SortFunc(out.Tests, func(a, b TestResult) int {
		return cmp.Or(comparePositions(&a.Position, &b.Position), cmp.Compare(a.Name, b.Name))
	})
	for _, name := range sortedKeys(own) {
		f := coverage.Files[name]
		if f == nil {
			continue
		}
		fc := FileCoverage{File: strings.TrimPrefix(name, FleetDir), Covered: f.CoveredLines, Missed: f.NotCoveredLines}
		for _, gap := range f.NotCovered {
			for line := gap.Start.Row; line <= gap.End.Row; line++ {
				fc.Lines = append(fc.Lines, line)
			}
		}
		fc.Lines = slices.Compact(fc.Lines)
		out.Coverage = append(out.Coverage, fc)
	}
	return out
}

var _ interface{ Findings() []decision.Finding } = (*LoadError)(nil)
