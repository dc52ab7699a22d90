package scheduling

import (
	"cmp"
	"slices"

	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/resources"
)

// choicesShown is how many offerings a claim lists for its readers.
const choicesShown = 5

// launchList is what a claim offers to the cloud, shared by equal nodes.
type launchList struct {
	types    []*catalog.InstanceType
	filters  []Filter
	cheapest []Choice
	chosen   Choice
	daemons  resources.List
	requests resources.List
}

// option of a launch: a type with those of its offerings that may be used.
type launchOption struct {
	t      *ptype
	offers []catalog.Offering
}

// claims makes the claims of the plan's nodes and gives their pods away.
func (p *problem) claims() []*Claim {
	slices.SortStableFunc(p.nodes, func(a, b *node) int {
		return cmp.Or(cmp.Compare(a.pl.index, b.pl.index), cmp.Compare(b.cand.price, a.cand.price))
	})
	slack := p.slack()
	var out []*Claim
	var last *node
	var list *launchList
	for _, n := range p.nodes {
		if last == nil || !sameNode(last, n) {
			last, list = n, p.launchList(n, slack[n.pl.index])
		}
		c := &Claim{
			NodePool: n.pl.name, NodeClass: n.pl.class, Requirements: n.combo.reqs,
			Types: list.types, InstanceType: list.chosen.InstanceType, Offering: list.chosen.Offering,
			Requests: list.requests, Daemons: list.daemons, Filters: list.filters, Cheapest: list.cheapest,
		}
		c.Pods = takePods(n.shares)
		out = append(out, c)
	}
	return out
}

// takePods gives names to the places that were reserved by count.
func takePods(shares []share) []*cluster.Pod {
	var out []*cluster.Pod
	for _, s := range shares {
		s.g.reserved -= int(s.n)
		if taken := s.g.take(s.n); out == nil {
			out = taken
		} else {
			out = append(out, taken...)
		}
	}
	return out
}

func sameNode(a, b *node) bool {
	return a.pl == b.pl && a.combo == b.combo && a.cand.t == b.cand.t && slices.Equal(a.shares, b.shares)
}

// slack is by pool what each of its nodes may use of the limits beyond its
// reservation, so that the limits hold whichever types the cloud picks.
func (p *problem) slack() []vector {
	nodes := make([]int64, len(p.pools))
	for _, n := range p.nodes {
		nodes[n.pl.index]++
	}
	out := make([]vector, len(p.pools))
	for i, pl := range p.pools {
		for _, x := range pl.limits.remaining() {
			out[i] = append(out[i], max(x, 0)/max(nodes[i], 1))
		}
	}
	return out
}

func (l *limits) remaining() vector {
	if l == nil {
		return nil
	}
	return l.left
}

// launchList applies the filters of a launch in the order in which the AWS
// provider does (pkg/providers/instance).
func (p *problem) launchList(n *node, slack vector) *launchList {
	l := &launchList{filters: slices.Clone(n.pl.filters)}
	options := p.fitting(n, slack, l)
	if !n.pl.minValues {
		options = l.filter(FilterExotic, dropExotic(options))
		if kept, applies := dropDearSpot(options); applies {
			options = l.filter(FilterSpotPrice, kept)
		}
	}
	if !slices.IsSortedFunc(options, compareOptions) {
		slices.SortFunc(options, compareOptions)
	}
	options = l.filter(FilterCheapest, truncate(n, options, MaxLaunchable))
	l.choose(options)
	l.finish(n, options)
	return l
}

// finish fills in what follows from the types of the list.
func (l *launchList) finish(n *node, options []launchOption) {
	l.daemons = n.pl.types[n.cand.t].overhead.list
	l.types = make([]*catalog.InstanceType, 0, len(options))
	for _, o := range options {
		l.types = append(l.types, o.t.InstanceType)
		if o.t.Name == l.chosen.InstanceType {
			l.daemons = o.t.overhead.list
		}
	}
	l.requests = l.daemons.Clone()
	for _, s := range n.shares {
		l.requests = l.requests.Plus(asked(s.g.shape).Times(s.n))
	}
}

func compareOptions(a, b launchOption) int {
	return cmp.Or(cmp.Compare(a.offers[0].Price, b.offers[0].Price), cmp.Compare(a.t.Name, b.t.Name))
}

func (l *launchList) filter(by string, kept []launchOption) []launchOption {
	l.filters = append(l.filters, Filter{By: by, Left: len(kept)})
	return kept
}

