package spec

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	kyaml "sigs.k8s.io/yaml"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/test/fixtures/validation"
)

// judged lists what is found in one file.
func judged(t *testing.T, text string) []string {
	t.Helper()
	found, err := JudgeDocuments(context.Background(), []Source{{Name: "f.yaml", Data: []byte(text)}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return lines(found)
}

func lines(found []decision.Finding) []string {
	var out []string
	for _, f := range found {
		out = append(out, fmt.Sprintf("%s %s %s", f.Position, f.Resource, f.Message))
	}
	return out
}

// small is a valid pool of a name, with fields in front of its spec.
func small(name, more string) string {
	return "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: " + name + "}\n" + more +
		"spec: {template: {spec: {nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: a}, requirements: []}}}\n"
}

func TestFilesThatAreHardToRead(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string
	}{
		{"an empty file", "", nil},
		{"a file of comments", "# nothing\n---\n# here\n", nil},
		{"a byte order mark", "\ufeff" + small("a", ""), nil},
		{"JSON", `{"apiVersion":"karpenter.sh/v1","kind":"NodePool","metadata":{"name":"a"},"spec":{"template":{"spec":{"nodeClassRef":{"group":"g","kind":"k","name":"n"},"requirements":[]}},"weight":0}}`, []string{
			"f.yaml:1:174 NodePool/a invalid value 0: it must be at least 1"}},
		{"places after characters of several bytes", small("a", "") + "---\n" + strings.Replace(small("b", ""), "requirements: []", `requirements: [], "ü": 1, z: 1`, 1), []string{
			`f.yaml:9:115 NodePool/b field "ü" is not allowed`, `f.yaml:9:124 NodePool/b field "z" is not allowed`}},
		{"places after the line ends of Windows", strings.ReplaceAll(small("a", "")+"---\n"+small("b", "  # x\nstatus: {}\nspecs: 1\n"), "\n", "\r\n"), []string{
			`f.yaml:11:1 NodePool/b field "specs" is not allowed`}},
		{"each object of a list", "kind: NodePoolList\napiVersion: karpenter.sh/v1\nitems:\n- {apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: a}}\n- {apiVersion: v1, kind: Secret}\n- 5\n", []string{
			`f.yaml:4:3 NodePool/a field "spec" is required`,
			"f.yaml:5:4  Secret of v1 is not known",
			"f.yaml:6:3  this is no Kubernetes object"}},
		{"a document that is no object", "- 1\n---\njust words\n", []string{
			"f.yaml:1:1  this is no Kubernetes object", "f.yaml:3:1  this is no Kubernetes object"}},
		{"no kind", "apiVersion: karpenter.sh/v1\n", []string{"f.yaml:1:1  an object needs a kind and an apiVersion"}},
		{"not UTF-8", "a: \xff\n", []string{"f.yaml:1:1  the file is not UTF-8"}},
		{"a key that is a list", "? [a]\n: 1\n", []string{"f.yaml:1:3  a key must be a single word"}},
		{"a key that is null", "~: 1\n", []string{"f.yaml:1:1  a key must not be null"}},
		{"a number that JSON does not have", "a: .inf\n", []string{"f.yaml:1:4  the value .inf cannot be written as JSON"}},
		{"merging what is no mapping", "a: &a 1\nb:\n  <<: *a\n", []string{"f.yaml:3:7  only mappings can be merged"}},
		{"what cannot be read after what can", small("a", "status: x\n") + "---\nkind: \"x\n", []string{
			"f.yaml:7:1  not YAML: found unexpected end of stream"}},
		{"nesting without end", strings.Repeat("[", 300) + strings.Repeat("]", 300), []string{"f.yaml:1:202  values are nested more than 200 deep"}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) { compareStarts(t, tc.want, judged(t, tc.text)) })
	}
}

