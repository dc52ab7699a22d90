package catalog

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/reeve-project/reeve/reconciler/requirements"
)

func TestWithUnavailableCopiesOnlyWhatItChanges(t *testing.T) {
	d := smallData(t)
	types, err := d.Resolve(al2023(d), DefaultSettings())
	if err != nil {
		t.Fatal(err)
	}
	key := OfferingKey{"c9.large", "test-1a", "spot"}
	got := WithUnavailable(types, map[OfferingKey]string{key: "no capacity until 12:03", {"x9.large", "test-1a", "spot"}: "unknown"})
	if got[1] != types[1] {
		t.Error("m9.large was copied")
	}
	if o := types[0].Offerings[0]; !o.Available {
		t.Error("the input was changed")
	}
	want := Offering{Zone: "test-1a", ZoneID: "z1", CapacityType: "spot", Price: 29_123_450, Reason: "no capacity until 12:03"}
	if diff := cmp.Diff(want, got[0].Offerings[0]); diff != "" {
		t.Errorf("offering (-want +got):\n%s", diff)
	}
	if o, _ := got[0].Cheapest(requirements.Set{}); o.Zone != "test-1b" || o.CapacityType != "spot" {
		t.Errorf("the cheapest is %+v", o)
	}
	again := WithUnavailable(got, map[OfferingKey]string{key: "another reason"})
	if again[0].Offerings[0].Reason != "no capacity until 12:03" {
		t.Errorf("the first reason was lost: %+v", again[0].Offerings[0])
	}
	if same := WithUnavailable(types, nil); same[0] != types[0] {
		t.Error("nothing to do made copies")
	}
}

func TestSortByPriceLooksAtWhatIsAllowed(t *testing.T) {
	d := smallData(t)
	types, err := d.Resolve(al2023(d), DefaultSettings())
	if err != nil {
		t.Fatal(err)
	}
	names := func(reqs ...requirements.Requirement) []string {
		var out []string
		for _, it := range SortByPrice(types, requirements.NewSet(reqs...)) {
			out = append(out, it.Name)
		}
		return out
	}
	spot := requirements.In("karpenter.sh/capacity-type", "spot")
	if diff := cmp.Diff([]string{"c9.large", "m9.large"}, names(spot)); diff != "" {
		t.Errorf("spot (-want +got):\n%s", diff)
	}
	none := requirements.In(corev1.LabelTopologyZone, "elsewhere")
	if diff := cmp.Diff([]string{"c9.large", "m9.large"}, names(none)); diff != "" {
		t.Errorf("no zone (-want +got):\n%s", diff)
	}
	dearer, err := d.WithPrices(OnDemandPrices{"m9.large": 1, "c9.large": 2}, nil)
	if err != nil {
		t.Fatal(err)
	}
	types, _ = dearer.Resolve(al2023(d), DefaultSettings())
	if diff := cmp.Diff([]string{"m9.large", "c9.large"}, names()); diff != "" {
		t.Errorf("on demand (-want +got):\n%s", diff)
	}
}
