package eval

import (
	"fmt"
	"path"
	"slices"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/build"
	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/load"

	"github.com/reeve-project/reeve/schemas"
)

// Documents judges single objects that were read from YAML or JSON. It runs in
// the caller's process, because it takes plain data only: a value that names,
// computes or repeats nothing cannot make the evaluator run away. It is not safe
// for concurrent use.
type Documents struct {
	ctx  *cue.Context
	root cue.Value // package document
}

// NewDocuments compiles the schemas. An error is a fault of this binary.
func NewDocuments() (*Documents, error) {
	inst := load.Instances([]string{"./document"}, &load.Config{
		FS: schemas.Documents(), Dir: "/", Registry: noRegistry{}, Env: []string{},
		FromFSPath: func(p string) string { return path.Join(schemas.VendorDir, p) },
	})[0]
	if inst.Err != nil {
		return nil, fmt.Errorf("schemas of this binary: %w", inst.Err)
	}
	d := &Documents{ctx: cuecontext.New()}
	d.root = d.ctx.BuildInstance(inst)
	return d, d.root.Err()
}

// Judge says what the schema of a kind (NodePool, EC2NodeClass, NodeClaim) has
// against an object. Its syntax tree holds literals, structs and lists only, and
// all of its positions are in the file of that name. Fields that are null are
// taken for absent, as the API server does.
func (d *Documents) Judge(kind, file string, object *ast.StructLit) []Diagnostic {
	schema := d.root.LookupPath(cue.MakePath(cue.Def(kind)))
	dropNulls(object, schema)
	p := object.Pos().Position()
	e := &evaluation{
		start: Position{File: file, Line: p.Line, Column: p.Column},
		dir:   path.Dir(file), files: map[string][]byte{file: nil},
		inst: &build.Instance{}, schemaValue: schema, data: true,
	}
	e.user = d.ctx.BuildExpr(object)
	e.full = e.user.Unify(schema)
	if err := e.full.Validate(cue.Concrete(true), cue.Final()); err != nil {
		return e.diagnostics(err)
	}
	return nil
}

// dropNulls removes the fields that are null and that the schema knows; one that
// it does not know stays to be refused.
func dropNulls(x ast.Expr, schema cue.Value) {
	switch x := x.(type) {
	case *ast.StructLit:
		kept := x.Elts[:0]
		for _, el := range x.Elts {
			f, ok := el.(*ast.Field)
			if !ok {
				continue
			}
			name, _, _ := ast.LabelName(f.Label)
			if lit, ok := f.Value.(*ast.BasicLit); ok && lit.Value == "null" && knows(schema, name) {
				continue
			}
			if below, known := step(schema, name); known {
				dropNulls(f.Value, below)
			}
			kept = append(kept, el)
		}
		x.Elts = kept
	case *ast.ListLit:
		below, known := step(schema, "0")
		if !known {
			return
		}
		for _, el := range x.Elts {
			dropNulls(el, below)
		}
	}
}

// knows says whether the schema has something to say about a field. A struct
// that is open for the rules of another file says nothing.
func knows(schema cue.Value, name string) bool {
	if slices.Contains(fieldNames(schema), name) {
		return true
	}
	pattern := schema.LookupPath(cue.MakePath(cue.AnyString))
	return pattern.Exists() && pattern.IncompleteKind() != cue.TopKind
}
