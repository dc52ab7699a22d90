package disruption

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"

	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/requirements"
	"github.com/reeve-project/reeve/reconciler/resources"
	"github.com/reeve-project/reeve/reconciler/scheduling"
)

// leastSpotTypes is how many cheaper types a spot node needs to be replaced by
// a spot node, lest the two take turns (Karpenter:
// MinInstanceTypesForSpotToSpotConsolidation).
const leastSpotTypes = 15

// The steps that a replacement adds to the filters of its claim.
const (
	// FilterCheaper leaves the types that cost less than the replaced nodes.
	FilterCheaper = "cheaper than the nodes it replaces"
	// FilterCapacityType leaves the offerings of the one capacity type that the
	// price is about.
	FilterCapacityType = "capacity type of the price"
	// FilterSameType leaves the types that cost less than each replaced node
	// whose type is among them.
	FilterSameType = "cheaper than a replaced node of a listed type"
)

// What Karpenter says of replacements that are not made.
const (
	tooDear       = "Can't replace with a cheaper node"
	spotToSpotOff = "SpotToSpotConsolidation is disabled, can't replace a spot node with a spot node"
)

// replacement is a new node with what narrowed its launch list.
type replacement struct {
	draft        *scheduling.Draft
	steps        []scheduling.Step
	most         int
	capacityType string
	planned      scheduling.Choice
}

func (r *replacement) last() []scheduling.Option { return r.steps[len(r.steps)-1].Keep }

func (r *replacement) narrow(by string, keep []scheduling.Option) {
	r.steps = append(r.steps, scheduling.Step{By: by, Keep: keep})
}

func (r *replacement) claim() *scheduling.Claim {
	return r.draft.Claim(r.steps, r.most, r.capacityType)
}

// replace narrows a draft to what is cheaper than the nodes it replaces. When
// that leaves nothing it says why (Karpenter: computeConsolidation and
// computeSpotToSpotConsolidation).
func (p *pass) replace(nodes []*Candidate, d *scheduling.Draft) (*replacement, string) {
	r := &replacement{draft: d, most: scheduling.MaxLaunchable}
	options := d.Options()
	spotToSpot := allSpot(nodes) && slices.ContainsFunc(options, offers(karpv1.CapacityTypeSpot))
	if spotToSpot {
		if !p.in.Fleet.Cluster.Engine.SpotToSpot {
			return nil, spotToSpotOff
		}
		options = onlyOf(options, karpv1.CapacityTypeSpot)
	}
	if why := r.cheaperThan(options, priceOfAll(nodes)); why != "" {
		return nil, why
	}
	r.pin(spotToSpot)
	if len(nodes) > 1 {
		if why := r.dropSameTypes(nodes); why != "" {
			return nil, why
		}
	} else if spotToSpot {
		if why := r.cutSpot(); why != "" {
			return nil, why
		}
	}
	var ok bool
	if r.planned, ok = d.Planned(r.last()); !ok {
		return nil, tooDear
	}
	return r, ""
}

func priceOfAll(nodes []*Candidate) resources.Price {
	var sum resources.Price
	for _, c := range nodes {
		sum += c.Price
	}
	return sum
}

func allSpot(nodes []*Candidate) bool {
	return !slices.ContainsFunc(nodes, func(c *Candidate) bool { return c.Node.Claim.CapacityType != karpv1.CapacityTypeSpot })
}

func offers(capacityType string) func(scheduling.Option) bool {
	return func(o scheduling.Option) bool {
		return slices.ContainsFunc(o.Offerings, func(f catalog.Offering) bool { return f.CapacityType == capacityType })
	}
}

// onlyOf keeps the offerings of one capacity type.
func onlyOf(options []scheduling.Option, capacityType string) []scheduling.Option {
	var out []scheduling.Option
	for _, o := range options {
		var kept []catalog.Offering
		for _, f := range o.Offerings {
			if f.CapacityType == capacityType {
				kept = append(kept, f)
			}
		}
		if len(kept) > 0 {
			o.Offerings = kept
			out = append(out, o)
		}
	}
	return out
}

