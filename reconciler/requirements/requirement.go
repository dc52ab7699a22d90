// Package requirements is the algebra of label requirements: what NodePools,
// pods, images and instance types ask of the labels of a node.
//
// A Requirement is a set of values of one label, a Set holds one Requirement
// per label. Both are immutable values whose results depend on nothing but
// their inputs: values and keys are always sorted. The rules are Karpenter's
// (sigs.k8s.io/karpenter, pkg/scheduling), with four deliberate differences:
//
//   - A Requirement remembers whether a node without the label meets it, so
//     that "Exists and NotIn [a]" or "In [a] and In [b]" never match a node
//     that lacks the label. Karpenter forgets this when it intersects and
//     then plans pods onto nodes that kube-scheduler refuses.
//   - Any derives the value for an open requirement from the key and a seed;
//     Karpenter draws a random number.
//   - Lt of the smallest integer allows nothing; in Karpenter it wraps around.
//   - Converting back to the API's form loses nothing; Karpenter drops the
//     excluded values of a requirement that has a bound as well.
package requirements

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// Requirement is the set of values that one label may have: either the listed
// values, or (as a complement) all values except the listed ones, within
// optional inclusive integer bounds. It also tells whether the label may be
// missing, and how many distinct values the instance types of a claim must
// show (minValues). The zero value is a requirement on no key that nothing
// meets; use New or one of the short constructors.
type Requirement struct {
	key        string
	values     []string // sorted, without repeats; never changed after construction
	complement bool
	absent     bool // a node without the label meets the requirement
	hasLower   bool
	hasUpper   bool
	lower      int64
	upper      int64
	minValues  int // 0 means none
}

// New makes the requirement that a NodePool, pod or image writes as key,
// operator and values. Deprecated keys are replaced by today's (see
// NormalizeKey). It fails when the operator is unknown, when the number of
// values does not fit the operator, when Gt, Lt, Gte or Lte has no integer, and
// when minValues is below one.
func New(key string, op corev1.NodeSelectorOperator, minValues *int, values ...string) (Requirement, error) {
	if key == "" {
		return Requirement{}, fmt.Errorf("requirement without a key: name the label it is about")
	}
	if err := checkValues(op, values); err != nil {
		return Requirement{}, fmt.Errorf("requirement on label %q: %w", key, err)
	}
	r, err := build(NormalizeKey(key), op, values)
	if err != nil {
		return Requirement{}, fmt.Errorf("requirement on label %q: %w", key, err)
	}
	if minValues == nil {
		return r, nil
	}
	if *minValues < 1 {
		return Requirement{}, fmt.Errorf("requirement on label %q: minValues is %d, it must be at least 1", key, *minValues)
	}
	r.minValues = *minValues
	return r, nil
}

func checkValues(op corev1.NodeSelectorOperator, values []string) error {
	switch op {
	case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		if len(values) == 0 {
			return fmt.Errorf("operator %s needs at least one value", op)
		}
	case corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
		if len(values) > 0 {
			return fmt.Errorf("operator %s takes no values, it has %d", op, len(values))
		}
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt, karpv1.NodeSelectorOpGte, karpv1.NodeSelectorOpLte:
		if len(values) != 1 {
			return fmt.Errorf("operator %s needs exactly one integer, it has %d values", op, len(values))
		}
	default:
		return fmt.Errorf("operator %q is unknown: use In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte or Lte", op)
	}
	return nil
}

func build(key string, op corev1.NodeSelectorOperator, values []string) (Requirement, error) {
	switch op {
	case corev1.NodeSelectorOpIn:
		return In(key, values...), nil
	case corev1.NodeSelectorOpNotIn:
		return NotIn(key, values...), nil
	case corev1.NodeSelectorOpExists:
		return Exists(key), nil
	case corev1.NodeSelectorOpDoesNotExist:
		return DoesNotExist(key), nil
	}
	n, err := strconv.ParseInt(values[0], 10, 64)
	if err != nil {
		return Requirement{}, fmt.Errorf("operator %s needs a 64-bit integer, not %q", op, values[0])
	}
	switch op {
	case corev1.NodeSelectorOpGt:
		if n == math.MaxInt64 {
			return In(key), nil
		}
		return AtLeast(key, n+1), nil
	case karpv1.NodeSelectorOpGte:
		return AtLeast(key, n), nil
	case corev1.NodeSelectorOpLt:
		if n == math.MinInt64 {
			return In(key), nil
		}
		return AtMost(key, n-1), nil
	default:
		return AtMost(key, n), nil
	}
}

