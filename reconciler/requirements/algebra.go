package requirements

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
)

// Values listed by String before it writes how many more there are.
const listedValues = 5

// Has says whether the label may have the value. A value that is no integer
// fails any bound.
func (r Requirement) Has(value string) bool {
	_, listed := slices.BinarySearch(r.values, value)
	return listed != r.complement && r.inBounds(value)
}

func (r Requirement) inBounds(value string) bool {
	if !r.hasLower && !r.hasUpper {
		return true
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return false
	}
	return (!r.hasLower || n >= r.lower) && (!r.hasUpper || n <= r.upper)
}

// Intersect is the requirement that allows exactly what both allow. It keeps
// the receiver's key, the tighter bounds and the larger minValues. When nothing
// is left its operator is DoesNotExist.
func (r Requirement) Intersect(o Requirement) Requirement {
	out := Requirement{key: r.key, absent: r.absent && o.absent, minValues: max(r.minValues, o.minValues)}
	bounds := r.tighterBounds(o)
	if bounds.hasLower && bounds.hasUpper && bounds.lower > bounds.upper {
		return out
	}
	switch {
	case r.complement && o.complement:
		out.complement = true
		out.hasLower, out.lower, out.hasUpper, out.upper = bounds.hasLower, bounds.lower, bounds.hasUpper, bounds.upper
		out.values = keep(union(r.values, o.values), bounds.inBounds)
	case r.complement:
		out.values = keep(o.values, r.Has)
	case o.complement:
		out.values = keep(r.values, o.Has)
	default:
		out.values = keep(r.values, o.Has)
	}
	return out
}

func (r Requirement) tighterBounds(o Requirement) Requirement {
	b := Requirement{hasLower: r.hasLower, lower: r.lower, hasUpper: r.hasUpper, upper: r.upper}
	if o.hasLower && (!b.hasLower || o.lower > b.lower) {
		b.hasLower, b.lower = true, o.lower
	}
	if o.hasUpper && (!b.hasUpper || o.upper < b.upper) {
		b.hasUpper, b.upper = true, o.upper
	}
	return b
}

// Overlaps says whether some value meets both requirements: the same as
// Intersect followed by IsEmpty, but without building the result.
func (r Requirement) Overlaps(o Requirement) bool {
	if r.complement && o.complement {
		b := r.tighterBounds(o)
		return !b.hasLower || !b.hasUpper || b.lower <= b.upper
	}
	if r.complement || (!o.complement && len(o.values) < len(r.values)) {
		r, o = o, r
	}
	return slices.ContainsFunc(r.values, o.Has)
}

// Meets says whether some label state, a value or its absence, meets both
// requirements.
func (r Requirement) Meets(o Requirement) bool {
	return (r.absent && o.absent) || r.Overlaps(o)
}

// keep returns the values that pass; it shares the input when all do.
func keep(values []string, ok func(string) bool) []string {
	for i, v := range values {
		if ok(v) {
			continue
		}
		var out []string
		out = append(out, values[:i]...)
		for _, w := range values[i+1:] {
			if ok(w) {
				out = append(out, w)
			}
		}
		return out
	}
	return values
}

func union(a, b []string) []string {
	if len(a) == 0 {
		return b
	}
	if len(b) == 0 {
		return a
	}
	return sortedCopy(slices.Concat(a, b))
}

// Any is one value that meets the requirement, or "" when none does: the first
// listed value, the integer nearest to a bound, or, when everything but some
// values is allowed, a number derived from the key and the seed. Equal
// arguments give equal values: Karpenter draws a random number here, which
// could not be replayed. Claims that must differ need different seeds.
func (r Requirement) Any(seed string) string {
	switch {
	case !r.complement && len(r.values) == 0:
		return ""
	case !r.complement:
		return r.values[0]
	case r.hasLower:
		return r.firstFree(r.lower, 1)
	case r.hasUpper:
		return r.firstFree(r.upper, -1)
	default:
		h := fnv.New32a()
		_, _ = h.Write([]byte(r.key + "\x00" + seed))
		return r.firstFree(int64(h.Sum32()), 1)
	}
}

// firstFree walks from an integer in bounds until one is not excluded. When all
// integers in bounds are excluded it goes on with leading zeros, which name the
// same numbers by other values.
func (r Requirement) firstFree(from, step int64) string {
	for pad := ""; ; pad += "0" {
		for n := from; ; n += step {
			v := strconv.FormatInt(n, 10)
			if digits, negative := strings.CutPrefix(v, "-"); negative {
				v = "-" + pad + digits
			} else {
				v = pad + v
			}
			if !r.inBounds(v) {
				break
			}
			if r.Has(v) {
				return v
			}
			if overflowed := (n+step < n) != (step < 0); overflowed {
				break
			}
		}
	}
}

// String is the requirement for people: key, operator and values as a spec has
// them, at most five values, then bounds and minValues.
func (r Requirement) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", r.key, r.Operator())
	if n := len(r.values); n > listedValues {
		fmt.Fprintf(&b, " [%s and %d others]", strings.Join(r.values[:listedValues], " "), n-listedValues)
	} else if n > 0 {
		fmt.Fprintf(&b, " [%s]", strings.Join(r.values, " "))
	}
	if r.hasLower {
		fmt.Fprintf(&b, " >=%d", r.lower)
	}
	if r.hasUpper {
		fmt.Fprintf(&b, " <=%d", r.upper)
	}
	if r.minValues > 0 {
		fmt.Fprintf(&b, " minValues %d", r.minValues)
	}
	return b.String()
}
