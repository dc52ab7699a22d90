package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/reeve-project/reeve/reconciler/cluster"
)

func asFS(files map[string][]byte) fstest.MapFS {
	out := fstest.MapFS{}
	for name, b := range files {
		out[name] = &fstest.MapFile{Data: b}
	}
	return out
}

// fullSnapshot has every field set.
func fullSnapshot() *cluster.Snapshot {
	s := snapshot(noon.Add(123456789), 3)
	s.Nodes = append(s.Nodes,
		&cluster.Node{Claim: &cluster.Claim{
			Name: "default-abc", NodePool: "default", NodeClass: "default", Created: noon, Decision: "d", Index: 2, Price: 344_000_000,
			Conditions: cluster.Conditions{Launched: true, LaunchedAt: noon.Add(time.Second), LaunchFailed: "x"},
		}, Deleting: true},
		&cluster.Node{Name: strings.Repeat("long.", 50) + "internal", Pods: []*cluster.Pod{pod("odd\"name\\ü", shape("web", 1000))}},
	)
	for i := range 4 {
		s.Recent = append(s.Recent, cluster.Recent{ID: fmt.Sprint(i), Kind: "drift", Time: noon.Add(time.Duration(i) * 7 * time.Minute), Allowed: i%2 == 0, Fingerprint: "f", Nodes: i, Repeats: i})
	}
	s.Nodes[0].Held = []cluster.Hold{{Reason: "Underutilized", Until: noon.Add(time.Hour)}}
	s.Controller = cluster.Controller{Namespace: "kube-system", Pod: "reeve-0", Node: "ip-1"}
	return s.Seal()
}

func TestSnapshotsSurviveTheirFiles(t *testing.T) {
	for _, sharded := range []bool{false, true} {
		want := fullSnapshot()
		files := get(encodeState(want, sharded))(t)
		got, err := decodeState(asFS(files))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("sharded %v (-want +got):\n%s", sharded, diff)
		}
		again := get(encodeState(got, sharded))(t)
		if diff := cmp.Diff(files, again); diff != "" {
			t.Errorf("files changed (-first +again):\n%s", diff)
		}
		depth := 2
		if sharded {
			depth = 3
		}
		for name := range files {
			if strings.HasPrefix(name, "nodes/") && strings.Count(name, "/")+1 != depth {
				t.Errorf("sharded %v: %s", sharded, name)
			}
		}
	}
	empty := &cluster.Snapshot{Time: noon}
	got, err := decodeState(asFS(get(encodeState(empty, false))(t)))
	if diff := cmp.Diff(empty, got, cmpopts.EquateEmpty()); diff != "" || err != nil {
		t.Errorf("empty (-want +got):\n%s %v", diff, err)
	}
}

func TestPodsAreEncodedAsJSONDoes(t *testing.T) {
	for _, p := range []podRecord{
		{}, {Shape: "s", Namespace: "n", Name: "a", UID: "u", Created: noon, Started: noon.Add(5), Terminating: true},
		{Name: "quote\" back\\ <&> tab\t ü \u2028 \xff \x7f"},
	} {
		want := bytes.TrimSuffix(get(encodeJSON(p, ""))(t), []byte("\n"))
		if got := appendPod(nil, p); !bytes.Equal(got, want) {
			t.Errorf("encoded as\n%s, want\n%s", got, want)
		}
	}
}

func TestAChangeTouchesOneFile(t *testing.T) {
	a := get(encodeState(snapshot(noon, 5), false))(t)
	changed := snapshot(noon, 5)
	changed.Nodes[2].Ready = false
	b := get(encodeState(changed, false))(t)
	var differ []string
	for _, name := range slices.Sorted(maps.Keys(b)) {
		if !bytes.Equal(a[name], b[name]) {
			differ = append(differ, name)
		}
	}
	if len(differ) != 1 || !strings.HasPrefix(differ[0], "nodes/ip-10-0-0-2.") {
		t.Errorf("changed files: %v", differ)
	}
}

func TestAStateThatIsNotAsWrittenIsRefused(t *testing.T) {
	files := get(encodeState(fullSnapshot(), false))(t)
	var shapeFile string
	for name := range files {
		if strings.HasPrefix(name, "shapes/web-") {
			shapeFile = name
		}
	}
	for name, change := range map[string]func(fstest.MapFS){
		"no time":                 func(f fstest.MapFS) { delete(f, snapshotFile) },
		"a shape that is missing": func(f fstest.MapFS) { delete(f, shapeFile) },
		"a shape that was changed": func(f fstest.MapFS) {
			f[shapeFile] = &fstest.MapFile{Data: bytes.Replace(files[shapeFile], []byte("web"), []byte("wob"), 1)}
		},
		"a node with unknown fields": func(f fstest.MapFS) { f["nodes/x.json"] = &fstest.MapFile{Data: []byte(`{"colour":"red"}`)} },
		"a node followed by another": func(f fstest.MapFS) { f["nodes/x.json"] = &fstest.MapFile{Data: []byte(`{} {}`)} },
		"a DaemonSet without a shape": func(f fstest.MapFS) {
			f["objects/daemonsets/x.json"] = &fstest.MapFile{Data: []byte(`{"namespace":"n","name":"x","shape":"y"}`)}
		},
		"a class that is no JSON":    func(f fstest.MapFS) { f["objects/nodeclasses/x.json"] = &fstest.MapFile{Data: []byte(`x`)} },
		"pending pods without shape": func(f fstest.MapFS) { f[pendingFile] = &fstest.MapFile{Data: []byte(`[{"shape":"nope"}]`)} },
		"offerings that are no list": func(f fstest.MapFS) { f[unavailableFile] = &fstest.MapFile{Data: []byte(`{}`)} },
		"recents that are no list":   func(f fstest.MapFS) { f[recentDir+"/x.json"] = &fstest.MapFile{Data: []byte(`{}`)} },
	} {
		t.Run(name, func(t *testing.T) {
			f := asFS(files)
			change(f)
			if _, err := decodeState(f); err == nil {
				t.Error("it was read")
			}
		})
	}
	if _, err := decodeState(fstest.MapFS{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no state at all: %v", err)
	}
}

func TestFileNamesAreSafeAndDiffer(t *testing.T) {
	seen := map[string]string{}
	for _, name := range []string{"", ".", "..", "a", "A", "a/b", "a_b", "a:b", ".git", "ü", strings.Repeat("n", 253), strings.Repeat("n", 252) + "m", "x\x00y"} {
		got := plainName(name)
		if len(got) > 230 || strings.ContainsAny(got, "/\\\x00") || strings.HasPrefix(got, ".") || got == "" {
			t.Errorf("%q becomes %q", name, got)
		}
		if other, dup := seen[got]; dup {
			t.Errorf("%q and %q are both %q", name, other, got)
		}
		seen[got] = name
	}
}
