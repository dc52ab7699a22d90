package replay

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reeve-project/reeve/reconciler/decision"
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
// another content, and everything after it is written again.
func rewrite(t *testing.T, repo, grep, path, old, new string) {
	t.Helper()
	work := filepath.Join(t.TempDir(), "work")
	git(t, ".", "clone", "-q", "-b", "reeve/myeks", repo, work)
	target := git(t, work, "log", "--format=%H", "--grep", grep, "-1")
	filter := fmt.Sprintf("if [ \"$GIT_COMMIT\" = %s ]; then for f in $(ls %s); do sed -i.orig 's|%s|%s|' $f && rm -f $f.orig; done; fi", target, path, old, new)
	git(t, work, "filter-branch", "-f", "--tree-filter", filter, "reeve/myeks")
	git(t, work, "push", "-q", "-f", "origin", "reeve/myeks")
}

func TestAlteredInputsAreAMismatch(t *testing.T) {
	tests := []struct {
		name, grep, path, old, new string
		kind                       string
	}{
		{"the fleet asked for other types", "^provision(default): 1 × c5a.2xlarge ap-northeast-2a for 5 pods", "inputs/fleet/clusters/myeks/nodepools.cue", `"c", "m", "r"`, `"m", "r"`, "provision(default)"},
		{"the price was another", "^provision(default): 1 × c5a.2xlarge ap-northeast-2a for 5 pods", "inputs/catalog/ondemand.json", `"c5a.2xlarge":0.344`, `"c5a.2xlarge":0.944`, "provision(default)"},
		{"the rule was another", "^reject", "inputs/proposed/policies/shipped/ami_pinning.rego", "@latest", "@newest", "reject"},
		{"the record says another price", "^provision(graviton)", "decisions/2026-04-06/12.0000/*provision-graviton.json", `"price": 0.077`, `"price": 0.07`, "provision(graviton)"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			repo := story(t)
			rewrite(t, repo, tc.grep, tc.path, tc.old, tc.new)
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
	_, err := r.loader(d)(context.Background(), nil)
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
