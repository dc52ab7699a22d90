package scheduling

import (
	"cmp"
	"slices"

	"github.com/reeve-project/reeve/reconciler/resources"
)

// Bounds of the exchange between pools, in steps and in nodes of each side.
const (
	acrossSteps = 500_000
	acrossNodes = 48
)

// exchange lets a node that is made anyway take pods from a node of another
// pool, where that is cheaper. Karpenter tries open claims of any pool before
// it opens one of the pool that comes first; weight decides which nodes are
// opened, not which of them a pod may use.
func (p *problem) exchange() {
	until := p.steps + acrossSteps
	for p.steps < until && p.exchangeOnce(until) {
	}
}

// exchangeOnce applies the first exchange that saves something.
func (p *problem) exchangeOnce(until int64) bool {
	order := slices.Clone(p.nodes)
	slices.SortStableFunc(order, func(a, b *node) int { return cmp.Compare(b.cand.cost, a.cand.cost) })
	order = order[:min(len(order), acrossNodes)]
	for _, from := range order {
		for _, to := range order {
			if from.pl != to.pl && p.steps < until && p.moveSome(from, to) {
				return true
			}
		}
	}
	return false
}

// moveSome looks for the size of node to which to could grow so that the pods
// it then takes from the other lower the cost of both together.
func (p *problem) moveSome(from, to *node) bool {
	before := from.cand.cost + to.cand.cost
	var best *exchanged
	for _, list := range [2][]candidate{to.combo.plain, to.combo.exotic} {
		for i := range list {
			p.steps++
			if list[i].cost >= before || (best != nil && list[i].cost >= best.cost) || !to.load.fits(list[i].room) {
				continue
			}
			if x := p.exchangeOn(from, to, &list[i]); x != nil && x.cost < before && (best == nil || x.cost < best.cost) {
				best = x
			}
		}
	}
	if best == nil {
		return false
	}
	best.apply(p, from, to)
	return true
}

// exchanged is what two nodes turn into.
type exchanged struct {
	from, to node
	empty    bool // nothing is left on from
	cost     resources.Price
}

func (x *exchanged) apply(p *problem, from, to *node) {
	to.pl.limits.exchange(to.cand.use, x.to.cand.use)
	if x.empty {
		from.pl.limits.exchange(from.cand.use, nil)
		*to = x.to
		p.nodes = slices.DeleteFunc(p.nodes, func(n *node) bool { return n == from })
		return
	}
	from.pl.limits.exchange(from.cand.use, x.from.cand.use)
	*from, *to = x.from, x.to
}

// exchange replaces one reservation by another.
func (l *limits) exchange(was, is vector) {
	l.left.addTimes(was, 1)
	l.left.addTimes(is, -1)
}

// exchangeOn moves what fits when to is of the candidate's size; nil when
// nothing does or limits forbid it.
func (p *problem) exchangeOn(from, to *node, size *candidate) *exchanged {
	x := &exchanged{from: *from, to: *to}
	x.to.cand = *size
	x.from.load, x.from.shares = make(vector, len(p.dims)), nil
	moved := int64(0)
	for _, s := range from.shares {
		n := p.spareFor(&x.to, s.g, s.n)
		if n > 0 {
			p.addTo(&x.to, s.g, n)
			moved += n
		}
		if n < s.n {
			x.from.shares = append(x.from.shares, share{g: s.g, class: s.class, n: s.n - n})
			x.from.load.addTimes(s.g.req, s.n-n)
		}
	}
	if moved == 0 || !x.to.settle() || !to.pl.limits.allow(to.cand.use, x.to.cand.use) {
		return nil
	}
	x.cost = x.to.cand.cost
	if x.empty = len(x.from.shares) == 0; x.empty {
		return x
	}
	if !x.from.settle() || !from.pl.limits.allow(from.cand.use, x.from.cand.use) {
		return nil
	}
	x.cost += x.from.cand.cost
	return x
}

// allow says whether one reservation may be replaced by another.
func (l *limits) allow(was, is vector) bool {
	more := slices.Clone(is)
	more.addTimes(was, -1)
	return more.fits(l.left)
}

// settle gives a node the cheapest candidate for its load.
func (n *node) settle() bool {
	cand := n.combo.forLoad(n.load)
	if cand == nil {
		return false
	}
	n.cand = *cand
	return true
}
