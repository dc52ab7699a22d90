package policy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/reeve-project/reeve/reconciler/fleet"
)

// FieldChange is a field in which an object of a fleet differs from the one of
// the same name before.
type FieldChange struct {
	// Path of the field in the document of the fleet.
	Path fleet.Path
	// From and To are its values as JSON, nil where the field is not there.
	From, To json.RawMessage
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

// Changes are the fields below the path that differ, by path. Lists of different
// length differ as a whole.
func (f *Fields) Changes(at fleet.Path) []FieldChange {
	var out []FieldChange
	walkFields(lookUp(f.before, at), lookUp(f.after, at), at, func(p fleet.Path) {
		out = append(out, FieldChange{Path: slices.Clone(p), From: rawAt(f.before, p), To: rawAt(f.after, p)})
	})
	return out
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

func rawAt(doc map[string]any, at fleet.Path) json.RawMessage {
	v := lookUp(doc, at)
	if v == nil {
		return nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		return nil // what was decoded from JSON can be encoded
	}
	return b
}
