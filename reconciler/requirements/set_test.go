package requirements

import (
	"errors"
	"slices"
	"testing"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

func TestSetIntersectsRequirementsOnTheSameKey(t *testing.T) {
	s := NewSet(In("b", "1", "2"), Exists("a"), In("b", "2", "3"))
	if diff := cmp.Diff([]string{"a", "b"}, s.Keys()); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(In("b", "2"), s.Get("b")); diff != "" {
		t.Errorf("b (-want +got):\n%s", diff)
	}
	if got := s.Get("missing"); !got.Equal(Exists("missing")) || s.Has("missing") {
		t.Errorf("a missing key reads as %v", got)
	}
	if diff := cmp.Diff(map[string]string{"b": "2"}, s.Labels()); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if got := s.String(); got != "a Exists, b In [2]" {
		t.Errorf("String = %q", got)
	}
}

func TestSetsAreNotChangedByDerivingOthers(t *testing.T) {
	s := NewSet(In("a", "1", "2"), In("c", "1"))
	before := s.String()
	if got := s.With(In("a", "2"), In("b", "x")).String(); got != "a In [2], b In [x], c In [1]" {
		t.Errorf("With = %q", got)
	}
	if got := s.Merge(NewSet(In("a", "1"), In("d", "x"))).String(); got != "a In [1], c In [1], d In [x]" {
		t.Errorf("Merge = %q", got)
	}
	if got := s.Without("a", "q").String(); got != "c In [1]" {
		t.Errorf("Without = %q", got)
	}
	if s.String() != before {
		t.Errorf("the set became %v", s)
	}
}

func TestMergeEqualsNewSetOfAllRequirements(t *testing.T) {
	all := allWritten()
	for i, a := range all {
		b, c := all[(i*7+3)%len(all)], all[(i*5+1)%len(all)]
		left := NewSet(a.requirement(t), In("only-left", "1"))
		right := NewSet(b.requirement(t), c.requirement(t), Exists("only-right"))
		want := NewSet(slices.Concat(slices.Collect(left.All()), slices.Collect(right.All()))...)
		if diff := cmp.Diff(want, left.Merge(right)); diff != "" {
			t.Errorf("%v with %v (-want +got):\n%s", left, right, diff)
		}
	}
	s := NewSet(In("a", "1"))
	if !s.Merge(Set{}).Equal(s) || !(Set{}).Merge(s).Equal(s) {
		t.Error("merging with the empty set changes the set")
	}
}

func TestCompatible(t *testing.T) {
	zone := corev1.LabelTopologyZone
	for _, tc := range []struct {
		name  string
		node  Set
		asked Set
		allow func(string) bool
		want  string
	}{
		{"nothing is asked", NewSet(In(zone, "a")), Set{}, nil, ""},
		{"the value is there", NewSet(In(zone, "a", "b")), NewSet(In(zone, "b")), nil, ""},
		{"the value is not there", NewSet(In(zone, "a")), NewSet(In(zone, "b")), nil,
			"asked for topology.kubernetes.io/zone In [b], but there is only topology.kubernetes.io/zone In [a]"},
		{"all conflicts are listed by key", NewSet(In("b", "1"), In("a", "1")), NewSet(In("b", "2"), In("a", "2")), nil,
			"asked for a In [2], but there is only a In [1]; asked for b In [2], but there is only b In [1]"},
		{"a custom key is not defined", NewSet(In(zone, "a")), NewSet(In("team", "x")), WellKnown, `label "team" does not have known values`},
		{"a custom key may be missing for NotIn", Set{}, NewSet(NotIn("team", "x")), nil, ""},
		{"a custom key may be missing for DoesNotExist", Set{}, NewSet(DoesNotExist("team")), nil, ""},
		{"NotIn with Exists needs the key", Set{}, NewSet(NotIn("team", "x"), Exists("team")), nil, `label "team" does not have known values`},
		{"two values at once need the key", Set{}, NewSet(In("team", "x"), In("team", "y")), nil, `label "team" does not have known values`},
		{"a well-known key may be undefined for a new claim", Set{}, NewSet(In(zone, "a")), WellKnown, ""},
		{"a well-known key may not be undefined for a node", NewSet(In("x", "y")), NewSet(In("zone", "a")), nil,
			`label "zone" does not have known values (typo of "topology.kubernetes.io/zone"?)`},
		{"an existing node lacks the zone", Set{}, NewSet(In(zone, "a")), nil, `label "topology.kubernetes.io/zone" does not have known values`},
		{"Exists on the node side takes any value", NewSet(Exists("team")), NewSet(In("team", "x")), nil, ""},
		{"missing on both sides is forgiven", NewSet(DoesNotExist("gpu")), NewSet(DoesNotExist("gpu")), nil, ""},
		{"NotIn accepts a label that does not exist", NewSet(DoesNotExist("gpu")), NewSet(NotIn("gpu", "t4")), nil, ""},
		{"Exists does not accept a label that does not exist", NewSet(DoesNotExist("gpu")), NewSet(Exists("gpu")), nil,
			"asked for gpu Exists, but there is only gpu DoesNotExist"},
		{"bounds are compared with values", NewSet(In("gen", "2", "5")), NewSet(AtLeast("gen", 3)), nil, ""},
		{"disjoint bounds do not meet", NewSet(AtMost("gen", 2)), NewSet(AtLeast("gen", 3)), nil,
			"asked for gen Exists >=3, but there is only gen Exists <=2"},
		{"a typo of a label of the node", NewSet(In("example.com/team", "x")), NewSet(In("exmaple.com/team", "x")), nil,
			`label "exmaple.com/team" does not have known values (typo of "example.com/team"?)`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := tc.node.Compatible(tc.asked, tc.allow)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if ok := tc.node.IsCompatible(tc.asked, tc.allow); ok != (err == nil) {
				t.Errorf("IsCompatible = %v, but the error is %v", ok, err)
			}
		})
	}
}

