package main

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// defaultsFile holds the defaults of all CRDs.
const defaultsFile = "defaults_gen.json"

// generateDefaults gives the defaults of the CRDs as JSON by kind.
func generateDefaults() ([]byte, error) {
	kinds := map[string]any{}
	for _, t := range targets {
		doc, err := parseCRD(t.crd)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.file, err)
		}
		if d := defaultsOf(doc.root); d != nil {
			kinds[doc.kind] = d
		}
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetIndent("", "  ")
	err := enc.Encode(kinds)
	return out.Bytes(), err
}

// defaultsOf keeps of a schema only what leads to a default; nil if nothing does.
func defaultsOf(schema map[string]any) map[string]any {
	out := map[string]any{}
	if d, ok := schema["default"]; ok {
		out["default"] = d
	}
	properties := map[string]any{}
	for name, p := range childSchemas(schema, "properties") {
		if d := defaultsOf(p); d != nil {
			properties[name] = d
		}
	}
	if len(properties) > 0 {
		out["properties"] = properties
	}
	for _, key := range []string{"items", "additionalProperties"} {
		if child, ok := schema[key].(map[string]any); ok {
			if d := defaultsOf(child); d != nil {
				out[key] = d
			}
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// childSchemas are the schemas in a keyword that maps names to schemas.
func childSchemas(schema map[string]any, keyword string) map[string]map[string]any {
	out := map[string]map[string]any{}
	m, _ := schema[keyword].(map[string]any)
	for name, child := range m {
		if c, ok := child.(map[string]any); ok {
			out[name] = c
		}
	}
	return out
}
