package main

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

const (
	module  = "github.com/reeve-project/reeve"
	dialect = "https://json-schema.org/draft/2020-12/schema"
)

// generate makes the files of the documents, by name. The module's source is
// read below root.
func generate(root string, docs []document) (map[string][]byte, error) {
	out := map[string][]byte{}
	read := map[string]*comments{}
	for _, d := range docs {
		g := newGenerator(root, d.value.PkgPath(), read)
		schema, err := g.document(d)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.file, err)
		}
		var buf bytes.Buffer
		enc := json.NewEncoder(&buf)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		if err := enc.Encode(schema); err != nil {
			return nil, fmt.Errorf("%s: %w", d.file, err)
		}
		out[d.file] = buf.Bytes()
	}
	return out, nil
}

type generator struct {
	root string
	// home is the package whose types are named without it.
	home     string
	comments map[string]*comments
	encoded  map[reflect.Type]encoder
	defs     map[string]*jsonschema.Schema
}

func newGenerator(root, home string, read map[string]*comments) *generator {
	return &generator{root: root, home: home, comments: read, encoded: encodings(), defs: map[string]*jsonschema.Schema{}}
}

func (g *generator) document(d document) (*jsonschema.Schema, error) {
	if _, err := g.schema(d.value); err != nil {
		return nil, err
	}
	name := g.name(d.value)
	out := *g.defs[name]
	out.Schema, out.Title = dialect, d.title
	delete(g.defs, name)
	out.Defs = g.defs
	return &out, nil
}

// schema is what values of the type look like in JSON. Types of this module
// become definitions and references to them.
func (g *generator) schema(t reflect.Type) (*jsonschema.Schema, error) {
	own := strings.HasPrefix(t.PkgPath(), module)
	switch {
	case own:
		return g.reference(t)
	case g.encoded[t] != nil:
		return g.encoded[t](g)
	case t.Kind() == reflect.Pointer:
		return g.schema(t.Elem())
	case encodesItself(t):
		return nil, unknownEncoding(t)
	case t.PkgPath() != "" && t.Kind() == reflect.Struct:
		return &jsonschema.Schema{Type: "object", Description: fmt.Sprintf("A %s of %s.", t.Name(), t.PkgPath())}, nil
	}
	return g.shape(t)
}

func (g *generator) reference(t reflect.Type) (*jsonschema.Schema, error) {
	name := g.name(t)
	ref := &jsonschema.Schema{Ref: "#/$defs/" + name}
	if _, done := g.defs[name]; done {
		return ref, nil
	}
	c, err := g.commentsOf(t)
	if err != nil {
		return nil, err
	}
	def := &jsonschema.Schema{}
	g.defs[name] = def // before its fields, which may come back to it
	content, err := g.content(t)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	*def = *content
	def.Description = c.types[t.Name()]
	if t.Kind() == reflect.String {
		enumerate(def, c.values[t.Name()])
	}
	return ref, nil
}

func (g *generator) content(t reflect.Type) (*jsonschema.Schema, error) {
	switch {
	case g.encoded[t] != nil:
		return g.encoded[t](g)
	case encodesItself(t):
		return nil, unknownEncoding(t)
	default:
		return g.shape(t)
	}
}

func enumerate(def *jsonschema.Schema, values []value) {
	for _, v := range values {
		def.Enum = append(def.Enum, v.text)
		if v.doc != "" {
			def.Description += fmt.Sprintf("\n%q: %s", v.text, v.doc)
		}
	}
}

func (g *generator) shape(t reflect.Type) (*jsonschema.Schema, error) {
	switch t.Kind() {
	case reflect.Bool:
		return &jsonschema.Schema{Type: "boolean"}, nil
	case reflect.String:
		return &jsonschema.Schema{Type: "string"}, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return &jsonschema.Schema{Type: "integer"}, nil
	case reflect.Float32, reflect.Float64:
		return &jsonschema.Schema{Type: "number"}, nil
	case reflect.Interface:
		return &jsonschema.Schema{}, nil
	case reflect.Slice, reflect.Array:
		return g.array(t)
	case reflect.Map:
		return g.object(t)
	case reflect.Struct:
		s := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{},
			AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}}}
		return s, g.fields(s, t)
	default:
		return nil, fmt.Errorf("%s has no JSON", t)
	}
}