func TestErrorsCarryTheirLabels(t *testing.T) {
	var undefined *UndefinedError
	if err := (Set{}).Compatible(NewSet(Exists("team")), nil); !errors.As(err, &undefined) || undefined.Key != "team" {
		t.Errorf("error = %v", err)
	}
	var conflict ConflictError
	err := NewSet(In("a", "1")).Intersects(NewSet(In("a", "2"), In("b", "1")))
	want := ConflictError{{Asked: In("a", "2"), Has: In("a", "1")}}
	if !errors.As(err, &conflict) {
		t.Fatalf("error = %v", err)
	}
	if diff := cmp.Diff(want, conflict); diff != "" {
		t.Errorf("conflicts (-want +got):\n%s", diff)
	}
}

func TestTypoHints(t *testing.T) {
	for key, want := range map[string]string{
		"zone":                              corev1.LabelTopologyZone,
		"instance-gpu":                      awsv1.LabelInstanceGPUCount,
		"topology.kubernetes.io/zne":        corev1.LabelTopologyZone,
		"topology.kubernetes.io/zonee":      corev1.LabelTopologyZone,
		"topology.kubernetes.io/znoe":       corev1.LabelTopologyZone,
		"topology.kubernetes.io/zona":       corev1.LabelTopologyZone,
		"karpenter.sh/instance-cpu":         awsv1.LabelInstanceCPU,
		"example.com/something-else":        "",
		"example.com/":                      "",
		"karpenter.k8s.aws/instance-famliy": awsv1.LabelInstanceFamily,
	} {
		if got := (Set{}).hint(key); got != want {
			t.Errorf("hint for %q = %q, want %q", key, got, want)
		}
	}
}

func TestShortfalls(t *testing.T) {
	two, nine := 2, 9
	fam, _ := New("fam", opExists, &two)
	size, _ := New("size", opExists, &nine)
	s := NewSet(size, fam, In("zone", "a"))
	types := []Set{NewSet(In("fam", "m5"), In("size", "large")), NewSet(In("fam", "c5"), In("size", "large")), NewSet(NotIn("fam", "t3"))}
	got := s.Shortfalls(func(key string) int { return DistinctValues(key, slices.Values(types)) })
	if diff := cmp.Diff([]Shortfall{{Key: "size", Want: 9, Have: 1}}, got); diff != "" {
		t.Errorf("shortfalls (-want +got):\n%s", diff)
	}
	if !s.HasMinValues() || NewSet(In("a", "b")).HasMinValues() {
		t.Error("HasMinValues is wrong")
	}
}

