package eval

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

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
	p.Filename = strings.TrimPrefix(p.Filename, "/") // files of cue.mod keep it
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

// positions is the table of places of all structs, lists and leaves of the
// rendered document.
func (e *evaluation) positions(document any) Table {
	b := tableBuilder{files: map[string]int{}}
	e.walk(e.user, document, nil, &b)
	return b.table
}

// walk follows the document through the value. What the schema alone says is
// not in the value. Going by the document's names spares cue.Value.Fields,
// which puts fields in order at some cost.
func (e *evaluation) walk(v cue.Value, document any, at Path, b *tableBuilder) {
	if len(at) > 0 {
		b.add(at, e.places(v))
	}
	if d, ok := v.Default(); ok {
		v = d
	}
	step := func(sel cue.Selector, name string, below any) {
		if next := v.LookupPath(cue.MakePath(sel)); next.Exists() {
			e.walk(next, below, append(slices.Clip(at), name), b)
		}
	}
	switch d := document.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(d)) {
			step(cue.Str(name), name, d[name])
		}
	case []any:
		for i, item := range d {
			step(cue.Index(i), strconv.Itoa(i), item)
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
