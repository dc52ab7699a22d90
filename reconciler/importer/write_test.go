package importer

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// put writes files below a directory.
func put(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWritingLeavesAloneWhatSomebodyWrote(t *testing.T) {
	const dir = "clusters/blue/"
	fresh := map[string][]byte{
		dir + "cluster.cue": []byte("settings"), dir + "policy.cue": []byte("policy"),
		dir + "nodepools.cue": []byte("example pools"), dir + "nodeclasses.cue": []byte("example classes"), "cue.mod/module.cue": []byte("module"),
	}
	tests := []struct {
		name    string
		before  map[string]string
		force   bool
		written []string
		refused bool
	}{
		{"a cluster that does not exist is made", nil, false, []string{dir + "cluster.cue", dir + "nodeclasses.cue", dir + "nodepools.cue", dir + "policy.cue"}, false},
		{"settings stay", map[string]string{dir + "cluster.cue": "mine", dir + "policy.cue": "mine"}, false, []string{dir + "nodeclasses.cue", dir + "nodepools.cue"}, false},
		{"examples go", map[string]string{dir + "cluster.cue": "mine", dir + "policy.cue": "mine", dir + "nodepools.cue": "example pools", dir + "nodeclasses.cue": "example classes"}, false, []string{dir + "nodeclasses.cue", dir + "nodepools.cue"}, false},
		{"edited files of the other kind stay", map[string]string{dir + "cluster.cue": "mine", dir + "policy.cue": "mine", dir + "nodeclasses.cue": "edited"}, false, []string{dir + "nodepools.cue"}, false},
		{"edited files of the kind are refused", map[string]string{dir + "nodepools.cue": "edited"}, false, nil, true},
		{"edited files of the kind go by force", map[string]string{dir + "cluster.cue": "mine", dir + "policy.cue": "mine", dir + "nodepools.cue": "edited", dir + "nodeclasses.cue": "edited"}, true, []string{dir + "nodepools.cue"}, false},
		{"a file without objects is an example", map[string]string{dir + "cluster.cue": "mine", dir + "policy.cue": "mine", dir + "nodepools.cue": empties[poolFile], dir + "nodeclasses.cue": empties[classFile]}, false, []string{dir + "nodepools.cue"}, false},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			root := t.TempDir()
			put(t, root, tc.before)
			res := Import([]Input{{Name: "in.yaml", Data: []byte(pool("a"))}}, Options{})
			written, err := res.Write(Target{Dir: root, Cluster: "blue", Force: tc.force, Fresh: fresh})
			if errors.Is(err, ErrExists) != tc.refused || (err != nil) != tc.refused {
				t.Fatalf("error %v, refused is to be %v", err, tc.refused)
			}
			if diff := cmp.Diff(tc.written, written); diff != "" {
				t.Errorf("written (-want +got):\n%s", diff)
			}
			for name, text := range tc.before {
				now, err := os.ReadFile(filepath.Join(root, name))
				if err != nil {
					t.Fatal(err)
				}
				changed := string(now) != text
				for _, w := range tc.written {
					changed = changed && w != name
				}
				if changed {
					t.Errorf("%s was %q and is %q", name, text, now)
				}
			}
		})
	}
}

func TestNamesThatOtherFilesUseAreTaken(t *testing.T) {
	root := t.TempDir()
	put(t, root, map[string]string{"clusters/blue/web.cue": "package fleet\n\n_general: {}\nx: _other & {a_b: 1}\n", "clusters/blue/nodepools.cue": "_mine: {}\n"})
	taken, err := Target{Dir: root, Cluster: "blue"}.Taken()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, name := range []string{"_general", "_other", "_mine", "_b"} {
		got[name] = taken(name)
	}
	if diff := cmp.Diff(map[string]bool{"_general": true, "_other": true, "_mine": false, "_b": false}, got); diff != "" {
		t.Errorf("taken (-want +got):\n%s", diff)
	}
	if taken, err := (Target{Dir: root, Cluster: "none"}).Taken(); err != nil || taken("_general") {
		t.Errorf("a cluster that does not exist uses names: %v", err)
	}
}

func TestDirectoriesAreReadInOrder(t *testing.T) {
	root := t.TempDir()
	put(t, root, map[string]string{"b/x.yml": "1", "a.yaml": "2", "c.JSON": "3", "notes.txt": "4", ".git/x.yaml": "5"})
	in, err := Read([]string{root, filepath.Join(root, "notes.txt"), "-"}, strings.NewReader("6"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, i := range in {
		got = append(got, strings.TrimPrefix(i.Name, filepath.ToSlash(root)+"/")+"="+string(i.Data))
	}
	if diff := cmp.Diff([]string{"a.yaml=2", "b/x.yml=1", "c.JSON=3", "notes.txt=4", "-=6"}, got); diff != "" {
		t.Errorf("inputs (-want +got):\n%s", diff)
	}
	if _, err := Read([]string{filepath.Join(root, ".git")}, nil); err != nil {
		t.Errorf("a hidden directory that is named is not read: %v", err)
	}
	if _, err := Read([]string{"-"}, bytes.NewReader(make([]byte, maxInput+1))); err == nil {
		t.Error("an endless input is read to the end")
	}
}

func TestTheReportAsJSON(t *testing.T) {
	res := Import([]Input{{Name: "in.yaml", Data: []byte(pool("a", "wieght: 1"))}}, Options{})
	var b bytes.Buffer
	if err := res.Report.JSON(&b, []File{{Name: "fleet.cue", Text: "x"}}); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"imported": []any{map[string]any{"kind": "NodePool", "name": "a", "version": "karpenter.sh/v1", "from": map[string]any{"file": "in.yaml", "line": 1.0, "column": 1.0}}},
		"entries": []any{map[string]any{
			"class": "lost", "object": "NodePool/a", "field": "spec.wieght", "was": "1", "why": "no field of this name in Karpenter's v1; the API server drops it without a word",
			"position": map[string]any{"file": "in.yaml", "line": 7.0, "column": 3.0},
		}},
		"written": []any{}, "counts": map[string]any{"lost": 1.0}, "files": []any{map[string]any{"name": "fleet.cue", "text": "x"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("JSON (-want +got):\n%s", diff)
	}
}

func TestALinkOfTheRepositoryIsNotFollowed(t *testing.T) {
	for _, link := range []string{"clusters/blue/nodepools.cue", "clusters/blue", "clusters"} {
		t.Run(link, func(t *testing.T) {
			dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "outside")
			if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(link)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(outside, filepath.Join(dir, link)); err != nil {
				t.Fatal(err)
			}
			target := Target{Dir: dir, Cluster: "blue", Force: true}
			if err := target.write("clusters/blue/nodepools.cue", "package fleet\n"); err == nil {
				t.Error("it was written through the link")
			}
			if _, err := os.Lstat(outside); err == nil {
				t.Error("there is a file outside of the repository")
			}
		})
	}
}
