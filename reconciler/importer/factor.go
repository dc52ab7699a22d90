package importer

import (
	"slices"
	"strconv"
)

// least is how many values objects must share before that is worth a name.
const least = 3

// mostCompared bounds the pairs that are compared; beyond it only what all
// objects share is looked for.
const mostCompared = 64

// group is objects with what they share.
type group struct {
	name    string
	shared  *node
	members []*object
}

// factor finds what objects share and takes it out of their specs. The result
// is in order of the groups' first members.
func factor(objects []*object, name string, taken func(string) bool) []*group {
	rest := slices.Clone(objects)
	var groups []*group
	for len(rest) > 1 {
		g := best(rest)
		if g == nil {
			break
		}
		groups = append(groups, g)
		rest = slices.DeleteFunc(rest, func(o *object) bool { return slices.Contains(g.members, o) })
	}
	slices.SortStableFunc(groups, func(a, b *group) int {
		return slices.Index(objects, a.members[0]) - slices.Index(objects, b.members[0])
	})
	n := 1
	for _, g := range groups {
		for g.name = numbered(name, n); taken != nil && taken(g.name); g.name = numbered(name, n) {
			n++
		}
		n++
		for _, o := range g.members {
			o.spec = without(o.spec, g.shared)
		}
	}
	return groups
}

func numbered(name string, n int) string {
	if n == 1 {
		return name
	}
	return name + strconv.Itoa(n)
}

// best is the group that saves the most lines, or nil.
func best(objects []*object) *group {
	var found *group
	score := 0
	try := func(shared *node) {
		leaves := weight(shared)
		if leaves < least {
			return
		}
		g := &group{}
		for _, o := range objects {
			if contains(o.spec, shared) {
				g.members = append(g.members, o)
			}
		}
		if s := (len(g.members) - 1) * leaves; s <= score {
			return
		}
		// Of three comments two may differ, so that less is left.
		g.shared = common(specs(g.members))
		if s := (len(g.members) - 1) * weight(g.shared); weight(g.shared) >= least && s > score {
			found, score = g, s
		}
	}
	if len(objects) > mostCompared {
		try(common(specs(objects)))
		return found
	}
	for i, a := range objects {
		for _, b := range objects[i+1:] {
			try(common([]*node{a.spec, b.spec}))
		}
	}
	return found
}

func specs(objects []*object) []*node {
	out := make([]*node, len(objects))
	for i, o := range objects {
		out[i] = o.spec
	}
	return out
}

// weight is the number of values, those within lists included.
func weight(n *node) int {
	if n == nil {
		return 0
	}
	if len(n.fields) == 0 && len(n.items) == 0 {
		return 1
	}
	sum := 0
	for _, f := range n.fields {
		sum += weight(f.value)
	}
	for _, item := range n.items {
		sum += weight(item)
	}
	return sum
}

// common is what all specs say, with their comments. Lists count as a whole: in
// CUE they cannot be added to.
func common(list []*node) *node {
	out := list[0]
	for _, n := range list[1:] {
		if out = intersect(out, n); out == nil {
			return nil
		}
	}
	return out
}

func intersect(a, b *node) *node {
	out := &node{kind: mapping, at: a.at}
	for _, f := range a.fields {
		g := b.find(f.name)
		if g == nil || !compatible(f.notes, g.notes) {
			continue
		}
		value := shared(f.name, f.value, g.value)
		if value == nil {
			continue
		}
		notes := f.notes
		if notes.empty() {
			notes = g.notes
		}
		out.fields = append(out.fields, &field{name: f.name, at: f.at, value: value, notes: notes})
	}
	if len(out.fields) == 0 {
		return nil
	}
	return out
}

// shared is what two values have in common, or nil.
func shared(name string, a, b *node) *node {
	if a.kind == mapping && b.kind == mapping && len(a.fields) > 0 && len(b.fields) > 0 && !inlined[name] {
		return intersect(a, b)
	}
	if !same(a, b) {
		return nil
	}
	ra, rb := a.remarks(), b.remarks()
	switch {
	case len(rb) == 0 || slices.Equal(ra, rb):
		return a
	case len(ra) == 0:
		return b
	}
	return nil // each says something of its own
}

// compatible says that no comment would get lost if one of two fields went.
func compatible(a, b comments) bool { return a.empty() || b.empty() || a.equal(b) }

// contains says whether a spec says all that is shared.
func contains(spec, part *node) bool {
	s := intersect(spec, part)
	return s != nil && same(s, part)
}

// without is the spec less what is shared. Mappings that get empty go, those
// that were empty stay.
func without(spec, part *node) *node {
	out := *spec
	out.fields = nil
	for _, f := range spec.fields {
		g := part.find(f.name)
		switch {
		case g == nil:
			out.fields = append(out.fields, f)
		case g.value.kind == mapping && !inlined[f.name]:
			rest := without(f.value, g.value)
			if len(rest.fields) > 0 {
				out.fields = append(out.fields, &field{name: f.name, at: f.at, value: rest})
			}
		}
	}
	return &out
}