// In is the requirement that the label has one of the values; without values
// nothing meets it. The key is taken as it is.
func In(key string, values ...string) Requirement {
	return Requirement{key: key, values: sortedCopy(values)}
}

// NotIn is the requirement that the label has none of the values or is missing.
// The key is taken as it is.
func NotIn(key string, values ...string) Requirement {
	return Requirement{key: key, values: sortedCopy(values), complement: true, absent: true}
}

// Exists is the requirement that the label has any value. The key is taken as
// it is.
func Exists(key string) Requirement {
	return Requirement{key: key, complement: true}
}

// DoesNotExist is the requirement that the label is missing. The key is taken
// as it is.
func DoesNotExist(key string) Requirement {
	return Requirement{key: key, absent: true}
}

// AtLeast is the requirement that the label is an integer not below n. The key
// is taken as it is.
func AtLeast(key string, n int64) Requirement {
	return Requirement{key: key, complement: true, hasLower: true, lower: n}
}

// AtMost is the requirement that the label is an integer not above n. The key
// is taken as it is.
func AtMost(key string, n int64) Requirement {
	return Requirement{key: key, complement: true, hasUpper: true, upper: n}
}

func sortedCopy(values []string) []string {
	switch len(values) {
	case 0:
		return nil
	case 1:
		return []string{values[0]}
	}
	out := slices.Clone(values)
	slices.Sort(out)
	return slices.Compact(out)
}

// Key is the label that the requirement is about.
func (r Requirement) Key() string { return r.key }

// Values are the listed values, sorted: the allowed ones, or the excluded ones
// when Complement is true. The caller must not change them.
func (r Requirement) Values() []string { return r.values }

// Complement says whether Values are excluded rather than allowed.
func (r Requirement) Complement() bool { return r.complement }

// AllowsAbsent says whether a node without the label meets the requirement. It
// is true for NotIn and DoesNotExist as long as nothing asked for a value too.
func (r Requirement) AllowsAbsent() bool { return r.absent }

// MinValues is the number of distinct values that the instance types of a
// claim must show for the key; 0 means that none was asked for.
func (r Requirement) MinValues() int { return r.minValues }

// Bounds are the inclusive integer bounds; nil means none.
func (r Requirement) Bounds() (lower, upper *int64) {
	if r.hasLower {
		lower = &r.lower
	}
	if r.hasUpper {
		upper = &r.upper
	}
	return lower, upper
}

// IsEmpty says whether no value meets the requirement. A missing label may
// still meet it, see AllowsAbsent.
func (r Requirement) IsEmpty() bool { return !r.complement && len(r.values) == 0 }

// Single is the only value that the requirement allows, if there is exactly
// one.
func (r Requirement) Single() (string, bool) {
	if r.complement || len(r.values) != 1 {
		return "", false
	}
	return r.values[0], true
}

// Len is the number of allowed values; for a complement it is the largest int
// less the number of excluded values, as in Karpenter.
func (r Requirement) Len() int {
	if r.complement {
		return math.MaxInt - len(r.values)
	}
	return len(r.values)
}

// Operator is the operator closest to the requirement: In, NotIn, Exists or
// DoesNotExist. Bounds count as Exists or NotIn, and everything that no value
// meets counts as DoesNotExist.
func (r Requirement) Operator() corev1.NodeSelectorOperator {
	switch {
	case r.complement && len(r.values) > 0:
		return corev1.NodeSelectorOpNotIn
	case r.complement:
		return corev1.NodeSelectorOpExists
	case len(r.values) > 0:
		return corev1.NodeSelectorOpIn
	default:
		return corev1.NodeSelectorOpDoesNotExist
	}
}

// Equal says whether both requirements are about the same key and allow
// exactly the same, including minValues.
func (r Requirement) Equal(o Requirement) bool {
	return r.key == o.key && r.complement == o.complement && r.absent == o.absent &&
		r.hasLower == o.hasLower && r.hasUpper == o.hasUpper && r.lower == o.lower && r.upper == o.upper &&
		r.minValues == o.minValues && slices.Equal(r.values, o.values)
}
