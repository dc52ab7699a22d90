package scheduling

import (
	"cmp"
	"math"
	"slices"

	"github.com/reeve-project/reeve/reconciler/resources"
)

// A start of the greedy search: how far the prices of resources are mixed with
// an even share for each (the dual of the linear program gives nothing for a
// resource that is nearly but not quite used up), and what each node is thought
// to cost on top, in USD/h (which favours larger nodes: fewer of them are left
// half empty).
type start struct{ even, fee float64 }

// Each start values every resource a little, or pods that ask for nearly
// nothing would be worth nothing and never join others.
var starts = []start{{0.35, 0}, {0.02, 0.02}, {0.02, 0}, {0.35, 0.02}, {0.7, 0}, {0.35, 0.05}}

const (
	// lessons is how often a start is tried again with what the last try
	// taught about the pods.
	lessons = 4
	// greedySteps bounds the effort of all starts together, beyond the first.
	greedySteps = 1_000_000
	// greedyTypes and partTypes are how many instance types are tried for the
	// whole and for a few nodes.
	greedyTypes = 32
	partTypes   = 8
)

// greedyBest is the best that the greedy search finds from its starts, or each
// item by itself.
func (s *search) greedyBest() *solution {
	demand, columns := s.demand(), s.columns()
	duals := s.duals(demand, columns)
	best, until := s.apart(), s.steps+greedySteps
	for _, from := range starts {
		s.setValues(demand, duals, from.even)
		s.fee = from.fee
		ranked := s.rank(columns, greedyTypes)
		for range lessons {
			if s.steps > until {
				break
			}
			found := s.greedy(ranked)
			if found.better(best) {
				best = found
			}
			s.learn(found)
		}
	}
	s.setValues(demand, duals, starts[1].even)
	s.fee = 0
	s.ranked = s.rank(columns, partTypes)
	return best
}

// learn moves the value of each item half way to what its pods turned out to
// cost: the greedy search leaves to the end what it holds cheap, and pays for
// it there.
func (s *search) learn(found *solution) {
	paid := make([]float64, len(s.items))
	for _, k := range found.packs {
		worth := 0.0
		for i, n := range k.counts {
			worth += mul(s.value[i], float64(n))
		}
		if worth <= 0 {
			continue
		}
		share := mul(dollars(k.cost())+s.fee, float64(k.times)) / worth
		for i, n := range k.counts {
			paid[i] += mul(mul(s.value[i], float64(n)), share)
		}
	}
	for i, it := range s.items {
		s.value[i] = mul(0.5, s.value[i]) + mul(0.5, paid[i]/float64(it.n))
	}
}

// apart packs every item by itself, exactly.
func (s *search) apart() *solution {
	out := &solution{solver: "apart"}
	for i := range s.items {
		s.coverItem(out, i, s.items[i].n)
	}
	return out
}

func (s *search) demand() []float64 {
	sum := make(vector, len(s.dims))
	for _, it := range s.items {
		sum.addTimes(it.g.req, it.n)
	}
	out := make([]float64, len(sum))
	for i, x := range sum {
		out[i] = float64(x)
	}
	return out
}

// columns are the candidates of all items, each type once at its least cost.
func (s *search) columns() []candidate {
	at := map[int]int{}
	var out []candidate
	seen := map[*combo]bool{}
	for _, it := range s.items {
		c := s.with(s.pl, s.pl.root, it.class)
		if seen[c] {
			continue
		}
		seen[c] = true
		for _, list := range [2][]candidate{c.plain, c.exotic} {
			for _, cand := range list {
				if i, ok := at[cand.t]; ok {
					if cand.cost < out[i].cost {
						out[i] = cand
					}
					continue
				}
				at[cand.t] = len(out)
				out = append(out, cand)
			}
		}
	}
	return out
}

// dollars is a cost as a float, in a range where sums stay precise.
func dollars(p resources.Price) float64 { return float64(p) / float64(resources.USD) }

func (s *search) duals(demand []float64, columns []candidate) []float64 {
	rooms := make([][]float64, len(columns))
	costs := make([]float64, len(columns))
	for i, c := range columns {
		rooms[i] = make([]float64, len(c.room))
		for r, x := range c.room {
			rooms[i][r] = float64(x)
		}
		costs[i] = dollars(c.cost)
	}
	s.steps += int64(len(columns))
	return resourcePrices(demand, rooms, costs)
}

