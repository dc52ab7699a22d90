package importer_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cuelang.org/go/cue/cuecontext"

	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/importer"
)

// FuzzImport holds that no input makes an import panic, that every entry has a
// place and a reason, that what is written is CUE with every object in it, and
// that importing is a function of its input.
func FuzzImport(f *testing.F) {
	seeds, err := filepath.Glob(filepath.Join("testdata", "*.yaml"))
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range seeds {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data))
	}
	for _, s := range []string{
		"a: &a [*a]\n", "%YAML 1.1\n---\n{{ x }}\n", "apiVersion: v1\nkind: List\nitems: [5, {}]\n", "? [a]\n: b\n", "<<: {a: b}\n", "a: !!binary eA==\n",
		"apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: \"a\\\"b\\n\", labels: {\"\\u2028\": \"\\0\"}}\nspec: {weight: 1}\n",
		"apiVersion: karpenter.k8s.aws/v1alpha1\nkind: AWSNodeTemplate\nmetadata: {name: a}\nspec: {amiSelector: {a: \",\"}, metadataOptions: ~}\n",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		in := []importer.Input{{Name: "in.yaml", Data: []byte(text)}}
		res := importer.Import(in, importer.Options{})
		for _, e := range res.Report.Entries {
			if e.Position.Line < 1 || e.Position.Column < 1 || e.Why == "" {
				t.Errorf("an entry without place or reason: %+v", e)
			}
		}
		if len(res.Report.Imported) == 0 {
			return
		}
		cue, err := res.Single()
		if err != nil {
			t.Fatalf("what is written is not CUE: %v", err)
		}
		if again, err := importer.Import(in, importer.Options{}).Single(); err != nil || again != cue {
			t.Errorf("another result for the same input: %v", err)
		}
		arrives(t, res, cue)
	})
}

// unschematic removes the parts of a file that need the module of the schemas.
var unschematic = strings.NewReplacer("import \"reeve.dev/fleet\"\n", "", "fleet.#NodePools", "_", "fleet.#NodeClasses", "_")

// arrives evaluates the CUE without schemas, which would refuse most of what a
// fuzzer makes, and compares it with what was imported.
func arrives(t *testing.T, res *importer.Result, cue string) {
	t.Helper()
	doc, err := cuecontext.New().CompileString(unschematic.Replace(cue)).MarshalJSON()
	if err != nil {
		t.Fatalf("evaluate: %v\n%s", err, cue)
	}
	before := len(res.Report.Entries)
	if err := res.Verify(&fleet.Fleet{Document: doc}); err != nil {
		t.Fatal(err)
	}
	if len(res.Report.Entries) > before {
		t.Errorf("lost on the way: %v\n%s", res.Report.Entries, cue)
	}
}
