package scheduling

import (
	"cmp"
	"slices"
)

// emptied is the most nodes that are tried to be emptied into others.
const emptied = 64

// useSpare gives room that is left on planned nodes, whichever pool they are
// of, to pods that found no place, and empties small nodes whose pods all fit
// on others.
func (p *problem) useSpare() {
	for _, g := range p.groups {
		if g.reason != "" {
			continue
		}
		for i := 0; i < len(p.nodes) && g.left() > 0; i++ {
			n := p.spareFor(p.nodes[i], g, g.left())
			if n > 0 {
				p.addTo(p.nodes[i], g, n)
				g.reserved += int(n)
			}
		}
	}
	if len(p.nodes) < 2 {
		return
	}
	order := slices.Clone(p.nodes)
	slices.SortStableFunc(order, func(a, b *node) int { return cmp.Compare(a.cand.cost, b.cand.cost) })
	for _, n := range order[:min(len(order), emptied)] {
		p.tryToEmpty(n)
	}
	p.exchange()
}

// tryToEmpty moves all pods of a node to the room of others and drops it, or
// leaves everything as it was.
func (p *problem) tryToEmpty(from *node) {
	undo := map[*node]node{}
	for _, s := range from.shares {
		left := s.n
		for _, to := range p.nodes {
			if left == 0 {
				break
			}
			if to == from {
				continue
			}
			n := p.spareFor(to, s.g, left)
			if n == 0 {
				continue
			}
			if _, saved := undo[to]; !saved {
				undo[to] = *to
			}
			p.addTo(to, s.g, n)
			left -= n
		}
		if left > 0 {
			for to, was := range undo {
				*to = was
			}
			return
		}
	}
	from.pl.limits.exchange(from.cand.use, nil)
	p.nodes = slices.DeleteFunc(p.nodes, func(n *node) bool { return n == from })
}

// spareFor is how many pods of the group the node takes as it is planned.
func (p *problem) spareFor(to *node, g *group, most int64) int64 {
	p.steps++
	n := most
	for r, x := range g.req {
		if x > 0 {
			n = min(n, (to.cand.room[r]-to.load[r])/x)
		}
	}
	if n <= 0 {
		return 0
	}
	if _, c := p.choiceOn(to, g); c == nil {
		return 0
	}
	for _, s := range to.shares {
		if g.conflicts.has(s.g.index) {
			return 0
		}
	}
	if g.alone {
		return 1
	}
	return n
}

// choiceOn is the alternative under which the group may join the node, and
// what the node then turns into; the planned offering must not get dearer.
func (p *problem) choiceOn(to *node, g *group) (int, *combo) {
	if (g.barred != nil && g.barred[to.pl.index] != "") || untolerated(to.pl.taints, g.shape.Tolerations) != nil {
		return 0, nil
	}
	for _, id := range g.classes {
		c := p.with(to.pl, to.combo, id)
		// Where variety is asked for, the room was reckoned for these classes.
		if c == nil || (c != to.combo && to.pl.minValues) || c.at[to.cand.t] < 0 || c.all[c.at[to.cand.t]].price > to.cand.price {
			continue
		}
		return id, c
	}
	return 0, nil
}

// addTo puts pods on a planned node. Loads and shares are shared between equal
// nodes, so they are replaced and not changed.
func (p *problem) addTo(to *node, g *group, n int64) {
	id, c := p.choiceOn(to, g)
	to.combo = c
	to.load = slices.Clone(to.load)
	to.load.addTimes(g.req, n)
	to.shares = slices.Clone(to.shares)
	for i := range to.shares {
		if to.shares[i].g == g {
			to.shares[i].n += n
			return
		}
	}
	to.shares = append(to.shares, share{g: g, class: id, n: n})
}
