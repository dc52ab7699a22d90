package scheduling

import (
	"math"

	"github.com/reeve-project/reeve/reconciler/resources"
)

// size is a node that holds some number of equal pods.
type size struct {
	holds int64
	cost  resources.Price
	cand  candidate
	// above is the number of pods that a plain type holds too: for no more
	// than that an exotic type would not be launched.
	above int64
}

// sizes are the candidates by how many pods of one kind they hold, without
// those for which another costs no more and holds no less. Nobody needs to
// hold more than n.
func sizes(c *combo, req vector, alone bool, n int64) []size {
	out, most := appendSizes(nil, c.plain, req, alone, n, 0)
	out, _ = appendSizes(out, c.exotic, req, alone, n, most)
	return out
}

// appendSizes adds the candidates of one list that hold more than above; both
// costs and counts rise strictly.
func appendSizes(out []size, cands []candidate, req vector, alone bool, n, above int64) ([]size, int64) {
	most, from := above, len(out)
	for i := range cands {
		holds := min(req.timesIn(cands[i].room), n)
		if alone {
			holds = min(holds, 1)
		}
		if holds <= most {
			continue
		}
		// Equal costs come in the order of their names; of those the larger
		// holds all the smaller does.
		if last := len(out) - 1; last >= from && out[last].cost == cands[i].cost {
			out = out[:last]
		}
		out = append(out, size{holds: holds, cost: cands[i].cost, cand: cands[i], above: above})
		most = holds
	}
	return out, most
}

// cover finds the cheapest set of nodes for n equal pods: least cost, then
// fewest nodes, then the larger sizes. It answers how many nodes of each size,
// and of which size one may be not quite full. It is exact: a covering program
// over the count of pods, cut short by the fact that more than h-1 nodes of
// other sizes than the one with the best cost per pod, which holds h, always
// contain some that whole nodes of that size replace at no higher cost.
func (p *problem) cover(n int64, sizes []size) (times []int64, last int) {
	times = make([]int64, len(sizes))
	best, most := bestPerPod(sizes)
	if room := sizes[best].holds * (most + 1); n > room {
		whole := (n - room) / sizes[best].holds
		times[best] += whole
		n -= whole * sizes[best].holds
	}
	p.steps += n * int64(len(sizes))
	choice := coverTable(n, sizes)
	for left := n; left > 0; left -= sizes[last].holds {
		last = int(choice[left])
		times[last]++
	}
	return times, last
}

// bestPerPod is the size with the least cost per pod, the largest of equals,
// and how many pods the largest of all holds.
func bestPerPod(sizes []size) (best int, most int64) {
	for i, s := range sizes {
		b := sizes[best]
		if int64(s.cost)*b.holds <= int64(b.cost)*s.holds {
			best = i
		}
		most = max(most, s.holds)
	}
	return best, most
}

// coverTable holds the size to take first for each count up to n.
func coverTable(n int64, sizes []size) []int32 {
	cost := make([]resources.Price, n+1)
	nodes := make([]int32, n+1)
	choice := make([]int32, n+1)
	for k := int64(1); k <= n; k++ {
		least, fewest, first := resources.Price(math.MaxInt64), int32(0), int32(0)
		for i := len(sizes) - 1; i >= 0; i-- {
			s := &sizes[i]
			if k <= s.above {
				continue
			}
			rest := max(k-s.holds, 0)
			c, m := cost[rest]+s.cost, nodes[rest]+1
			if c < least || (c == least && m < fewest) {
				least, fewest, first = c, m, int32(i)
			}
		}
		cost[k], nodes[k], choice[k] = least, fewest, first
	}
	return choice
}
