package importer_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/importer"
	"github.com/reeve-project/reeve/reconciler/spec"
	"github.com/reeve-project/reeve/schemas"
)

// load evaluates the files of an import as the cluster "blue".
func load(t *testing.T, res *importer.Result, more ...importer.File) (*fleet.Fleet, error) {
	t.Helper()
	fresh, err := spec.Files(spec.InitOptions{Cluster: "blue"})
	if err != nil {
		t.Fatal(err)
	}
	files, err := res.Files("blue")
	if err != nil {
		t.Fatal(err)
	}
	tree := fstest.MapFS{}
	for name, text := range fresh {
		tree[name] = &fstest.MapFile{Data: text}
	}
	delete(tree, "clusters/blue/nodepools.cue")
	delete(tree, "clusters/blue/nodeclasses.cue")
	for _, f := range append(files, more...) {
		tree[f.Name] = &fstest.MapFile{Data: []byte(f.Text)}
	}
	return spec.Load(context.Background(), tree, spec.Options{Cluster: "blue"})
}

// object is an object of a stream as Kubernetes sees it, less what the server
// writes.
type object map[string]any

// read decodes a stream with the library that kubectl uses and applies the
// defaults of the CRDs.
func read(t *testing.T, stream []byte) map[string]object {
	t.Helper()
	out := map[string]object{}
	text := strings.ReplaceAll(string(stream), "\r\n", "\n")
	for _, doc := range strings.Split(strings.ReplaceAll("\n"+text, "\n---", "\n\x00---"), "\x00") {
		var v object
		if err := yaml.Unmarshal([]byte(doc), &v); err != nil {
			t.Fatalf("decode: %v\n%s", err, doc)
		}
		items, isList := v["items"].([]any)
		if !isList {
			items = []any{map[string]any(v)}
		}
		for _, item := range items {
			o := object(item.(map[string]any))
			if o["kind"] == "NodePool" || o["kind"] == "EC2NodeClass" {
				out[fmt.Sprint(o["kind"], "/", o["metadata"].(map[string]any)["name"])] = completed(t, o)
			}
		}
	}
	return out
}

// completed is the object with defaults, without status and without what the
// server writes into metadata.
func completed(t *testing.T, o object) object {
	t.Helper()
	defaults, err := schemas.FleetDefaults()
	if err != nil {
		t.Fatal(err)
	}
	tree := defaults.Properties["nodePools"].AdditionalProperties
	if o["kind"] == "EC2NodeClass" {
		tree = defaults.Properties["nodeClasses"].AdditionalProperties
	}
	fill(map[string]any(o), tree)
	meta := o["metadata"].(map[string]any)
	kept := map[string]any{"name": meta["name"]}
	for _, name := range []string{"labels", "annotations"} {
		words, _ := meta[name].(map[string]any)
		for key := range words {
			if strings.HasSuffix(key, "-hash") || strings.HasSuffix(key, "-hash-version") || strings.HasSuffix(key, "last-applied-configuration") {
				delete(words, key)
			}
		}
		if len(words) > 0 {
			kept[name] = words
		}
	}
	o["metadata"] = kept
	delete(o, "status")
	return o
}

// fill applies defaults as the API server does; it is written apart from the
// code of package spec on purpose.
func fill(v any, d *schemas.Defaults) {
	if d == nil {
		return
	}
	if list, ok := v.([]any); ok {
		for _, item := range list {
			fill(item, d.Items)
		}
		return
	}
	m, ok := v.(map[string]any)
	if !ok {
		return
	}
	for name, p := range d.Properties {
		if _, there := m[name]; !there && p.Default != nil {
			var value any
			if json.Unmarshal(p.Default, &value) == nil {
				m[name] = value
			}
		}
		fill(m[name], p)
	}
}