func (g *generator) array(t reflect.Type) (*jsonschema.Schema, error) {
	if t.Elem().Kind() == reflect.Uint8 {
		return &jsonschema.Schema{Type: "string", ContentEncoding: "base64"}, nil
	}
	items, err := g.schema(t.Elem())
	if err != nil {
		return nil, err
	}
	return &jsonschema.Schema{Type: "array", Items: items}, nil
}

func (g *generator) object(t reflect.Type) (*jsonschema.Schema, error) {
	if t.Key().Kind() != reflect.String {
		return nil, fmt.Errorf("%s: only strings can be keys", t)
	}
	values, err := g.schema(t.Elem())
	if err != nil {
		return nil, err
	}
	return &jsonschema.Schema{Type: "object", AdditionalProperties: values}, nil
}

// fields adds the fields of the struct as encoding/json sees them.
func (g *generator) fields(s *jsonschema.Schema, t reflect.Type) error {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct {
			if err := g.fields(s, f.Type); err != nil {
				return err
			}
			continue
		}
		if !f.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		field, err := g.field(t, f, strings.Contains(options, "omit"))
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		s.Properties[name] = field
		s.PropertyOrder = append(s.PropertyOrder, name)
		if !strings.Contains(options, "omit") {
			s.Required = append(s.Required, name)
		}
	}
	return nil
}

func (g *generator) field(owner reflect.Type, f reflect.StructField, optional bool) (*jsonschema.Schema, error) {
	s, err := g.schema(f.Type)
	if err != nil {
		return nil, err
	}
	if refine := refined[path.Base(owner.PkgPath())+"."+owner.Name()+"."+f.Name]; refine != nil {
		refine(s)
	}
	if !optional && g.nilIsNull(f.Type) {
		s = &jsonschema.Schema{AnyOf: []*jsonschema.Schema{s, {Type: "null"}}}
	}
	if owner.Name() != "" {
		c, err := g.commentsOf(owner)
		if err != nil {
			return nil, err
		}
		if text := c.fields[owner.Name()+"."+f.Name]; text != "" {
			s.Description = text
		}
	}
	return s, nil
}

// nilIsNull says whether the type has a nil that is written as null.
func (g *generator) nilIsNull(t reflect.Type) bool {
	if g.encoded[t] != nil {
		return false
	}
	return slices.Contains([]reflect.Kind{reflect.Pointer, reflect.Slice, reflect.Map}, t.Kind())
}

// name of the definition: that of the type, with its package unless it is that
// of the document.
func (g *generator) name(t reflect.Type) string {
	if t.PkgPath() == g.home {
		return t.Name()
	}
	return path.Base(t.PkgPath()) + "." + t.Name()
}

func (g *generator) commentsOf(t reflect.Type) (*comments, error) {
	if c := g.comments[t.PkgPath()]; c != nil {
		return c, nil
	}
	if !strings.HasPrefix(t.PkgPath(), module) {
		return &comments{}, nil
	}
	c, err := readComments(filepath.Join(g.root, filepath.FromSlash(strings.TrimPrefix(t.PkgPath(), module))))
	if err != nil {
		return nil, fmt.Errorf("comments of %s: %w", t, err)
	}
	g.comments[t.PkgPath()] = c
	return c, nil
}

func encodesItself(t reflect.Type) bool {
	for _, m := range []reflect.Type{reflect.TypeFor[json.Marshaler](), reflect.TypeFor[encoding.TextMarshaler]()} {
		if t.Implements(m) || reflect.PointerTo(t).Implements(m) {
			return true
		}
	}
	return false
}

func unknownEncoding(t reflect.Type) error {
	return fmt.Errorf("%s encodes itself: say in test/tools/schemagen/table.go what its JSON is", t)
}
