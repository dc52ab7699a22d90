package gitrepo_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/reeve-project/reeve/reconciler/gitrepo"
)

// rawTree writes a tree object with any entries, as a hostile push could.
func rawTree(t testing.TB, dir string, entries ...[3]string) string {
	t.Helper()
	var b bytes.Buffer
	for _, e := range entries {
		id, err := hex.DecodeString(e[2])
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %s\x00%s", e[0], e[1], id)
	}
	return hashObject(t, dir, "tree", b.String())
}

func hashObject(t testing.TB, dir, kind, content string) string {
	t.Helper()
	cmd := exec.Command("git", "hash-object", "--literally", "-w", "-t", kind, "--stdin")
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(content)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func treeFS(t testing.TB, dir, tree string, opts gitrepo.Options) *gitrepo.FS {
	t.Helper()
	r, err := gitrepo.OpenDir(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	h, err := gitrepo.ParseHash(tree)
	if err != nil {
		t.Fatal(err)
	}
	return r.FS(h)
}

func TestATreeIsAFileSystem(t *testing.T) {
	for name, opts := range map[string]gitrepo.Options{"in memory": {}, "on disk": {Dir: filepath.Join(t.TempDir(), "x.git")}} {
		t.Run(name, func(t *testing.T) {
			r := open(t, bare(t), opts)
			h := commit(t, r, gitrepo.Hash{}, map[string]string{
				"a": "1", "a.b": "2", "a-b/c": "3", "ab/d/e": "4", "ab/d/f": "", "ü/ß.txt": "5",
			})
			fsys, err := r.Tree(h)
			if err != nil {
				t.Fatal(err)
			}
			if err := fstest.TestFS(fsys, "a", "a.b", "a-b/c", "ab/d/e", "ab/d/f", "ü/ß.txt"); err != nil {
				t.Error(err)
			}
			info, err := fsys.Stat("a-b/c")
			if err != nil || info.Size() != 1 || info.Sys().(gitrepo.Hash).IsZero() {
				t.Errorf("stat: %v %v", info, err)
			}
			if fsys.TreeID() != mustTree(t, r, h) {
				t.Error("TreeID is not the commit's tree")
			}
		})
	}
}

func TestLinksAreListedAndRefusedByName(t *testing.T) {
	dir := bare(t)
	blob := hashObject(t, dir, "blob", "../../etc/passwd")
	sub := rawTree(t, dir, [3]string{"100755", "run.sh", blob})
	tree := rawTree(t, dir,
		[3]string{"40000", "dir", sub},
		[3]string{"120000", "link", blob},
		[3]string{"160000", "module", strings.Repeat("1a", 20)})
	fsys := treeFS(t, dir, tree, gitrepo.Options{})
	entries, err := fsys.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprint(e, " ", info.Mode()))
	}
	want := []string{"d dir/ dr-xr-xr-x", "L link Lr--r--r--", "? module ?r--r--r--"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("listing (-want +got):\n%s", diff)
	}
	for path, want := range map[string]error{
		"link": gitrepo.ErrSymlink, "link/x": gitrepo.ErrSymlink,
		"module": gitrepo.ErrSubmodule, "module/fleet.cue": gitrepo.ErrSubmodule,
	} {
		for op, err := range map[string]error{"read": second(fsys.ReadFile(path)), "open": second(fsys.Open(path))} {
			var pe *fs.PathError
			if !errors.Is(err, want) || !errors.As(err, &pe) || !strings.HasPrefix(path, pe.Path) {
				t.Errorf("%s %s: %v, want %v with the path", op, path, err, want)
			}
		}
	}
	irregular, err := fsys.Irregular(".")
	if diff := cmp.Diff([]string{"link", "module"}, irregular); diff != "" || err != nil {
		t.Errorf("irregular (-want +got):\n%s %v", diff, err)
	}
	if info, err := fsys.Stat("dir/run.sh"); err != nil || info.Mode() != 0o555 {
		t.Errorf("an executable: %v %v", info, err)
	}
}

func second[T any](_ T, err error) error { return err }

func TestOddNamesAreRefused(t *testing.T) {
	dir := bare(t)
	blob := hashObject(t, dir, "blob", "x")
	for _, name := range []string{
		"..", ".", ".git", ".GIT", "a\\b", "a/b", "/etc", "new\nline", "tab\tbed", "del\x7f", "bad\xffutf8", "c1\u0085", strings.Repeat("n", 256),
	} {
		t.Run(fmt.Sprintf("%.20q", name), func(t *testing.T) {
			odd := rawTree(t, dir, [3]string{"100644", name, blob})
			tree := rawTree(t, dir, [3]string{"40000", "odd", odd}, [3]string{"100644", "plain", blob})
			fsys := treeFS(t, dir, tree, gitrepo.Options{})
			for _, err := range []error{
				second(fsys.ReadDir("odd")), second(fsys.Open("odd")), second(fsys.ReadFile("odd/x")), second(fsys.Irregular(".")),
			} {
				if !errors.Is(err, gitrepo.ErrName) || !strings.Contains(err.Error(), "odd") {
					t.Errorf("got %v, want a refusal that names the directory", err)
				}
			}
			if b, err := fsys.ReadFile("plain"); string(b) != "x" || err != nil {
				t.Errorf("other directories cannot be read any more: %q %v", b, err)
			}
		})
	}
}

