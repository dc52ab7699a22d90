package scheduling

import (
	"cmp"
	"slices"
)

// share is pods of one group on a node.
type share struct {
	g     *group
	class int
	n     int64
}

// node is a new node of the plan, before its pods have names.
type node struct {
	pl     *pool
	combo  *combo
	cand   candidate
	load   vector
	shares []share
}

// openNodes plans new nodes for the pods that have no place yet: pool by pool
// in the order of weight, for each group under its first alternative that some
// pool can meet. What a pool's limits leave out moves on to the next.
func (p *problem) openNodes() {
	for moved := true; moved; {
		moved = false
		for _, pl := range p.pools {
			items := p.itemsFor(pl)
			if len(items) == 0 {
				continue
			}
			moved = true
			p.solvePool(pl, items)
			for _, it := range items {
				it.g.cursor++
			}
		}
	}
}

// itemsFor are the groups whose next choice is the pool.
func (p *problem) itemsFor(pl *pool) []item {
	var out []item
	for _, g := range p.groups {
		if g.reason != "" || g.left() == 0 {
			continue
		}
		for ; g.cursor < len(g.classes)*len(p.pools); g.cursor++ {
			at, class := p.pools[g.cursor%len(p.pools)], g.classes[g.cursor/len(p.pools)]
			if !p.option(g, at, class) {
				continue
			}
			if at == pl {
				out = append(out, item{g: g, class: class, n: g.left()})
			}
			break
		}
	}
	return out
}

// option says whether the pool can make a node for a pod of the group under
// the class.
func (p *problem) option(g *group, pl *pool, classID int) bool {
	if pl.why != "" || (g.barred != nil && g.barred[pl.index] != "") || untolerated(pl.taints, g.shape.Tolerations) != nil {
		return false
	}
	if p.admission(pl, classID) != nil {
		return false
	}
	p.compileTypes(pl)
	c := p.with(pl, pl.root, classID)
	return c != nil && c.forLoad(g.req) != nil
}

// solvePool plans nodes of one pool for the items, as far as its limits allow.
func (p *problem) solvePool(pl *pool, items []item) {
	for {
		found := p.withinLimits(pl, items)
		if p.accept(pl, items, found) == 0 || len(pl.limits.names) == 0 {
			return
		}
		p.reset(pl)
		items = p.remaining(pl, items)
		if len(items) == 0 {
			return
		}
	}
}

func (p *problem) remaining(pl *pool, items []item) []item {
	var out []item
	for _, it := range items {
		if it.n = it.g.left(); it.n > 0 && p.option(it.g, pl, it.class) {
			out = append(out, it)
		}
	}
	return out
}

// How often the search is asked again with a higher price on what the limits
// are short of.
const limitRounds = 8

// withinLimits searches for packings that the limits allow. When the cheapest
// ones are over them it raises the price of what is short until they are not;
// what then places most pods is taken.
func (p *problem) withinLimits(pl *pool, items []item) *solution {
	found := p.search(pl, items)
	if !pl.limits.exceeded(found) {
		return found
	}
	best, most := found, pl.limits.placeable(found)
	pl.penalty = &penalty{limit: pl.limits.limit, whole: make(vector, len(pl.limits.limit))}
	for range limitRounds {
		pl.penalty.raise(pl.limits, found)
		p.reset(pl)
		found = p.search(pl, items)
		n := pl.limits.placeable(found)
		if n > most {
			best, most = found, n
		}
		if !pl.limits.exceeded(found) {
			break
		}
	}
	pl.penalty = nil
	p.reset(pl)
	return best
}

func (p *problem) search(pl *pool, items []item) *solution {
	s := &search{problem: p, pl: pl, items: items}
	found := s.run()
	p.used(found.solver)
	return found
}

func (p *problem) used(solver string) {
	if solver != "" && !slices.Contains(p.solvers, solver) {
		p.solvers = append(p.solvers, solver)
	}
}

// exceeded says whether the solution needs more than the limits leave.
func (l *limits) exceeded(s *solution) bool { return !l.need(s).fits(l.left) }

func (l *limits) need(s *solution) vector {
	sum := make(vector, len(l.names))
	for _, k := range s.packs {
		sum.addTimes(k.cand.use, k.times)
	}
	return sum
}

// placeable is how many pods of the solution the limits let in.
func (l *limits) placeable(s *solution) int64 {
	left, pods := slices.Clone(l.left), int64(0)
	for _, k := range inTurn(s) {
		n := min(k.times, k.cand.use.timesIn(left))
		left.addTimes(k.cand.use, -n)
		pods += n * k.pods()
	}
	return pods
}

// inTurn are the packings in the order in which limits let them in: those with
// the largest pods first, as Karpenter's queue would.
func inTurn(s *solution) []packing {
	out := slices.Clone(s.packs)
	slices.SortStableFunc(out, func(a, b packing) int {
		return cmp.Or(slices.Compare(b.counts, a.counts), cmp.Compare(a.cand.price, b.cand.price))
	})
	return out
}

// accept turns packings into nodes as far as the limits allow and says how
// many it made.
func (p *problem) accept(pl *pool, items []item, s *solution) int64 {
	made := int64(0)
	for _, k := range inTurn(s) {
		n := k.times
		if len(pl.limits.names) > 0 {
			n = min(n, k.cand.use.timesIn(pl.limits.left))
			pl.limits.left.addTimes(k.cand.use, -n)
		}
		shares := k.sharesOf(items)
		for _, sh := range shares {
			sh.g.reserved += int(sh.n * n)
		}
		for range n {
			p.nodes = append(p.nodes, &node{pl: pl, combo: k.combo, cand: k.cand, load: k.load, shares: shares})
		}
		made += n
	}
	return made
}
