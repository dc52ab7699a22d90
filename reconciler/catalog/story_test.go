package catalog

import (
	"testing"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/requirements"
	"github.com/reeve-project/reeve/reconciler/resources"
)

// The NodePool of the example fleet: general-purpose amd64 machines that are not
// old, bought on demand.
var generalPurpose = requirements.NewSet(
	requirements.In(corev1.LabelArchStable, karpv1.ArchitectureAmd64),
	requirements.In(corev1.LabelOSStable, "linux"),
	requirements.In(karpv1.CapacityTypeLabelKey, karpv1.CapacityTypeOnDemand),
	requirements.In(awsv1.LabelInstanceCategory, "c", "m", "r"),
	requirements.AtLeast(awsv1.LabelInstanceGeneration, 3),
)

func candidates(types []*InstanceType, reqs requirements.Set, requests resources.List) []*InstanceType {
	var out []*InstanceType
	for _, it := range types {
		if it.Requirements.IsCompatible(reqs, requirements.WellKnown) && requests.Fits(it.Allocatable) {
			out = append(out, it)
		}
	}
	return out
}

func TestFivePodsOfOneCoreFindTwoHundredAndSixTypesInSeoul(t *testing.T) {
	d := embeddedData(t, "ap-northeast-2")
	types, err := d.Resolve(al2023(d), DefaultSettings())
	if err != nil {
		t.Fatal(err)
	}
	fitting := candidates(types, generalPurpose, resources.List{corev1.ResourceCPU: 5150})
	buyable, priced := 0, 0
	for _, it := range fitting {
		if _, ok := it.Cheapest(generalPurpose); ok {
			buyable++
		}
		if _, ok := d.OnDemandPrice(it.Name); ok {
			priced++
		}
	}
	if buyable != 206 || priced != 210 {
		t.Errorf("%d types can be bought and %d have a price, want 206 and 210", buyable, priced)
	}
	cheapest := SortByPrice(fitting, generalPurpose)[0]
	o, _ := cheapest.Cheapest(generalPurpose)
	want := Offering{Zone: "ap-northeast-2a", ZoneID: "apne2-az1", CapacityType: "on-demand", Price: 344_000_000, Available: true}
	if cheapest.Name != "c5a.2xlarge" || o != want {
		t.Errorf("the cheapest is %s %+v, want c5a.2xlarge %+v", cheapest.Name, o, want)
	}
}

func TestEveryOfferingHasAListedPriceAndZone(t *testing.T) {
	for _, region := range Regions() {
		d := embeddedData(t, region)
		count := 0
		for name, it := range resolved(t, d, al2023(d)) {
			typ, _ := d.Type(name)
			for _, o := range it.Offerings {
				count++
				listed, ok := d.OnDemandPrice(name)
				if o.CapacityType == karpv1.CapacityTypeSpot {
					listed, ok = d.SpotPrice(name, o.ZoneID)
				}
				if !ok || listed != o.Price {
					t.Errorf("%s %+v: the listed price is %v, %v", name, o, listed, ok)
				}
			}
			if len(typ.Zones) == 0 && len(it.Offerings) > 0 {
				t.Errorf("%s is in no zone of %s and has offerings", name, region)
			}
		}
		if count < 1000 {
			t.Errorf("%s has only %d offerings", region, count)
		}
	}
}
