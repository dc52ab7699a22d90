package gitrepo_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reeve-project/reeve/reconciler/gitrepo"
)

func TestMain(m *testing.M) {
	// git's own servers read these when go-git starts them.
	os.Setenv("GIT_CONFIG_GLOBAL", "/dev/null")
	os.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	os.Exit(m.Run())
}

func TestPushAndFetchGoThroughEveryTransport(t *testing.T) {
	for _, tc := range []struct {
		name string
		url  func(t *testing.T, dir string) string
		opts func(t *testing.T) gitrepo.Options
	}{
		{"a path, in memory", func(_ *testing.T, dir string) string { return dir }, func(*testing.T) gitrepo.Options { return gitrepo.Options{} }},
		{"a file URL, on disk", func(_ *testing.T, dir string) string { return "file://" + dir },
			func(t *testing.T) gitrepo.Options {
				return gitrepo.Options{Dir: filepath.Join(t.TempDir(), "copy.git")}
			}},
		{"http with a token", func(t *testing.T, dir string) string { return serve(t, filepath.Dir(dir), "secret") + "/remote.git" },
			func(*testing.T) gitrepo.Options {
				return gitrepo.Options{Auth: gitrepo.Static(gitrepo.Token("", "secret"))}
			}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := bare(t)
			gitRun(t, dir, "config", "http.receivepack", "true")
			url := tc.url(t, dir)
			a := open(t, url, tc.opts(t))
			first := commit(t, a, gitrepo.Hash{}, map[string]string{"README.md": "one\n", "a/b/c.txt": "deep\n"})
			push(t, a, "main", gitrepo.Hash{}, first)
			second := commit(t, a, first, map[string]string{"a/b/d.txt": "more\n"})
			third := commit(t, a, second, nil, "README.md")
			push(t, a, "main", first, third)

			b := open(t, url, tc.opts(t))
			if diff := cmp.Diff(gitrepo.Heads{New: third}, fetch(t, b, "main", 1)); diff != "" {
				t.Errorf("heads (-want +got):\n%s", diff)
			}
			if b.Has(second) {
				t.Error("a fetch of depth 1 brought the parent too")
			}
			fourth := commit(t, b, third, map[string]string{"from/b.txt": "b\n"})
			push(t, b, "main", third, fourth)
			if diff := cmp.Diff(gitrepo.Heads{Old: third, New: fourth}, fetch(t, a, "main", gitrepo.AllNew)); diff != "" {
				t.Errorf("heads (-want +got):\n%s", diff)
			}
			fsck(t, dir)
			if got := gitRun(t, dir, "ls-tree", "-r", "--name-only", "main"); got != "a/b/c.txt\na/b/d.txt\nfrom/b.txt" {
				t.Errorf("files: %s", got)
			}
			if got := gitRun(t, dir, "rev-list", "--count", "main"); got != "4" {
				t.Errorf("%s commits, want 4", got)
			}
		})
	}
}

func TestAStaleOldIsAMovedErrorAndWritesNothing(t *testing.T) {
	dir := bare(t)
	a, b := open(t, dir, gitrepo.Options{}), open(t, dir, gitrepo.Options{})
	base := commit(t, a, gitrepo.Hash{}, map[string]string{"f": "0"})
	push(t, a, "main", gitrepo.Hash{}, base)
	fetch(t, b, "main", 1)
	theirs := commit(t, a, base, map[string]string{"f": "a"})
	push(t, a, "main", base, theirs)

	ours := commit(t, b, base, map[string]string{"f": "b"})
	err := b.Push(context.Background(), "main", base, ours)
	var moved *gitrepo.MovedError
	if !errors.As(err, &moved) || moved.At != theirs || moved.Want != base {
		t.Fatalf("push from a stale base: %v", err)
	}
	err = b.Push(context.Background(), "main", gitrepo.Hash{}, ours)
	if !errors.As(err, &moved) || moved.At != theirs {
		t.Fatalf("creation of a branch that exists: %v", err)
	}
	gitRun(t, dir, "update-ref", "-d", "refs/heads/main")
	err = b.Push(context.Background(), "main", base, ours)
	if !errors.As(err, &moved) || !moved.At.IsZero() || !strings.Contains(err.Error(), "branch main is missing") {
		t.Fatalf("push to a branch that is gone: %v", err)
	}
}

