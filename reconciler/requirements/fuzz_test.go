package requirements

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func FuzzNew(f *testing.F) {
	for _, op := range []string{"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Gte", "Lt", "Lte", "in", ""} {
		f.Add("karpenter.k8s.aws/instance-cpu", op, "4", "", 0, "9223372036854775807", "8")
		f.Add("", op, "-1", "99999999999999999999", 1, "-9223372036854775808", "\xff")
	}
	f.Fuzz(func(t *testing.T, key, op, a, b string, least int, bound, probe string) {
		r, err := New(key, corev1.NodeSelectorOperator(op), &least, a, b)
		one, err1 := New(key, corev1.NodeSelectorOperator(op), nil, bound)
		if err != nil || err1 != nil {
			return
		}
		// A set that holds both admits what both admit, and nothing else.
		both := NewSet(r, one)
		got := both.Get(NormalizeKey(key)).Has(probe)
		if want := r.Has(probe) && one.Has(probe); got != want {
			t.Errorf("%s %s [%q %q] and [%q]: has %q is %v, want %v", key, op, a, b, bound, probe, got, want)
		}
	})
}
