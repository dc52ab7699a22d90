package eval

import (
	"cmp"
	"slices"
	"strconv"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"

	"github.com/reeve-project/reeve/schemas"
)

func comparePositions(a, b Position) int {
	return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
}

// place is a position with what decides how good it is to show.
type place struct {
	Position
	rank int
}

// The ranks of places, best first. A default or a choice says less about where
// a value comes from than the plain value beside it.
const (
	rankCluster = iota
	rankClusterChoice
	rankModule
	rankModuleChoice
	rankSchema
)

// places are where the value was written in the repository, best first: the
// cluster's own directory, then the rest of the repository. What only the
// schema says has no place. The value is part of e.user, where each conjunct is
// still the one that was written.
func (e *evaluation) places(v cue.Value) []Position {
	var found []place
	vertex := v.Core().V
	if vertex == nil {
		return nil
	}
	// cue.Value.Expr gives the same positions, but evaluates the whole value
	// again for each conjunct, which takes most of the time of a load.
	for c := range vertex.LeafConjuncts() {
		src := c.Source()
		if src == nil {
			continue
		}
		if p, ok := e.place(src.Pos(), isChoice(src)); ok {
			found = append(found, p)
		}
	}
	return sortPlaces(found)
}

// isChoice says whether what was written is a disjunction: *"1m" | string.
func isChoice(src ast.Node) bool {
	if f, ok := src.(*ast.Field); ok {
		src = f.Value
	}
	for {
		p, ok := src.(*ast.ParenExpr)
		if !ok {
			break
		}
		src = p.X
	}
	b, ok := src.(*ast.BinaryExpr)
	return ok && b.Op == token.OR
}

// place ranks a position; a position in the schema is no place.
func (e *evaluation) place(pos token.Pos, choice bool) (place, bool) {
	if !pos.IsValid() || pos.File() == nil {
		return place{}, false
	}
	p := pos.Position()
	pl := place{Position: Position{File: p.Filename, Line: p.Line, Column: p.Column}}
	if _, ok := e.files[p.Filename]; !ok || inDir(p.Filename, schemas.VendorDir) {
		return place{}, false // in the schemas, or in a package of CUE's own
	}
	switch {
	case inDir(p.Filename, e.dir):
		pl.rank = rankCluster
	default:
		pl.rank = rankModule
	}
	if choice {
		pl.rank++
	}
	return pl, true
}

func sortPlaces(found []place) []Position {
	slices.SortFunc(found, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), comparePositions(a.Position, b.Position))
	})
	out := make([]Position, 0, len(found))
	for _, f := range found {
		if !slices.Contains(out, f.Position) {
			out = append(out, f.Position)
		}
	}
	return out
}

// positions is the table of places of all structs, lists and leaves.
func (e *evaluation) positions() Table {
	b := tableBuilder{files: map[string]int{}}
	e.walk(e.user, nil, &b)
	return b.table
}

func (e *evaluation) walk(v cue.Value, at Path, b *tableBuilder) {
	if len(at) > 0 {
		b.add(at, e.places(v))
	}
	v, _ = v.Default()
	switch v.Kind() {
	case cue.StructKind:
		fields, err := v.Fields()
		if err != nil {
			return
		}
		for fields.Next() {
			e.walk(fields.Value(), append(slices.Clip(at), fields.Selector().Unquoted()), b)
		}
	case cue.ListKind:
		items, err := v.List()
		if err != nil {
			return
		}
		for i := 0; items.Next(); i++ {
			e.walk(items.Value(), append(slices.Clip(at), strconv.Itoa(i)), b)
		}
	}
}

// tableBuilder makes a Table.
type tableBuilder struct {
	table Table
	files map[string]int
}

func (b *tableBuilder) add(at Path, places []Position) {
	if len(places) == 0 {
		return
	}
	f := Field{Path: at}
	for _, p := range places {
		i, ok := b.files[p.File]
		if !ok {
			i = len(b.table.Files)
			b.files[p.File] = i
			b.table.Files = append(b.table.Files, p.File)
		}
		f.At = append(f.At, [3]int{i, p.Line, p.Column})
	}
	b.table.Fields = append(b.table.Fields, f)
}
