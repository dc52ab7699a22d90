package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/disruption"
	"github.com/reeve-project/reeve/reconciler/report"
	"github.com/reeve-project/reeve/reconciler/resources"
	"github.com/reeve-project/reeve/reconciler/scheduling"
)

// limited removes what the limits of the NodePool forbid. How much of them is
// left depends on the whole plan, which the record does not hold. But under a
// limit on one resource it is the types with most of it that go, so that their
// number says which.
func (s *sieve) limited(st *report.ChoiceStep) (kept, gone []option, err error) {
	// Types that cannot even hold the daemons are out before the limits are
	// looked at.
	kept, small, _ := s.split(func(o *option) bool {
		o.why = "no room for the daemons"
		return s.claim.Daemons.Fits(o.Allocatable)
	})
	n := len(kept) - st.Left
	if n <= 0 {
		return kept, small, nil
	}
	limits := resources.From(corev1.ResourceList(s.c.world.Fleet.NodePool(s.claim.NodePool).Spec.Limits))
	if len(limits) != 1 {
		return nil, nil, fmt.Errorf("which types the limits removed depends on the whole plan, so what that and later steps removed is not shown")
	}
	name := limits.Names()[0]
	slices.SortStableFunc(kept, func(a, b option) int { return cmp.Compare(b.Capacity[name], a.Capacity[name]) })
	if n < len(kept) && kept[n-1].Capacity[name] == kept[n].Capacity[name] {
		return nil, nil, fmt.Errorf("which types the limit on %s removed cannot be told from their number, so what that and later steps removed is not shown", name)
	}
	for _, o := range kept[:n] {
		have := resources.Quantity(name, o.Capacity[name])
		o.why = fmt.Sprintf("%s %s is more than the limit leaves", name, have.String())
		gone = append(gone, o)
	}
	return kept[n:], append(gone, small...), nil
}

// plain drops bare metal and accelerators, unless nothing else is left (AWS
// provider: pkg/providers/instance/filter, exotic instance filter).
func (s *sieve) plain() (kept, gone []option, err error) {
	if !slices.ContainsFunc(s.left, func(o option) bool { return !exotic(o.InstanceType) }) {
		return s.left, nil, nil
	}
	return s.split(func(o *option) bool {
		o.why = "bare metal and accelerators are kept for pods that need them"
		return !exotic(o.InstanceType)
	})
}

func exotic(t *catalog.InstanceType) bool {
	for _, name := range []corev1.ResourceName{awsv1.ResourceNVIDIAGPU, awsv1.ResourceAMDGPU, awsv1.ResourceAWSNeuron, awsv1.ResourceAWSNeuronCore, awsv1.ResourceHabanaGaudi} {
		if t.Capacity[name] > 0 {
			return true
		}
	}
	size, ok := t.Requirements.Lookup(awsv1.LabelInstanceSize)
	return ok && slices.ContainsFunc(size.Values(), func(v string) bool { return strings.Contains(v, "metal") })
}

// notDear drops spot offerings that cost more than the cheapest on-demand one.
func (s *sieve) notDear() (kept, gone []option, err error) {
	var onDemand resources.Price
	for _, o := range s.left {
		for _, f := range o.offers {
			if f.CapacityType == karpv1.CapacityTypeOnDemand && (onDemand == 0 || f.Price < onDemand) {
				onDemand = f.Price
			}
		}
	}
	return s.split(func(o *option) bool {
		o.why = fmt.Sprintf("as spot it costs more than the cheapest on-demand type, %s", onDemand)
		o.offers = slices.DeleteFunc(slices.Clone(o.offers), func(f catalog.Offering) bool {
			return f.CapacityType == karpv1.CapacityTypeSpot && f.Price > onDemand
		})
		return len(o.offers) > 0
	})
}

// mostExamples is how many types a step shows.
const mostExamples = 3

// toldAnyway are the steps whose removals are told at any price.
var toldAnyway = []string{scheduling.FilterPolicy, disruption.FilterCheaper, disruption.FilterSameType}

// tell says which of the removed types were cheaper than what was chosen. What
// policy removed is told at any price, since somebody wrote the rule, and so is
// what would not have been cheaper than the nodes that it replaces.
func (s *sieve) tell(st *report.ChoiceStep, gone []option) {
	var shown []report.Removed
	rules := map[string]bool{}
	for i := range gone {
		o := &gone[i]
		for _, r := range o.rules {
			rules[r] = true
		}
		p := s.price(o)
		if p > 0 && p < s.claim.Price {
			st.Cheaper++
		}
		if p > 0 && p < s.claim.Price || slices.Contains(toldAnyway, st.By) {
			shown = append(shown, report.Removed{InstanceType: o.Name, Price: p, Why: o.why})
		}
	}
	slices.SortFunc(shown, func(a, b report.Removed) int {
		return cmp.Or(cmp.Compare(a.Price, b.Price), cmp.Compare(a.InstanceType, b.InstanceType))
	})
	st.Examples = shown[:min(len(shown), mostExamples)]
	for r := range rules {
		st.Rules = append(st.Rules, r)
	}
	slices.Sort(st.Rules)
}

// price is that of the cheapest offering in the zones and capacity types that
// the claim asks for, whether or not it can be launched; zero if there is none.
func (s *sieve) price(o *option) resources.Price {
	var best resources.Price
	for _, f := range o.Offerings {
		if admits(s.claim.Requirements, f) && f.Price > 0 && (best == 0 || f.Price < best) {
			best = f.Price
		}
	}
	return best
}
