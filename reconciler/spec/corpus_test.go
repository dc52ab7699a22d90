package spec

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// corpusDir finds the validation cases that live beside the repository; they
// are not part of it.
func corpusDir(t *testing.T) string {
	t.Helper()
	shared := os.Getenv("REEVE_SHARED")
	if shared == "" {
		shared = filepath.Join("..", "..", "..", "shared")
	}
	dir := filepath.Join(shared, "corpus", "validation")
	if _, err := os.Stat(dir); err != nil {
		t.Skip("no validation corpus: set REEVE_SHARED")
	}
	return dir
}

var (
	caseLayer  = regexp.MustCompile(`(?m)^# layer: (\S+)`)
	caseReason = regexp.MustCompile(`(?m)^# reason: (.*)`)
	documents  = regexp.MustCompile(`(?m)^---.*$|^\.\.\..*$`)
)

// corpusCase is a file of the corpus as the CUE of a cluster.
type corpusCase struct {
	layer, reason string
	files         map[string]string
	unreadable    error // the YAML decoder refused it
	skipped       string
}

func readCase(t *testing.T, path string) corpusCase {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	c := corpusCase{}
	if m := caseLayer.FindSubmatch(text); m != nil {
		c.layer = string(m[1])
	}
	if m := caseReason.FindSubmatch(text); m != nil {
		c.reason = string(m[1])
	}
	pools, classes := map[string]any{}, map[string]any{}
	for _, doc := range documents.Split(string(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))), -1) {
		var obj map[string]any
		if err := yaml.UnmarshalStrict([]byte(doc), &obj); err != nil {
			c.unreadable = err
			return c
		}
		for _, o := range flatten(obj) {
			c.place(o, pools, classes)
		}
	}
	for _, p := range pools {
		stubClass(p, classes)
	}
	c.files = map[string]string{"clusters/blue/nodepools.cue": "", "clusters/blue/nodeclasses.cue": ""}
	c.files["clusters/blue/case.cue"] = "package fleet\nimport \"reeve.dev/fleet\"\n" +
		"nodePools: fleet.#NodePools & " + mustJSON(t, pools) + "\nnodeClasses: fleet.#NodeClasses & " + mustJSON(t, classes) + "\n"
	return c
}

// flatten gives the objects of a List.
func flatten(obj map[string]any) []map[string]any {
	if obj == nil {
		return nil
	}
	if obj["kind"] != "List" {
		return []map[string]any{obj}
	}
	var out []map[string]any
	items, _ := obj["items"].([]any)
	for _, i := range items {
		if o, ok := i.(map[string]any); ok {
			out = append(out, o)
		}
	}
	return out
}

// place puts an object under its name; in update cases the second replaces the
// first.
func (c *corpusCase) place(obj map[string]any, pools, classes map[string]any) {
	meta, _ := obj["metadata"].(map[string]any)
	name, _ := meta["name"].(string)
	switch obj["kind"] {
	case "NodePool":
		pools[name] = obj
	case "EC2NodeClass":
		classes[name] = obj
	default:
		c.skipped = fmt.Sprintf("kind %v is no part of a fleet", obj["kind"])
	}
	if _, ok := meta["generateName"]; ok {
		c.skipped = "generateName: in a fleet the name is the key"
	}
}

// stubClass adds the class that a pool names, which the corpus leaves out.
func stubClass(pool any, classes map[string]any) {
	text, _ := json.Marshal(pool)
	root, err := parseNode(text)
	if err != nil {
		return
	}
	name := root.get("spec", "template", "spec", "nodeClassRef", "name").str()
	if _, ok := classes[name]; ok || name == "" {
		return
	}
	classes[name] = map[string]any{"spec": map[string]any{
		"role": "nodes", "amiSelectorTerms": []any{map[string]any{"alias": "al2023@latest"}},
		"subnetSelectorTerms":        []any{map[string]any{"id": "subnet-1"}},
		"securityGroupSelectorTerms": []any{map[string]any{"id": "sg-1"}},
	}}
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestInvalidCasesOfTheCorpusAreRefused(t *testing.T) {
	dir := corpusDir(t)
	files, err := filepath.Glob(filepath.Join(dir, "invalid", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	refused, total := map[string]int{}, map[string]int{}
	for _, f := range files {
		c := readCase(t, f)
		if c.skipped != "" {
			continue
		}
		total[c.layer]++
		err := c.unreadable
		if err == nil {
			_, err = Load(context.Background(), fleetFS("blue", c.files), Options{Cluster: "blue"})
		}
		if err == nil {
			t.Logf("accepted %s (%s): %s", filepath.Base(f), c.layer, c.reason)
			continue
		}
		refused[c.layer]++
		t.Logf("%s: %s\n\t%s", filepath.Base(f), c.reason, shortened(err))
	}
	t.Logf("refused %v of %v", refused, total)
	// A transition rule needs the previous fleet, which Load does not have.
	for layer, n := range total {
		if missed := n - refused[layer]; layer != "update" && missed > 0 {
			t.Errorf("layer %s: %d cases accepted", layer, missed)
		}
	}
}

func TestValidCasesOfTheCorpusAreAccepted(t *testing.T) {
	dir := corpusDir(t)
	files, err := filepath.Glob(filepath.Join(dir, "valid", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	// Another provider's class is valid for the CRD, but Reeve has no nodes
	// for it.
	refusedOnPurpose := []string{"040.yaml"}
	for _, f := range files {
		c := readCase(t, f)
		if c.skipped != "" {
			t.Logf("skipped %s: %s", filepath.Base(f), c.skipped)
			continue
		}
		err := c.unreadable
		if err == nil {
			_, err = Load(context.Background(), fleetFS("blue", c.files), Options{Cluster: "blue"})
		}
		if purpose := slices.Contains(refusedOnPurpose, filepath.Base(f)); (err != nil) != purpose {
			t.Errorf("%s (%s): %v", filepath.Base(f), c.reason, err)
		}
	}
}

func TestTheCorpusReaderKeepsDocumentsApart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.yaml")
	text := "# reason: r\n# layer: cel\n---\nkind: NodePool\nmetadata: {name: a}\n---\n# nothing\n---\nkind: List\nitems: [{kind: EC2NodeClass, metadata: {name: b}}]\n"
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	c := readCase(t, path)
	if c.layer != "cel" || c.reason != "r" || !strings.Contains(c.files["clusters/blue/case.cue"], `{"a":{"kind":"NodePool"`) || !strings.Contains(c.files["clusters/blue/case.cue"], `{"b":{"kind":"EC2NodeClass"`) {
		t.Errorf("case %+v", c)
	}
}
