package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOutputOfBenchmarksIsUnderstood(t *testing.T) {
	out := `goos: linux
goarch: amd64
pkg: example.com/x
cpu: some
BenchmarkShapes5000-2   	      10	  12345678 ns/op	    405000 pods/s	  1024 B/op	       7 allocs/op
BenchmarkAppend/pass-20-2  	 100	  50 ns/op
BenchmarkAppend/pass-20-2  	 100	  40 ns/op
BenchmarkAppend/pass-20-2  	 100	  60 ns/op
BenchmarkChatty-2 says hello to the world
BenchmarkPlain  	1	0.5 ns/op
PASS
`
	names, got, err := parse(out, 2)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Shapes5000", "Append/pass-20", "Plain"}, names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	want := map[string]sample{
		"Shapes5000":     {perOp: 12345678, "pods/s": 405000, "B/op": 1024, "allocs/op": 7},
		"Append/pass-20": {perOp: 40},
		"Plain":          {perOp: 0.5},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("samples (-want +got):\n%s", diff)
	}
	for _, bad := range []string{"BenchmarkX 1 5 B/op", "BenchmarkX 1 a ns/op", "BenchmarkX 1 5 ns/op 7"} {
		if _, _, err := parse(bad, 2); err == nil {
			t.Errorf("%q is understood", bad)
		}
	}
}

func TestResultsAreJudged(t *testing.T) {
	goals := []goal{{"X", "pods/s", 100, 0}, {"X", perOp, 0, 1000}}
	tests := []struct {
		name string
		r    result
		want []failure
	}{
		{"as fast as before", result{"p.X", sample{perOp: 120, "pods/s": 100}, sample{perOp: 100}, goals}, nil},
		{"new", result{"p.X", sample{perOp: 1000, "pods/s": 101}, nil, goals}, nil},
		{"slower", result{"p.X", sample{perOp: 121}, sample{perOp: 100}, nil},
			[]failure{{"p.X takes 1.21 times as long as in the base, at most 1.20 is allowed", false}}},
		{"short of its goals", result{"p.X", sample{perOp: 1001, "pods/s": 99}, nil, goals},
			[]failure{{"p.X: 99 pods/s, at least 100 is the goal", true}, {"p.X: 1001 ns/op, at most 1000 is the goal", true}}},
		{"silent on its goal", result{"p.X", sample{perOp: 1}, nil, goals},
			[]failure{{"p.X: it does not report pods/s, which has a goal", true}}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			var w strings.Builder
			got := report(&w, []result{tc.r}, 1.2)
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(failure{})); diff != "" {
				t.Errorf("failures (-want +got):\n%s", diff)
			}
			if !strings.Contains(w.String(), "p.X") {
				t.Errorf("not printed:\n%s", w.String())
			}
		})
	}
}

func TestTimesAreForPeople(t *testing.T) {
	for ns, want := range map[float64]string{0.5: "0.5ns", 999: "999ns", 1234: "1.23µs", 12345678: "12.35ms", 2.5e9: "2.5s"} {
		if got := duration(ns); got != want {
			t.Errorf("%g ns is %s, want %s", ns, got, want)
		}
	}
}

func TestPatternsNameTheBenchmarks(t *testing.T) {
	for want, e := range map[string]entry{
		"^Benchmark(A|B)":     {benchmarks: []string{"A", "B"}},
		"^Benchmark(A)/^100_": {benchmarks: []string{"A"}, sub: "100_"},
	} {
		if got := e.pattern(); got != want {
			t.Errorf("pattern %q, want %q", got, want)
		}
	}
}

func TestTheTableIsSound(t *testing.T) {
	for _, e := range table {
		for _, g := range e.goals {
			found := false
			for _, b := range e.benchmarks {
				found = found || strings.HasPrefix(g.benchmark, b)
			}
			if !found || (g.atLeast > 0) == (g.atMost > 0) {
				t.Errorf("%s: goal %+v", e.dir, g)
			}
		}
	}
}

