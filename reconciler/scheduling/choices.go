package scheduling

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/requirements"
)

// Choices are what a NodePool can launch before any pod is looked at: what its
// template, its EC2NodeClass and the exclusions leave of the catalog.
type Choices struct {
	NodePool string
	// NotReady says why there is nothing to choose from; the rest is empty
	// then.
	NotReady string
	// Requirements are those of the template with its labels.
	Requirements requirements.Set
	// Filters tell how the types of the class became those that are left.
	Filters []Filter
	// Types that can be launched, by name, and how many of them as spot.
	Types []string
	Spot  int
	// Cheapest are the cheapest offering of each capacity type among them, by
	// capacity type; those that cannot be bought are left out.
	Cheapest []Cheapest
	// Shortfalls are the minValues that these types do not reach.
	Shortfalls []requirements.Shortfall
}

// Cheapest is an offering of an instance type that no other undercuts.
type Cheapest struct {
	InstanceType string
	Offering     catalog.Offering
}

// ChoicesOf works out the choices of each NodePool, sorted by name, by the
// rules of Solve. It fails as Solve does.
func ChoicesOf(in Input) ([]Choices, error) {
	p, err := newProblem(in)
	if err != nil {
		return nil, fmt.Errorf("scheduling: %w", err)
	}
	p.compile()
	out := make([]Choices, 0, len(p.pools))
	alike := map[string]*Choices{}
	keys := map[string]map[string]bool{}
	for _, pl := range p.pools {
		key := p.alike(pl, keys)
		known := alike[key]
		if known == nil || len(p.daemons) > 0 {
			c := p.choices(pl)
			known, alike[key] = &c, &c
		}
		out = append(out, known.of(pl))
	}
	slices.SortFunc(out, func(a, b Choices) int { return cmp.Compare(a.NodePool, b.NodePool) })
	return out, nil
}

// alike is the same for NodePools that have the same choices: many differ only
// in names, taints and labels that no instance type has. It does not look at
// taints, which matter to daemons. keys are the labels of the types of each
// class, which it fills in.
func (p *problem) alike(pl *pool, keys map[string]map[string]bool) string {
	known := keys[pl.class]
	if known == nil {
		known = map[string]bool{capacityTypeLabel: true, corev1.LabelTopologyZone: true, awsv1.LabelTopologyZoneID: true}
		for _, it := range pl.catalog {
			for r := range it.Requirements.All() {
				known[r.Key()] = true
			}
		}
		keys[pl.class] = known
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%q %q\n", pl.class, pl.why)
	for r := range pl.reqs.All() {
		if known[r.Key()] || r.MinValues() > 0 {
			lower, upper := r.Bounds()
			fmt.Fprintf(&b, "%q %t %t %q %d", r.Key(), r.Complement(), r.AllowsAbsent(), r.Values(), r.MinValues())
			for _, bound := range [...]*int64{lower, upper} {
				if bound != nil {
					fmt.Fprintf(&b, " %d", *bound)
				}
				b.WriteByte(',')
			}
			b.WriteByte('\n')
		}
	}
	for _, x := range p.in.Exclusions.Offerings[pl.name] {
		for _, s := range [...]string{x.Type, x.Zone, x.CapacityType, x.Rule} {
			b.WriteString(s)
			b.WriteByte('\t')
		}
	}
	return b.String()
}

// of is the same choices as another NodePool's.
func (c *Choices) of(pl *pool) Choices {
	out := *c
	out.NodePool, out.Requirements = pl.name, pl.reqs
	out.Filters, out.Types = slices.Clone(c.Filters), slices.Clone(c.Types)
	out.Cheapest, out.Shortfalls = slices.Clone(c.Cheapest), slices.Clone(c.Shortfalls)
	return out
}

func (p *problem) choices(pl *pool) Choices {
	c := Choices{NodePool: pl.name, Requirements: pl.reqs}
	if len(pl.catalog) == 0 {
		c.NotReady = cmp.Or(pl.why, "has no instance types")
		return c
	}
	p.compileTypes(pl)
	c.Filters = slices.Clone(pl.filters)
	for _, t := range pl.types {
		c.Types = append(c.Types, t.Name)
		if slices.ContainsFunc(t.offers, isSpot) {
			c.Spot++
		}
	}
	slices.Sort(c.Types)
	c.Cheapest = cheapestOffers(pl.types)
	c.Shortfalls = pl.reqs.Shortfalls(func(key string) int {
		return requirements.DistinctValues(key, func(yield func(requirements.Set) bool) {
			for _, t := range pl.types {
				if !yield(t.Requirements) {
					return
				}
			}
		})
	})
	return c
}

// cheapestOffers looks through the offerings that are left of each type. Equal prices
// go to the type, then the zone that comes first by name.
func cheapestOffers(types []*ptype) []Cheapest {
	best := map[string]Cheapest{}
	for _, t := range types {
		for _, o := range t.offers {
			c := Cheapest{InstanceType: t.Name, Offering: o}
			if b, ok := best[o.CapacityType]; !ok || c.compare(b) < 0 {
				best[o.CapacityType] = c
			}
		}
	}
	var out []Cheapest
	for _, ct := range slices.Sorted(maps.Keys(best)) {
		out = append(out, best[ct])
	}
	return out
}

func (c Cheapest) compare(b Cheapest) int {
	return cmp.Or(cmp.Compare(c.Offering.Price, b.Offering.Price), cmp.Compare(c.InstanceType, b.InstanceType),
		cmp.Compare(c.Offering.Zone, b.Offering.Zone))
}

func isSpot(o catalog.Offering) bool { return o.CapacityType == karpv1.CapacityTypeSpot }