// sameObjects compares by Karpenter's own types and, so that no field that those
// do not know slips through, as JSON.
func sameObjects(t *testing.T, want, got map[string]object) {
	t.Helper()
	for name, w := range want {
		g, ok := got[name]
		if !ok {
			t.Errorf("%s did not come back", name)
			continue
		}
		if diff := cmp.Diff(map[string]any(w), map[string]any(g), loosely()...); diff != "" {
			t.Errorf("%s (-document +rendered):\n%s", name, diff)
		}
		if strings.HasPrefix(name, "NodePool") {
			typed[karpv1.NodePool](t, name, w, g)
		} else {
			typed[ec2v1.EC2NodeClass](t, name, w, g)
		}
	}
	if len(want) != len(got) {
		t.Errorf("%d objects came back, want %d", len(got), len(want))
	}
}

// loosely lets a number equal a string of the same quantity, as limits do.
func loosely() []cmp.Option {
	return []cmp.Option{
		cmp.FilterValues(func(a, b any) bool { return numeric(a) != numeric(b) }, cmp.Comparer(func(a, b any) bool {
			x, errX := resource.ParseQuantity(fmt.Sprint(a))
			y, errY := resource.ParseQuantity(fmt.Sprint(b))
			return errX == nil && errY == nil && x.Cmp(y) == 0
		})),
	}
}

func numeric(v any) bool {
	switch v.(type) {
	case float64, int64:
		return true
	}
	return false
}

func typed[T any](t *testing.T, name string, w, g object) {
	t.Helper()
	decode := func(o object) (out T) {
		b, err := json.Marshal(o)
		if err == nil {
			err = json.Unmarshal(b, &out)
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return out
	}
	quantities := cmp.Comparer(func(a, b resource.Quantity) bool { return a.Cmp(b) == 0 })
	raw := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Raw" }, cmp.Ignore())
	if diff := cmp.Diff(decode(w), decode(g), quantities, raw); diff != "" {
		t.Errorf("%s as Karpenter reads it (-document +rendered):\n%s", name, diff)
	}
}

// roundTrip imports a stream, evaluates the CUE and renders it again.
func roundTrip(t *testing.T, stream []byte, more ...importer.File) (*importer.Result, map[string]object) {
	t.Helper()
	res := importer.Import([]importer.Input{{Name: "in.yaml", Data: stream}}, importer.Options{})
	f, err := load(t, res, more...)
	if err != nil {
		text, _ := res.Single()
		t.Fatalf("evaluate: %v\n%s", err, text)
	}
	if err := res.Verify(f); err != nil {
		t.Fatal(err)
	}
	rendered, err := importer.Render(f, nil)
	if err != nil {
		t.Fatal(err)
	}
	return res, read(t, rendered)
}

func TestEveryFieldComesBack(t *testing.T) {
	stream, err := os.ReadFile(filepath.Join("testdata", "full.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	res, got := roundTrip(t, stream)
	sameObjects(t, read(t, stream), got)
	if n := res.Report.Count(importer.Lost); n > 0 || !res.Report.Clean() {
		t.Errorf("the report has something serious: %v", res.Report.Entries)
	}
}

func TestTheSameImportGivesTheSameBytes(t *testing.T) {
	stream, err := os.ReadFile(filepath.Join("testdata", "full.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	in := []importer.Input{{Name: "in.yaml", Data: stream}}
	first, err := importer.Import(in, importer.Options{}).Single()
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		again, err := importer.Import(in, importer.Options{}).Single()
		if err != nil || again != first {
			t.Fatalf("another result: %v\n%s", err, cmp.Diff(first, again))
		}
	}
}

// TestALineEndOfAnotherSystemChangesNothing reads the fixture as Windows would
// have written it.
func TestALineEndOfAnotherSystemChangesNothing(t *testing.T) {
	stream, err := os.ReadFile(filepath.Join("testdata", "full.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	text := func(b []byte) string {
		s, err := importer.Import([]importer.Input{{Name: "in.yaml", Data: b}}, importer.Options{}).Single()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	windows := append([]byte("\xef\xbb\xbf"), bytes.ReplaceAll(stream, []byte("\n"), []byte("\r\n"))...)
	if diff := cmp.Diff(text(stream), text(windows)); diff != "" {
		t.Errorf("CRLF and a BOM make a difference (-plain +windows):\n%s", diff)
	}
}
