package eval

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"runtime/debug"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/build"
	"cuelang.org/go/cue/cuecontext"
	cueerrors "cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/load"
	"cuelang.org/go/mod/modfile"
	"cuelang.org/go/mod/module"

	"github.com/reeve-project/reeve/schemas"
)

// evaluate renders a cluster's package. It runs in the child process, for CUE
// has no way to stop an evaluation. The error is about Reeve itself; faults of
// the repository are in the response.
func evaluate(req Request) (resp Response, err error) {
	defer func() {
		if r := recover(); r != nil {
			resp = Response{Diagnostics: []Diagnostic{brokenEvaluator(req, r)}}
			err = nil
		}
	}()
	tree, err := newTreeFS(req.Files)
	if err != nil {
		return Response{}, err
	}
	e := &evaluation{dir: req.Dir, files: map[string][]byte{}}
	for _, f := range req.Files {
		e.files[f.Name] = f.Data
	}
	e.start = Position{File: firstFile(req), Line: 1, Column: 1}
	e.inst = load.Instances([]string{"./" + e.dir}, &load.Config{
		FS:         tree,
		Dir:        "/",
		Package:    "fleet",
		FromFSPath: func(p string) string { return strings.TrimPrefix(p, "/") },
		Registry:   noRegistry{},
		Env:        []string{},
	})[0]
	return e.run()
}

// evaluation is the state of one call of evaluate.
type evaluation struct {
	dir   string   // of the cluster
	start Position // for faults without any position
	files map[string][]byte
	inst  *build.Instance
	data  bool // what is judged is one object of plain data and no fleet

	user cue.Value // what the repository says, without the schema
	full cue.Value // user & #Fleet

	schemaValue cue.Value // #Fleet
}

func (e *evaluation) run() (Response, error) {
	if e.inst.Err != nil {
		return Response{Diagnostics: e.loadDiagnostics(e.inst.Err)}, nil
	}
	if ds := e.strays(); len(ds) > 0 {
		return Response{Diagnostics: ds}, nil
	}
	ctx := cuecontext.New()
	schema, err := e.schema(ctx)
	if err != nil {
		return Response{}, err
	}
	e.schemaValue = schema
	e.user = ctx.BuildInstance(e.inst)
	e.full = e.user.Unify(schema)
	if err := e.full.Validate(cue.Concrete(true), cue.Final()); err != nil {
		return e.refuse(err), nil
	}
	tree, ok := rendered(e.full)
	if !ok {
		raw, err := e.full.MarshalJSON()
		if err != nil {
			return e.refuse(err), nil
		}
		if tree, err = parsed(raw); err != nil {
			return Response{}, err
		}
	}
	document, err := canonical(tree)
	if err != nil {
		return Response{}, err
	}
	return Response{Document: document, Positions: e.positions(tree)}, nil
}

// schema is #Fleet of the module that the package imports or, where it imports
// none, of the binary. Using the imported one spares evaluating it twice.
func (e *evaluation) schema(ctx *cue.Context) (cue.Value, error) {
	inst := imported(e.inst)
	if inst == nil {
		inst = load.Instances([]string{"."}, &load.Config{
			FS: schemas.FS(), Dir: "/", Registry: noRegistry{}, Env: []string{},
			FromFSPath: func(p string) string { return path.Join(schemas.VendorDir, p) },
		})[0]
	}
	if inst.Err != nil {
		return cue.Value{}, fmt.Errorf("schemas of this binary: %w", inst.Err)
	}
	v := ctx.BuildInstance(inst).LookupPath(cue.MakePath(cue.Def("#Fleet")))
	return v, v.Err()
}

// imported finds the instance of the schemas among the imports.
func imported(inst *build.Instance) *build.Instance {
	prefix, _, _ := strings.Cut(schemas.Module, "@")
	for _, dep := range inst.Dependencies() {
		if p, _, _ := strings.Cut(dep.ImportPath, "@"); p == prefix {
			return dep
		}
	}
	return nil
}

func (e *evaluation) refuse(err error) Response {
	return Response{Diagnostics: e.diagnostics(err)}
}

// parsed is a JSON document as a tree with its numbers as written.
func parsed(raw []byte) (tree any, err error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&tree); err != nil {
		return nil, fmt.Errorf("rendered fleet: %w", err)
	}
	return tree, nil
}

// canonical is a tree as JSON with sorted keys.
func canonical(tree any) (json.RawMessage, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(tree); err != nil {
		return nil, fmt.Errorf("rendered fleet: %w", err)
	}
	return bytes.TrimSpace(out.Bytes()), nil
}

// firstFile is the first file of the cluster's directory.
func firstFile(req Request) string {
	for _, f := range req.Files {
		if path.Dir(f.Name) == req.Dir && f.Refused == "" {
			return f.Name
		}
	}
	return req.Dir
}

// find is the first place of some words in the cluster's files.
func (e *evaluation) find(words string) Position {
	for _, name := range slices.Sorted(maps.Keys(e.files)) {
		if path.Dir(name) != e.dir {
			continue
		}
		before, _, found := bytes.Cut(e.files[name], []byte(words))
		if found {
			line := bytes.Count(before, []byte("\n")) + 1
			return Position{File: name, Line: line, Column: len(before) - bytes.LastIndexByte(before, '\n')}
		}
	}
	return e.start
}

// brokenEvaluator turns a panic of the CUE library into a diagnostic: it is a
// property of the commit, and another way to write the same may do.
func brokenEvaluator(req Request, cause any) Diagnostic {
	return Diagnostic{
		Position: Position{File: firstFile(req), Line: 1, Column: 1},
		Message:  fmt.Sprintf("the CUE evaluator broke down on this package: %v", cause),
		Hint:     "undo the last change to it; this is a fault of the evaluator: " + panicSite(debug.Stack()),
	}
}

// panicSite is the innermost function of the CUE library on a stack.
func panicSite(stack []byte) string {
	for line := range strings.Lines(string(stack)) {
		if strings.HasPrefix(line, "cuelang.org/") {
			name, _, _ := strings.Cut(strings.TrimSpace(line), "(")
			return name
		}
	}
	return "place unknown"
}

// noRegistry refuses to fetch modules, so that a commit cannot make Reeve open
// connections, and so that a fleet depends on nothing but its commit.
type noRegistry struct{}

func refuseModule(m string) error {
	return fmt.Errorf("module %s is not in this repository and Reeve downloads none: vendor it and point to it with replaceWith in cue.mod/local-module.cue", m)
}

// ModFile is modconfig.Registry.
func (noRegistry) ModFile(_ context.Context, m module.Version) (*modfile.File, error) {
	return nil, refuseModule(m.String())
}

// Fetch is modconfig.Registry.
func (noRegistry) Fetch(_ context.Context, m module.Version) (module.SourceLoc, error) {
	return module.SourceLoc{}, refuseModule(m.String())
}

// ModuleVersions is modconfig.Registry.
func (noRegistry) ModuleVersions(_ context.Context, m string) ([]string, error) {
	return nil, refuseModule(m)
}

// cueErrors are the single errors in an error of the CUE library.
func cueErrors(err error) []cueerrors.Error {
	var all []cueerrors.Error
	for _, e := range cueerrors.Errors(err) {
		var list interface{ Unwrap() []error }
		if errors.As(error(e), &list) {
			for _, inner := range list.Unwrap() {
				all = append(all, cueerrors.Errors(inner)...)
			}
			continue
		}
		all = append(all, e)
	}
	return all
}