func TestAliasesThatMultiplyAreRefused(t *testing.T) {
	text := "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n"
	for i := 1; i < 10; i++ {
		text += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
	}
	got := judged(t, text)
	if len(got) != 1 || !strings.Contains(got[0], "more than 1000000 values") {
		t.Errorf("found %q", got)
	}
}

func TestAFileThatIsTooLargeIsRefused(t *testing.T) {
	got := judged(t, "# "+strings.Repeat("x", maxFileSize))
	if diff := cmp.Diff([]string{"f.yaml:1:1  the file is larger than 8 MiB"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestValuesMeanWhatTheyMeanToTheAPIServer compares with the library that it
// reads YAML with.
func TestValuesMeanWhatTheyMeanToTheAPIServer(t *testing.T) {
	texts := []string{
		"a: [yes, no, on, off, y, n, Y, true, True, 'true', null, ~, Null, '']\n",
		"a: [0, 010, 0o10, 0x1F, 0b11, 1_000, 1e3, 1.50, .5, -7, +7, 1:30, 2026-01-01, 9223372036854775808, 1e400x]\n",
		"a: !!str 5\nb: !!int \"5\"\nc: !local x\nd: !!binary aGk=\ne: !!float 1\n",
		"a: |\n  x\n  y\nb: >-\n  x\n  y\nc: plain\n  over\n\n  lines\nd: \"a\\tb\"\n",
		"1: a\ntrue: b\n1.5: c\nyes: d\n",
		"a: &x {b: 1, c: 2}\nd:\n  <<: *x\n  e: 3\nf: *x\ng: {<<: [*x, {h: 4}]}\n",
		"a: b: c\n",
	}
	cases, err := validation.Cases()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		texts = append(texts, string(c.Data))
	}
	compared := 0
	for _, text := range texts {
		want, err := kyaml.YAMLToJSON([]byte(text))
		docs, f := readYAML("f", []byte(text))
		if err != nil || len(docs) != 1 || bytes.Equal(want, []byte("null")) || len(f.found) > 0 {
			continue // refused, or several documents, of which the library reads one
		}
		compared++
		got, err := json.Marshal(docs[0].plain(f, nil, fleet.Positions{}))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(withoutNulls(t, want), withoutNulls(t, got)); diff != "" {
			t.Errorf("%s\n(-want +got):\n%s", text, diff)
		}
	}
	if compared < 140 {
		t.Errorf("only %d texts could be compared", compared)
	}
}

// withoutNulls is JSON as values without the fields that are null.
func withoutNulls(t *testing.T, data []byte) any {
	t.Helper()
	root, err := parseNode(data)
	if err != nil {
		t.Fatal(err)
	}
	var drop func(v any) any
	drop = func(v any) any {
		switch v := v.(type) {
		case map[string]any:
			for k, e := range v {
				if v[k] = drop(e); e == nil {
					delete(v, k)
				}
			}
		case []any:
			for i, e := range v {
				v[i] = drop(e)
			}
		}
		return v
	}
	return drop(root.value)
}

func TestAnEndedContextEndsTheJudging(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := JudgeDocuments(ctx, []Source{{Name: "f", Data: []byte(small("a", ""))}}, nil); err == nil {
		t.Error("judged all the same")
	}
}

func FuzzYAML(f *testing.F) {
	cases, err := validation.Cases()
	if err != nil {
		f.Fatal(err)
	}
	for _, c := range cases {
		f.Add(c.Data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		docs, file := readYAML("f.yaml", data)
		for _, d := range docs {
			places := fleet.Positions{}
			d.plain(file, nil, places)
			if d.expr(file.file) == nil {
				t.Error("a document without an expression")
			}
			for path, at := range places {
				if at[0].Line < 1 || at[0].Column < 1 {
					t.Errorf("%s is at %s", path, at[0])
				}
			}
		}
		for _, d := range file.found {
			if d.Position.Line < 1 || d.Message == "" {
				t.Errorf("a fault without place or words: %+v", d)
			}
		}
	})
}
