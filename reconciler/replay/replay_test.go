package replay

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/gitrepo"
	"github.com/reeve-project/reeve/reconciler/ledger"
)

// story is the ledger of a real run, made once: a fleet that is accepted, a
// commit that is refused, nodes, and pods that policy keeps pending. It is
// written by the demo, which replay may not import; so the command makes it.
func story(t *testing.T) string {
	t.Helper()
	repo := filepath.Join(storyDir, "fleet.git")
	if _, err := os.Stat(repo); err != nil {
		t.Fatal("the story was not made")
	}
	dir := filepath.Join(t.TempDir(), "fleet.git")
	git(t, ".", "clone", "-q", "--mirror", repo, dir)
	return dir
}

var storyDir string

func TestMain(m *testing.M) {
	os.Setenv("GIT_CONFIG_GLOBAL", "/dev/null")
	os.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "replay")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer os.RemoveAll(dir)
	storyDir = filepath.Join(dir, "demo")
	cmd := exec.Command("go", "run", "../../cmd/reeve", "demo", "--dir", storyDir)
	if out, err := cmd.CombinedOutput(); err != nil {
		fmt.Printf("%v\n%s", err, out)
		return 1
	}
	return m.Run()
}

func git(t *testing.T, repo string, args ...string) string {
	t.Helper()
	out, err := exec.Command("git", append([]string{"-C", repo, "-c", "user.name=x", "-c", "user.email=x@example.com"}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// replayAll replays a ledger and returns the verdicts by the start of summaries.
func replayAll(t *testing.T, repo string, ids ...string) (Summary, []Result) {
	t.Helper()
	var all []Result
	sum, err := Run(context.Background(), ledger.Source{Repo: repo}, ids, func(r Result) error {
		all = append(all, r)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return sum, all
}

func TestACloneWithoutTheSpecBranchIsEnough(t *testing.T) {
	repo := story(t)
	git(t, repo, "update-ref", "-d", "refs/heads/main")
	git(t, repo, "gc", "-q", "--prune=now")
	sum, all := replayAll(t, repo)
	if !sum.OK() || sum.Same != len(all) || sum.Same < 8 {
		t.Errorf("%s\n%v", sum, all)
	}
	res, err := Verify(context.Background(), ledger.Source{Repo: repo})
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Problems) > 0 || res.Open != 0 {
		t.Errorf("%s: %v", res, res.Problems)
	}
	one, _ := replayAll(t, repo, all[0].ID)
	if one.Same != 1 {
		t.Errorf("one: %s", one)
	}
}

// rewrite changes the commit that records a decision: a file of its tree gets
// another content, and every commit after it is written again.
func rewrite(t *testing.T, dir, subject, path, old, new string) {
	t.Helper()
	repo, err := gitrepo.OpenDir(dir, gitrepo.Options{})
	must(t, err)
	head, err := gitrepo.ParseHash(git(t, dir, "rev-parse", "reeve/myeks"))
	must(t, err)
	var chain []gitrepo.Commit
	must(t, repo.History(head, func(c gitrepo.Commit) error { chain = append(chain, c); return nil }))
	var parent []gitrepo.Hash
	changed := false
	for _, c := range slices.Backward(chain) {
		if strings.HasPrefix(c.Message, subject) {
			c.Tree = alter(t, repo, c.Tree, path, old, new)
			changed = true
		}
		c.Parents = parent
		h, err := repo.WriteCommit(c, nil)
		must(t, err)
		parent = []gitrepo.Hash{h}
	}
	if !changed {
		t.Fatalf("no commit begins with %q", subject)
	}
	git(t, dir, "update-ref", "refs/heads/reeve/myeks", parent[0].String())
}

// alter replaces text in the files that match the path.
func alter(t *testing.T, repo *gitrepo.Repo, tree gitrepo.Hash, path, old, new string) gitrepo.Hash {
	t.Helper()
	files := repo.FS(tree)
	names, err := fs.Glob(files, path)
	must(t, err)
	ed, err := repo.Edit(tree)
	must(t, err)
	for _, name := range names {
		b, err := fs.ReadFile(files, name)
		must(t, err)
		if !bytes.Contains(b, []byte(old)) {
			t.Fatalf("%s does not hold %s", name, old)
		}
		must(t, ed.Set(name, bytes.ReplaceAll(b, []byte(old), []byte(new))))
	}
	if len(names) == 0 {
		t.Fatalf("no file matches %s", path)
	}
	out, err := ed.Write()
	must(t, err)
	return out
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestAlteredInputsAreAMismatch(t *testing.T) {
	tests := []struct {
		name, subject, path, old, new string
		kind                          string
	}{
		{"the fleet asked for other types", "provision(default): 1 × c5a.2xlarge ap-northeast-2a for 5 pods", "inputs/fleet/clusters/myeks/nodepools.cue", `"c", "m", "r"`, `"m", "r"`, "provision(default)"},
		{"the price was another", "provision(default): 1 × c5a.2xlarge ap-northeast-2a for 5 pods", "inputs/catalog/ondemand.json", `"c5a.2xlarge":0.344`, `"c5a.2xlarge":9.944`, "provision(default)"},
		{"the rule was another", "reject", "inputs/proposed/policies/shipped/ami_pinning.rego", "@latest", "@newest", "reject"},
		{"the record says another price", "provision(graviton)", "decisions/2026-04-06/12.0000/*provision-graviton.json", `"price": 0.077`, `"price": 0.07`, "provision(graviton)"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			repo := story(t)
			rewrite(t, repo, tc.subject, tc.path, tc.old, tc.new)
			sum, err := Run(context.Background(), ledger.Source{Repo: repo}, nil, func(r Result) error {
				if r.Verdict == Mismatch && !strings.HasPrefix(r.Summary, tc.kind) {
					t.Errorf("another decision differs: %s", r)
				}
				if r.Verdict == Mismatch && r.Detail == "" {
					t.Errorf("no word on what differs: %s", r)
				}
				return nil
			})
			if err == nil && sum.OK() {
				t.Error("nothing differs")
			}
			res, err := Verify(context.Background(), ledger.Source{Repo: repo})
			if err == nil && len(res.Problems) == 0 {
				t.Error("verify finds nothing")
			}
		})
	}
}

func TestAnotherEngineIsNotComparable(t *testing.T) {
	branch, err := ledger.Source{Repo: story(t)}.Open(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	err = branch.Entries(context.Background(), nil, func(e ledger.Entry) error {
		e.Decision.Engine.Version++
		res, err := NewReplayer().Replay(context.Background(), e)
		if err != nil || res.Verdict != NotComparable || !strings.Contains(res.Detail, "use the release that made it") {
			t.Errorf("%+v, %v", res, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A deadline that passed when the record was made need not pass now: it is
// taken from the record.
func TestAFailureThatDependedOnTheMachineIsGiven(t *testing.T) {
	d := &decision.Decision{
		Verdict: decision.Verdict{Violations: []decision.Finding{{Rule: "a"}, {Rule: "b", Cause: decision.CauseLimit, Message: "too much memory"}}},
		Evaluations: []decision.Evaluation{
			{DecisionID: "slow", Custom: decision.EvaluationCustom{Cause: decision.CauseDeadline, Error: "took too long"}},
			{DecisionID: "wrong", Custom: decision.EvaluationCustom{Cause: decision.CauseError, Error: "a conflict"}},
			{DecisionID: "fine"},
		},
	}
	g := given(d)
	if f, ok := g("slow"); !ok || f.Cause != decision.CauseDeadline || f.Error != "took too long" {
		t.Errorf("slow: %+v %v", f, ok)
	}
	for _, id := range []string{"wrong", "fine", "unknown"} {
		if _, ok := g(id); ok {
			t.Errorf("%s is given, though it comes out the same again", id)
		}
	}
	if !hasGiven(d) || hasGiven(&decision.Decision{Evaluations: d.Evaluations[1:]}) {
		t.Error("hasGiven")
	}
	r := NewReplayer()
	_, err := r.loader(ledger.Entry{Decision: d})(context.Background(), nil)
	if err == nil || err.Error() != "too much memory" {
		t.Errorf("a bound that was met is met again: %v", err)
	}
}

func TestNothingToReplayIsAnError(t *testing.T) {
	repo := story(t)
	if _, err := Run(context.Background(), ledger.Source{Repo: repo}, []string{"nosuchdecision"}, nil); err == nil {
		t.Error("an unknown id is replayed")
	}
	git(t, repo, "update-ref", "-d", "refs/heads/reeve/myeks")
	if _, err := Run(context.Background(), ledger.Source{Repo: repo}, nil, nil); err == nil {
		t.Error("a repository without decisions is replayed")
	}
}
