package policy

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/util"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/requirements"
	"github.com/reeve-project/reeve/reconciler/resources"
)

// Schemas are the JSON schemas of the inputs by stage. Rego that declares
// `schemas: [{input: schema.<stage>}]` is checked against them when it is
// compiled.
func Schemas() (map[Stage]json.RawMessage, error) { return allSchemas() }

var allSchemas = sync.OnceValues(func() (map[Stage]json.RawMessage, error) {
	out := map[Stage]json.RawMessage{}
	for stage, t := range map[Stage]reflect.Type{
		StageSpec:     reflect.TypeFor[SpecInput](),
		StageOffering: reflect.TypeFor[OfferingInput](),
		StageDecision: reflect.TypeFor[DecisionInput](),
	} {
		s, err := schemaOf(t)
		if err != nil {
			return nil, fmt.Errorf("schema of stage %s: %w", stage, err)
		}
		for _, field := range []string{"previous", "status"} {
			orNullSchema(s.Properties[field])
		}
		s.Schema = "https://json-schema.org/draft/2020-12/schema"
		s.Title = "Input of reeve." + string(stage)
		if out[stage], err = json.MarshalIndent(s, "", "  "); err != nil {
			return nil, fmt.Errorf("schema of stage %s: %w", stage, err)
		}
	}
	return out, nil
})

// orNullSchema makes of the schema of an object one that null satisfies too. OPA
// reads alternatives, but of a list of types only the first.
func orNullSchema(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	object := *s
	object.Description = ""
	*s = jsonschema.Schema{Description: s.Description, AnyOf: []*jsonschema.Schema{{Type: "null"}, &object}}
}

func schemaOf(t reflect.Type) (*jsonschema.Schema, error) {
	document, err := fleetSchema()
	if err != nil {
		return nil, err
	}
	return jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: written(document)})
}

// written are the schemas of types that encode themselves.
func written(document *jsonschema.Schema) map[reflect.Type]*jsonschema.Schema {
	object := &jsonschema.Schema{Type: "object"}
	number := &jsonschema.Schema{Type: "number"}
	return map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[FleetDocument]():    document,
		reflect.TypeFor[ObjectDocument]():   object,
		reflect.TypeFor[fleet.Duration]():   {Type: "string", Description: "A length of time: 1m30s."},
		reflect.TypeFor[json.Number]():      number,
		reflect.TypeFor[resources.Price]():  {Type: "number", Description: "USD per hour."},
		reflect.TypeFor[resources.List]():   {Type: "object", Description: "Kubernetes quantities by resource.", AdditionalProperties: &jsonschema.Schema{Type: "string"}},
		reflect.TypeFor[requirements.Set](): {Type: "array", Description: "Requirements as a NodePool writes them.", Items: object},
		reflect.TypeFor[metav1.Time]():      {Type: "string", Format: "date-time"},
		reflect.TypeFor[time.Time]():        {Type: "string", Format: "date-time"},
	}
}

// fleetSchema is the schema of a fleet's document. What NodePools and
// EC2NodeClasses may say is for their CRDs.
func fleetSchema() (*jsonschema.Schema, error) {
	settings, err := jsonschema.ForType(reflect.TypeFor[fleet.Cluster](), &jsonschema.ForOptions{TypeSchemas: written(nil)})
	if err != nil {
		return nil, err
	}
	exception, err := jsonschema.ForType(reflect.TypeFor[fleet.Exception](), &jsonschema.ForOptions{TypeSchemas: written(nil)})
	if err != nil {
		return nil, err
	}
	object := func() *jsonschema.Schema { return &jsonschema.Schema{Type: "object"} }
	return &jsonschema.Schema{
		Type: "object",
		Properties: map[string]*jsonschema.Schema{
			"cluster":     settings,
			"nodePools":   {Type: "object", AdditionalProperties: object()},
			"nodeClasses": {Type: "object", AdditionalProperties: object()},
			"policy":      object(),
			"exceptions":  {Type: "array", Items: exception},
		},
		PropertyOrder: []string{"cluster", "nodePools", "nodeClasses", "policy", "exceptions"},
	}, nil
}

// schemaSet is the schemas for the compiler: schema.spec and so on.
func schemaSet() (*ast.SchemaSet, error) {
	all, err := Schemas()
	if err != nil {
		return nil, err
	}
	set := ast.NewSchemaSet()
	for stage, raw := range all {
		var x any
		if err := util.UnmarshalJSON(raw, &x); err != nil {
			return nil, fmt.Errorf("schema of stage %s: %w", stage, err)
		}
		set.Put(ast.MustParseRef("schema."+string(stage)), x)
	}
	return set, nil
}

// declareSchemas makes the compiler check input in every package of a stage, as
// if the package had the annotation `schemas: [{input: schema.<stage>}]`: a
// field that is misspelled is an error then, and not a rule that never finds
// anything. A package that declares a schema of its own keeps it. Tests are left
// alone; they make up their input.
func declareSchemas(modules map[string]*ast.Module) {
	first, declared := map[string]*ast.Module{}, map[string]*ast.Annotations{}
	for _, name := range sortedKeys(modules) {
		m := modules[name]
		key := m.Package.Path.String()
		if first[key] == nil {
			first[key] = m
		}
		for _, a := range m.Annotations {
			if a.Scope == "package" {
				declared[key] = a
			}
		}
	}
	for _, key := range sortedKeys(first) {
		m := first[key]
		stage := stageNamed(refWords(m.Package.Path))
		if stage == "" {
			continue
		}
		schema := &ast.SchemaAnnotation{Path: ast.Ref{ast.InputRootDocument}, Schema: ast.MustParseRef("schema." + string(stage))}
		switch a := declared[key]; {
		case a == nil:
			a = &ast.Annotations{Scope: "package", Location: m.Package.Location, Schemas: []*ast.SchemaAnnotation{schema}}
			m.Annotations = append(m.Annotations, a.Copy(m.Package))
		case !slices.ContainsFunc(a.Schemas, func(s *ast.SchemaAnnotation) bool { return s.Path.HasPrefix(schema.Path) }):
			a.Schemas = append(a.Schemas, schema)
		}
	}
}