// WorstPrice is what a launch of a type with these offerings may cost: of the
// capacity type that would be launched, the dearest; the largest price without
// offerings (Karpenter: WorstLaunchPrice).
func WorstPrice(offerings []catalog.Offering) resources.Price {
	for _, capacityType := range []string{karpv1.CapacityTypeReserved, karpv1.CapacityTypeSpot, karpv1.CapacityTypeOnDemand} {
		worst, found := resources.Price(0), false
		for _, o := range offerings {
			if o.CapacityType == capacityType {
				worst, found = max(worst, o.Price), true
			}
		}
		if found {
			return worst
		}
	}
	return math.MaxInt64
}

// cheaperThan keeps the types that cost less however the launch turns out.
func (r *replacement) cheaperThan(options []scheduling.Option, price resources.Price) string {
	r.narrow(FilterCheaper, cheaper(options, price))
	return r.lacks()
}

func cheaper(options []scheduling.Option, price resources.Price) []scheduling.Option {
	out := make([]scheduling.Option, 0, len(options))
	for _, o := range options {
		if WorstPrice(o.Offerings) < price {
			out = append(out, o)
		}
	}
	return out
}

// lacks says what the types that are left are short of, or is empty.
func (r *replacement) lacks() string {
	kept := r.last()
	if len(kept) == 0 {
		return tooDear
	}
	short := shortfalls(r.draft.Requirements(), kept)
	if len(short) == 0 {
		return ""
	}
	return fmt.Sprintf("Filtering by price: minValues requirement is not met for label %q: %d of %d", short[0].Key, short[0].Have, short[0].Want)
}

func shortfalls(reqs requirements.Set, options []scheduling.Option) []requirements.Shortfall {
	var sets iter.Seq[requirements.Set] = func(yield func(requirements.Set) bool) {
		for _, o := range options {
			if !yield(o.Type.Requirements) {
				return
			}
		}
	}
	return reqs.Shortfalls(func(key string) int { return requirements.DistinctValues(key, sets) })
}

// pin fixes the capacity type that the prices are about: a spot launch that
// fails must not end in a dearer on-demand node.
func (r *replacement) pin(spotToSpot bool) {
	asked := r.draft.Requirements().Get(karpv1.CapacityTypeLabelKey)
	if !asked.Has(karpv1.CapacityTypeSpot) || !asked.Has(karpv1.CapacityTypeOnDemand) {
		return
	}
	r.capacityType = karpv1.CapacityTypeOnDemand
	if spotToSpot || slices.ContainsFunc(r.last(), offers(karpv1.CapacityTypeSpot)) {
		r.capacityType = karpv1.CapacityTypeSpot
	}
	r.narrow(FilterCapacityType, onlyOf(r.last(), r.capacityType))
}

// dropSameTypes drops the types that are no cheaper than a replaced node whose
// type is in the list: keeping that node would do as well (Karpenter:
// filterOutSameInstanceType).
func (r *replacement) dropSameTypes(nodes []*Candidate) string {
	limit := resources.Price(math.MaxInt64)
	for _, o := range r.last() {
		for _, c := range nodes {
			if c.Type.Name == o.Type.Name {
				limit = min(limit, c.Price)
			}
		}
	}
	if limit == math.MaxInt64 {
		return ""
	}
	r.narrow(FilterSameType, cheaper(r.last(), limit))
	return r.lacks()
}

// cutSpot leaves a spot node that replaces a spot node the cheapest types only,
// so that what is launched is not replaced again at once.
func (r *replacement) cutSpot() string {
	options := r.last()
	if plain := withoutExotic(options); len(plain) > 0 && !r.draft.Requirements().HasMinValues() {
		options = plain
	}
	if len(options) < leastSpotTypes {
		return fmt.Sprintf("SpotToSpotConsolidation requires %d cheaper instance type options than the current candidate to consolidate, got %d", leastSpotTypes, len(options))
	}
	options = slices.Clone(options)
	slices.SortStableFunc(options, func(a, b scheduling.Option) int { return cmp.Compare(a.Offerings[0].Price, b.Offerings[0].Price) })
	r.most = leastSpotTypes
	for r.most < len(options) && len(shortfalls(r.draft.Requirements(), options[:r.most])) > 0 {
		r.most++
	}
	return ""
}

func withoutExotic(options []scheduling.Option) []scheduling.Option {
	return slices.DeleteFunc(slices.Clone(options), func(o scheduling.Option) bool { return o.Type.Exotic() })
}
