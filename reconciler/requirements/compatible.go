package requirements

import (
	"fmt"
	"strings"
)

// UndefinedError says that a label which is asked for is unknown on the node's
// side.
type UndefinedError struct {
	// Key is the label that was asked for.
	Key string
	// Hint is a known label with a similar name, or "".
	Hint string
}

// Error names the label and what it may be a typo of.
func (e *UndefinedError) Error() string {
	if e.Hint == "" {
		return fmt.Sprintf("label %q does not have known values", e.Key)
	}
	return fmt.Sprintf("label %q does not have known values (typo of %q?)", e.Key, e.Hint)
}

// Conflict is one label on which two sets have nothing in common.
type Conflict struct {
	// Asked is what the pod or other asking side wants.
	Asked Requirement
	// Has is what the node's side allows.
	Has Requirement
}

// ConflictError lists every label on which two sets have nothing in common,
// sorted by label.
type ConflictError []Conflict

// Error names each label with what was asked and what there is.
func (e ConflictError) Error() string {
	parts := make([]string, len(e))
	for i, c := range e {
		parts[i] = fmt.Sprintf("asked for %s, but there is only %s", c.Asked, c.Has)
	}
	return strings.Join(parts, "; ")
}

// Intersects fails with a ConflictError when some label of both sets has no
// state that meets both; labels of only one set do not matter. No common value
// is forgiven when both sides allow the label to be missing.
func (s Set) Intersects(asked Set) error {
	var conflicts ConflictError
	s.common(asked, func(has, want *Requirement) bool {
		if !has.Meets(*want) {
			conflicts = append(conflicts, Conflict{Asked: *want, Has: *has})
		}
		return true
	})
	if len(conflicts) == 0 {
		return nil
	}
	return conflicts
}

// Overlaps says whether Intersects would return nil, without building an error.
func (s Set) Overlaps(asked Set) bool {
	ok := true
	s.common(asked, func(has, want *Requirement) bool {
		ok = has.Meets(*want)
		return ok
	})
	return ok
}

// common calls visit for the labels of both sets until it returns false.
func (s Set) common(o Set, visit func(mine, theirs *Requirement) bool) {
	i, j := 0, 0
	for i < len(s.list) && j < len(o.list) {
		switch c := byKey(s.list[i], o.list[j]); {
		case c < 0:
			i++
		case c > 0:
			j++
		default:
			if !visit(s.list[i], o.list[j]) {
				return
			}
			i, j = i+1, j+1
		}
	}
}

// Compatible fails when the node side s cannot meet what is asked. Labels of
// both must have something in common (see Intersects). A label that only the
// asking side mentions is an UndefinedError unless the asking side allows it to
// be missing or allowUndefined accepts the key: pass WellKnown for a NodeClaim
// that is still to be made, whose instance type will define those labels, and
// nil for an existing node, which has all its labels.
func (s Set) Compatible(asked Set, allowUndefined func(key string) bool) error {
	for _, r := range asked.list {
		if s.mayLack(r, allowUndefined) {
			continue
		}
		return &UndefinedError{Key: r.key, Hint: s.hint(r.key)}
	}
	return s.Intersects(asked)
}

// IsCompatible says whether Compatible would return nil, without building an
// error.
func (s Set) IsCompatible(asked Set, allowUndefined func(key string) bool) bool {
	for _, r := range asked.list {
		if !s.mayLack(r, allowUndefined) {
			return false
		}
	}
	return s.Overlaps(asked)
}

func (s Set) mayLack(r *Requirement, allowUndefined func(string) bool) bool {
	return r.absent || s.Has(r.key) || (allowUndefined != nil && allowUndefined(r.key))
}

// hint is a known label that the key may be a typo of: one with the same name
// behind another prefix, else one that contains the key, else one that differs
// in one place. Well-known labels come before those of the set, each sorted.
func (s Set) hint(key string) string {
	name := key[strings.LastIndex(key, "/")+1:]
	if name == "" {
		return ""
	}
	known := append(WellKnownLabels(), s.Keys()...)
	for _, alike := range []func(string) bool{
		func(k string) bool { return strings.HasSuffix(k, "/"+name) },
		func(k string) bool { return strings.Contains(k, key) },
		func(k string) bool { return differsByOne(k, key) },
	} {
		for _, k := range known {
			if k != key && alike(k) {
				return k
			}
		}
	}
	return ""
}

// differsByOne says whether one insertion, deletion, replacement or swap of
// neighbours turns a into b.
func differsByOne(a, b string) bool {
	if len(a) < len(b) {
		a, b = b, a
	}
	i := 0
	for i < len(b) && a[i] == b[i] {
		i++
	}
	switch {
	case len(a) == len(b)+1:
		return a[i+1:] == b[i:]
	case len(a) != len(b) || i == len(b):
		return false
	case a[i+1:] == b[i+1:]:
		return true
	default:
		return i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
	}
}
