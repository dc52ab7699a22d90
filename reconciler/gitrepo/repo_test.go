package gitrepo_test

import (
	"context"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/reeve-project/reeve/reconciler/gitrepo"
)

// gitRun runs git, which the code under test never needs for its own work, to look
// at results from outside.
func gitRun(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@example.com")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func fsck(t testing.TB, dir string) {
	t.Helper()
	gitRun(t, dir, "fsck", "--strict", "--full")
}

// bare makes an empty bare repository.
func bare(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "remote.git")
	if err := gitrepo.InitBare(dir, "main"); err != nil {
		t.Fatal(err)
	}
	return dir
}

func open(t testing.TB, remote string, opts gitrepo.Options) *gitrepo.Repo {
	t.Helper()
	r, err := gitrepo.Open(remote, opts)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

var when = time.Date(2026, 4, 6, 12, 24, 2, 547e6, time.UTC)

// commit writes files on top of a parent; a nil content removes the path.
func commit(t testing.TB, r *gitrepo.Repo, parent gitrepo.Hash, files map[string]string, remove ...string) gitrepo.Hash {
	t.Helper()
	h, err := tryCommit(r, parent, files, remove...)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func tryCommit(r *gitrepo.Repo, parent gitrepo.Hash, files map[string]string, remove ...string) (gitrepo.Hash, error) {
	var tree gitrepo.Hash
	var parents []gitrepo.Hash
	if !parent.IsZero() {
		c, err := r.ReadCommit(parent)
		if err != nil {
			return tree, err
		}
		tree, parents = c.Tree, []gitrepo.Hash{parent}
	}
	ed, err := r.Edit(tree)
	if err != nil {
		return tree, err
	}
	for path, content := range files {
		if err := ed.Set(path, []byte(content)); err != nil {
			return tree, err
		}
	}
	for _, path := range remove {
		if err := ed.Remove(path); err != nil {
			return tree, err
		}
	}
	if tree, err = ed.Write(); err != nil {
		return tree, err
	}
	who := gitrepo.Signature{Name: "Reeve", Email: "reeve@example.com", When: when}
	return r.WriteCommit(gitrepo.Commit{Tree: tree, Parents: parents, Author: who, Committer: who, Message: "Change files\n"}, nil)
}

func push(t testing.TB, r *gitrepo.Repo, branch string, old, new gitrepo.Hash) {
	t.Helper()
	if err := r.Push(context.Background(), branch, old, new); err != nil {
		t.Fatal(err)
	}
}

func fetch(t testing.TB, r *gitrepo.Repo, branch string, depth int) gitrepo.Heads {
	t.Helper()
	h, err := r.Fetch(context.Background(), branch, depth)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// serve answers for the repositories of a directory over HTTP with git's own
// server. A password, when given, is asked for.
func serve(t testing.TB, root, password string) string {
	t.Helper()
	backend := filepath.Join(gitRun(t, root, "--exec-path"), "git-http-backend")
	h := &cgi.Handler{Path: backend, Env: []string{
		"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "REMOTE_USER=a",
	}}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, got, _ := req.BasicAuth()
		if got != password {
			w.Header().Set("WWW-Authenticate", "Basic")
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, req)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

func TestARepositoryThatIsUnsyncedSaysSoToGit(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "demo.git")
	if err := gitrepo.InitBare(dir, "main"); err != nil {
		t.Fatal(err)
	}
	if err := gitrepo.Unsynced(dir); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("git", "-C", dir, "config", "core.fsync").Output()
	if got := strings.TrimSpace(string(out)); got != "none" || err != nil {
		t.Errorf("core.fsync is %q, error %v", got, err)
	}
	if err := gitrepo.Unsynced(filepath.Join(dir, "missing")); err == nil {
		t.Error("there is no repository, and no error")
	}
}