// setValues prices one pod of each item.
func (s *search) setValues(demand, duals []float64, even float64) {
	bound, asked := 0.0, 0
	for r, d := range demand {
		bound += mul(d, duals[r])
		if d > 0 {
			asked++
		}
	}
	s.weight = make([]float64, len(demand))
	s.value = make([]float64, len(s.items))
	for r, d := range demand {
		if d == 0 {
			continue
		}
		share := bound / mul(d, float64(asked))
		s.weight[r] = mul(1-even, duals[r]) + mul(even, share)
	}
	for i, it := range s.items {
		s.value[i] = s.worth(it.g.req)
	}
}

// rank are the types that give most room for their cost at the current prices:
// the first k, a ladder of smaller ones (all of the best may be too large for a
// small rest), and the best few for each class of pods.
func (s *search) rank(columns []candidate, k int) []candidate {
	ratios := make([]float64, len(columns))
	order := make([]int, len(columns))
	for i, c := range columns {
		ratios[i], order[i] = (dollars(c.cost)+s.fee)/max(s.worth(c.room), math.SmallestNonzeroFloat64), i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(ratios[a], ratios[b]) })
	var out []candidate
	step := resources.Price(math.MaxInt64)
	quota := s.newQuota(k/3 + 1)
	for i, at := range order {
		c := columns[at]
		wanted := quota.use(c)
		if i < k || wanted || c.cost < step/2 {
			step = min(step, c.cost)
			out = append(out, c)
		}
	}
	return out
}

// quota is how many more types each combo of an item has to get.
type quota struct {
	combos []*combo
	left   []int
}

func (s *search) newQuota(n int) *quota {
	q := &quota{}
	for _, it := range s.items {
		c := s.with(s.pl, s.pl.root, it.class)
		if !slices.Contains(q.combos, c) {
			q.combos, q.left = append(q.combos, c), append(q.left, n)
		}
	}
	return q
}

// use takes the type from the quotas that it counts for, if any is open.
func (q *quota) use(cand candidate) bool {
	used := false
	for i, c := range q.combos {
		if q.left[i] > 0 && c.at[cand.t] >= 0 {
			q.left[i]--
			used = true
		}
	}
	return used
}

// worth is the value of a room at the current prices.
func (s *search) worth(room vector) float64 {
	sum := 0.0
	for r, x := range room {
		sum += mul(s.weight[r], float64(x))
	}
	return sum
}

// greedy fills node after node: of all candidates the one whose filling costs
// least for its value, as often as a quarter of the pods allows.
func (s *search) greedy(cands []candidate) *solution {
	out := &solution{solver: "greedy"}
	rest := make([]int64, len(s.items))
	for i, it := range s.items {
		rest[i] = it.n
	}
	f := newFiller(s)
	ratios := make([]float64, len(cands)) // a lower bound: rests only shrink
	for {
		k, ok := s.nextPacking(f, cands, ratios, rest)
		if !ok {
			break
		}
		k.times = max(repeats(k.counts, rest)/4, 1)
		for i, n := range k.counts {
			rest[i] -= n * k.times
		}
		out.add(k)
	}
	for i, n := range rest {
		if n > 0 {
			s.coverItem(out, i, n)
		}
	}
	return out
}

func repeats(counts, rest []int64) int64 {
	times := int64(math.MaxInt64)
	for i, n := range counts {
		if n > 0 {
			times = min(times, rest[i]/n)
		}
	}
	return times
}

// nextPacking fills the candidates in the order of what they were worth when
// last tried, until one keeps its place at the top.
func (s *search) nextPacking(f *filler, cands []candidate, ratios []float64, rest []int64) (packing, bool) {
	var best packing
	bestRatio, fresh := math.Inf(1), make([]bool, len(cands))
	for {
		at := -1
		for i, r := range ratios {
			if !fresh[i] && r < bestRatio && (at < 0 || r < ratios[at]) {
				at = i
			}
		}
		if at < 0 {
			return best, !math.IsInf(bestRatio, 1)
		}
		fresh[at] = true
		ratios[at] = math.Inf(1)
		counts, value := f.fill(cands[at], rest)
		if value <= 0 {
			continue
		}
		k, ok := s.pack(counts)
		if !ok {
			ratios[at] = 0
			continue
		}
		ratios[at] = (dollars(k.cost()) + s.fee) / value
		if ratios[at] < bestRatio {
			k.counts = slices.Clone(counts)
			best, bestRatio = k, ratios[at]
		}
	}
}
