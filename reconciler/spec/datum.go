package spec

import (
	"encoding/json"
	"strconv"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/token"
	"go.yaml.in/yaml/v3"

	"github.com/reeve-project/reeve/reconciler/fleet"
)

// expr is a datum as CUE, with its positions.
func (d *datum) expr(file *token.File) ast.Expr {
	pos := file.Pos(d.at, token.NoRelPos)
	switch d.kind {
	case yaml.MappingNode:
		s := &ast.StructLit{Lbrace: pos, Rbrace: pos}
		for _, k := range d.keys {
			label := &ast.BasicLit{Kind: token.STRING, ValuePos: file.Pos(k.at, token.NoRelPos), Value: literal.String.Quote(k.name)}
			s.Elts = append(s.Elts, &ast.Field{Label: label, Value: k.value.expr(file)})
		}
		return s
	case yaml.SequenceNode:
		l := &ast.ListLit{Lbrack: pos, Rbrack: pos}
		for _, item := range d.items {
			l.Elts = append(l.Elts, item.expr(file))
		}
		return l
	}
	lit := &ast.BasicLit{ValuePos: pos}
	switch v := d.value.(type) {
	case nil:
		lit.Kind, lit.Value = token.NULL, "null"
	case bool:
		lit.Kind, lit.Value = token.FALSE, "false"
		if v {
			lit.Kind, lit.Value = token.TRUE, "true"
		}
	case json.Number:
		return number(v, pos)
	case string:
		lit.Kind, lit.Value = token.STRING, literal.String.Quote(v)
	}
	return lit
}

// number is a number as CUE: a literal has no sign.
func number(n json.Number, pos token.Pos) ast.Expr {
	text := n.String()
	negative := text[0] == '-'
	if negative {
		text = text[1:]
	}
	lit := &ast.BasicLit{Kind: token.INT, ValuePos: pos, Value: text}
	if _, err := strconv.ParseUint(text, 10, 64); err != nil {
		lit.Kind = token.FLOAT
	}
	if !negative {
		return lit
	}
	return &ast.UnaryExpr{OpPos: pos, Op: token.SUB, X: lit}
}

// plain is a datum as plain JSON values. Fields that are null are left out, as
// the API server does with all fields that Karpenter's CRDs have. It notes the
// place of every field below a path.
func (d *datum) plain(f *yamlFile, at fleet.Path, places fleet.Positions) any {
	switch d.kind {
	case yaml.MappingNode:
		out := map[string]any{}
		for _, k := range d.keys {
			below := append(append(fleet.Path{}, at...), k.name)
			places.Set(below, f.position(k.at))
			if v := k.value.plain(f, below, places); v != nil {
				out[k.name] = v
			}
		}
		return out
	case yaml.SequenceNode:
		out := make([]any, len(d.items))
		for i, item := range d.items {
			below := append(append(fleet.Path{}, at...), strconv.Itoa(i))
			places.Set(below, f.position(item.at))
			out[i] = item.plain(f, below, places)
		}
		return out
	}
	return d.value
}
