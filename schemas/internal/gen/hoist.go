package main

import (
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"
)

// hoister moves the structs of list elements into definitions of their own where
// the list stands in a conjunction: list.MaxItems(50) & [...{...}]. A definition
// closes what is in it, but not through an operator, so that an unknown field of
// an element would pass.
type hoister struct {
	decls []ast.Decl
}

// walk goes through an expression of the field or definition of that name.
func (h *hoister) walk(x ast.Expr, name string, conjunct bool) {
	switch x := x.(type) {
	case *ast.StructLit:
		for _, el := range x.Elts {
			if f, ok := el.(*ast.Field); ok {
				label, _, err := ast.LabelName(f.Label)
				if err != nil {
					continue // a pattern: its values are no structs in these CRDs
				}
				h.walk(f.Value, name+strings.ToUpper(label[:1])+label[1:], false)
			}
		}
	case *ast.BinaryExpr:
		h.walk(x.X, name, x.Op == token.AND)
		h.walk(x.Y, name, x.Op == token.AND)
	case *ast.ListLit:
		for _, el := range x.Elts {
			h.element(el, name, conjunct)
		}
	}
}

func (h *hoister) element(el ast.Expr, name string, conjunct bool) {
	rest, ok := el.(*ast.Ellipsis)
	if !ok || rest.Type == nil {
		return
	}
	h.walk(rest.Type, name, false)
	if s, ok := rest.Type.(*ast.StructLit); ok && conjunct {
		label := ast.NewIdent(name)
		ast.SetRelPos(label, token.NewSection)
		h.decls = append(h.decls, &ast.Field{Label: label, Value: s})
		rest.Type = ast.NewIdent(name)
	}
}
