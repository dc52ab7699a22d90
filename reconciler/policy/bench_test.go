package policy

import (
	"context"
	"fmt"
	"testing"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/decision"
)

// wholeCatalog is every instance type, resolved for a region.
func wholeCatalog(b *testing.B) []*catalog.InstanceType {
	b.Helper()
	data, err := catalog.Embedded("us-east-1")
	if err != nil {
		b.Fatal(err)
	}
	types, err := data.Everywhere(catalog.DefaultSettings())
	if err != nil {
		b.Fatal(err)
	}
	if len(types) < 1000 {
		b.Fatalf("the catalog has %d types", len(types))
	}
	return types
}

// BenchmarkOffering is one NodePool over the whole catalog with nothing kept.
func BenchmarkOffering(b *testing.B) {
	f := newFleet(b, "al2023@v20260318")
	e := engine(b, nil)
	types := newTypes(b, FromCatalog(wholeCatalog(b)))
	specs, err := NewSpecs(f)
	if err != nil {
		b.Fatal(err)
	}
	q, err := specs.Query("default", classStatusFixture(), types)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		e.cache = offeringCache{}
		if r, err := e.Offering(context.Background(), Case{Fleet: f, Now: noon}, q); err != nil || len(r.Exclusions) == 0 || len(r.Violations) > 0 {
			b.Fatal(r.Violations, err)
		}
	}
}

// BenchmarkOfferingCeilings is BenchmarkOffering with a price ceiling of nodes
// that lies between the spot and the on-demand price of many types.
func BenchmarkOfferingCeilings(b *testing.B) {
	f := newFleet(b, "al2023@v20260318")
	e, err := New(NewBundle(nil, []byte(`{"priceCeilings": {"enabled": true, "node": 3}}`)), Options{})
	if err != nil {
		b.Fatal(err)
	}
	types := newTypes(b, FromCatalog(wholeCatalog(b)))
	specs, err := NewSpecs(f)
	if err != nil {
		b.Fatal(err)
	}
	q, err := specs.Query("default", classStatusFixture(), types)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		e.cache = offeringCache{}
		if r, err := e.Offering(context.Background(), Case{Fleet: f, Now: noon}, q); err != nil || len(r.Exclusions) == 0 || len(r.Violations) > 0 {
			b.Fatal(r.Violations, err)
		}
	}
}

// BenchmarkOfferingHit is the same when nothing has changed, with the work of
// finding that out.
func BenchmarkOfferingHit(b *testing.B) {
	f := newFleet(b, "al2023@v20260318")
	e := engine(b, nil)
	types := newTypes(b, FromCatalog(wholeCatalog(b)))
	specs, err := NewSpecs(f)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		q, err := specs.Query("default", classStatusFixture(), types)
		if err != nil {
			b.Fatal(err)
		}
		if r, err := e.Offering(context.Background(), Case{Fleet: f, Now: noon}, q); err != nil || len(r.Exclusions) == 0 {
			b.Fatal(r.Violations, err)
		}
	}
}

// BenchmarkTypes is the conversion of the catalog, once for each set of prices.
func BenchmarkTypes(b *testing.B) {
	list := wholeCatalog(b)
	for b.Loop() {
		newTypes(b, FromCatalog(list))
	}
}

// BenchmarkDecision is a proposal of one claim with 60 types and 10 pods, from
// the values of the pass to the verdict.
func BenchmarkDecision(b *testing.B) {
	f := newFleet(b, "al2023@v20260318")
	e := engine(b, nil)
	list := manyTypes(60)
	var podNames []string
	for i := range 10 {
		podNames = append(podNames, fmt.Sprintf("inflate-%02d", i))
	}
	pods := pendingPods("default", map[string]string{"app": "inflate"}, podNames...)
	parts := DecisionParts{
		Kind: decision.Provision, Proposal: provision(pods, names(list)), Fleet: f,
		Snapshot: (&cluster.Snapshot{Time: noon, Pending: pods}).Seal(), Types: newTypes(b, list),
	}
	for b.Loop() {
		in, err := NewDecisionQuery(parts)
		if err != nil {
			b.Fatal(err)
		}
		if r, err := e.Decision(context.Background(), Case{Fleet: f, Now: noon}, in); err != nil || len(r.Violations) > 0 {
			b.Fatal(r.Violations, err)
		}
	}
}

// BenchmarkNew is the compilation of the shipped policies, once for each commit.
func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		engine(b, nil)
	}
}
