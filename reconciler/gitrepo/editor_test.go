package gitrepo_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reeve-project/reeve/reconciler/gitrepo"
)

func write(t testing.TB, ed *gitrepo.Editor) gitrepo.Hash {
	t.Helper()
	h, err := ed.Write()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func edit(t testing.TB, r *gitrepo.Repo, tree gitrepo.Hash) *gitrepo.Editor {
	t.Helper()
	ed, err := r.Edit(tree)
	if err != nil {
		t.Fatal(err)
	}
	return ed
}

func contents(t testing.TB, r *gitrepo.Repo, tree gitrepo.Hash) map[string]string {
	t.Helper()
	out := map[string]string{}
	fsys := r.FS(tree)
	err := fs.WalkDir(fsys, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := fsys.ReadFile(path)
		out[path] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestRandomEditsGiveTheTreeOfTheSameFilesWrittenAtOnce(t *testing.T) {
	r := open(t, bare(t), gitrepo.Options{})
	rnd := rand.New(rand.NewPCG(1, 2))
	ed := edit(t, r, gitrepo.Hash{})
	want := map[string]string{}
	names := []string{"a", "a.b", "a-", "b"}
	for range 400 {
		path := "d" + names[rnd.IntN(4)] + "/" + names[rnd.IntN(4)] + "x/" + names[rnd.IntN(4)]
		switch rnd.IntN(4) {
		case 0:
			if err := ed.Remove(path); err != nil {
				t.Fatal(err)
			}
			delete(want, path)
		case 1:
			dir, _, _ := strings.Cut(path, "/")
			if err := ed.Remove(dir); err != nil {
				t.Fatal(err)
			}
			maps.DeleteFunc(want, func(p, _ string) bool { return strings.HasPrefix(p, dir+"/") })
		default:
			want[path] = fmt.Sprint(rnd.IntN(3))
			if err := ed.Set(path, []byte(want[path])); err != nil {
				t.Fatal(err)
			}
		}
		tree := write(t, ed)
		if rnd.IntN(10) == 0 {
			ed = edit(t, r, tree)
		}
		fresh := edit(t, r, gitrepo.Hash{})
		for _, p := range slices.Sorted(maps.Keys(want)) {
			if err := fresh.Set(p, []byte(want[p])); err != nil {
				t.Fatal(err)
			}
		}
		if all := write(t, fresh); all != tree {
			t.Fatalf("edited tree %v, want %v", contents(t, r, tree), want)
		}
	}
	if diff := cmp.Diff(want, contents(t, r, write(t, ed))); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestAnEditReadsOnlyWhatItTouches(t *testing.T) {
	dir := bare(t)
	r, err := gitrepo.OpenDir(dir, gitrepo.Options{})
	if err != nil {
		t.Fatal(err)
	}
	// The directory "closed" is an object that does not exist.
	root, err := gitrepo.ParseHash(rawTree(t, dir, [3]string{"40000", "closed", strings.Repeat("1a", 20)}))
	if err != nil {
		t.Fatal(err)
	}
	ed := edit(t, r, root)
	if err := ed.Set("open/file", []byte("x")); err != nil {
		t.Fatal(err)
	}
	if entries, err := r.Entries(write(t, ed)); err != nil || len(entries) != 2 {
		t.Errorf("%v %v", entries, err)
	}
	if err := ed.Set("closed/file", nil); !errors.Is(err, gitrepo.ErrNotFound) {
		t.Errorf("an edit below a missing directory: %v", err)
	}
	if err := ed.Remove("closed/file"); !errors.Is(err, gitrepo.ErrNotFound) {
		t.Errorf("a removal below a missing directory: %v", err)
	}
	if _, err := ed.List("closed"); !errors.Is(err, gitrepo.ErrNotFound) {
		t.Errorf("a listing of a missing directory: %v", err)
	}
}

func TestEditorRefusesWhatATreeCannotHold(t *testing.T) {
	r := open(t, bare(t), gitrepo.Options{})
	ed := edit(t, r, gitrepo.Hash{})
	if err := ed.Set("d/f", []byte("x")); err != nil {
		t.Fatal(err)
	}
	before := write(t, ed)
	for _, path := range []string{"", "/a", "a//b", "a/../b", ".git/config", "a\x00b", "d", "d/f/g", strings.Repeat("d/", 200) + "f"} {
		if err := ed.Set(path, nil); err == nil {
			t.Errorf("%q was set", path)
		}
	}
	if err := ed.Graft("d/f", before); err == nil {
		t.Error("a directory replaced a file")
	}
	if _, _, err := ed.Read("../x"); !errors.Is(err, gitrepo.ErrName) {
		t.Errorf("read: %v", err)
	}
	if _, err := ed.List("../x"); !errors.Is(err, gitrepo.ErrName) {
		t.Errorf("list: %v", err)
	}
	if err := ed.Remove("../x"); !errors.Is(err, gitrepo.ErrName) {
		t.Errorf("remove: %v", err)
	}
	for _, path := range []string{"x", "d/x", "x/y/z", "d/f/g"} {
		if err := ed.Remove(path); err != nil {
			t.Errorf("removal of %s, which is not there: %v", path, err)
		}
	}
	if after := write(t, ed); after != before {
		t.Errorf("refused edits changed the tree: %v", contents(t, r, after))
	}
	if b, ok, err := ed.Read("d/f"); string(b) != "x" || !ok || err != nil {
		t.Errorf("read: %q %v %v", b, ok, err)
	}
	for _, path := range []string{"d", "d/g", "x/y", "d/f/g"} {
		if _, ok, err := ed.Read(path); ok || err != nil {
			t.Errorf("read of %s: %v %v", path, ok, err)
		}
	}
	if list, err := ed.List("nothing/here"); list != nil || err != nil {
		t.Errorf("list: %v %v", list, err)
	}
	if list, err := ed.List("."); len(list) != 1 || err != nil {
		t.Errorf("list: %v %v", list, err)
	}
}

func TestEqualInputGivesEqualCommits(t *testing.T) {
	var ids []gitrepo.Hash
	for _, opts := range []gitrepo.Options{{}, {Dir: filepath.Join(t.TempDir(), "x.git")}} {
		r := open(t, bare(t), opts)
		ids = append(ids, commit(t, r, commit(t, r, gitrepo.Hash{}, map[string]string{"a": "1", "b": "2"}), map[string]string{"c/d": "3"}))
	}
	if ids[0] != ids[1] {
		t.Errorf("commits %v", ids)
	}
}

type fakeSigner struct{ saw []byte }

func (s *fakeSigner) Sign(m io.Reader) ([]byte, error) {
	var err error
	if s.saw, err = io.ReadAll(m); len(s.saw) == 0 {
		return nil, errors.New("nothing to sign")
	}
	return []byte("-----BEGIN SSH SIGNATURE-----\nAAAA\n-----END SSH SIGNATURE-----\n"), err
}

type failingSigner struct{}

func (failingSigner) Sign(io.Reader) ([]byte, error) { return nil, errors.New("no key") }

func TestACommitCanBeSigned(t *testing.T) {
	dir := bare(t)
	r := open(t, dir, gitrepo.Options{})
	tree := mustTree(t, r, commit(t, r, gitrepo.Hash{}, map[string]string{"f": "x"}))
	who := gitrepo.Signature{Name: "Re<e>ve\n", Email: " r@example.com ", When: when}
	c := gitrepo.Commit{Tree: tree, Author: who, Committer: who, Message: "Sign this\n\nBody.\n"}
	s := &fakeSigner{}
	signed, err := r.WriteCommit(c, s)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(s.saw, []byte("tree "+tree.String()+"\nauthor Reeve <r@example.com> 1775478242 +0000\n")) {
		t.Errorf("the signer saw %q", s.saw)
	}
	got, err := r.ReadCommit(signed)
	if err != nil {
		t.Fatal(err)
	}
	if got.Subject() != "Sign this" || !strings.HasPrefix(got.Signed, "-----BEGIN SSH SIGNATURE-----") || !got.Author.When.Equal(when.Truncate(1e9)) {
		t.Errorf("read back %+v", got)
	}
	push(t, r, "main", gitrepo.Hash{}, signed)
	fsck(t, dir)
	if raw := gitRun(t, dir, "cat-file", "commit", "main"); !strings.Contains(raw, "gpgsig -----BEGIN SSH SIGNATURE-----\n AAAA\n") {
		t.Errorf("commit %s", raw)
	}
	if _, err := r.WriteCommit(c, failingSigner{}); err == nil || !strings.Contains(err.Error(), "no key") {
		t.Errorf("a signer that fails: %v", err)
	}
}

func TestRevisionsAreResolvedAsGitDoes(t *testing.T) {
	dir := bare(t)
	r := open(t, dir, gitrepo.Options{})
	first := commit(t, r, gitrepo.Hash{}, map[string]string{"f": "1"})
	head := commit(t, r, first, map[string]string{"f": "2"})
	push(t, r, "main", gitrepo.Hash{}, head)
	push(t, r, "reeve/a", gitrepo.Hash{}, first)
	gitRun(t, dir, "tag", "light", "main")
	gitRun(t, dir, "tag", "-a", "-m", "x", "heavy", "main~1")
	gitRun(t, dir, "pack-refs", "--all")
	gitRun(t, dir, "gc", "--quiet")

	local, err := gitrepo.OpenDir(dir, gitrepo.Options{})
	if err != nil {
		t.Fatal(err)
	}
	fetched := open(t, dir, gitrepo.Options{})
	if err := fetched.FetchAll(context.Background()); err != nil {
		t.Fatal(err)
	}
	for name, repo := range map[string]*gitrepo.Repo{"on disk": local, "fetched": fetched} {
		t.Run(name, func(t *testing.T) {
			for rev, want := range map[string]gitrepo.Hash{
				"main": head, "reeve/a": first, "light": head, "heavy": first, "refs/tags/heavy": first, "tags/light": head,
				head.String(): head, head.String()[:7]: head, strings.ToUpper(first.String()[:8]): first,
				"main~1": first, "main^": first, "light~0": head, "main^^": {}, "main~99999999": {}, "main^2": {}, "main~-1": {},
				"": {}, "nothing": {}, "abc": {}, "zzzz": {}, "../main": {}, "refs/../HEAD": {}, "config": {},
				strings.Repeat("1a", 20): {}, "1a1a": {}, mustTree(t, r, head).String(): {},
			} {
				got, err := repo.Resolve(rev)
				if got != want || (err != nil) != want.IsZero() {
					t.Errorf("%q is %s %v, want %s", rev, got, err, want)
				}
			}
		})
	}
	if got, err := local.Resolve("HEAD"); got != head || err != nil {
		t.Errorf("HEAD is %s %v", got, err)
	}
}

func TestOpenDirFindsTheRepositoryFromInside(t *testing.T) {
	dir, work := bare(t), filepath.Join(t.TempDir(), "work")
	r := open(t, dir, gitrepo.Options{})
	head := commit(t, r, gitrepo.Hash{}, map[string]string{"sub/f": "1"})
	push(t, r, "main", gitrepo.Hash{}, head)
	gitRun(t, ".", "clone", "--quiet", dir, work)
	gitRun(t, work, "worktree", "add", "--quiet", "-b", "side", work+"-linked")
	for _, d := range []string{work, filepath.Join(work, "sub"), work + "-linked"} {
		local, err := gitrepo.OpenDir(d, gitrepo.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, rev := range []string{"HEAD", "main", "origin/main"} {
			if got, err := local.Resolve(rev); got != head || err != nil {
				t.Errorf("%s in %s is %s %v", rev, d, got, err)
			}
		}
	}
	if _, err := gitrepo.OpenDir(t.TempDir(), gitrepo.Options{}); !errors.Is(err, gitrepo.ErrRepositoryMissing) {
		t.Errorf("a directory without a repository: %v", err)
	}
	if err := gitrepo.InitBare(t.TempDir(), "bad..name"); err == nil {
		t.Error("a branch name that Git does not accept was taken")
	}
	if err := gitrepo.InitBare(dir, "main"); err == nil {
		t.Error("a repository was made over another")
	}
	if _, err := gitrepo.ParseHash("main"); err == nil {
		t.Error("a name was taken as an id")
	}
}

func TestHistoryAndChanges(t *testing.T) {
	r := open(t, bare(t), gitrepo.Options{})
	a := commit(t, r, gitrepo.Hash{}, map[string]string{"keep/f": "1", "swap": "file", "old": "x"})
	b := commit(t, r, a, map[string]string{"keep/g": "2"}, "old", "swap")
	b = commit(t, r, b, map[string]string{"swap/in": "dir"})
	var seen []gitrepo.Hash
	if err := r.History(b, func(c gitrepo.Commit) error { seen = append(seen, c.Hash); return nil }); err != nil || len(seen) != 3 || seen[2] != a {
		t.Errorf("history %v %v", seen, err)
	}
	n := 0
	if err := r.History(b, func(gitrepo.Commit) error { n++; return fs.SkipAll }); err != nil || n != 1 {
		t.Errorf("the walk did not stop: %d %v", n, err)
	}
	boom := errors.New("boom")
	if err := r.History(b, func(gitrepo.Commit) error { return boom }); !errors.Is(err, boom) {
		t.Errorf("history: %v", err)
	}
	if err := r.History(gitrepo.Hash{3}, nil); !errors.Is(err, gitrepo.ErrNotFound) {
		t.Errorf("history of nothing: %v", err)
	}
	if _, err := r.Contains(gitrepo.Hash{3}, a); !errors.Is(err, gitrepo.ErrNotFound) {
		t.Errorf("contains in nothing: %v", err)
	}
	changes, err := r.Changes(mustTree(t, r, a), mustTree(t, r, b))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range changes {
		got = append(got, fmt.Sprintf("%s %v %v", c.Path, !c.From.Hash.IsZero(), !c.To.Hash.IsZero()))
	}
	if diff := cmp.Diff([]string{"keep/g false true", "old true false", "swap true false", "swap/in false true"}, got); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if e, err := r.Entry(mustTree(t, r, b), "swap/in"); err != nil || e.Kind != gitrepo.File {
		t.Errorf("entry %v %v", e, err)
	}
	if e, err := r.Entry(mustTree(t, r, b), "."); err != nil || e.Kind != gitrepo.Dir {
		t.Errorf("entry %v %v", e, err)
	}
	for _, path := range []string{"swap/out", "keep/f/x", "nothing"} {
		if _, err := r.Entry(mustTree(t, r, b), path); !errors.Is(err, gitrepo.ErrNotFound) {
			t.Errorf("entry %s: %v", path, err)
		}
	}
}

func TestSSHKeysNeedAKnownHost(t *testing.T) {
	if _, err := gitrepo.SSHKey("", []byte("not a key"), ""); err == nil || !strings.Contains(err.Error(), "ssh key") {
		t.Errorf("a broken key: %v", err)
	}
}

func BenchmarkAppend(b *testing.B) {
	r := open(b, b.TempDir(), gitrepo.Options{})
	ed := edit(b, r, gitrepo.Hash{})
	for i := range 500 {
		if err := ed.Set(fmt.Sprintf("state/nodes/default-%05d.json", i), []byte(strings.Repeat("x", 1000))); err != nil {
			b.Fatal(err)
		}
	}
	var parents []gitrepo.Hash
	for i := 0; b.Loop(); i++ {
		if err := ed.Set(fmt.Sprintf("decisions/2026-04-06/12.%04d/%09d.json", i/256, i), []byte(fmt.Sprint(i))); err != nil {
			b.Fatal(err)
		}
		if err := ed.Set(fmt.Sprintf("state/nodes/default-%05d.json", i%500), []byte(fmt.Sprint(i))); err != nil {
			b.Fatal(err)
		}
		h, err := r.WriteCommit(gitrepo.Commit{Tree: write(b, ed), Parents: parents, Message: "x\n"}, nil)
		if err != nil {
			b.Fatal(err)
		}
		parents = []gitrepo.Hash{h}
	}
}
