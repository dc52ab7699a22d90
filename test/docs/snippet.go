package docs

import (
	"encoding/json"
	"fmt"
	"go/parser"
	"go/token"
	"strings"

	cueparser "cuelang.org/go/cue/parser"
	"github.com/open-policy-agent/opa/v1/ast"
	"sigs.k8s.io/yaml"
)

// checkSnippet says what is wrong with a block as source of its language. A
// language that is not known is wrong too: it would never be looked at.
func checkSnippet(language, text string) error {
	switch language {
	case "cue":
		_, err := cueparser.ParseFile("snippet.cue", text)
		return err
	case "rego":
		return checkRego(text)
	case "json":
		var v any
		return json.Unmarshal([]byte(text), &v)
	case "yaml":
		var v any
		return yaml.UnmarshalStrict([]byte(text), &v)
	case "go":
		if !strings.HasPrefix(text, "package ") {
			text = "package snippet\n" + text
		}
		_, err := parser.ParseFile(token.NewFileSet(), "snippet.go", text, parser.AllErrors)
		return err
	case "text", "console":
		return nil
	default:
		return fmt.Errorf("language %q is not one of console, cue, rego, json, yaml, go and text", language)
	}
}

// checkRego takes a module, or rules without their package.
func checkRego(text string) error {
	if !strings.Contains("\n"+text, "\npackage ") {
		text = "package snippet\n" + text
	}
	_, err := ast.ParseModuleWithOpts("snippet.rego", text, ast.ParserOptions{RegoVersion: ast.RegoV1, ProcessAnnotation: true})
	return err
}
