package policy

import (
	"reflect"
	"strconv"
)

// objectLists are both values as lists of objects, if they are that.
func objectLists(a, b any) (before, after []map[string]any, ok bool) {
	before, isList := objects(a)
	after, both := objects(b)
	return before, after, isList && both && len(before)+len(after) > 0
}

func objects(v any) ([]map[string]any, bool) {
	list, ok := v.([]any)
	if !ok {
		return nil, false
	}
	out := make([]map[string]any, len(list))
	for i := range list {
		if out[i], ok = list[i].(map[string]any); !ok {
			return nil, false
		}
	}
	return out, true
}

// elementNames says which elements of a list and of its later state are the same.
type elementNames struct {
	a, b []map[string]any
	// shared are the keys that several elements of one list have.
	shared map[string]bool
}

func newElementNames(a, b []map[string]any) *elementNames {
	n := &elementNames{a: a, b: b, shared: map[string]bool{}}
	for _, list := range [][]map[string]any{a, b} {
		seen := map[string]bool{}
		for _, e := range list {
			key := elementKey(e)
			n.shared[key] = n.shared[key] || seen[key]
			seen[key] = true
		}
	}
	return n
}

// elementKey is what tells requirements, taints and block devices apart, empty
// for elements that have no such field.
func elementKey(e map[string]any) string {
	for _, field := range []string{"key", "deviceName"} {
		if s, ok := e[field].(string); ok {
			return s
		}
	}
	return ""
}

// full is the key, and where several elements have it what they do with it.
func (n *elementNames) full(e map[string]any) string {
	key := elementKey(e)
	if key == "" || !n.shared[key] {
		return key
	}
	for _, field := range []string{"operator", "effect"} {
		if s, ok := e[field].(string); ok {
			return key + " " + s
		}
	}
	return key
}

// of is the name of an element for a reader.
func (n *elementNames) of(list []map[string]any, i int) string {
	if name := n.full(list[i]); name != "" {
		return name
	}
	return strconv.Itoa(i)
}

// elementPair are the indices of an element before and after, -1 for none.
type elementPair struct{ before, after int }

// pairs are the elements in the order of the later list, and after them those
// that are gone. Elements without a key are paired in order if as many of them
// differ in both lists.
func (n *elementNames) pairs() []elementPair {
	partner := make([]int, len(n.b))
	for j := range partner {
		partner[j] = -1
	}
	taken := make([]bool, len(n.a))
	match := func(same func(x, y map[string]any) bool) {
		for j := range n.b {
			for i := 0; i < len(n.a) && partner[j] < 0; i++ {
				if !taken[i] && same(n.a[i], n.b[j]) {
					partner[j], taken[i] = i, true
				}
			}
		}
	}
	match(func(x, y map[string]any) bool { return reflect.DeepEqual(x, y) })
	match(func(x, y map[string]any) bool { return elementKey(x) != "" && n.full(x) == n.full(y) })
	match(func(x, y map[string]any) bool { return elementKey(x) != "" && elementKey(x) == elementKey(y) })
	if nameless(n.a, func(i int) bool { return !taken[i] }) == nameless(n.b, func(j int) bool { return partner[j] < 0 }) {
		match(func(x, y map[string]any) bool { return elementKey(x) == "" && elementKey(y) == "" })
	}
	var out []elementPair
	for j, i := range partner {
		out = append(out, elementPair{i, j})
	}
	for i := range n.a {
		if !taken[i] {
			out = append(out, elementPair{i, -1})
		}
	}
	return out
}

func nameless(list []map[string]any, open func(int) bool) int {
	count := 0
	for i := range list {
		if open(i) && elementKey(list[i]) == "" {
			count++
		}
	}
	return count
}
