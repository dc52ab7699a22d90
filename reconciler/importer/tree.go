package importer

import (
	"slices"

	"github.com/reeve-project/reeve/reconciler/fleet"
)

// kind is what a value of a YAML document is.
type kind string

// The kinds. The words are those of messages.
const (
	mapping  kind = "mapping"
	sequence kind = "list"
	text     kind = "string"
	boolean  kind = "boolean"
	integer  kind = "whole number"
	fraction kind = "number"
	null     kind = "null"
)

// node is a value of a YAML document with its place and its comments.
type node struct {
	kind kind
	// value is a scalar: a string as it is meant, everything else in the form
	// of JSON.
	value string
	// written is the text of a plain scalar as it stands in the document.
	written string
	fields  []*field
	items   []*node
	at      fleet.Position
	// notes are those of an element of a list; those of a field's value are
	// with the field.
	notes comments
}

// field is a member of a mapping.
type field struct {
	name  string
	at    fleet.Position
	value *node
	notes comments
}

// comments are lines without their marks.
type comments struct {
	above  []string
	beside string
	below  []string
}

func (c comments) empty() bool { return len(c.above) == 0 && c.beside == "" && len(c.below) == 0 }

func (c comments) equal(d comments) bool {
	return slices.Equal(c.above, d.above) && c.beside == d.beside && slices.Equal(c.below, d.below)
}

// lines are all comments as lines to stand above something.
func (c comments) lines() []string {
	out := slices.Clone(c.above)
	if c.beside != "" {
		out = append(out, c.beside)
	}
	return append(out, c.below...)
}

// find is the field of that name, or nil.
func (n *node) find(name string) *field {
	if n == nil {
		return nil
	}
	for _, f := range n.fields {
		if f.name == name {
			return f
		}
	}
	return nil
}

// get goes down through mappings; nil if there is nothing.
func (n *node) get(path ...string) *node {
	for _, name := range path {
		f := n.find(name)
		if f == nil {
			return nil
		}
		n = f.value
	}
	return n
}

// str is the string at the path, or empty.
func (n *node) str(path ...string) string {
	v := n.get(path...)
	if v == nil || v.kind == null || v.kind == mapping || v.kind == sequence {
		return ""
	}
	if v.kind == text {
		return v.value
	}
	return v.written
}

// take removes a field and returns it; nil if there is none.
func (n *node) take(name string) *field {
	f := n.find(name)
	if f != nil {
		n.fields = slices.DeleteFunc(n.fields, func(g *field) bool { return g == f })
	}
	return f
}

// takeAt takes a field below a path of mappings.
func (n *node) takeAt(path ...string) *field {
	return n.get(path[:len(path)-1]...).takeSafe(path[len(path)-1])
}

func (n *node) takeSafe(name string) *field {
	if n == nil {
		return nil
	}
	return n.take(name)
}

// put sets a field below a path of mappings, which it makes where they lack.
// What is there already is replaced.
func (n *node) put(f *field, path ...string) {
	for _, name := range path {
		next := n.find(name)
		if next == nil {
			next = &field{name: name, at: f.at, value: &node{kind: mapping, at: f.at}}
			n.fields = append(n.fields, next)
		}
		n = next.value
	}
	if old := n.find(f.name); old != nil {
		*old = *f
		return
	}
	n.fields = append(n.fields, f)
}

// newText is a field that no document has, placed at what it comes from.
func newText(name, value string, at fleet.Position) *field {
	return &field{name: name, at: at, value: &node{kind: text, value: value, at: at}}
}

func newInteger(name, value string, at fleet.Position) *field {
	return &field{name: name, at: at, value: &node{kind: integer, value: value, written: value, at: at}}
}

// bare is a copy without comments.
func (n *node) bare() *node {
	out := *n
	out.notes = comments{}
	out.fields = make([]*field, len(n.fields))
	for i, f := range n.fields {
		out.fields[i] = &field{name: f.name, at: f.at, value: f.value.bare()}
	}
	out.items = make([]*node, len(n.items))
	for i, item := range n.items {
		out.items[i] = item.bare()
	}
	return &out
}

// same says whether two values mean the same, whatever their comments and the
// order of their fields.
func same(a, b *node) bool {
	if a == nil || b == nil {
		return a == b
	}
	if a.kind != b.kind || a.value != b.value || len(a.fields) != len(b.fields) || len(a.items) != len(b.items) {
		return false
	}
	for _, f := range a.fields {
		g := b.find(f.name)
		if g == nil || !same(f.value, g.value) {
			return false
		}
	}
	for i := range a.items {
		if !same(a.items[i], b.items[i]) {
			return false
		}
	}
	return true
}

// remarks are all comments of the value, in order, as lines.
func (n *node) remarks() []string {
	var out []string
	for _, f := range n.fields {
		out = append(out, f.notes.above...)
		if f.notes.beside != "" {
			out = append(out, f.notes.beside)
		}
		out = append(append(out, f.value.remarks()...), f.notes.below...)
	}
	for _, item := range n.items {
		out = append(out, item.notes.above...)
		if item.notes.beside != "" {
			out = append(out, item.notes.beside)
		}
		out = append(append(out, item.remarks()...), item.notes.below...)
	}
	return out
}

// brief is the value as a report shows it.
func (n *node) brief() string {
	switch n.kind {
	case mapping:
		return "{…}"
	case sequence:
		return "[…]"
	case text:
		return quoteBrief(n.value)
	default:
		return n.value
	}
}
