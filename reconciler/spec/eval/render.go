package eval

import (
	"encoding/json"

	"cuelang.org/go/cue"
)

// rendered is a finished value as a tree of maps, lists, strings, booleans and
// numbers as they are written. It is what cue.Value.MarshalJSON would write, but
// that puts the fields of every struct in the order of the files first, which
// costs a third as much as the evaluation and is lost when keys are sorted. What
// is no plain data is left to it: ok is false then.
func rendered(v cue.Value) (tree any, ok bool) {
	if d, has := v.Default(); has {
		v = d
	}
	switch v.Kind() {
	case cue.StructKind:
		return renderedStruct(v)
	case cue.ListKind:
		return renderedList(v)
	case cue.StringKind:
		s, err := v.String()
		return s, err == nil
	case cue.BoolKind:
		b, err := v.Bool()
		return b, err == nil
	case cue.NullKind:
		return nil, true
	case cue.IntKind, cue.FloatKind, cue.NumberKind:
		b, err := v.MarshalJSON()
		return json.Number(b), err == nil
	default:
		return nil, false
	}
}

// renderedStruct takes the regular fields. A field that may or must be there
// but has no value is a constraint: Validate has refused those that must.
func renderedStruct(v cue.Value) (any, bool) {
	core := v.Core()
	arcs := core.V.DerefValue().Arcs
	out := make(map[string]any, len(arcs))
	for _, arc := range arcs {
		if !arc.Label.IsString() || arc.IsConstraint() {
			continue
		}
		name := arc.Label.StringValue(core.R)
		field := v.LookupPath(cue.MakePath(cue.Str(name)))
		if !field.Exists() {
			return nil, false
		}
		below, ok := rendered(field)
		if !ok {
			return nil, false
		}
		out[name] = below
	}
	return out, true
}

func renderedList(v cue.Value) (any, bool) {
	items, err := v.List()
	if err != nil {
		return nil, false
	}
	out := []any{}
	for items.Next() {
		below, ok := rendered(items.Value())
		if !ok {
			return nil, false
		}
		out = append(out, below)
	}
	return out, true
}
