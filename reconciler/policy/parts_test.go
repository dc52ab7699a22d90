package policy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/open-policy-agent/opa/v1/ast"
)

// offeringOf is an engine with one offering policy of the text given.
func offeringOf(t *testing.T, rego string) *Engine {
	t.Helper()
	e, err := New(RecordedBundle(map[string][]byte{"policies/own.rego": []byte("package reeve.offering.own\n" + rego)}, nil), Options{})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestAPartReadsWhatItsRulesAndTheirHelpersLookAt(t *testing.T) {
	for name, tc := range map[string]struct {
		rego string
		want []string
	}{
		"a field": {`deny contains "no" if input.nodePool.spec.weight > 1`, []string{`["nodePool", "spec", "weight"]`}},
		"a helper's field": {"deny contains \"no\" if heavy\nheavy if input.nodePool.spec.weight > 1",
			[]string{`["nodePool", "spec", "weight"]`}},
		"a function's field":   {"deny contains \"no\" if f(1)\nf(x) if x < input.nodePool.spec.weight", []string{`["nodePool", "spec", "weight"]`}},
		"all below a variable": {`deny contains key if input.nodePool.metadata.labels[key]`, []string{`["nodePool", "metadata", "labels"]`}},
		"the whole input":      {"deny contains \"no\" if f(input)\nf(x) if x.nodePool.spec.weight > 1", []string{`[]`}},
		"a value of with": {"deny contains \"no\" if heavy with input.nodePool as input.nodeClass\nheavy if input.nodePool.spec.weight > 1",
			[]string{`["nodeClass"]`, `["nodePool"]`, `["nodePool", "spec", "weight"]`}}, // the target too, which is more than needed
		"an else branch": {"deny contains level if level > 1\nlevel := 2 if input.status else := 3 if input.nodePool.kind", []string{`["nodePool", "kind"]`, `["status"]`}},
		"a rule by a name that is not fixed": {"deny contains \"no\" if {\n\tsome name in [\"a\", \"b\"]\n\tdata.reeve.offering.own.rules[name]\n}\nrules[\"a\"] := input.nodePool.kind\nrules[\"b\"] := input.nodeClass.kind",
			[]string{`["nodeClass", "kind"]`, `["nodePool", "kind"]`}},
	} {
		t.Run(name, func(t *testing.T) {
			e := offeringOf(t, tc.rego)
			var got []string
			for _, path := range e.parts[0].paths {
				words := make([]string, 0, len(path))
				for _, term := range path {
					words = append(words, term.String())
				}
				got = append(got, "["+strings.Join(words, ", ")+"]")
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("reads (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnAnswerIsTakenForNodePoolsThatLookTheSame(t *testing.T) {
	const rego = `deny contains "too heavy" if input.nodePool.spec.weight > 10`
	e := offeringOf(t, rego)
	ask := func(name string, weight int) (answers, found int) {
		input := ast.MustInterfaceToValue(map[string]any{"nodePool": map[string]any{
			"metadata": map[string]any{"name": name}, "spec": map[string]any{"weight": weight},
		}}).(ast.Object)
		els, err := e.offeringElements(t.Context(), input, nil)
		if err != nil {
			t.Fatal(err)
		}
		return len(e.parts[0].answers), len(els)
	}
	for _, step := range []struct {
		name           string
		weight         int
		answers, found int
	}{{"a", 20, 1, 1}, {"b", 20, 1, 1}, {"b", 5, 2, 0}, {"c", 5, 2, 0}} {
		if answers, found := ask(step.name, step.weight); answers != step.answers || found != step.found {
			t.Errorf("NodePool %s with weight %d: %d answers kept and %d findings, want %d and %d",
				step.name, step.weight, answers, found, step.answers, step.found)
		}
	}
}