func TestAPushWhoseAnswerWasLostCountsAsPushed(t *testing.T) {
	dir := bare(t)
	a := open(t, dir, gitrepo.Options{})
	base := commit(t, a, gitrepo.Hash{}, map[string]string{"f": "0"})
	push(t, a, "main", gitrepo.Hash{}, base)
	next := commit(t, a, base, map[string]string{"f": "1"})
	push(t, a, "main", base, next)
	push(t, a, "main", base, next) // as if the first had failed on the way back
}

func TestARefusingHookIsRetryableAndQuoted(t *testing.T) {
	dir := bare(t)
	a := open(t, dir, gitrepo.Options{})
	base := commit(t, a, gitrepo.Hash{}, map[string]string{"f": "0"})
	push(t, a, "main", gitrepo.Hash{}, base)
	hook := filepath.Join(dir, "hooks", "pre-receive")
	if err := os.MkdirAll(filepath.Dir(hook), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(hook, []byte("#!/bin/sh\necho 'not on Fridays' >&2\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	next := commit(t, a, base, map[string]string{"f": "1"})
	err := a.Push(context.Background(), "main", base, next)
	var moved *gitrepo.MovedError
	if !errors.Is(err, gitrepo.ErrUnreachable) || errors.As(err, &moved) {
		t.Fatalf("push against a hook: %v", err)
	}
	if !strings.Contains(err.Error(), "not on Fridays") {
		t.Errorf("the hook's words are not in %q", err)
	}
	if err := os.Remove(hook); err != nil {
		t.Fatal(err)
	}
	push(t, a, "main", base, next)
}

func TestManyWritersOnOneBranchLoseNothing(t *testing.T) {
	dir := bare(t)
	seed := open(t, dir, gitrepo.Options{})
	push(t, seed, "main", gitrepo.Hash{}, commit(t, seed, gitrepo.Hash{}, map[string]string{"README.md": "x"}))
	const writers, each = 4, 4
	var wg sync.WaitGroup
	errs := make(chan error, writers)
	for w := range writers {
		wg.Go(func() {
			r, err := gitrepo.Open(dir, gitrepo.Options{})
			for i := 0; err == nil && i < each; i++ {
				err = appendOne(r, fmt.Sprintf("w%d/%d.txt", w, i))
			}
			errs <- err
		})
	}
	wg.Wait()
	for range writers {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	fsck(t, dir)
	if got := len(strings.Fields(gitRun(t, dir, "ls-tree", "-r", "--name-only", "main"))); got != 1+writers*each {
		t.Errorf("%d files, want %d", got, 1+writers*each)
	}
	if got, want := gitRun(t, dir, "rev-list", "--count", "main"), fmt.Sprint(1+writers*each); got != want {
		t.Errorf("%s commits, want %s", got, want)
	}
}

// appendOne is the loop of every caller: fetch, build on the tip, push, and
// again when the branch has moved.
func appendOne(r *gitrepo.Repo, path string) error {
	for range 200 {
		heads, err := r.Fetch(context.Background(), "main", 1)
		if err != nil {
			return err
		}
		next, err := tryCommit(r, heads.New, map[string]string{path: path})
		if err != nil {
			return err
		}
		err = r.Push(context.Background(), "main", heads.New, next)
		var moved *gitrepo.MovedError
		if err == nil || !errors.As(err, &moved) && !errors.Is(err, gitrepo.ErrUnreachable) {
			return err
		}
	}
	return errors.New("no push won")
}

func TestFetchSaysWhatIsWrong(t *testing.T) {
	dir := bare(t)
	root := filepath.Dir(dir)
	seed := open(t, dir, gitrepo.Options{})
	push(t, seed, "main", gitrepo.Hash{}, commit(t, seed, gitrepo.Hash{}, map[string]string{"f": strings.Repeat("0123456789abcdef", 4)}))
	empty := filepath.Join(t.TempDir(), "empty.git")
	if err := gitrepo.InitBare(empty, "main"); err != nil {
		t.Fatal(err)
	}
	url := serve(t, root, "right")
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	for _, tc := range []struct {
		name   string
		ctx    context.Context
		url    string
		branch string
		opts   gitrepo.Options
		want   error
	}{
		{name: "a branch that does not exist", url: dir, branch: "gone", want: gitrepo.ErrBranchMissing},
		{name: "an empty repository", url: empty, want: gitrepo.ErrBranchMissing},
		{name: "a directory that does not exist", url: root + "/nothing.git", want: gitrepo.ErrRepositoryMissing},
		{name: "a server that is not there", url: "http://127.0.0.1:1/x.git", want: gitrepo.ErrUnreachable},
		{name: "a wrong password", url: url + "/remote.git", want: gitrepo.ErrAuth,
			opts: gitrepo.Options{Auth: gitrepo.Static(gitrepo.Token("u", "wrong"))}},
		{name: "a credential that cannot be had", url: dir, want: gitrepo.ErrAuth,
			opts: gitrepo.Options{Auth: func(context.Context) (gitrepo.Auth, error) { return nil, errors.New("no secret") }}},
		{name: "a repository that the server does not have", url: url + "/other.git", want: gitrepo.ErrRepositoryMissing,
			opts: gitrepo.Options{Auth: gitrepo.Static(gitrepo.Token("u", "right"))}},
		{name: "a pack beyond the bound", url: dir, want: gitrepo.ErrTooLarge, opts: gitrepo.Options{MaxPack: 40}},
		{name: "a context that has ended", ctx: canceled, url: dir, want: context.Canceled},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.ctx == nil {
				tc.ctx = context.Background()
			}
			if tc.branch == "" {
				tc.branch = "main"
			}
			_, err := open(t, tc.url, tc.opts).Fetch(tc.ctx, tc.branch, 1)
			if !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
		})
	}
	local, err := gitrepo.OpenDir(dir, gitrepo.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := local.Fetch(context.Background(), "main", 1); !errors.Is(err, gitrepo.ErrNoRemote) || errors.Is(err, gitrepo.ErrUnreachable) {
		t.Errorf("fetch without a remote: %v", err)
	}
	if err := local.Push(context.Background(), "main", gitrepo.Hash{}, gitrepo.Hash{1}); !errors.Is(err, gitrepo.ErrNoRemote) {
		t.Errorf("push without a remote: %v", err)
	}
}

func TestABranchThatVanishesOrIsRewrittenIsReported(t *testing.T) {
	dir := bare(t)
	a, b := open(t, dir, gitrepo.Options{}), open(t, dir, gitrepo.Options{})
	base := commit(t, a, gitrepo.Hash{}, map[string]string{"f": "0"})
	push(t, a, "main", gitrepo.Hash{}, base)
	left := commit(t, a, base, map[string]string{"f": "left"})
	push(t, a, "main", base, left)
	fetch(t, b, "main", gitrepo.AllNew)

	right := commit(t, a, base, map[string]string{"f": "right"})
	push(t, a, "side", gitrepo.Hash{}, right)
	gitRun(t, dir, "update-ref", "refs/heads/main", right.String())
	heads := fetch(t, b, "main", gitrepo.AllNew)
	if diff := cmp.Diff(gitrepo.Heads{Old: left, New: right}, heads); diff != "" {
		t.Errorf("heads (-want +got):\n%s", diff)
	}
	if in, err := b.Contains(heads.New, heads.Old); in || err != nil {
		t.Errorf("the rewritten branch contains the old head: %v %v", in, err)
	}
	if in, err := b.Contains(heads.New, base); !in || err != nil {
		t.Errorf("the rewritten branch contains the base: %v %v", in, err)
	}
	gitRun(t, dir, "update-ref", "-d", "refs/heads/main")
	if _, err := b.Fetch(context.Background(), "main", 1); !errors.Is(err, gitrepo.ErrBranchMissing) {
		t.Errorf("fetch of a vanished branch: %v", err)
	}
	if fsys, err := b.Tree(left); err != nil {
		t.Error(err)
	} else if content, err := fsys.ReadFile("f"); string(content) != "left" {
		t.Errorf("the last good commit cannot be read any more: %q %v", content, err)
	}
}

func TestFetchInDepthOneTwiceKeepsWorking(t *testing.T) {
	dir := bare(t)
	a, b := open(t, dir, gitrepo.Options{}), open(t, dir, gitrepo.Options{})
	at := commit(t, a, gitrepo.Hash{}, map[string]string{"f": "0", "d/g": "0"})
	push(t, a, "main", gitrepo.Hash{}, at)
	for i := range 4 {
		depth := i % 2
		heads := fetch(t, b, "main", depth)
		fsys, err := b.Tree(heads.New)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := fsys.ReadFile("f"); err != nil || string(got) != fmt.Sprint(i) {
			t.Fatalf("round %d: %q %v", i, got, err)
		}
		for range 3 {
			next := commit(t, a, at, map[string]string{"f": fmt.Sprint(i + 1), fmt.Sprintf("n%d", i): at.String()})
			push(t, a, "main", at, next)
			at = next
		}
	}
}

func TestAGraftedTreeOutlivesItsBranch(t *testing.T) {
	dir, other := bare(t), bare(t)
	specs := open(t, dir, gitrepo.Options{})
	spec := commit(t, specs, gitrepo.Hash{}, map[string]string{"clusters/a/fleet.cue": "x", "shared/base.cue": "y"})
	push(t, specs, "main", gitrepo.Hash{}, spec)
	reader := open(t, dir, gitrepo.Options{})
	fetch(t, reader, "main", 1)
	gitRun(t, dir, "update-ref", "-d", "refs/heads/main")
	gitRun(t, dir, "gc", "--prune=now", "--quiet")
	tree, err := reader.TreeID(spec)
	if err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{dir, other} {
		ledger := open(t, to, gitrepo.Options{})
		n, err := ledger.Copy(reader, tree)
		if err != nil || n != 6 {
			t.Fatalf("copied %d objects, want 6: %v", n, err)
		}
		if n, err := ledger.Copy(reader, tree); n != 0 || err != nil {
			t.Errorf("the second copy stored %d objects: %v", n, err)
		}
		if _, err := ledger.Copy(ledger, tree); err != nil {
			t.Error(err)
		}
		ed, err := ledger.Edit(gitrepo.Hash{})
		if err != nil {
			t.Fatal(err)
		}
		if err := ed.Graft("inputs/fleet", tree); err != nil {
			t.Fatal(err)
		}
		root, err := ed.Write()
		if err != nil {
			t.Fatal(err)
		}
		head, err := ledger.WriteCommit(gitrepo.Commit{Tree: root, Message: "Graft\n"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		push(t, ledger, "reeve/a", gitrepo.Hash{}, head)
		if got := gitRun(t, to, "rev-parse", "reeve/a:inputs/fleet"); got != tree.String() {
			t.Errorf("the fleet's tree is %s, want %s", got, tree)
		}
		if got := gitRun(t, to, "show", "reeve/a:inputs/fleet/shared/base.cue"); got != "y" {
			t.Errorf("content %q", got)
		}
	}
	if _, err := specs.Copy(reader, gitrepo.Hash{9}); !errors.Is(err, gitrepo.ErrNotFound) {
		t.Errorf("copy of what is not there: %v", err)
	}
	if _, err := specs.Copy(specs, gitrepo.Hash{9}); !errors.Is(err, gitrepo.ErrNotFound) {
		t.Errorf("copy of what is not there: %v", err)
	}
}

func TestForgetKeepsPushingPossible(t *testing.T) {
	dir := bare(t)
	r := open(t, dir, gitrepo.Options{})
	at := commit(t, r, gitrepo.Hash{}, map[string]string{"keep/a": "a", "drop/b": "b", "drop/deep/c": "c"})
	push(t, r, "main", gitrepo.Hash{}, at)
	second := commit(t, r, at, map[string]string{"drop/d": "d"})
	push(t, r, "main", at, second)
	if err := r.Forget([]gitrepo.Hash{second}, func(p string) bool { return strings.HasPrefix(p, "keep/") }); err != nil {
		t.Fatal(err)
	}
	fsys, err := r.Tree(second)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := fsys.ReadFile("keep/a"); string(b) != "a" {
		t.Errorf("keep/a: %q %v", b, err)
	}
	if _, err := fsys.ReadFile("drop/b"); !errors.Is(err, gitrepo.ErrNotFound) {
		t.Errorf("drop/b was not forgotten: %v", err)
	}
	if r.Has(at) {
		t.Error("the older commit was not forgotten")
	}
	// The forgotten directory moves and a forgotten file is put back under a
	// new name: neither can be sent, and neither needs to be.
	drop, err := r.Entry(mustTree(t, r, second), "drop")
	if err != nil {
		t.Fatal(err)
	}
	ed, err := r.Edit(mustTree(t, r, second))
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{ed.Graft("copy/of", drop.Hash), ed.Set("drop/b", []byte("changed"))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	tree, err := ed.Write()
	if err != nil {
		t.Fatal(err)
	}
	third, err := r.WriteCommit(gitrepo.Commit{Tree: tree, Parents: []gitrepo.Hash{second}, Message: "Move\n"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	push(t, r, "main", second, third)
	fsck(t, dir)
	if got := gitRun(t, dir, "show", "main:copy/of/b"); got != "b" {
		t.Errorf("copy/of/b is %q", got)
	}
	if _, err := r.Fetch(context.Background(), "main", 1); err != nil {
		t.Error(err)
	}
	err = r.Push(context.Background(), "again", gitrepo.Hash{}, third)
	if err != nil {
		t.Errorf("a branch at a commit that the remote has needs no objects: %v", err)
	}
	other := open(t, bare(t), gitrepo.Options{})
	if _, err := other.Copy(r, tree); !errors.Is(err, gitrepo.ErrNotFound) {
		t.Errorf("copy of forgotten objects: %v", err)
	}
}

func mustTree(t testing.TB, r *gitrepo.Repo, commit gitrepo.Hash) gitrepo.Hash {
	t.Helper()
	h, err := r.TreeID(commit)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestAShallowHistoryCannotMakeABranchElsewhere(t *testing.T) {
	dir, other := bare(t), bare(t)
	a := open(t, dir, gitrepo.Options{})
	base := commit(t, a, gitrepo.Hash{}, map[string]string{"f": "0"})
	next := commit(t, a, base, map[string]string{"f": "1"})
	push(t, a, "main", gitrepo.Hash{}, next)
	store := filepath.Join(t.TempDir(), "store.git")
	fetch(t, open(t, dir, gitrepo.Options{Dir: store}), "main", 1)
	b := open(t, other, gitrepo.Options{Dir: store})
	err := b.Push(context.Background(), "main", gitrepo.Hash{}, next)
	if !errors.Is(err, gitrepo.ErrIncomplete) {
		t.Errorf("push of a shallow history to an empty repository: %v", err)
	}
}

func TestNamesNeverShowAPassword(t *testing.T) {
	for in, want := range map[string]string{
		"https://u:p@host/x.git":   "https://host/x.git",
		"https://u:p/w@host/x.git": "https://host/x.git",
		"https://host":             "https://host",
		"git@host:x.git":           "git@host:x.git",
		"/srv/x.git":               "/srv/x.git",
	} {
		r, err := gitrepo.Open(in, gitrepo.Options{})
		if err != nil {
			if strings.Contains(err.Error(), "u:p") {
				t.Errorf("%s: %v", in, err)
			}
			continue
		}
		if r.Name() != want {
			t.Errorf("name of %s is %s, want %s", in, r.Name(), want)
		}
	}
	if _, err := gitrepo.Open("https://u:p@[bad", gitrepo.Options{}); err == nil || strings.Contains(err.Error(), "u:p") {
		t.Errorf("error of a broken URL: %v", err)
	}
}