// fitting are the types that limits, pod requirements and requests leave.
func (p *problem) fitting(n *node, slack vector, l *launchList) []launchOption {
	allowed := n.cand.use
	if len(slack) > 0 {
		allowed = slices.Clone(n.cand.use)
		allowed.addTimes(slack, 1)
	}
	sel := newSelector(n.combo.reqs)
	out := make([]launchOption, 0, len(n.pl.types))
	var limited, asked int
	for i, t := range n.pl.types {
		if !t.use.fits(allowed) {
			continue
		}
		limited++
		if n.combo.at[i] < 0 {
			continue
		}
		asked++
		if !n.load.fits(t.room) {
			continue
		}
		offers := t.offers
		if n.combo.narrowed {
			offers = selected(offers, sel)
		}
		out = append(out, launchOption{t: t, offers: offers})
	}
	if len(n.pl.limits.names) > 0 {
		l.filters = append(l.filters, Filter{By: FilterLimits, Left: limited})
	}
	if len(n.combo.classes) > 0 {
		l.filters = append(l.filters, Filter{By: FilterPods, Left: asked})
	}
	l.filters = append(l.filters, Filter{By: FilterResources, Left: len(out)})
	return out
}

func selected(offers []catalog.Offering, sel selector) []catalog.Offering {
	for i := range offers {
		if sel.takes(&offers[i]) {
			continue
		}
		out := slices.Clone(offers[:i])
		for _, o := range offers[i+1:] {
			if sel.takes(&o) {
				out = append(out, o)
			}
		}
		return out
	}
	return offers
}

// dropExotic drops bare metal and accelerators, unless nothing else is left.
func dropExotic(in []launchOption) []launchOption {
	if !slices.ContainsFunc(in, func(o launchOption) bool { return !o.t.exotic }) {
		return in
	}
	return slices.DeleteFunc(in, func(o launchOption) bool { return o.t.exotic })
}

// dropDearSpot drops spot offerings that cost more than the cheapest on-demand
// one; it applies only where both may be launched.
func dropDearSpot(in []launchOption) (kept []launchOption, applies bool) {
	onDemand, spot := cheapestOf(in, karpv1.CapacityTypeOnDemand), cheapestOf(in, karpv1.CapacityTypeSpot)
	if onDemand == nil || spot == nil {
		return in, false
	}
	for _, o := range in {
		var offers []catalog.Offering
		for _, f := range o.offers {
			if f.CapacityType != karpv1.CapacityTypeSpot || f.Price <= onDemand.Price {
				offers = append(offers, f)
			}
		}
		if len(offers) > 0 {
			kept = append(kept, launchOption{t: o.t, offers: offers})
		}
	}
	return kept, true
}

func cheapestOf(in []launchOption, capacityType string) *catalog.Offering {
	var best *catalog.Offering
	for _, o := range in {
		for i := range o.offers {
			if f := &o.offers[i]; f.CapacityType == capacityType && (best == nil || f.Price < best.Price) {
				best = f
			}
		}
	}
	return best
}

// truncate keeps the cheapest types, and among them the variety that the pool
// asks for.
func truncate(n *node, options []launchOption, most int) []launchOption {
	if len(options) <= most {
		return options
	}
	if !n.pl.minValues {
		return options[:most]
	}
	needed := make([]bool, len(options))
	v, count := newVariety(n.combo.reqs), 0
	for i, o := range options {
		if !v.reached() && count < most && v.add(o.t.Requirements) {
			needed[i] = true
			count++
		}
	}
	var out []launchOption
	spare := most - count
	for i, o := range options {
		if needed[i] || spare > 0 {
			out = append(out, o)
			if !needed[i] {
				spare--
			}
		}
	}
	return out
}

// choose picks the offering that the plan counts on: the capacity type that
// the AWS provider would ask for (reserved, then spot, then on-demand), and of
// it the cheapest. The readers of a claim see the best offering of each of the
// cheapest types.
func (l *launchList) choose(options []launchOption) {
	for _, o := range options[:min(len(options), choicesShown)] {
		l.cheapest = append(l.cheapest, Choice{InstanceType: o.t.Name, Offering: o.offers[0]})
	}
	for i, o := range options {
		for _, f := range o.offers {
			best := &l.chosen.Offering
			if i == 0 && best.Zone == "" || cmp.Or(
				cmp.Compare(capacityRank(f.CapacityType), capacityRank(best.CapacityType)),
				cmp.Compare(f.Price, best.Price)) < 0 {
				l.chosen = Choice{InstanceType: o.t.Name, Offering: f}
			}
		}
	}
}
