package spec

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reeve-project/reeve/reconciler/gitrepo"
)

// git runs a command in a work tree.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// loadCommit loads the fleet of the newest commit of a work tree.
func loadCommit(t *testing.T, dir string) error {
	t.Helper()
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-q", "-m", "change")
	repo, err := gitrepo.OpenDir(filepath.Join(dir, ".git"), gitrepo.Options{})
	if err != nil {
		t.Fatal(err)
	}
	commit, err := gitrepo.ParseHash(git(t, dir, "rev-parse", "HEAD"))
	if err != nil {
		t.Fatal(err)
	}
	tree, err := repo.Tree(commit)
	if err != nil {
		t.Fatal(err)
	}
	_, err = load(t, tree)
	return err
}

func TestCommitsLoadWithoutAWorkTree(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	git(t, dir, "init", "-q")
	if _, err := Init(dir, InitOptions{Cluster: "blue"}); err != nil {
		t.Fatal(err)
	}
	if err := loadCommit(t, dir); err != nil {
		t.Errorf("a new repository: %v", err)
	}
	for _, link := range []string{"docs", "policies/x.rego"} {
		if err := os.Symlink("../clusters", filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := loadCommit(t, dir); err != nil {
		t.Errorf("links that have nothing to do with CUE: %v", err)
	}
	if err := os.Symlink("/etc/hostname", filepath.Join(dir, "clusters", "blue", "z.cue")); err != nil {
		t.Fatal(err)
	}
	if err := loadCommit(t, dir); err == nil || !strings.Contains(err.Error(), "clusters/blue/z.cue") || !strings.Contains(err.Error(), "symbolic link") {
		t.Errorf("a link among the cluster's files: %v", err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "clusters", "blue")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../policies", filepath.Join(dir, "clusters", "blue")); err != nil {
		t.Fatal(err)
	}
	if err := loadCommit(t, dir); err == nil || !strings.HasPrefix(err.Error(), "clusters/blue:1:1: cannot be read: it is a symbolic link") {
		t.Errorf("a cluster that is a link: %v", err)
	}
}
