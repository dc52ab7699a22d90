package requirements

import (
	"encoding/json"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

const (
	opIn           = corev1.NodeSelectorOpIn
	opNotIn        = corev1.NodeSelectorOpNotIn
	opExists       = corev1.NodeSelectorOpExists
	opDoesNotExist = corev1.NodeSelectorOpDoesNotExist
	opGt           = corev1.NodeSelectorOpGt
	opLt           = corev1.NodeSelectorOpLt
	opGte          = karpv1.NodeSelectorOpGte
	opLte          = karpv1.NodeSelectorOpLte
	maxInt         = "9223372036854775807"
	minInt         = "-9223372036854775808"
)

// A written requirement as a spec has it, and the oracle's reading of it: a
// second implementation that goes by the words of the operators, value by
// value, and by integers of any size.
type written struct {
	op     corev1.NodeSelectorOperator
	values []string
}

func (w written) allows(value string) bool {
	switch w.op {
	case opIn:
		return slices.Contains(w.values, value)
	case opNotIn:
		return !slices.Contains(w.values, value)
	case opExists:
		return true
	case opDoesNotExist:
		return false
	}
	limit, ok1 := new(big.Int).SetString(w.values[0], 10)
	n, ok2 := new(big.Int).SetString(value, 10)
	if !ok1 || !ok2 || !n.IsInt64() {
		return false
	}
	c := n.Cmp(limit)
	return map[corev1.NodeSelectorOperator]bool{opGt: c > 0, opGte: c >= 0, opLt: c < 0, opLte: c <= 0}[w.op]
}

func (w written) allowsAbsent() bool { return w.op == opNotIn || w.op == opDoesNotExist }

func (w written) requirement(t *testing.T) Requirement {
	t.Helper()
	r, err := New("k", w.op, nil, w.values...)
	if err != nil {
		t.Fatalf("New(%v): %v", w, err)
	}
	return r
}

var universe = []string{
	"", "a", "b", "c", "0", "1", "2", "3", "4", "5", "-1", "-2", "007", "+2", "1.5", "1e3", " 1",
	maxInt, "9223372036854775806", minInt, "-9223372036854775807", "9223372036854775808",
}

func allWritten() []written {
	out := []written{{op: opExists}, {op: opDoesNotExist}}
	for _, values := range [][]string{{"a"}, {"1"}, {"a", "b"}, {"b", "a", "a"}, {"1", "2", "3"}, {"a", "2", "007"}, {""}, {"4", "5", maxInt}} {
		out = append(out, written{opIn, values}, written{opNotIn, values})
	}
	for _, n := range []string{"0", "1", "2", "3", "-1", maxInt, minInt} {
		for _, op := range []corev1.NodeSelectorOperator{opGt, opGte, opLt, opLte} {
			out = append(out, written{op, []string{n}})
		}
	}
	return out
}

func TestEveryOperatorAllowsWhatItsWordsSay(t *testing.T) {
	for _, w := range allWritten() {
		r := w.requirement(t)
		for _, v := range universe {
			if got, want := r.Has(v), w.allows(v); got != want {
				t.Errorf("%v Has(%q) = %v, want %v", w, v, got, want)
			}
		}
		if got, want := r.AllowsAbsent(), w.allowsAbsent(); got != want {
			t.Errorf("%v AllowsAbsent = %v, want %v", w, got, want)
		}
	}
}

func TestIntersectionIsTheConjunctionForAllPairsAndTriples(t *testing.T) {
	all := allWritten()
	for _, a := range all {
		for _, b := range all {
			ra, rb := a.requirement(t), b.requirement(t)
			ab := ra.Intersect(rb)
			checkConjunction(t, ab, a, b)
			checkPairLaws(t, ra, rb, ab)
			for _, c := range all {
				rc := c.requirement(t)
				abc := ab.Intersect(rc)
				if other := ra.Intersect(rb.Intersect(rc)); !abc.Equal(other) {
					t.Fatalf("(%v and %v) and %v = %v, but %v the other way", a, b, c, abc, other)
				}
				checkConjunction(t, abc, a, b, c)
			}
		}
	}
}

func checkConjunction(t *testing.T, r Requirement, parts ...written) {
	t.Helper()
	for _, v := range universe {
		want := !slices.ContainsFunc(parts, func(w written) bool { return !w.allows(v) })
		if got := r.Has(v); got != want {
			t.Fatalf("%v: %v Has(%q) = %v, want %v", parts, r, v, got, want)
		}
		if want && r.IsEmpty() {
			t.Fatalf("%v: %v is empty, but %q meets it", parts, r, v)
		}
	}
	want := !slices.ContainsFunc(parts, func(w written) bool { return !w.allowsAbsent() })
	if got := r.AllowsAbsent(); got != want {
		t.Fatalf("%v: %v AllowsAbsent = %v, want %v", parts, r, got, want)
	}
}

func checkPairLaws(t *testing.T, a, b, ab Requirement) {
	t.Helper()
	if ba := b.Intersect(a); !ab.Equal(ba) {
		t.Errorf("%v and %v = %v, but %v the other way", a, b, ab, ba)
	}
	if again := ab.Intersect(ab); !ab.Equal(again) {
		t.Errorf("%v with itself = %v", ab, again)
	}
	if again := ab.Intersect(a); !ab.Equal(again) {
		t.Errorf("%v with its part %v = %v", ab, a, again)
	}
	if got := a.Overlaps(b); got == ab.IsEmpty() {
		t.Errorf("%v overlaps %v = %v, but both are %v", a, b, got, ab)
	}
	if got, want := a.Meets(b), !ab.IsEmpty() || ab.AllowsAbsent(); got != want {
		t.Errorf("%v meets %v = %v, want %v", a, b, got, want)
	}
	v := ab.Any("seed")
	if ab.IsEmpty() != (v == "" && !ab.Has("")) || (!ab.IsEmpty() && !ab.Has(v)) {
		t.Errorf("%v: Any = %q", ab, v)
	}
	back, err := FromKarpenter(NewSet(ab).NodeSelectorRequirements())
	if err != nil || !back.Equal(NewSet(ab)) {
		t.Errorf("%v came back from the API's form as %v, %v", ab, back, err)
	}
}

func TestNewRefusesWhatNoSpecMaySay(t *testing.T) {
	zero, two := 0, 2
	for _, tc := range []struct {
		name      string
		key       string
		op        corev1.NodeSelectorOperator
		minValues *int
		values    []string
		want      string
	}{
		{"no key", "", opExists, nil, nil, "without a key"},
		{"unknown operator", "k", "Near", nil, []string{"a"}, `operator "Near" is unknown`},
		{"In without values", "k", opIn, nil, nil, "at least one value"},
		{"NotIn without values", "k", opNotIn, nil, nil, "at least one value"},
		{"Exists with a value", "k", opExists, nil, []string{"a"}, "takes no values"},
		{"DoesNotExist with a value", "k", opDoesNotExist, nil, []string{"a"}, "takes no values"},
		{"Gt without a value", "k", opGt, nil, nil, "exactly one integer"},
		{"Lt with two values", "k", opLt, nil, []string{"1", "2"}, "exactly one integer"},
		{"Gte with a word", "k", opGte, nil, []string{"many"}, `not "many"`},
		{"Lte beyond 64 bits", "k", opLte, nil, []string{"9223372036854775808"}, "64-bit integer"},
		{"minValues of zero", "k", opExists, &zero, nil, "at least 1"},
		{"the label is named", "team/x", opIn, &two, nil, `label "team/x"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := New(tc.key, tc.op, tc.minValues, tc.values...)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}

func TestBoundsAtTheEndsOfTheIntegersMeetNothing(t *testing.T) {
	for _, w := range []written{{opGt, []string{maxInt}}, {opLt, []string{minInt}}} {
		if r := w.requirement(t); !r.IsEmpty() || r.Operator() != opDoesNotExist || r.AllowsAbsent() {
			t.Errorf("%v became %v", w, r)
		}
	}
}

func TestLowerAboveUpperCollapses(t *testing.T) {
	two := 2
	a, err := New("k", opGt, &two, "3")
	if err != nil {
		t.Fatal(err)
	}
	got := a.Intersect(AtMost("k", 3))
	if got.Operator() != opDoesNotExist || got.MinValues() != 2 {
		t.Errorf("Gt 3 and Lte 3 = %v", got)
	}
	if lower, upper := got.Bounds(); lower != nil || upper != nil {
		t.Errorf("bounds are left: %v %v", lower, upper)
	}
}

func TestMinValuesTakesTheLarger(t *testing.T) {
	two, five := 2, 5
	a, _ := New("k", opIn, &two, "a", "b")
	b, _ := New("k", opExists, &five)
	if got := a.Intersect(b).MinValues(); got != 5 {
		t.Errorf("minValues = %d, want 5", got)
	}
	if got := b.Intersect(In("k", "a")).MinValues(); got != 5 {
		t.Errorf("minValues with a requirement that has none = %d, want 5", got)
	}
}

func TestAnyIsStableAndDependsOnKeyAndSeed(t *testing.T) {
	r := Exists("team/colour")
	if a, b := r.Any("pool-a"), r.Any("pool-a"); a != b {
		t.Errorf("the same seed gave %q and %q", a, b)
	}
	if a, b := r.Any("pool-a"), r.Any("pool-b"); a == b {
		t.Errorf("two seeds gave the same value %q", a)
	}
	if a, b := r.Any("pool-a"), Exists("team/shape").Any("pool-a"); a == b {
		t.Errorf("two keys gave the same value %q", a)
	}
	full := AtLeast("k", 1).Intersect(AtMost("k", 2)).Intersect(NotIn("k", "1", "2"))
	if got := full.Any(""); got != "01" {
		t.Errorf("Any of 1..2 without 1 and 2 = %q, want 01", got)
	}
	if got := AtMost("k", -3).Intersect(NotIn("k", "-3")).Any(""); got != "-4" {
		t.Errorf("Any of at most -3 without it = %q, want -4", got)
	}
}

func TestRequirementsReadAsSpecsDo(t *testing.T) {
	three := 3
	many, _ := New("k", opIn, &three, "g", "f", "e", "d", "c", "b", "a")
	for want, r := range map[string]Requirement{
		"k In [a b]":       In("k", "b", "a"),
		"k NotIn [a]":      NotIn("k", "a"),
		"k Exists":         Exists("k"),
		"k DoesNotExist":   DoesNotExist("k"),
		"k Exists >=3 <=9": AtLeast("k", 3).Intersect(AtMost("k", 9)),
		"k In [a b c d e and 2 others] minValues 3": many,
	} {
		if got := r.String(); got != want {
			t.Errorf("String = %q, want %q", got, want)
		}
	}
}

func TestAccessors(t *testing.T) {
	r := NotIn("k", "b", "a", "b")
	if diff := cmp.Diff([]string{"a", "b"}, r.Values()); diff != "" || !r.Complement() || r.Key() != "k" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	if got := In("k", "a", "b").Len(); got != 2 {
		t.Errorf("Len of two values = %d", got)
	}
	if NotIn("k", "a").Len() >= Exists("k").Len() {
		t.Error("an excluded value does not lower Len")
	}
	lower, upper := AtLeast("k", 4).Bounds()
	if lower == nil || *lower != 4 || upper != nil {
		t.Errorf("bounds = %v %v", lower, upper)
	}
}

func TestJSONIsKarpentersFormAndComesBack(t *testing.T) {
	two := 2
	fam, _ := New("fam", opIn, &two, "m5", "c5")
	s := NewSet(fam, AtLeast("gen", 3), AtMost("gen", 9), NotIn("gen", "5"), Exists("x"), NotIn("x", "q"), DoesNotExist("y"), In("z", "a"), In("z", "b"))
	const want = `[{"key":"fam","operator":"In","values":["c5","m5"],"minValues":2},` +
		`{"key":"gen","operator":"Gte","values":["3"]},{"key":"gen","operator":"Lte","values":["9"]},{"key":"gen","operator":"NotIn","values":["5"]},` +
		`{"key":"x","operator":"Exists"},{"key":"x","operator":"NotIn","values":["q"]},` +
		`{"key":"y","operator":"DoesNotExist"},{"key":"z","operator":"DoesNotExist"},{"key":"z","operator":"Exists"}]`
	got, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("JSON (-want +got):\n%s", diff)
	}
	var back Set
	if err := json.Unmarshal(got, &back); err != nil || !back.Equal(s) {
		t.Errorf("came back as %v, %v", back, err)
	}
	if empty, err := json.Marshal(Set{}); err != nil || string(empty) != "[]" {
		t.Errorf("the empty set is %s, %v", empty, err)
	}
	for _, bad := range []string{`{}`, `[{"key":"k","operator":"In"}]`} {
		if err := json.Unmarshal([]byte(bad), &back); err == nil {
			t.Errorf("%s was accepted", bad)
		}
	}
}
