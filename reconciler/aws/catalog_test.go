package aws_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reeve-project/reeve/reconciler/aws"
	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/resources"
	"github.com/reeve-project/reeve/reconciler/sim/awsapi"
)

// sold is the data without the types that no zone offers, which EC2 does not
// list.
func sold(t *testing.T, d *catalog.Data) *catalog.Data {
	t.Helper()
	var types []catalog.Type
	onDemand, spot := catalog.OnDemandPrices{}, catalog.SpotPrices{}
	for _, ty := range d.Types() {
		if len(ty.Zones) == 0 {
			continue
		}
		types = append(types, ty)
		if p, ok := d.OnDemandPrice(ty.Name); ok {
			onDemand[ty.Name] = p
		}
		for _, z := range d.Zones() {
			if p, ok := d.SpotPrice(ty.Name, z.ID); ok {
				if spot[ty.Name] == nil {
					spot[ty.Name] = map[string]resources.Price{}
				}
				spot[ty.Name][z.ID] = p
			}
		}
	}
	out, err := catalog.New(d.Region(), d.Zones(), types, onDemand, spot)
	noError(t, err)
	return out
}

func sameCatalog(t *testing.T, want, got *catalog.Data) {
	t.Helper()
	for name, b := range want.Files() {
		if diff := cmp.Diff(strings.Split(string(b), "\n"), strings.Split(string(got.Files()[name]), "\n")); diff != "" {
			t.Errorf("%s (-want +got):\n%.4000s", name, diff)
		}
	}
	if want.TypesDigest() != got.TypesDigest() || want.PricesDigest() != got.PricesDigest() {
		t.Error("the digests differ")
	}
}

func TestWhatEC2SaysIsWhatTheBuiltInCatalogSays(t *testing.T) {
	for _, region := range catalog.Regions() {
		t.Run("in "+region, func(t *testing.T) {
			data, err := catalog.Embedded(region)
			noError(t, err)
			a := newTenant(t, func(o *awsapi.Options) { o.Catalog = data })
			got, err := a.cloud.Catalog(t.Context())
			noError(t, err)
			sameCatalog(t, sold(t, data), got)
			if n := len(got.Types()); n < 400 {
				t.Errorf("only %d types", n)
			}
		})
	}
}

func TestCatalogAsksAgainAfterTwelveHours(t *testing.T) {
	a := newTenant(t)
	first, err := a.cloud.Catalog(t.Context())
	noError(t, err)
	before := a.Calls()
	for range 5 {
		again, err := a.cloud.Catalog(t.Context())
		noError(t, err)
		if again != first {
			t.Fatal("the catalog is another pointer although nothing changed")
		}
	}
	a.pass(t, 12*time.Hour-time.Second)
	_, err = a.cloud.Catalog(t.Context())
	noError(t, err)
	if diff := cmp.Diff(map[string]int{}, a.since(before)); diff != "" {
		t.Errorf("calls within twelve hours (-want +got):\n%s", diff)
	}
	a.pass(t, time.Second)
	same, err := a.cloud.Catalog(t.Context())
	noError(t, err)
	if same != first {
		t.Error("the catalog is another pointer although the answers are the same")
	}
	for _, action := range []string{"DescribeInstanceTypes", "DescribeInstanceTypeOfferings", "DescribeSpotPriceHistory", "GetProducts", "DescribeSubnets"} {
		if a.since(before)[action] == 0 {
			t.Errorf("%s was not asked again", action)
		}
	}
}

func TestCatalogTakesNewPrices(t *testing.T) {
	a := newTenant(t)
	first, err := a.cloud.Catalog(t.Context())
	noError(t, err)
	data, err := catalog.Embedded(seoul)
	noError(t, err)
	onDemand, spot := catalog.OnDemandPrices{}, catalog.SpotPrices{"m5.large": {"apne2-az1": resources.USD / 100}}
	for _, ty := range data.Types() {
		if p, ok := data.OnDemandPrice(ty.Name); ok {
			onDemand[ty.Name] = p
		}
	}
	onDemand["m5.large"] = resources.USD
	changed, err := data.WithPrices(onDemand, spot)
	noError(t, err)
	a.SetCatalog(changed)
	a.pass(t, 12*time.Hour)
	next, err := a.cloud.Catalog(t.Context())
	noError(t, err)
	if next == first || next.TypesDigest() != first.TypesDigest() {
		t.Error("prices changed, and types did not")
	}
	sameCatalog(t, sold(t, changed), next)
}

func TestWithoutAWSTheBuiltInCatalogServes(t *testing.T) {
	a := newTenant(t)
	a.SetFaults(awsapi.Every("", awsapi.Fault{Code: "RequestLimitExceeded"}))
	got, err := a.cloud.Catalog(t.Context())
	noError(t, err)
	data, err := catalog.Embedded(seoul)
	noError(t, err)
	if got.TypesDigest() != data.TypesDigest() {
		t.Error("the types are not the built-in ones")
	}
	if n := a.log.count("cannot be read"); n != 5 {
		t.Errorf("%d warnings for five sources", n)
	}
	a.pass(t, time.Minute)
	_, err = a.cloud.Catalog(t.Context())
	noError(t, err)
	if n := a.log.count("cannot be read"); n != 5 {
		t.Errorf("%d warnings after the same error came again", n)
	}
	a.SetFaults(nil)
	a.pass(t, time.Minute)
	got, err = a.cloud.Catalog(t.Context())
	noError(t, err)
	sameCatalog(t, sold(t, data), got)
	if n := a.log.count("can be read again"); n != 5 {
		t.Errorf("%d sources are said to be read again", n)
	}
}

