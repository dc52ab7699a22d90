// Package resources holds amounts of Kubernetes resources as whole numbers.
//
// The engine compares and sums amounts millions of times in one pass, and
// every amount ends up in a record that must be the same bytes on every
// machine. Both rule out resource.Quantity (an arbitrary-precision decimal
// with a cached string) and floats.
package resources

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// List is an amount of each named resource: cpu in thousandths of a core,
// everything else in its base unit (bytes, pods, devices). A missing name is
// zero. A nil List is an empty one for all reading methods.
//
// In JSON a List is an object of Kubernetes quantities: {"cpu":"5150m"}.
type List map[corev1.ResourceName]int64

// From converts a Kubernetes resource list. Amounts that are finer than the
// unit of their resource are rounded up, as the Kubernetes scheduler does.
func From(rl corev1.ResourceList) List {
	if len(rl) == 0 {
		return nil
	}
	out := make(List, len(rl))
	for name, q := range rl {
		out[name] = Amount(name, q)
	}
	return out
}

// Amount is the quantity in the unit that List uses for the resource.
func Amount(name corev1.ResourceName, q resource.Quantity) int64 {
	if name == corev1.ResourceCPU {
		return q.MilliValue()
	}
	return q.Value()
}

// Quantity is the amount of one resource as a Kubernetes quantity in the
// format people write it in: binary for memory and storage, decimal otherwise.
func Quantity(name corev1.ResourceName, amount int64) resource.Quantity {
	switch {
	case name == corev1.ResourceCPU:
		return *resource.NewMilliQuantity(amount, resource.DecimalSI)
	case name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage ||
		name == corev1.ResourceStorage || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
		return *resource.NewQuantity(amount, resource.BinarySI)
	default:
		return *resource.NewQuantity(amount, resource.DecimalSI)
	}
}

// Kubernetes converts the list back to the API's type.
func (l List) Kubernetes() corev1.ResourceList {
	if len(l) == 0 {
		return nil
	}
	out := make(corev1.ResourceList, len(l))
	for name, amount := range l {
		out[name] = Quantity(name, amount)
	}
	return out
}

// Names are the names in the list, sorted.
func (l List) Names() []corev1.ResourceName {
	return slices.Sorted(maps.Keys(l))
}

// Clone is an independent copy; the clone of nil is an empty list.
func (l List) Clone() List {
	out := make(List, len(l))
	maps.Copy(out, l)
	return out
}

// Plus is the sum of both lists as a new list.
func (l List) Plus(o List) List {
	out := l.Clone()
	for name, amount := range o {
		out[name] += amount
	}
	return out
}

// Minus is the difference of both lists as a new list; amounts may be
// negative.
func (l List) Minus(o List) List {
	out := l.Clone()
	for name, amount := range o {
		out[name] -= amount
	}
	return out
}

// Max is the larger amount of each name as a new list.
func (l List) Max(o List) List {
	out := l.Clone()
	for name, amount := range o {
		out[name] = max(out[name], amount)
	}
	return out
}

// Times is the list n times over as a new list.
func (l List) Times(n int64) List {
	out := make(List, len(l))
	for name, amount := range l {
		out[name] = amount * n
	}
	return out
}

// Lacking are the names of which the list asks for more than have holds,
// sorted. It is empty when the list fits.
func (l List) Lacking(have List) []corev1.ResourceName {
	var out []corev1.ResourceName
	for name, amount := range l {
		if amount > have[name] && amount > 0 {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// Fits says whether have holds at least what the list asks for.
func (l List) Fits(have List) bool {
	for name, amount := range l {
		if amount > have[name] && amount > 0 {
			return false
		}
	}
	return true
}

// IsZero says whether no amount differs from zero.
func (l List) IsZero() bool {
	for _, amount := range l {
		if amount != 0 {
			return false
		}
	}
	return true
}

// String is the list for people, sorted by name: "cpu 5150m, memory 5Gi".
func (l List) String() string {
	parts := make([]string, 0, len(l))
	for _, name := range l.Names() {
		q := Quantity(name, l[name])
		parts = append(parts, fmt.Sprintf("%s %s", name, q.String()))
	}
	return strings.Join(parts, ", ")
}

// MarshalJSON writes the list as an object of quantities with sorted names.
func (l List) MarshalJSON() ([]byte, error) {
	out := make(map[string]string, len(l))
	for name, amount := range l {
		q := Quantity(name, amount)
		out[string(name)] = q.String()
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads an object of quantities.
func (l *List) UnmarshalJSON(b []byte) error {
	var in map[corev1.ResourceName]string
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	*l = make(List, len(in))
	for name, text := range in {
		q, err := ParseQuantity(text)
		if err != nil {
			return fmt.Errorf("resource %s: quantity %.40q: %w", name, text, err)
		}
		(*l)[name] = Amount(name, q)
	}
	return nil
}
