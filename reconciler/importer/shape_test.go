package importer

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestTheFixtureHasEveryField holds that the round trip covers both CRDs, also
// after Karpenter has added a field.
func TestTheFixtureHasEveryField(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "full.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	res := Import([]Input{{Name: "full.yaml", Data: text}}, Options{})
	for kind, s := range shapes() {
		want := map[string]bool{}
		fieldsOf(s, "spec", want)
		for _, o := range res.objects {
			if o.kind == kind {
				seen(o.spec, s, "spec", want)
			}
		}
		var missing []string
		for path, found := range want {
			if !found {
				missing = append(missing, path)
			}
		}
		slices.Sort(missing)
		if len(missing) > 0 {
			t.Errorf("testdata/full.yaml has no %s with %v", kind, missing)
		}
		if len(want) < 20 {
			t.Errorf("%s has only %d fields: they were not found", kind, len(want))
		}
	}
}

func fieldsOf(s *shape, path string, out map[string]bool) {
	for name, f := range s.fields {
		out[path+"."+name] = false
		fieldsOf(f, path+"."+name, out)
	}
	if s.items != nil {
		fieldsOf(s.items, path, out)
	}
}

func seen(n *node, s *shape, path string, out map[string]bool) {
	for _, f := range n.fields {
		if sub := s.fields[f.name]; sub != nil {
			out[path+"."+f.name] = true
			seen(f.value, sub, path+"."+f.name, out)
		}
	}
	for _, item := range n.items {
		seen(item, s.items, path, out)
	}
}
