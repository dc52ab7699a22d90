package scheduling

import (
	"cmp"
	"math"
	"slices"

	"github.com/reeve-project/reeve/reconciler/resources"
)

// item is pods of one group that have to get a place in one pool.
type item struct {
	g     *group
	class int
	n     int64
}

// packing is a way to fill a node, used a number of times.
type packing struct {
	counts []int64 // by item
	shares []share // instead of counts, where items are many
	times  int64
	combo  *combo
	cand   candidate
	load   vector
}

func (k *packing) cost() resources.Price { return k.cand.cost }

// sharesOf are the pods of one node.
func (k *packing) sharesOf(items []item) []share {
	if k.shares != nil {
		return k.shares
	}
	var out []share
	for i, n := range k.counts {
		if n > 0 {
			it := items[i]
			out = append(out, share{g: it.g, class: it.class, n: n})
		}
	}
	return out
}

// pods is how many pods a node holds.
func (k *packing) pods() int64 {
	sum := int64(0)
	for _, n := range k.counts {
		sum += n
	}
	for _, s := range k.shares {
		sum += s.n
	}
	return sum
}

// search looks for the cheapest packings for the items of one pool.
type search struct {
	*problem
	pl    *pool
	items []item
	// weight is the price of one unit of each resource, value that of one pod
	// of each item, while a heuristic runs.
	weight, value []float64
	fee           float64     // what a node is thought to cost on top, in USD/h
	ranked        []candidate // for the packing of small parts
}

// exactSteps is the most work that the exact search over counts is used for.
const exactSteps = 400_000

// solution is a set of packings with what they cost.
type solution struct {
	packs  []packing
	cost   resources.Price
	nodes  int64
	solver string
}

func (s *solution) add(k packing) {
	s.packs = append(s.packs, k)
	s.cost += resources.Price(k.times) * k.cost()
	s.nodes += k.times
}

// better says whether s is to be preferred: less cost, then fewer nodes. What
// was found first wins a tie.
func (s *solution) better(o *solution) bool {
	if o == nil {
		return true
	}
	return s.cost < o.cost || (s.cost == o.cost && s.nodes < o.nodes)
}

// run finds packings for all pods of all items. Each item by itself fits some
// candidate, so there always is a solution.
func (s *search) run() *solution {
	switch {
	case len(s.items) == 0:
		return &solution{}
	case len(s.items) == 1:
		return s.single()
	case s.exactWork() <= exactSteps:
		return s.exact()
	case len(s.items) > maxItems:
		return s.runBundled()
	default:
		return s.improve(s.greedyBest())
	}
}

// combo of a node with the pods of the counts, or nil.
func (s *search) comboOf(counts []int64) *combo {
	c := s.pl.root
	for i, n := range counts {
		if n == 0 {
			continue
		}
		if c = s.with(s.pl, c, s.items[i].class); c == nil {
			return nil
		}
	}
	return c
}

// shareable says whether the pods of the counts may be on one node.
func (s *search) shareable(counts []int64) bool {
	for i, n := range counts {
		if n == 0 || s.items[i].g.conflicts == nil {
			continue
		}
		g := s.items[i].g
		if g.alone && n > 1 {
			return false
		}
		for j, m := range counts {
			if m > 0 && j != i && g.conflicts.has(s.items[j].g.index) {
				return false
			}
		}
	}
	return true
}

// pack makes a packing of the counts on the cheapest candidate that holds
// them; ok is false when none does.
func (s *search) pack(counts []int64) (packing, bool) {
	if !s.shareable(counts) {
		return packing{}, false
	}
	c := s.comboOf(counts)
	if c == nil {
		return packing{}, false
	}
	load := make(vector, len(s.dims))
	for i, n := range counts {
		if n > 0 {
			load.addTimes(s.items[i].g.req, n)
		}
	}
	cand := c.forLoad(load)
	if cand == nil {
		return packing{}, false
	}
	return packing{counts: counts, times: 1, combo: c, cand: *cand, load: load}, true
}

// single is the exact answer for pods of one group.
func (s *search) single() *solution {
	out := &solution{solver: "cover"}
	s.coverItem(out, 0, s.items[0].n)
	return out
}