func TestOneSourceThatFailsKeepsItsLastAnswer(t *testing.T) {
	data, err := catalog.Embedded(seoul)
	noError(t, err)
	for _, action := range []string{"DescribeInstanceTypes", "DescribeInstanceTypeOfferings", "DescribeSpotPriceHistory", "GetProducts", "DescribeSubnets"} {
		for name, fault := range map[string]awsapi.Fault{
			"is refused": {Code: "UnauthorizedOperation"}, "is cut off": {After: true, Truncate: true},
		} {
			t.Run(action+" "+name, func(t *testing.T) {
				a := newTenant(t)
				first, err := a.cloud.Catalog(t.Context())
				noError(t, err)
				// The second page fails where there is one: half an answer is none.
				n := a.Calls()[action]
				a.SetFaults(func(c awsapi.Call) *awsapi.Fault {
					if c.Action == action && c.N > n+min(1, n-1) {
						return &fault
					}
					return nil
				})
				a.pass(t, 12*time.Hour)
				got, err := a.cloud.Catalog(t.Context())
				noError(t, err)
				if got != first {
					sameCatalog(t, sold(t, data), got)
					t.Error("the catalog is another pointer")
				}
				if a.log.count("cannot be read") != 1 || a.log.count("the last answer") != 1 {
					t.Errorf("log: %s", a.log.b.String())
				}
			})
		}
	}
}

func TestARegionWithoutBuiltInTables(t *testing.T) {
	seoulData, err := catalog.Embedded(seoul)
	noError(t, err)
	far, err := catalog.New("xx-far-1", seoulData.Zones(), seoulData.Types(), catalog.OnDemandPrices{"m5.large": resources.USD}, nil)
	noError(t, err)
	a := newTenant(t, func(o *awsapi.Options) { o.Catalog = far })
	t.Run("is an error that says what to allow while offerings are not known", func(t *testing.T) {
		a.SetFaults(awsapi.Every("DescribeInstanceTypeOfferings", awsapi.Fault{Code: "UnauthorizedOperation"}))
		_, err := a.cloud.Catalog(t.Context())
		if err == nil || !strings.Contains(err.Error(), "allow ec2:DescribeInstanceTypeOfferings") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("has the prices of another one until there are its own, and on-demand prices for spot", func(t *testing.T) {
		a.SetFaults(awsapi.Every("GetProducts", awsapi.Fault{Code: "AccessDeniedException"}))
		a.pass(t, time.Minute)
		d, err := a.cloud.Catalog(t.Context())
		noError(t, err)
		virginia, err := catalog.Embedded("us-east-1")
		noError(t, err)
		want, _ := virginia.OnDemandPrice("m5.large")
		got, ok := d.OnDemandPrice("m5.large")
		spot, spotOK := d.SpotPrice("m5.large", "apne2-az1")
		if !ok || !spotOK || got != want || spot != want || d.Region() != "xx-far-1" {
			t.Errorf("m5.large costs %s, %s as spot; want %s", got, spot, want)
		}
	})
}

func TestZonesHaveTheAccountsNames(t *testing.T) {
	a := newTenant(t, func(o *awsapi.Options) { o.Zones = []string{seoul + "b"} })
	d, err := a.cloud.Catalog(t.Context())
	noError(t, err)
	want := []catalog.Zone{{Name: "apne2-az1", ID: "apne2-az1"}, {Name: seoul + "b", ID: "apne2-az2"}, {Name: "apne2-az3", ID: "apne2-az3"}, {Name: "apne2-az4", ID: "apne2-az4"}}
	if diff := cmp.Diff(want, d.Zones()); diff != "" {
		t.Errorf("zones (-want +got):\n%s", diff)
	}
}

func TestASubnetInANewZoneNamesIt(t *testing.T) {
	a := newTenant(t)
	a.SetFaults(awsapi.Nth("DescribeSubnets", 1, awsapi.Fault{Code: "RequestLimitExceeded"}))
	_, err := a.cloud.Catalog(t.Context())
	noError(t, err)
	a.resolve(t, shopClass())
	before := a.Calls()
	d, err := a.cloud.Catalog(t.Context())
	noError(t, err)
	if d.Zones()[0].Name != seoul+"a" || len(a.since(before)) != 0 {
		t.Errorf("zones %v after calls %v", d.Zones(), a.since(before))
	}
}

func TestAnEndedContextLeavesTheCatalogAsItIs(t *testing.T) {
	a := newTenant(t)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if d, err := a.cloud.Catalog(ended); err == nil {
		t.Errorf("a catalog of %d types without asking", len(d.Types()))
	}
	first, err := a.cloud.Catalog(t.Context())
	noError(t, err)
	a.pass(t, 12*time.Hour)
	again, err := a.cloud.Catalog(ended)
	noError(t, err)
	if again != first || a.log.count("cannot be read") != 0 {
		t.Error("an ended context is not an answer")
	}
}

func TestQueueIsNilWithoutAName(t *testing.T) {
	a := newTenant(t)
	if q := a.client(t, aws.Options{Cluster: "shop"}).Queue(); q != nil {
		t.Error("a queue without a name")
	}
}
