package importer_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/reeve-project/reeve/reconciler/importer"
	"github.com/reeve-project/reeve/reconciler/port"
)

// manifest is a file of the corpus, which lives beside the repository and is no
// part of it.
type manifest struct {
	id, status, special string
	text                []byte
}

// corpus reads the index of the corpus.
func corpus(t *testing.T) []manifest {
	t.Helper()
	shared := os.Getenv("REEVE_SHARED")
	if shared == "" {
		t.Skip("no corpus: set REEVE_SHARED")
	}
	index, err := os.ReadFile(filepath.Join(shared, "corpus", "INDEX.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	var out []manifest
	for line := range strings.Lines(string(index)) {
		columns := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(columns) < 6 || !strings.HasPrefix(columns[0], "manifests/") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(shared, "corpus", columns[0]+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, manifest{id: columns[0], special: columns[4], status: columns[5], text: text})
	}
	if len(out) == 0 {
		t.Fatal("the index names no manifest")
	}
	return out
}

// TestCorpus imports manifests that nobody on the team wrote: those that the
// API server accepts come back without loss, the others are refused or
// reported as their status says.
func TestCorpus(t *testing.T) {
	counts := map[string]map[string]int{}
	for _, m := range corpus(t) {
		t.Run(m.id, func(t *testing.T) {
			res := importer.Import([]importer.Input{{Name: m.id + ".yaml", Data: m.text}}, importer.Options{})
			for _, e := range res.Report.Entries {
				if e.Position.File == "" || e.Position.Line < 1 || e.Position.Column < 1 || e.Why == "" {
					t.Errorf("an entry without place or reason: %+v", e)
				}
			}
			outcome := ""
			if m.status == "valid" {
				outcome = validManifest(t, m, res)
			} else {
				outcome = otherManifest(t, m, res)
			}
			if counts[m.status] == nil {
				counts[m.status] = map[string]int{}
			}
			counts[m.status][outcome]++
		})
	}
	for _, status := range slices.Sorted(maps.Keys(counts)) {
		line, sum := "", 0
		for _, outcome := range slices.Sorted(maps.Keys(counts[status])) {
			line += fmt.Sprintf(", %d %s", counts[status][outcome], outcome)
			sum += counts[status][outcome]
		}
		t.Logf("%-9s %3d: %s", status, sum, strings.TrimPrefix(line, ", "))
	}
}

// validManifest round-trips all objects but those of another provider.
func validManifest(t *testing.T, m manifest, res *importer.Result) string {
	want := read(t, m.text)
	foreign := 0
	for _, e := range res.Report.Entries {
		switch e.Class {
		case importer.Foreign:
			if _, ours := want[e.Object]; ours {
				foreign++
				delete(want, e.Object)
			}
		case importer.Lost, importer.Refused, importer.Incomplete:
			t.Errorf("a valid manifest is not imported as it is: %s", e)
		}
	}
	if len(res.Report.Imported) == 0 && foreign > 0 {
		return "of another provider and reported"
	}
	_, got := roundTrip(t, m.text, missingClasses(m.text)...)
	for name := range got {
		if want[name] == nil {
			delete(got, name) // a stand-in for a class of another file
		}
	}
	sameObjects(t, want, got)
	commentsKept(t, m.text, res)
	return "imported without loss"
}

// missingClasses are stand-ins for the classes that a file refers to and does
// not contain.
func missingClasses(text []byte) []importer.File {
	names := map[string]bool{}
	for _, ref := range regexp.MustCompile(`nodeClassRef:[^}]*?name: *["']?([^\s"'#}]+)`).FindAllStringSubmatch(string(text), -1) {
		names[ref[1]] = true
	}
	body := "package fleet\n\nimport \"reeve.dev/fleet\"\n\nnodeClasses: fleet.#NodeClasses\n"
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if regexp.MustCompile(`kind: *EC2NodeClass\s+metadata:(\s+namespace:.*)?\s+name: *["']?` + regexp.QuoteMeta(name) + `["']?\s`).Match(text) {
			continue
		}
		body += fmt.Sprintf("nodeClasses: %q: spec: {role: \"r\", amiSelectorTerms: [{alias: \"al2023@latest\"}], subnetSelectorTerms: [{id: \"subnet-1\"}], securityGroupSelectorTerms: [{id: \"sg-1\"}]}\n", name)
	}
	return []importer.File{{Name: "clusters/blue/other.cue", Text: body}}
}

// commentsKept holds that each line that is a comment is one in the CUE.
func commentsKept(t *testing.T, text []byte, res *importer.Result) {
	t.Helper()
	cue, err := res.Single()
	if err != nil {
		t.Fatal(err)
	}
	values := strings.Join(textsOf(t, text), "\n")
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		note := strings.TrimSpace(strings.TrimLeft(line, "#"))
		if !strings.HasPrefix(line, "#") || note == "" || strings.Contains(values, line) {
			continue
		}
		if !strings.Contains(cue, note) {
			t.Errorf("this comment is not in the CUE: %s", line)
		}
	}
}

// textsOf are all strings of several lines.
func textsOf(t *testing.T, text []byte) []string {
	t.Helper()
	var out []string
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			if strings.Contains(v, "\n") || strings.Contains(v, "#") {
				out = append(out, v)
			}
		case []any:
			for _, item := range v {
				walk(item)
			}
		case map[string]any:
			for _, item := range v {
				walk(item)
			}
		}
	}
	for _, doc := range strings.Split(strings.ReplaceAll(string(text), "\n---", "\n\x00---"), "\x00") {
		var v any
		if yaml.Unmarshal([]byte(doc), &v) == nil {
			walk(v)
		}
	}
	return out
}

// otherManifest holds that a manifest that is not valid does not pass in
// silence.
func otherManifest(t *testing.T, m manifest, res *importer.Result) string {
	r := res.Report
	if m.status == "not-yaml" && r.Count(importer.Refused) == 0 {
		t.Errorf("nothing is refused of a file that is not YAML: %v", r.Entries)
	}
	if len(r.Imported) == 0 {
		if r.Count(importer.Refused)+r.Count(importer.Foreign) == 0 {
			t.Errorf("nothing is imported and nothing is said: %v", r.Entries)
		}
		return "refused or foreign"
	}
	f, err := load(t, res, missingClasses(m.text)...)
	found := port.Findings(err)
	switch {
	case err != nil && len(found) == 0:
		t.Fatalf("evaluate: %v", err)
	case err == nil:
		if err := res.Verify(f); err != nil {
			t.Fatal(err)
		}
		for _, e := range r.Entries {
			if strings.Contains(e.Why, "a fault of reeve") {
				t.Errorf("lost on the way: %s", e)
			}
		}
	}
	for _, d := range found {
		if d.Position == nil || d.Position.Line < 1 {
			t.Errorf("a finding without a place: %+v", d)
		}
	}
	said := r.Count(importer.Changed) + r.Count(importer.Lost) + r.Count(importer.Refused) + r.Count(importer.Foreign) + r.Count(importer.Incomplete)
	if said+len(found) == 0 {
		t.Errorf("status %s (%s), and neither the report nor the check says anything", m.status, m.special)
	}
	if len(found) > 0 {
		return "imported and found wrong by the check"
	}
	return "imported with a report"
}
