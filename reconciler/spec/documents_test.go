package spec

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"cuelang.org/go/cue/token"
	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/test/fixtures/validation"
)

// judgeCase judges a fixture, or its second document after the first.
func judgeCase(t *testing.T, c validation.Case) []decision.Finding {
	t.Helper()
	docs, previous := []Source{{Name: c.Name, Data: c.Data}}, []Source(nil)
	if c.Layer == "update" {
		stored, next := c.Update()
		docs, previous = []Source{{Name: c.Name, Data: next}}, []Source{{Name: c.Name, Data: stored}}
	}
	found, err := JudgeDocuments(context.Background(), docs, previous)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestFixturesAreJudgedAsTheySay(t *testing.T) {
	cases, err := validation.Cases()
	if err != nil {
		t.Fatal(err)
	}
	count := map[bool]int{}
	for _, c := range cases {
		count[c.Invalid]++
		t.Run(c.Name, func(t *testing.T) { compareCase(t, c, judgeCase(t, c)) })
	}
	if count[true] < 125 || count[false] < 43 {
		t.Errorf("%d invalid and %d valid cases: some are missing", count[true], count[false])
	}
}

// compareCase holds that there is a finding where the fixture says, in its
// words, and none that it does not know of.
func compareCase(t *testing.T, c validation.Case, found []decision.Finding) {
	t.Helper()
	severity, matched := "warning", c.At == ""
	if c.Invalid {
		severity = "error"
	}
	var got []string
	for _, f := range found {
		text := fmt.Sprintf("%d:%d %s", f.Position.Line, f.Position.Column, f.Path)
		got = append(got, fmt.Sprintf("%s %s: %s (%s)", f.Severity, text, f.Message, f.Remediation))
		if f.Severity != severity || f.Position.File != c.Name {
			t.Errorf("a finding of severity %s in %s", f.Severity, f.Position.File)
		}
		ok := strings.TrimSpace(text) == c.At
		for _, words := range c.Says {
			ok = ok && strings.Contains(f.Message+" ("+f.Remediation+")", words)
		}
		matched = matched || ok
	}
	if !matched || (c.At == "" && len(found) > 0) {
		t.Errorf("%s\nwant %s, saying %q; found\n%s", c.Title, c.At, c.Says, strings.Join(got, "\n"))
	}
}

// TestAnUnknownFieldIsFoundWhereverItIs adds a field to each struct of the valid
// fixtures in turn: the schemas must be closed everywhere, or the field would
// only be found by decoding, which does not know its place.
func TestAnUnknownFieldIsFoundWhereverItIs(t *testing.T) {
	cases, err := validation.Cases()
	if err != nil {
		t.Fatal(err)
	}
	var docs []Source
	want := map[string]string{}
	for _, c := range cases {
		if c.Invalid {
			continue
		}
		data, _ := readYAML(c.Name, c.Data)
		for _, d := range data {
			for _, at := range closedStructs(d, nil) {
				name := fmt.Sprintf("%d.json", len(docs))
				docs = append(docs, Source{Name: name, Data: withUnknown(t, d, at)})
				want[name] = append(at, "nope").String()
			}
		}
	}
	found, err := JudgeDocuments(context.Background(), docs, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, f := range found {
		if strings.Contains(f.Message, `"nope" is not allowed`) {
			got[f.Position.File] = f.Path.String()
		}
	}
	if diff := cmp.Diff(want, got); diff != "" || len(want) < 150 {
		t.Errorf("%d structs; paths of the unknown field (-want +got):\n%s", len(want), diff)
	}
}

// closedStructs are the paths of the structs in the spec of an object that take
// no fields of one's own.
func closedStructs(d *datum, at fleet.Path) []fleet.Path {
	var out []fleet.Path
	open := []string{"tags", "labels", "annotations", "limits", "kubeReserved", "systemReserved", "evictionHard", "evictionSoft", "evictionSoftGracePeriod"}
	if d.kind == yaml.MappingNode && len(at) > 0 && at[0] == "spec" && !slices.Contains(open, at[len(at)-1]) {
		out = append(out, at)
	}
	for _, k := range d.keys {
		out = append(out, closedStructs(k.value, append(slices.Clip(at), k.name))...)
	}
	for i, item := range d.items {
		out = append(out, closedStructs(item, append(slices.Clip(at), strconv.Itoa(i)))...)
	}
	return out
}

// withUnknown is an object as JSON with one more field in a struct of it.
func withUnknown(t *testing.T, d *datum, at fleet.Path) []byte {
	t.Helper()
	root := node{value: d.plain(&yamlFile{file: token.NewFile("x", 0, 1<<20)}, nil, fleet.Positions{})}
	n := root
	for _, p := range at {
		if i, err := strconv.Atoi(p); err == nil {
			n = n.items()[i]
		} else {
			n = n.get(p)
		}
	}
	fields, ok := n.value.(map[string]any)
	if !ok {
		t.Fatalf("%s is no struct", at)
	}
	fields["nope"] = true
	out := root.raw()
	delete(fields, "nope")
	return out
}