// TestASlowerTreeIsFound runs the whole on a repository of two commits with
// real builds.
func TestASlowerTreeIsFound(t *testing.T) {
	repo := newRepository(t)
	repo.commit("first", 2_000)
	entries := []entry{{dir: "p", benchmarks: []string{"Spin"}, benchtime: "20ms"}, {dir: "gone", benchmarks: []string{"X"}, benchtime: "1x"}}

	out, failures := repo.bench(entries, "fail")
	repo.wantOutput(out, "no base to compare with: the history ends at this commit", "gone: the package is not there", "new")
	if len(failures) > 0 {
		t.Errorf("failures without a base: %v", failures)
	}
	repo.commit("slower", 20_000)
	out, failures = repo.bench(entries, "fail")
	if len(failures) != 1 || !strings.HasPrefix(failures[0].text, "p.Spin takes") || failures[0].goal {
		t.Errorf("ten times the work: failures %v, output\n%s", failures, out)
	}
	repo.wantOutput(out, "base: "+repo.git("rev-parse", "HEAD~1"))
	repo.wantFigures("p.Spin", "p.Spin ratio to base", "p.Spin B/op")

	repo.git("checkout", "--quiet", "-b", "topic")
	repo.commit("as fast as main", 20_000)
	out, failures = repo.bench(entries, "warn")
	repo.wantOutput(out, "base: "+repo.git("rev-parse", "main"))
	if len(failures) > 0 {
		t.Errorf("the same work: failures %v, output\n%s", failures, out)
	}
	if left := repo.git("worktree", "list"); strings.Count(left, "\n") > 0 {
		t.Errorf("checkouts are left behind:\n%s", left)
	}
}

func TestWhatCannotBeMeasuredIsAnError(t *testing.T) {
	repo := newRepository(t)
	repo.commit("first", 10)
	for name, entries := range map[string][]entry{
		"a goal without its benchmark":   {{dir: "p", benchmarks: []string{"Spin"}, benchtime: "1x", goals: []goal{{benchmark: "Other", unit: perOp, atMost: 1}}}},
		"a benchmark that does not run":  {{dir: "p", benchmarks: []string{"Spin"}, benchtime: "never"}},
		"a package that does not build ": {{dir: "broken", benchmarks: []string{"Spin"}, benchtime: "1x"}},
	} {
		if _, err := run(t.Context(), options{root: repo.dir, out: filepath.Join(repo.dir, "o"), rounds: 1, limit: 1.2, goals: "fail"}, entries, new(strings.Builder)); err == nil {
			t.Errorf("%s is no error", name)
		}
	}
	for _, o := range []options{{goals: "maybe", rounds: 1}, {goals: "warn"}} {
		if _, err := run(t.Context(), o, nil, new(strings.Builder)); err == nil {
			t.Errorf("options %+v are accepted", o)
		}
	}
	if _, reason := baseCommit(t.Context(), repo.dir, "nowhere"); reason != `there is no commit "nowhere"` {
		t.Errorf("reason %q", reason)
	}
	if _, reason := baseCommit(t.Context(), t.TempDir(), ""); reason != "this is no Git repository with a commit" {
		t.Errorf("reason %q", reason)
	}
}

type repository struct {
	t   *testing.T
	dir string
}

func newRepository(t *testing.T) *repository {
	t.Helper()
	r := &repository{t, t.TempDir()}
	r.git("init", "--quiet", "--initial-branch=main")
	r.write("go.mod", "module example.com/x\n\ngo 1.26\n")
	r.write("broken/x_test.go", "package broken\n\nvar x = nothing\n")
	return r
}

func (r *repository) commit(message string, work int) {
	r.t.Helper()
	r.write("p/p_test.go", fmt.Sprintf(`package p

import "testing"

var sink int // %s

func BenchmarkSpin(b *testing.B) {
	for b.Loop() {
		for i := range %d {
			sink += i * sink
		}
	}
}
`, message, work))
	r.git("add", ".")
	r.git("-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "--quiet", "-m", message)
}

func (r *repository) write(name, content string) {
	r.t.Helper()
	full := filepath.Join(r.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(content), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

func (r *repository) git(args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = r.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (r *repository) bench(entries []entry, goals string) (string, []failure) {
	r.t.Helper()
	var w strings.Builder
	// A limit far from both cases keeps a busy machine from deciding.
	o := options{root: r.dir, out: filepath.Join(r.dir, "build", "bench.json"), rounds: 3, limit: 3, goals: goals}
	failures, err := run(context.Background(), o, entries, &w)
	if err != nil {
		r.t.Fatal(err)
	}
	return w.String(), failures
}

func (r *repository) wantOutput(out string, want ...string) {
	r.t.Helper()
	for _, text := range want {
		if !strings.Contains(out, text) {
			r.t.Errorf("the output lacks %q:\n%s", text, out)
		}
	}
}

func (r *repository) wantFigures(names ...string) {
	r.t.Helper()
	b, err := os.ReadFile(filepath.Join(r.dir, "build", "bench.json"))
	if err != nil {
		r.t.Fatal(err)
	}
	var got []figure
	if err := json.Unmarshal(b, &got); err != nil {
		r.t.Fatal(err)
	}
	have := map[string]bool{}
	for _, f := range got {
		have[f.Name] = f.Unit != "" && f.Value >= 0
	}
	for _, n := range names {
		if !have[n] {
			r.t.Errorf("bench.json lacks %q: %s", n, b)
		}
	}
}
