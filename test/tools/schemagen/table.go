package main

import (
	"encoding/json"
	"reflect"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/policy"
	"github.com/reeve-project/reeve/reconciler/report"
	"github.com/reeve-project/reeve/reconciler/requirements"
	"github.com/reeve-project/reeve/reconciler/resources"
)

// document is one schema file.
type document struct {
	file  string
	title string
	value reflect.Type
}

// published are the schemas under docs/reference. Those of policies have a
// directory of their own and are named as OPA names schemas, so that
// "opa check --schema docs/reference/policy-input" finds schema.spec and so on.
var published = []document{
	{"decision.schema.json", "Decision", reflect.TypeFor[decision.Decision]()},
	{"outcome.schema.json", "Outcome", reflect.TypeFor[decision.Outcome]()},
	{"explain/pod.schema.json", "Story of a pod", reflect.TypeFor[report.PodStory]()},
	{"explain/node.schema.json", "Story of a node", reflect.TypeFor[report.NodeStory]()},
	{"policy-input/spec.json", "Input of package reeve.spec", reflect.TypeFor[policy.SpecInput]()},
	{"policy-input/offering.json", "Input of package reeve.offering", reflect.TypeFor[policy.OfferingInput]()},
	{"policy-input/decision.json", "Input of package reeve.decision", reflect.TypeFor[policy.DecisionInput]()},
}

// encoder makes the schema of a type that encodes itself.
type encoder func(*generator) (*jsonschema.Schema, error)

// encodings are the types that encode themselves. One that does and is not
// here stops the generator, since its fields say nothing about its JSON.
func encodings() map[reflect.Type]encoder {
	return map[reflect.Type]encoder{
		reflect.TypeFor[time.Time]():             always(jsonschema.Schema{Type: "string", Format: "date-time"}),
		reflect.TypeFor[json.RawMessage]():       always(jsonschema.Schema{}),
		reflect.TypeFor[json.Number]():           always(jsonschema.Schema{Type: "number"}),
		reflect.TypeFor[resources.Price]():       always(jsonschema.Schema{Type: "number"}),
		reflect.TypeFor[resources.List]():        always(jsonschema.Schema{Type: "object", AdditionalProperties: &quantity}),
		reflect.TypeFor[fleet.Duration]():        always(jsonschema.Schema{Type: "string", Pattern: `^-?([0-9]+(\.[0-9]+)?(h|m|s|ms|µs|ns))+$`}),
		reflect.TypeFor[requirements.Set]():      always(jsonschema.Schema{Type: "array", Items: &requirement}),
		reflect.TypeFor[policy.ObjectDocument](): always(jsonschema.Schema{Types: []string{"object", "null"}}),
		reflect.TypeFor[policy.FleetDocument]():  fleetDocument,
	}
}

func always(s jsonschema.Schema) encoder {
	return func(*generator) (*jsonschema.Schema, error) { return s.CloneSchemas(), nil }
}

var quantity = jsonschema.Schema{Type: "string", Description: "A Kubernetes quantity, such as 5150m or 7577Mi."}

var requirement = jsonschema.Schema{
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

// fleetDocument is the JSON of a fleet. What NodePools and EC2NodeClasses may
// say is for their CRDs, and what the data of policies may be is for the policies.
func fleetDocument(g *generator) (*jsonschema.Schema, error) {
	settings, err := g.schema(reflect.TypeFor[fleet.Cluster]())
	if err != nil {
		return nil, err
	}
	exceptions, err := g.schema(reflect.TypeFor[[]fleet.Exception]())
	if err != nil {
		return nil, err
	}
	byName := func(what string) *jsonschema.Schema {
		return &jsonschema.Schema{Type: "object", Description: what + " by name.", AdditionalProperties: &jsonschema.Schema{Type: "object"}}
	}
	return &jsonschema.Schema{
		Types: []string{"object", "null"},
		Properties: map[string]*jsonschema.Schema{
			"cluster":     settings,
			"nodePools":   byName("The NodePools"),
			"nodeClasses": byName("The EC2NodeClasses"),
			"policy":      {Type: "object", Description: "What policies see as data.policy."},
			"exceptions":  exceptions,
		},
		PropertyOrder: []string{"cluster", "nodePools", "nodeClasses", "policy", "exceptions"},
	}, nil
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