// coverItem adds exact packings for n pods of one item by itself.
func (s *search) coverItem(out *solution, i int, n int64) {
	it := s.items[i]
	c := s.with(s.pl, s.pl.root, it.class)
	ladder := sizes(c, it.g.req, it.g.alone, n)
	add := func(size size, times, holds int64) {
		if times == 0 || holds == 0 {
			return
		}
		counts := make([]int64, len(s.items))
		counts[i] = holds
		load := make(vector, len(s.dims))
		load.addTimes(it.g.req, holds)
		out.add(packing{counts: counts, times: times, combo: c, cand: size.cand, load: load})
	}
	times, last := s.cover(n, ladder)
	// What is left over of the room is on one node of the last size.
	for k := len(ladder) - 1; k >= 0; k-- {
		if k == last {
			times[k]--
		}
		add(ladder[k], times[k], ladder[k].holds)
		n -= times[k] * ladder[k].holds
	}
	add(ladder[last], 1, n)
}

// exactWork is how many pairs of states the exact search over counts looks at.
func (s *search) exactWork() int64 {
	work := int64(1)
	for _, it := range s.items {
		if it.n > exactSteps {
			return math.MaxInt64
		}
		work *= (it.n + 1) * (it.n + 2) / 2
		if work > exactSteps {
			return math.MaxInt64
		}
	}
	return work
}

// exact finds the cheapest partition of the pods into nodes by a program over
// all vectors of counts.
func (s *search) exact() *solution {
	e := newCounts(s.items)
	packs := make([]*packing, e.states)
	for v := int64(1); v < e.states; v++ {
		if k, ok := s.pack(e.vector(v)); ok {
			packs[v] = &k
		}
	}
	choice := s.exactTable(e, packs)
	out := &solution{solver: "exact"}
	for v := e.states - 1; v > 0; v -= choice[v] {
		out.add(*packs[choice[v]])
	}
	return out.merged()
}

// exactTable holds, for each vector of counts, the node to take off first.
func (s *search) exactTable(e *counts, packs []*packing) []int64 {
	cost := make([]resources.Price, e.states)
	nodes := make([]int32, e.states)
	choice := make([]int64, e.states)
	for v := int64(1); v < e.states; v++ {
		least, fewest := resources.Price(math.MaxInt64), int32(0)
		for u := range e.parts(v) {
			s.steps++
			if packs[u] == nil {
				continue
			}
			c, m := cost[v-u]+packs[u].cost(), nodes[v-u]+1
			if c < least || (c == least && m < fewest) {
				least, fewest, choice[v] = c, m, u
			}
		}
		cost[v], nodes[v] = least, fewest
	}
	return choice
}

// counts numbers the vectors of counts of the items, in mixed radix.
type counts struct {
	states int64
	most   []int64
	weight []int64
}

func newCounts(items []item) *counts {
	e := &counts{states: 1}
	for _, it := range items {
		e.most = append(e.most, it.n)
		e.weight = append(e.weight, e.states)
		e.states *= it.n + 1
	}
	return e
}

func (e *counts) vector(v int64) []int64 {
	out := make([]int64, len(e.most))
	for i := range out {
		out[i] = v / e.weight[i] % (e.most[i] + 1)
	}
	return out
}

// parts yields the numbers of all vectors within v that hold at least one of
// v's last item: some node has to hold it.
func (e *counts) parts(v int64) func(func(int64) bool) {
	top := e.vector(v)
	last := len(top) - 1
	for top[last] == 0 {
		last--
	}
	return func(yield func(int64) bool) {
		at := make([]int64, last+1)
		at[last] = 1
		for u := e.weight[last]; ; {
			if !yield(u) {
				return
			}
			i := 0
			for ; i <= last; i++ {
				if at[i] < top[i] {
					at[i]++
					u += e.weight[i]
					break
				}
				u -= at[i] * e.weight[i]
				at[i] = 0
				if i == last {
					return
				}
			}
			if i > last {
				return
			}
		}
	}
}

// merged joins equal packings and puts the dearest first, so that plans that
// are the same are written the same way.
func (s *solution) merged() *solution {
	slices.SortStableFunc(s.packs, comparePackings)
	out := s.packs[:0]
	for _, k := range s.packs {
		if n := len(out); n > 0 && comparePackings(out[n-1], k) == 0 {
			out[n-1].times += k.times
			continue
		}
		out = append(out, k)
	}
	s.packs = out
	return s
}

func comparePackings(a, b packing) int {
	return cmp.Or(cmp.Compare(b.cand.price, a.cand.price), slices.Compare(b.counts, a.counts), cmp.Compare(a.cand.t, b.cand.t))
}
