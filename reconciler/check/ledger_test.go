package check_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/reeve-project/reeve/reconciler/check"
	"github.com/reeve-project/reeve/reconciler/demo"
	"github.com/reeve-project/reeve/reconciler/gitrepo"
	"github.com/reeve-project/reeve/reconciler/report"
	"github.com/reeve-project/reeve/reconciler/resources"
)

var after = time.Date(2026, 4, 6, 12, 30, 0, 0, time.UTC)

// recorded is a repository with a fleet, and the decision branch of its cluster
// with one node for seven pods.
func recorded(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "demo")
	if err := demo.Run(context.Background(), demo.Options{Dir: dir, Replicas: []int{7}, Out: io.Discard}); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "fleet.git")
}

// proposed is the branch change of the repository: the fleet of main with one
// text replaced in a file.
func proposed(t *testing.T, dir, file, from, to string) {
	t.Helper()
	repo, err := gitrepo.Open(dir, gitrepo.Options{})
	must(t, err)
	must(t, repo.FetchAll(context.Background()))
	tip, err := repo.Resolve("main")
	must(t, err)
	tree, err := repo.TreeID(tip)
	must(t, err)
	entry, err := repo.Entry(tree, file)
	must(t, err)
	text, err := repo.Blob(entry.Hash)
	must(t, err)
	if !strings.Contains(string(text), from) {
		t.Fatalf("%s does not contain %q:\n%s", file, from, text)
	}
	ed, err := repo.Edit(tree)
	must(t, err)
	must(t, ed.Set(file, []byte(strings.Replace(string(text), from, to, 1))))
	next, err := ed.Write()
	must(t, err)
	who := gitrepo.Signature{Name: "You", Email: "you@example.com", When: after}
	commit, err := repo.WriteCommit(gitrepo.Commit{Tree: next, Parents: []gitrepo.Hash{tip}, Author: who, Committer: who, Message: "Change\n"}, nil)
	must(t, err)
	must(t, repo.Push(context.Background(), "change", gitrepo.Hash{}, commit))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestAChangeIsHeldAgainstTheLedger(t *testing.T) {
	dir := recorded(t)
	proposed(t, dir, "clusters/myeks/nodepools.cue", `"c", "m", "r"`, `"m"`)
	const was, becomes = 344 * resources.USD / 1000, 424 * resources.USD / 1000
	drift := report.PlanDrift{NodePool: "default", InstanceType: "c5a.2xlarge", Price: was, Cause: "RequirementsDrifted"}
	tests := []struct {
		name            string
		rev, base       string
		new             bool
		without, withit resources.Price
	}{
		{"against the base", "change", "main", true, was, becomes},
		{"against the fleet that was in force", "change", "", true, was, becomes},
		{"against itself nothing is new", "change", "change", false, becomes, becomes},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			got, err := check.Open(context.Background(), check.Target{Repo: dir, Rev: tc.rev, Base: tc.base, Ledger: "reeve/myeks"}, after)
			must(t, err)
			i := got.Clusters[0].Impact
			if i == nil {
				t.Fatal("nothing is said of the cluster")
			}
			want := drift
			want.New = tc.new
			if diff := cmp.Diff([]report.PlanDrift{want}, i.Drift, cmpopts.IgnoreFields(report.PlanDrift{}, "Node", "Detail")); diff != "" {
				t.Errorf("drift (-want +got):\n%s", diff)
			}
			if i.Branch != "reeve/myeks" || i.Nodes != 1 || i.Now != was || i.Base != tc.without || i.Head != tc.withit || !got.OK() {
				t.Errorf("%+v", i)
			}
		})
	}
}

func TestALedgerThatDoesNotFitIsAnError(t *testing.T) {
	dir := recorded(t)
	plain := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(plain, "clusters", "blue"), 0o755))
	tests := []struct {
		name   string
		target check.Target
		want   string
	}{
		{"a branch that is not there", check.Target{Repo: dir, Ledger: "reeve/blue"}, "a decision branch is named reeve/<cluster>: fetch it first"},
		{"a branch that is no ledger", check.Target{Repo: dir, Ledger: "main"}, "is no decision branch"},
		{"before any decision about nodes", check.Target{Repo: dir, Ledger: firstOf(t, dir)}, "no decision about nodes is recorded there yet"},
		{"a directory outside of any repository", check.Target{Path: plain, Ledger: "reeve/myeks"}, "so there is no base and no ledger to read from it; give --repo"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := check.Open(context.Background(), tc.target, after); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q", err, tc.want)
			}
		})
	}
}

// firstOf is the first commit of the decision branch: a leader and nothing else.
func firstOf(t *testing.T, dir string) string {
	t.Helper()
	repo, err := gitrepo.OpenDir(dir, gitrepo.Options{})
	must(t, err)
	h, err := repo.Resolve("reeve/myeks")
	must(t, err)
	for {
		c, err := repo.ReadCommit(h)
		must(t, err)
		if len(c.Parents) == 0 {
			return h.String()
		}
		h = c.Parents[0]
	}
}
