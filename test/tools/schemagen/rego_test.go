package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/loader"

	"github.com/reeve-project/reeve/policies"
)

// TestRegoIsCheckedAgainstThePublishedSchemas is what "opa check --schema" does
// for people who write policies of their own: the shipped ones pass, and a
// field that does not exist is found where it is used.
func TestRegoIsCheckedAgainstThePublishedSchemas(t *testing.T) {
	schemas, err := loader.Schemas(filepath.Join(root, "docs/reference/policy-input"))
	if err != nil {
		t.Fatal(err)
	}
	if err := compile(schemas, policies.Files()); err != nil {
		t.Errorf("the shipped policies: %v", err)
	}
	for stage, field := range map[string]string{
		"spec":     "input.flet",
		"offering": "input.nodePol",
		"decision": "input.proposal.claims[_].instanceTyp",
	} {
		rego := "# METADATA\n# scope: package\n# schemas:\n#   - input: schema." + stage + "\npackage x\n\ndeny contains " + field + "\n"
		err := compile(schemas, map[string][]byte{"x.rego": []byte(rego)})
		if err == nil || !strings.Contains(err.Error(), "undefined ref") {
			t.Errorf("%s in stage %s: %v, want an undefined ref", field, stage, err)
		}
	}
}

func compile(schemas *ast.SchemaSet, files map[string][]byte) error {
	modules := map[string]*ast.Module{}
	for name, content := range files {
		m, err := ast.ParseModuleWithOpts(name, string(content), ast.ParserOptions{ProcessAnnotation: true})
		if err != nil {
			return err
		}
		modules[name] = m
	}
	c := ast.NewCompiler().WithSchemas(schemas).WithUseTypeCheckAnnotations(true).WithStrict(true)
	if c.Compile(modules); c.Failed() {
		return c.Errors
	}
	return nil
}