func TestWellKnownLabelsAreThoseOfKarpenterAndItsProvider(t *testing.T) {
	want := sets.List(karpv1.WellKnownLabels)
	if diff := cmp.Diff(want, WellKnownLabels()); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	for _, key := range want {
		if !WellKnown(key) {
			t.Errorf("%s is not well known", key)
		}
	}
	if WellKnown("example.com/team") {
		t.Error("a custom label is well known")
	}
}

func TestDeprecatedLabelsAreNormalizedEverywhere(t *testing.T) {
	for old, today := range karpv1.NormalizedLabels {
		if got := NormalizeKey(old); got != today {
			t.Errorf("NormalizeKey(%q) = %q, want %q", old, got, today)
		}
		want := NewSet(In(today, "v"))
		if diff := cmp.Diff(want, FromLabels(map[string]string{old: "v"})); diff != "" {
			t.Errorf("labels (-want +got):\n%s", diff)
		}
		got, err := FromNodeSelector([]corev1.NodeSelectorRequirement{{Key: old, Operator: opIn, Values: []string{"v"}}})
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("selector: %v (-want +got):\n%s", err, diff)
		}
	}
}

func TestFromKarpenterNamesTheFaultyRequirement(t *testing.T) {
	_, err := FromKarpenter([]karpv1.NodeSelectorRequirementWithMinValues{{Key: "a", Operator: opExists}, {Key: "b", Operator: opIn}})
	if diff := cmp.Diff(`requirements[1]: requirement on label "b": operator In needs at least one value`, errText(err)); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
}

func TestPodTerms(t *testing.T) {
	expr := func(key string, op corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: op, Values: values}
	}
	term := func(exprs ...corev1.NodeSelectorRequirement) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: exprs}
	}
	selector := map[string]string{"disk": "ssd"}
	fields := corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{expr("metadata.name", opIn, "n1")}}
	for _, tc := range []struct {
		name  string
		terms []corev1.NodeSelectorTerm
		want  []Set
		err   string
	}{
		{"no affinity gives the node selector", nil, []Set{NewSet(In("disk", "ssd"))}, ""},
		{"each term is an alternative", []corev1.NodeSelectorTerm{term(expr("z", opIn, "a")), term(expr("gen", opGt, "3"))},
			[]Set{NewSet(In("disk", "ssd"), In("z", "a")), NewSet(In("disk", "ssd"), AtLeast("gen", 4))}, ""},
		{"a term narrows the node selector", []corev1.NodeSelectorTerm{term(expr("disk", opIn, "ssd", "nvme"))}, []Set{NewSet(In("disk", "ssd"))}, ""},
		{"an empty term matches nothing", []corev1.NodeSelectorTerm{term()}, []Set{}, ""},
		{"fields are refused", []corev1.NodeSelectorTerm{term(expr("z", opIn, "a")), fields}, nil,
			"required node affinity term 1: node affinity with matchFields is not supported"},
		{"Gte is not for pods", []corev1.NodeSelectorTerm{term(expr("gen", opGte, "3"))}, nil,
			`required node affinity term 0: expression 0 on label "gen": only NodePools know operator Gte: use Gt or Lt`},
		{"a malformed bound is refused", []corev1.NodeSelectorTerm{term(expr("gen", opGt, "x"))}, nil,
			`required node affinity term 0: expression 0: requirement on label "gen": operator Gt needs a 64-bit integer, not "x"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			affinity := &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 1, Preference: term(expr("p", opIn, "q"))}},
			}}
			if tc.terms != nil {
				affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: tc.terms}
			}
			got, err := PodTerms(selector, affinity)
			if diff := cmp.Diff(tc.err, errText(err)); diff != "" {
				t.Fatalf("error (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("sets (-want +got):\n%s", diff)
			}
		})
	}
	if got, err := PodTerms(nil, nil); err != nil || len(got) != 1 || got[0].Len() != 0 {
		t.Errorf("a pod that asks for nothing gives %v, %v", got, err)
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