func TestABrokenTreeIsAnError(t *testing.T) {
	dir := bare(t)
	blob := hashObject(t, dir, "blob", "x")
	for name, tree := range map[string]string{
		"the same name twice":        rawTree(t, dir, [3]string{"100644", "a", blob}, [3]string{"100644", "a", blob}),
		"out of order":               rawTree(t, dir, [3]string{"100644", "b", blob}, [3]string{"100644", "a", blob}),
		"a file and a directory":     rawTree(t, dir, [3]string{"100644", "a", blob}, [3]string{"40000", "a", blob}),
		"a mode that does not exist": rawTree(t, dir, [3]string{"100", "a", blob}),
		"a mode that is no number":   rawTree(t, dir, [3]string{"rw", "a", blob}),
		"cut off":                    hashObject(t, dir, "tree", "100644 a\x00short"),
		"not a tree at all":          hashObject(t, dir, "tree", "hello"),
		"a blob instead of a tree":   blob,
		"an object that is missing":  strings.Repeat("1a", 20),
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := treeFS(t, dir, tree, gitrepo.Options{}).ReadDir("."); err == nil {
				t.Errorf("listed as %v", got)
			}
		})
	}
}

func TestBoundsEndEveryWalk(t *testing.T) {
	dir := bare(t)
	blob := hashObject(t, dir, "blob", strings.Repeat("x", 1000))
	leaf := rawTree(t, dir, [3]string{"100644", "f", blob})
	bomb := leaf
	for range 10 { // 10^10 files in eleven objects
		var entries [][3]string
		for i := range 10 {
			entries = append(entries, [3]string{"40000", fmt.Sprint(i), bomb})
		}
		bomb = rawTree(t, dir, entries...)
	}
	deep := leaf
	for range 150 {
		deep = rawTree(t, dir, [3]string{"40000", "d", deep})
	}
	for name, tree := range map[string]string{"a tree that repeats itself": bomb, "a tree that is too deep": deep} {
		t.Run(name, func(t *testing.T) {
			fsys := treeFS(t, dir, tree, gitrepo.Options{MaxFiles: 1000})
			if _, err := fsys.Irregular("."); !errors.Is(err, gitrepo.ErrTooLarge) {
				t.Errorf("walk: %v", err)
			}
			r, err := gitrepo.OpenDir(dir, gitrepo.Options{MaxFiles: 1000})
			if err != nil {
				t.Fatal(err)
			}
			h, _ := gitrepo.ParseHash(tree)
			if _, err := r.Changes(gitrepo.Hash{}, h); !errors.Is(err, gitrepo.ErrTooLarge) {
				t.Errorf("changes: %v", err)
			}
			_, err = open(t, dir, gitrepo.Options{}).Copy(r, h)
			if want := tree == deep; errors.Is(err, gitrepo.ErrTooLarge) != want {
				t.Errorf("copy: %v", err)
			}
		})
	}
	small := treeFS(t, dir, leaf, gitrepo.Options{MaxFileSize: 999})
	if _, err := small.ReadFile("f"); !errors.Is(err, gitrepo.ErrTooLarge) || !strings.Contains(err.Error(), "read f") {
		t.Errorf("a file beyond the bound: %v", err)
	}
	exact := treeFS(t, dir, leaf, gitrepo.Options{MaxFileSize: 1000})
	if b, err := exact.ReadFile("f"); len(b) != 1000 || err != nil {
		t.Errorf("a file at the bound: %d bytes, %v", len(b), err)
	}
}

func TestPathsThatDoNotFit(t *testing.T) {
	r := open(t, bare(t), gitrepo.Options{})
	fsys, err := r.Tree(commit(t, r, gitrepo.Hash{}, map[string]string{"d/f": "x"}))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]error{"../d": fs.ErrInvalid, "/d": fs.ErrInvalid, "": fs.ErrInvalid, "d/g": fs.ErrNotExist, "d/f/g": fs.ErrNotExist} {
		if _, err := fsys.Open(path); !errors.Is(err, want) {
			t.Errorf("open %q: %v, want %v", path, err, want)
		}
	}
	if _, err := fsys.ReadDir("d/f"); err == nil {
		t.Error("a file was listed")
	}
	if _, err := fsys.ReadFile("d"); err == nil {
		t.Error("a directory was read")
	}
	d, err := fsys.Open("d")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Read(make([]byte, 1)); err == nil {
		t.Error("an open directory was read")
	}
	rd := d.(fs.ReadDirFile)
	if e, err := rd.ReadDir(5); len(e) != 1 || err != nil {
		t.Errorf("%v %v", e, err)
	}
	if e, err := rd.ReadDir(1); len(e) != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("%v %v", e, err)
	}
	if _, err := r.Tree(gitrepo.Hash{7}); !errors.Is(err, gitrepo.ErrNotFound) {
		t.Errorf("tree of a commit that is not here: %v", err)
	}
}
