package main

import (
	"encoding/json"
	"reflect"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/requirements"
	"github.com/reeve-project/reeve/reconciler/resources"
)

// document is one schema file.
type document struct {
	file  string
	title string
	value reflect.Type
}

// published are the schemas under docs/reference.
var published = []document{
	{"decision.schema.json", "Decision", reflect.TypeFor[decision.Decision]()},
	{"outcome.schema.json", "Outcome", reflect.TypeFor[decision.Outcome]()},
}

// encoded are the schemas of types that encode themselves. A type that does
// and is not here stops the generator, since its fields say nothing about its
// JSON.
var encoded = map[reflect.Type]func() *jsonschema.Schema{
	reflect.TypeFor[time.Time](): func() *jsonschema.Schema {
		return &jsonschema.Schema{Type: "string", Format: "date-time"}
	},
	reflect.TypeFor[json.RawMessage](): func() *jsonschema.Schema { return &jsonschema.Schema{} },
	reflect.TypeFor[json.Number]():     func() *jsonschema.Schema { return &jsonschema.Schema{Type: "number"} },
	reflect.TypeFor[resources.Price](): func() *jsonschema.Schema { return &jsonschema.Schema{Type: "number"} },
	reflect.TypeFor[resources.List](): func() *jsonschema.Schema {
		return &jsonschema.Schema{Type: "object", AdditionalProperties: &jsonschema.Schema{
			Type: "string", Description: "A Kubernetes quantity, such as 5150m or 7577Mi.",
		}}
	},
	reflect.TypeFor[fleet.Duration](): func() *jsonschema.Schema {
		return &jsonschema.Schema{Type: "string", Pattern: `^-?([0-9]+(\.[0-9]+)?(h|m|s|ms|µs|ns))+$`}
	},
	reflect.TypeFor[requirements.Set](): requirementSet,
}

func requirementSet() *jsonschema.Schema {
	one := &jsonschema.Schema{
		Type:     "object",
		Required: []string{"key", "operator"},
		Properties: map[string]*jsonschema.Schema{
			"key": {Type: "string", Description: "The label."},
			"operator": {Type: "string", Description: "How the label's value relates to the values.",
				Enum: []any{"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte"}},
			"values":    {Type: "array", Items: &jsonschema.Schema{Type: "string"}},
			"minValues": {Type: "integer", Description: "How many distinct values the launchable types must have at least."},
		},
		PropertyOrder:        []string{"key", "operator", "values", "minValues"},
		AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
	}
	return &jsonschema.Schema{Type: "array", Items: one}
}

// refined are the fields of which more is known than their type says, by
// package, type and field.
var refined = map[string]func(*jsonschema.Schema){
	"decision.Decision.Version": func(s *jsonschema.Schema) { s.Enum = []any{decision.Version} },
	"decision.Outcome.Version":  func(s *jsonschema.Schema) { s.Enum = []any{decision.Version} },
	"decision.Decision.ID": func(s *jsonschema.Schema) {
		s.Pattern = `^[0-9]{8}T[0-9]{6}\.[0-9]{3}Z-[a-z2-7]{16}$`
	},
	// An outcome to which nothing has happened yet has no state.
	"decision.Outcome.State": func(s *jsonschema.Schema) {
		s.AnyOf = []*jsonschema.Schema{{Ref: s.Ref}, {Type: "string", Enum: []any{""}}}
		s.Ref = ""
	},
}
