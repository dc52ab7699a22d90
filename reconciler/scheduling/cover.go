package scheduling

import (
	"math"

	"github.com/reeve-project/reeve/reconciler/resources"
)

// size is a node that holds some number of equal pods.
type size struct {
	holds int64
	cost  resources.Price
	cand  int
}

// sizes are the candidates by how many pods of one kind they hold, without
// those for which another costs no more and holds no less. Both costs and
// counts rise strictly. Nobody needs to hold more than n.
func sizes(cands []candidate, req vector, alone bool, n int64) []size {
	var out []size
	var most int64
	for i := range cands {
		holds := min(req.timesIn(cands[i].room), n)
		if alone {
			holds = min(holds, 1)
		}
		if holds > most {
			out = append(out, size{holds: holds, cost: cands[i].cost, cand: i})
			most = holds
		}
	}
	// Equal costs come in the order of their names; of those the larger holds
	// all the smaller does.
	kept := out[:0]
	for i, s := range out {
		if i+1 == len(out) || out[i+1].cost != s.cost {
			kept = append(kept, s)
		}
	}
	return kept
}

// cover finds the cheapest set of nodes for n equal pods: least cost, then
// fewest nodes, then the sizes that come first. It answers how many nodes of
// each size; their sum may hold more than n. It is exact: a covering program
// over the count of pods, cut short by the fact that more than h-1 nodes of
// other sizes than the one with the best cost per pod, which holds h, always
// contain some that whole nodes of that size replace at no higher cost.
func (p *problem) cover(n int64, sizes []size) []int64 {
	times := make([]int64, len(sizes))
	if n <= 0 || len(sizes) == 0 {
		return times
	}
	best := bestPerPod(sizes)
	if room := sizes[best].holds * (sizes[len(sizes)-1].holds + 1); n > room {
		whole := (n - room) / sizes[best].holds
		times[best] += whole
		n -= whole * sizes[best].holds
	}
	p.steps += n * int64(len(sizes))
	choice := coverTable(n, sizes)
	for left := n; left > 0; {
		i := choice[left]
		times[i]++
		left -= sizes[i].holds
	}
	return times
}

// bestPerPod is the size with the least cost per pod, the largest of equals.
func bestPerPod(sizes []size) int {
	best := 0
	for i, s := range sizes {
		b := sizes[best]
		if int64(s.cost)*b.holds <= int64(b.cost)*s.holds {
			best = i
		}
	}
	return best
}

// coverTable holds the size to take first for each count up to n.
func coverTable(n int64, sizes []size) []int32 {
	cost := make([]resources.Price, n+1)
	nodes := make([]int32, n+1)
	choice := make([]int32, n+1)
	for k := int64(1); k <= n; k++ {
		least, fewest, first := resources.Price(math.MaxInt64), int32(0), int32(0)
		for i := range sizes {
			rest := max(k-sizes[i].holds, 0)
			c, m := cost[rest]+sizes[i].cost, nodes[rest]+1
			if c < least || (c == least && m < fewest) {
				least, fewest, first = c, m, int32(i)
			}
		}
		cost[k], nodes[k], choice[k] = least, fewest, first
	}
	return choice
}
