package policy

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"

	"github.com/reeve-project/reeve/reconciler/fleet"
)

// FieldChange is a field in which an object of a fleet differs from the one of
// the same name before.
type FieldChange struct {
	// Path of the field in the document of the fleet. Of an element of a list
	// that is gone it is the path of the list.
	Path fleet.Path
	// Name is the path as a reader knows the field: elements of lists that have
	// a key are named by it, the others by their index.
	Name fleet.Path
	// From and To are its values as JSON, nil where the field is not there.
	From, To json.RawMessage
	// Before and After are the innermost elements of lists that the field is in,
	// nil where it is in none.
	Before, After map[string]any
	// Stable is the path of the field, or of the nearest list around it whose
	// elements moved, and StableTo what is there afterwards: with both the change
	// can be made in the document before.
	Stable   fleet.Path
	StableTo json.RawMessage
}

// Fields compares two fleets field by field.
type Fields struct{ before, after map[string]any }

// NewFields reads the documents of both fleets. It fails when one is no JSON.
func NewFields(previous, next *fleet.Fleet) (*Fields, error) {
	a, err := decodeObject(previous.Document)
	if err != nil {
		return nil, fmt.Errorf("document of the previous fleet: %w", err)
	}
	b, err := decodeObject(next.Document)
	if err != nil {
		return nil, fmt.Errorf("document of the fleet: %w", err)
	}
	return &Fields{a, b}, nil
}

// Changes are the fields below the path that differ, by path. Elements of lists
// that are objects are held against those of the same key, wherever they are in
// the list; lists of anything else differ as a whole.
func (f *Fields) Changes(at fleet.Path) []FieldChange {
	w := &fieldWalk{}
	w.values(lookUp(f.before, at), lookUp(f.after, at), spot{path: at, name: at})
	return w.out
}

// spot is where a walk over two documents is.
type spot struct {
	path, name    fleet.Path
	before, after map[string]any
	// list is set below the first list whose elements moved.
	list    fleet.Path
	listNew json.RawMessage
}

func (s spot) below(word, name string) spot {
	s.path, s.name = append(slices.Clone(s.path), word), append(slices.Clone(s.name), name)
	return s
}

type fieldWalk struct{ out []FieldChange }

func (w *fieldWalk) values(a, b any, at spot) {
	x, isMap := a.(map[string]any)
	y, both := b.(map[string]any)
	if isMap && both {
		for _, word := range sortedKeys(union(x, y)) {
			w.values(x[word], y[word], at.below(word, word))
		}
		return
	}
	if before, after, ok := objectLists(a, b); ok {
		w.lists(before, after, at)
		return
	}
	if !reflect.DeepEqual(a, b) {
		w.differ(a, b, at)
	}
}

func (w *fieldWalk) differ(a, b any, at spot) {
	c := FieldChange{Path: at.path, Name: at.name, From: raw(a), To: raw(b), Before: at.before, After: at.after, Stable: at.list, StableTo: at.listNew}
	if at.list == nil {
		c.Stable, c.StableTo = c.Path, c.To
	}
	w.out = append(w.out, c)
}

// lists compares two lists of objects element by element.
func (w *fieldWalk) lists(a, b []map[string]any, at spot) {
	names := newElementNames(a, b)
	for _, p := range names.pairs() {
		in := at
		if p.before != p.after && at.list == nil {
			in.list, in.listNew = at.path, raw(b)
		}
		switch {
		case p.after < 0:
			gone := in.below("", names.of(a, p.before))
			gone.path, gone.before, gone.after = at.path, a[p.before], nil
			w.differ(a[p.before], nil, gone)
		case p.before < 0:
			in = in.below(strconv.Itoa(p.after), names.of(b, p.after))
			in.before, in.after = nil, b[p.after]
			w.differ(nil, b[p.after], in)
		default:
			in = in.below(strconv.Itoa(p.after), names.of(b, p.after))
			in.before, in.after = a[p.before], b[p.after]
			w.values(a[p.before], b[p.after], in)
		}
	}
}

// lookUp is the value at a path, nil when there is none.
func lookUp(v any, at fleet.Path) any {
	for _, word := range at {
		switch x := v.(type) {
		case map[string]any:
			v = x[word]
		case []any:
			i, err := strconv.Atoi(word)
			if err != nil || i < 0 || i >= len(x) {
				return nil
			}
			v = x[i]
		default:
			return nil
		}
	}
	return v
}

// raw is the value as JSON, nil for none.
func raw(v any) json.RawMessage {
	if v == nil {
		return nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		return nil // what was decoded from JSON can be encoded
	}
	return b
}
