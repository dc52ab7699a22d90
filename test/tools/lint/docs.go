package main

import (
	"fmt"
	"go/ast"
	"maps"
	"path"
	"slices"
)

// undocumented finds exported names without a comment. In a block of constants
// or variables the comment may stand over the block or behind the name.
func (g goFile) undocumented() []finding {
	var out []finding
	missing := func(n ast.Node, name string) {
		out = append(out, finding{g.path, g.at(n.Pos()), fmt.Sprintf("%s is exported and has no comment: say what it is, in which unit, and when it fails", name)})
	}
	for _, d := range g.ast.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && exportedReceiver(d) && d.Doc == nil {
				missing(d, d.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if name := undocumentedSpec(d, spec); name != nil {
					missing(name, name.Name)
				}
			}
		}
	}
	return out
}

func undocumentedSpec(d *ast.GenDecl, spec ast.Spec) *ast.Ident {
	switch s := spec.(type) {
	case *ast.TypeSpec:
		if s.Name.IsExported() && s.Doc == nil && (d.Doc == nil || len(d.Specs) > 1) {
			return s.Name
		}
	case *ast.ValueSpec:
		for _, name := range s.Names {
			if name.IsExported() && d.Doc == nil && s.Doc == nil && s.Comment == nil {
				return name
			}
		}
	}
	return nil
}

// exportedReceiver says whether the function is one that others can call: a
// plain one, or a method of an exported type.
func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return true
	}
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return true
		}
	}
}

func notePackage(f file, parsed *ast.File, packages map[string]*packageComment) {
	dir := path.Dir(f.path)
	if packages[dir] == nil {
		packages[dir] = &packageComment{first: f.path}
	}
	packages[dir].found = packages[dir].found || parsed.Doc != nil
}

func missingPackageComments(packages map[string]*packageComment) []finding {
	var out []finding
	for _, dir := range slices.Sorted(maps.Keys(packages)) {
		if p := packages[dir]; !p.found {
			out = append(out, finding{p.first, 1, "no file of the package says what the package is for: add a package comment"})
		}
	}
	return out
}
