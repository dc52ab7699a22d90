package docs

import (
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/tester"
)

// A page that shows a test of Rego shows one that passes, on the rules that the
// page shows.
func TestTheRegoTestsOfAPagePass(t *testing.T) {
	passed := 0
	for name, p := range pagesOf(t) {
		modules := map[string]*ast.Module{}
		tests := false
		for _, b := range p.blocks {
			if b.language != "rego" || b.file == "" {
				continue
			}
			m, err := ast.ParseModuleWithOpts(b.file, b.text(), ast.ParserOptions{RegoVersion: ast.RegoV1, ProcessAnnotation: true})
			if err != nil {
				t.Fatalf("%s:%d: %v", name, b.line, err)
			}
			modules[b.file] = m
			tests = tests || strings.HasSuffix(b.file, "_test.rego")
		}
		if !tests {
			continue
		}
		results, err := tester.NewRunner().SetModules(modules).RunTests(t.Context(), nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for r := range results {
			if r.Fail || r.Error != nil {
				t.Errorf("%s: %s fails: %v", name, r.Name, r.Error)
				continue
			}
			passed++
		}
	}
	if passed == 0 {
		t.Error("no test was found in any page")
	}
}
