package explain

import (
	"fmt"
	"math"
	"slices"

	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/disruption"
	"github.com/reeve-project/reeve/reconciler/report"
	"github.com/reeve-project/reeve/reconciler/resources"
)

// replacing works out the steps that only replacements have: they compare what
// may be launched with the nodes that go. The last result is false for any
// other step.
func (s *sieve) replacing(st *report.ChoiceStep) (kept, gone []option, err error, ok bool) {
	nodes := s.c.d.Proposal.Nodes
	switch st.By {
	case disruption.FilterCheaper:
		var sum resources.Price
		for _, n := range nodes {
			sum += n.Price
		}
		if s.spotForSpot(nodes) {
			s.narrow(karpv1.CapacityTypeSpot)
		}
		kept, gone, err = s.split(costsLess(sum))
	case disruption.FilterCapacityType:
		s.narrow(s.claim.CapacityType)
		kept, gone, err = s.split(func(o *option) bool {
			o.why = "not offered as " + s.claim.CapacityType
			return len(o.offers) > 0
		})
	case disruption.FilterSameType:
		kept, gone, err = s.split(costsLess(s.sameType(nodes)))
	default:
		return nil, nil, nil, false
	}
	return kept, gone, err, true
}

// costsLess keeps the types that cost less than the limit however the launch
// turns out.
func costsLess(limit resources.Price) func(*option) bool {
	return func(o *option) bool {
		worst := disruption.WorstPrice(o.offers)
		o.why = fmt.Sprintf("must cost less than %s, and may cost %s", limit, worst)
		if len(o.offers) == 0 {
			o.why = "not offered as spot, as what it would replace"
		}
		return worst < limit
	}
}

// spotForSpot says whether spot nodes are replaced by a spot node.
func (s *sieve) spotForSpot(nodes []decision.Node) bool {
	return !slices.ContainsFunc(nodes, func(n decision.Node) bool { return n.CapacityType != karpv1.CapacityTypeSpot }) &&
		slices.ContainsFunc(s.left, func(o option) bool {
			return slices.ContainsFunc(o.offers, func(f catalog.Offering) bool { return f.CapacityType == karpv1.CapacityTypeSpot })
		})
}

// narrow leaves the types that are left only their offerings of the capacity
// type.
func (s *sieve) narrow(capacityType string) {
	for i := range s.left {
		o := &s.left[i]
		o.offers = slices.DeleteFunc(slices.Clone(o.offers), func(f catalog.Offering) bool { return f.CapacityType != capacityType })
	}
}

// sameType is the lowest price of a replaced node whose type is left.
func (s *sieve) sameType(nodes []decision.Node) resources.Price {
	limit := resources.Price(math.MaxInt64)
	for _, o := range s.left {
		for _, n := range nodes {
			if n.InstanceType == o.Name {
				limit = min(limit, n.Price)
			}
		}
	}
	return limit
}
