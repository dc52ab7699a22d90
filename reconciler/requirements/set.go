package requirements

import (
	"iter"
	"maps"
	"slices"
	"strings"
)

// Set holds at most one Requirement per label, sorted by label. It is an
// immutable value; the zero Set is empty and asks for nothing.
type Set struct {
	// Pointers make a set of the thirty-odd labels of an instance type small,
	// and let sets share what they have in common. What they point to never
	// changes.
	list []*Requirement
}

// NewSet makes a set of the requirements; those on the same key are
// intersected.
func NewSet(reqs ...Requirement) Set {
	own := slices.Clone(reqs)
	list := make([]*Requirement, len(own))
	for i := range own {
		list[i] = &own[i]
	}
	slices.SortStableFunc(list, byKey)
	out := list[:0]
	for _, r := range list {
		if n := len(out); n > 0 && out[n-1].key == r.key {
			both := out[n-1].Intersect(*r)
			out[n-1] = &both
			continue
		}
		out = append(out, r)
	}
	return Set{list: out}
}

func byKey(a, b *Requirement) int { return strings.Compare(a.key, b.key) }

// FromLabels makes the set that asks for exactly the given labels, with
// deprecated keys replaced (see NormalizeKey).
func FromLabels(labels map[string]string) Set {
	reqs := make([]Requirement, 0, len(labels))
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		reqs = append(reqs, In(NormalizeKey(key), labels[key]))
	}
	return NewSet(reqs...)
}

// Len is the number of labels in the set.
func (s Set) Len() int { return len(s.list) }

// All yields the requirements in the order of their keys.
func (s Set) All() iter.Seq[Requirement] {
	return func(yield func(Requirement) bool) {
		for _, r := range s.list {
			if !yield(*r) {
				return
			}
		}
	}
}

// Keys are the labels in the set, sorted.
func (s Set) Keys() []string {
	out := make([]string, len(s.list))
	for i, r := range s.list {
		out[i] = r.key
	}
	return out
}

// Lookup is the requirement on the key and whether the set has one.
func (s Set) Lookup(key string) (Requirement, bool) {
	i, ok := s.find(key)
	if !ok {
		return Requirement{}, false
	}
	return *s.list[i], true
}

func (s Set) find(key string) (int, bool) {
	return slices.BinarySearchFunc(s.list, key, func(r *Requirement, k string) int { return strings.Compare(r.key, k) })
}

// Has says whether the set has a requirement on the key.
func (s Set) Has(key string) bool {
	_, ok := s.find(key)
	return ok
}

// Get is the requirement on the key; a key that the set does not mention gives
// Exists, as in Karpenter.
func (s Set) Get(key string) Requirement {
	if r, ok := s.Lookup(key); ok {
		return r
	}
	return Exists(key)
}

// With is a new set with the requirements added; those on a key that the set
// has already are intersected with it.
func (s Set) With(reqs ...Requirement) Set {
	return s.Merge(NewSet(reqs...))
}

// Merge is a new set that asks for what both sets ask for.
func (s Set) Merge(o Set) Set {
	if len(o.list) == 0 {
		return s
	}
	if len(s.list) == 0 {
		return o
	}
	out := make([]*Requirement, 0, len(s.list)+len(o.list))
	i, j := 0, 0
	for i < len(s.list) && j < len(o.list) {
		switch c := byKey(s.list[i], o.list[j]); {
		case c < 0:
			out = append(out, s.list[i])
			i++
		case c > 0:
			out = append(out, o.list[j])
			j++
		default:
			both := s.list[i].Intersect(*o.list[j])
			out = append(out, &both)
			i, j = i+1, j+1
		}
	}
	out = append(out, s.list[i:]...)
	return Set{list: append(out, o.list[j:]...)}
}

// Without is a new set without the requirements on the keys.
func (s Set) Without(keys ...string) Set {
	out := make([]*Requirement, 0, len(s.list))
	for _, r := range s.list {
		if !slices.Contains(keys, r.key) {
			out = append(out, r)
		}
	}
	return Set{list: out}
}

// Labels are the labels that the set fixes: those of its requirements that
// allow exactly one value.
func (s Set) Labels() map[string]string {
	out := make(map[string]string, len(s.list))
	for _, r := range s.list {
		if v, ok := r.Single(); ok {
			out[r.key] = v
		}
	}
	return out
}

// Equal says whether both sets ask for exactly the same.
func (s Set) Equal(o Set) bool {
	return slices.EqualFunc(s.list, o.list, func(a, b *Requirement) bool { return a == b || a.Equal(*b) })
}

// String is the set for people, sorted by key.
func (s Set) String() string {
	parts := make([]string, len(s.list))
	for i, r := range s.list {
		parts[i] = r.String()
	}
	return strings.Join(parts, ", ")
}

// Shortfall is a minValues that is not reached.
type Shortfall struct {
	// Key is the label whose minValues is not reached.
	Key string `json:"key"`
	// Want is the minValues of the requirement.
	Want int `json:"want"`
	// Have is the number of distinct values that were found.
	Have int `json:"have"`
}

// HasMinValues says whether some requirement has minValues.
func (s Set) HasMinValues() bool {
	return slices.ContainsFunc(s.list, func(r *Requirement) bool { return r.minValues > 0 })
}

// Shortfalls are the minValues that are not reached, sorted by key; it is empty
// when all are. The function gives the number of distinct values that the
// surviving instance types show for a key; it is called only for keys with
// minValues.
func (s Set) Shortfalls(distinct func(key string) int) []Shortfall {
	var out []Shortfall
	for _, r := range s.list {
		if r.minValues == 0 {
			continue
		}
		if have := distinct(r.key); have < r.minValues {
			out = append(out, Shortfall{Key: r.key, Want: r.minValues, Have: have})
		}
	}
	return out
}

// DistinctValues is the number of distinct values that the sets list for the
// key. Requirements that only exclude values do not count.
func DistinctValues(key string, sets iter.Seq[Set]) int {
	seen := map[string]struct{}{}
	for s := range sets {
		r, ok := s.Lookup(key)
		if !ok || r.complement {
			continue
		}
		for _, v := range r.values {
			seen[v] = struct{}{}
		}
	}
	return len(seen)
}
