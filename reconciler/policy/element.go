package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/reeve-project/reeve/reconciler/fleet"
)

// Bounds of what a policy may say. What is above them is an error of the
// policy, since dropping findings would let something pass.
const (
	maxFindings = 1000      // of deny and warn in one evaluation
	maxChoices  = 50_000    // elements of exclude in one evaluation
	maxMessage  = 4 << 10   // bytes of one message
	maxResult   = 256 << 10 // bytes of all findings in the record
)

// element is one element of a rule's set.
type element struct {
	body     *body
	msg      string
	resource string
	path     fleet.Path
	nodePool string
	// types are the instance types of an exclusion; all when allTypes.
	types        []string
	allTypes     bool
	zone         string
	capacityType string
	// excepted says that conftest's exception rule lets it pass.
	excepted bool
	// value is what the policy returned, for the record.
	value ast.Value
}

// elements reads the set that a body found.
func elements(f found) ([]element, error) {
	terms, err := members(f.value)
	if err != nil {
		return nil, fmt.Errorf("%s: rule %s is %w: write it as a set", f.body.source(), f.body.ID, err)
	}
	limit := maxFindings
	if f.body.Kind == kindExclude {
		limit = maxChoices
	}
	if len(terms) > limit {
		return nil, fmt.Errorf("%s: rule %s finds %d things, more than the %d that are read", f.body.source(), f.body.ID, len(terms), limit)
	}
	out := make([]element, 0, len(terms))
	for _, t := range terms {
		el := element{body: f.body, value: t.Value}
		if err := el.read(t.Value); err != nil {
			return nil, fmt.Errorf("%s: rule %s: element %s: %w", f.body.source(), f.body.ID, shorten(t.Value.String()), err)
		}
		out = append(out, el)
	}
	return out, nil
}

// kindError names the type of a value that is not what it should be.
type kindError struct{ value ast.Value }

func (e kindError) Error() string {
	return "the " + ast.ValueName(e.value) + " " + shorten(e.value.String())
}

// members are the elements of a set or an array; sets are sorted.
func members(v ast.Value) ([]*ast.Term, error) {
	switch v := v.(type) {
	case ast.Set:
		return v.Slice(), nil
	case *ast.Array:
		return arrayTerms(v), nil
	default:
		return nil, kindError{v}
	}
}

func arrayTerms(a *ast.Array) []*ast.Term {
	out := make([]*ast.Term, a.Len())
	for i := range out {
		out[i] = a.Elem(i)
	}
	return out
}

// read takes the element apart: a string is the message alone.
func (el *element) read(v ast.Value) error {
	el.allTypes = true
	obj, ok := v.(ast.Object)
	if !ok {
		s, ok := v.(ast.String)
		if !ok {
			return fmt.Errorf("%w: an element is an object with msg, or a string", kindError{v})
		}
		el.msg = string(s)
		return el.checkMessage()
	}
	for _, f := range []struct {
		key  string
		into *string
	}{
		{"msg", &el.msg}, {"resource", &el.resource}, {"nodePool", &el.nodePool},
		{"zone", &el.zone}, {"capacityType", &el.capacityType},
	} {
		if err := text(obj, f.key, f.into); err != nil {
			return err
		}
	}
	if err := el.readPath(obj); err != nil {
		return err
	}
	if err := el.readTypes(obj); err != nil {
		return err
	}
	return el.checkMessage()
}

func (el *element) checkMessage() error {
	if strings.TrimSpace(el.msg) == "" {
		return fmt.Errorf("msg is empty: it says what is wrong")
	}
	if len(el.msg) > maxMessage {
		return fmt.Errorf("msg has %d bytes, more than the %d that are read", len(el.msg), maxMessage)
	}
	return nil
}

func text(obj ast.Object, key string, into *string) error {
	t := obj.Get(ast.InternedTerm(key))
	if t == nil {
		return nil
	}
	s, ok := t.Value.(ast.String)
	if !ok {
		return fmt.Errorf("%s is %w, not a string", key, kindError{t.Value})
	}
	*into = string(s)
	return nil
}

// readPath takes an array of words and indices, or one string with dots.
func (el *element) readPath(obj ast.Object) error {
	t := obj.Get(ast.InternedTerm("path"))
	if t == nil {
		return nil
	}
	switch v := t.Value.(type) {
	case ast.String:
		if v != "" {
			el.path = strings.Split(string(v), ".")
		}
		return nil
	case *ast.Array:
		path := make(fleet.Path, 0, v.Len())
		for _, e := range arrayTerms(v) {
			switch w := e.Value.(type) {
			case ast.String:
				path = append(path, string(w))
			case ast.Number:
				path = append(path, w.String())
			default:
				return fmt.Errorf("path has %w in it, which is neither a word nor an index", kindError{w})
			}
		}
		el.path = path
		return nil
	default:
		return fmt.Errorf("path is %w, not an array of words or a string with dots", kindError{v})
	}
}

// readTypes takes instanceType, or instanceTypes as a set or an array.
func (el *element) readTypes(obj ast.Object) error {
	var one string
	if err := text(obj, "instanceType", &one); err != nil {
		return err
	}
	if one != "" {
		el.types, el.allTypes = []string{one}, false
	}
	t := obj.Get(ast.InternedTerm("instanceTypes"))
	if t == nil {
		return nil
	}
	terms, err := members(t.Value)
	if err != nil {
		return fmt.Errorf("instanceTypes is %w, not a set of names", err)
	}
	el.allTypes = false
	for _, m := range terms {
		s, ok := m.Value.(ast.String)
		if !ok {
			return fmt.Errorf("instanceTypes has %w in it, which is no name", kindError{m.Value})
		}
		el.types = append(el.types, string(s))
	}
	slices.Sort(el.types)
	return nil
}

// shorten keeps values readable inside messages.
func shorten(s string) string { return shortenTo(s, 120) }

// shortenTo cuts at a border of characters.
func shortenTo(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && s[most]&0xC0 == 0x80 {
		most--
	}
	return s[:most] + "…"
}
