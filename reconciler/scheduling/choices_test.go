package scheduling

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/reeve-project/reeve/reconciler/requirements"
)

func TestChoicesAreWhatTemplateAndPolicyLeave(t *testing.T) {
	three := 3
	sizes := requirement(corev1.LabelInstanceTypeStable, corev1.NodeSelectorOpIn, "s1", "s2", "s4")
	sizes.MinValues = &three
	static := onDemandPool("static")
	replicas := int64(2)
	static.Spec.Replicas = &replicas
	stray := onDemandPool("stray")
	stray.Spec.Template.Spec.NodeClassRef.Name = "missing"
	in := input(nil, commonTypes(), nodePool("varied", sizes), onDemandPool("arm", requirement(corev1.LabelArchStable, corev1.NodeSelectorOpIn, "arm64")), static, stray)
	in.Exclusions.Offerings = map[string][]OfferingExclusion{"varied": {
		{Type: "s4", Rule: "R"}, {Type: "s2", CapacityType: "spot", Rule: "R"}, {Type: "s1", Zone: "a", Rule: "R"},
	}}
	got, err := ChoicesOf(in)
	if err != nil {
		t.Fatal(err)
	}
	for i := range got {
		got[i].Requirements = requirements.Set{}
	}
	cheapest := func(it, zone, capacityType string) Cheapest {
		for _, typ := range commonTypes() {
			for _, o := range typ.Offerings {
				if typ.Name == it && o.Zone == zone && o.CapacityType == capacityType {
					return Cheapest{InstanceType: it, Offering: o}
				}
			}
		}
		t.Fatalf("there is no %s in %s as %s", it, zone, capacityType)
		return Cheapest{}
	}
	all := []string{"s1", "s16", "s2", "s32", "s4", "s8"}
	want := []Choices{
		{NodePool: "arm", Filters: []Filter{{FilterCatalog, 6}, {FilterRequirements, 0}, {FilterOfferings, 0}}},
		{NodePool: "static", Types: all, Cheapest: []Cheapest{cheapest("s1", "a", "on-demand")}, Filters: []Filter{{FilterCatalog, 6}, {FilterRequirements, 6}, {FilterOfferings, 6}}},
		{NodePool: "stray", NotReady: `has EC2NodeClass "missing" that is not ready: it does not exist`},
		{
			NodePool: "varied", Types: []string{"s1", "s2"}, Spot: 1,
			Cheapest:   []Cheapest{cheapest("s1", "b", "on-demand"), cheapest("s1", "b", "spot")},
			Filters:    []Filter{{FilterCatalog, 6}, {FilterRequirements, 3}, {FilterPolicy, 2}, {FilterOfferings, 2}},
			Shortfalls: []requirements.Shortfall{{Key: corev1.LabelInstanceTypeStable, Want: 3, Have: 2}},
		},
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(requirements.Set.Equal)); diff != "" {
		t.Errorf("choices (-want +got):\n%s", diff)
	}
}

func TestChoicesOfNoFleetAreAnError(t *testing.T) {
	if _, err := ChoicesOf(Input{}); err == nil {
		t.Error("no error")
	}
}
