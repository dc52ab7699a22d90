package disruption

import (
	"cmp"
	"slices"

	"github.com/reeve-project/reeve/reconciler/resources"
	"github.com/reeve-project/reeve/reconciler/scheduling"
)

// search looks for the set of nodes whose removal saves most.
type search struct {
	*tries
	// all are the candidates that are looked at, in their rank.
	all []int
	// until is up to how many steps the search may go on.
	until int64
	// best are the moves found, the best first.
	best []*move
}

const (
	// exhaustive is up to how many candidates all their sets are tried.
	exhaustive = 10
	// searchSteps bounds the effort, in steps of the rearranger.
	searchSteps = 4_000_000
	// seeds is how many packings are tried, trims how many nodes are left out
	// of one that does not work.
	seeds, trims = 48, 6
	// climbs is how many of the best moves are improved.
	climbs = 3
	// mostSwapped is the largest set in which nodes are exchanged.
	mostSwapped = 6
)

// run looks at the candidates, a hundred at a time until something is found.
func (s *search) run() *move {
	if s.p.in.Most == 1 {
		return nil
	}
	start := s.r.Steps()
	for from := 0; from < len(s.nodes) && len(s.best) == 0; from += mostNodes {
		s.all = s.all[:0]
		for i := from; i < min(from+mostNodes, len(s.nodes)); i++ {
			s.all = append(s.all, i)
		}
		phases := []func(){s.prefixes, s.packings, s.deletions, s.climb}
		if len(s.all) <= exhaustive {
			phases = []func(){s.allSets}
		}
		for i, phase := range phases {
			// What one leaves unspent the next may use.
			s.until = start + searchSteps*int64(i+1)/int64(len(phases))
			phase()
		}
	}
	if len(s.best) == 0 {
		return nil
	}
	return s.best[0]
}

// try looks at a set and keeps it when it is among the best. It is nil when
// the set does not work, is not allowed or when the effort is spent.
func (s *search) try(set []int) *move {
	if len(set) < 2 || len(set) > mostNodes || s.r.Steps() > s.until || !s.allowed(set) {
		return nil
	}
	seen := s.seen(set)
	m := s.of(set)
	if m == nil || seen {
		return m
	}
	at, _ := slices.BinarySearchFunc(s.best, m, func(a, b *move) int {
		if a.better(b) {
			return -1
		}
		return 1
	})
	s.best = slices.Insert(s.best, at, m)
	s.best = s.best[:min(len(s.best), climbs)]
	return m
}

// allSets tries every set of the candidates.
func (s *search) allSets() {
	for mask := 1; mask < 1<<len(s.all); mask++ {
		var set []int
		for i, at := range s.all {
			if mask&(1<<i) != 0 {
				set = append(set, at)
			}
		}
		s.try(set)
	}
}

// prefixes are the sets that Karpenter looks at: halving the length of a prefix
// of the ranking that budgets allow.
func (s *search) prefixes() {
	var ranked []int
	for _, i := range s.all {
		if s.allowed(append(slices.Clone(ranked), i)) {
			ranked = append(ranked, i)
		}
	}
	low, high := 2, len(ranked)
	for low <= high {
		mid := (low + high) / 2
		if s.try(ranked[:mid]) != nil {
			low = mid + 1
			continue
		}
		high = mid - 1
	}
}

// deletions collect nodes whose pods all find room that there is already: in
// the order of rank, of price, and of how little there is to move.
func (s *search) deletions() {
	byPrice, byLoad := slices.Clone(s.all), slices.Clone(s.all)
	slices.SortStableFunc(byPrice, func(a, b int) int { return cmp.Compare(s.nodes[b].Price, s.nodes[a].Price) })
	slices.SortStableFunc(byLoad, func(a, b int) int { return cmp.Compare(s.nodes[a].CostMilli, s.nodes[b].CostMilli) })
	for _, order := range [][]int{s.all, byPrice, byLoad} {
		var set []int
		for _, i := range order {
			next := with(set, i)
			if !s.allowed(next) || s.r.Steps() > s.until {
				continue
			}
			if m := s.r.Remove(next); m.NewNodes == 0 && len(m.Leans) == 0 {
				set = next
				s.try(set)
			}
		}
	}
}

// with is a sorted set with one more.
func with(set []int, i int) []int {
	at, found := slices.BinarySearch(set, i)
	if found {
		return set
	}
	return slices.Insert(slices.Clone(set), at, i)
}

func without(set []int, i int) []int {
	return slices.DeleteFunc(slices.Clone(set), func(x int) bool { return x == i })
}

// packing is nodes whose pods would fit on one new node by their sums, the most
// worthwhile first.
type packing struct {
	order []int
	saves resources.Price
}

// packings fill each size of a new node with the pods of those nodes that pay
// most for the room they take, and tries the most promising for real. What is
// free on other nodes is counted not at all, by half, and in full.
func (s *search) packings() {
	loads := make([][]int64, len(s.nodes))
	for _, i := range s.all {
		loads[i] = s.r.Load(i)
	}
	spare := s.r.Spare()
	var found []packing
	for _, size := range s.r.Sizes() {
		for half := range int64(3) {
			room := slices.Clone(size.Room)
			for r, x := range spare {
				room[r] += x * half / 2
			}
			if p := s.pack(size, room, loads); p.saves > 0 && len(p.order) > 1 {
				found = append(found, p)
			}
		}
	}
	slices.SortStableFunc(found, func(a, b packing) int { return cmp.Compare(b.saves, a.saves) })
	tried := 0
	for _, p := range found {
		set := slices.Sorted(slices.Values(p.order))
		if tried == seeds {
			return
		}
		if s.seen(set) {
			continue
		}
		tried++
		s.tryTrimmed(p.order)
	}
}

// seen says whether the set has been worked out already.
func (s *search) seen(set []int) bool {
	_, ok := s.known[setKey(set)]
	return ok
}

// tryTrimmed tries a packing, and without its last members until it works.
func (s *search) tryTrimmed(order []int) {
	for n := len(order); n >= 2 && n >= len(order)-trims; n-- {
		if s.try(slices.Sorted(slices.Values(order[:n]))) != nil {
			return
		}
	}
}

// pack fills the room of a size.
func (s *search) pack(size scheduling.Size, room []int64, loads [][]int64) packing {
	share := make(map[int]int64, len(s.all))
	order := slices.Clone(s.all)
	for _, i := range order {
		share[i] = shareOf(loads[i], size.Room)
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return compareProducts(int64(s.nodes[b].Price), share[a], int64(s.nodes[a].Price), share[b])
	})
	out := packing{saves: -size.Price}
	for _, i := range order {
		if len(out.order) == mostNodes || !within(loads[i], room) || !s.allowed(append(slices.Clone(out.order), i)) {
			continue
		}
		for r, x := range loads[i] {
			room[r] -= x
		}
		out.order = append(out.order, i)
		out.saves += s.nodes[i].Price
	}
	return out
}

// shareOf is how much of a room a load takes, summed over the resources, in
// units of 1/2^16; at least one.
func shareOf(load, room []int64) int64 {
	sum := int64(1)
	for r, x := range load {
		for room := room[r]; x > 0 && room > 0; {
			if x >= 1<<46 {
				x, room = x>>16, room>>16
				continue
			}
			sum += x << 16 / room
			break
		}
	}
	return sum
}

func within(load, room []int64) bool {
	for r, x := range load {
		if x > room[r] {
			return false
		}
	}
	return true
}

// climb improves the best moves by one node more, one less, or another one,
// until nothing helps.
func (s *search) climb() {
	for _, m := range slices.Clone(s.best) {
		for next := s.step(m); next != m; next = s.step(m) {
			m = next
		}
	}
}

// step is the best neighbour of a move, or the move itself.
func (s *search) step(m *move) *move {
	best := m
	look := func(set []int) {
		if n := s.try(set); n != nil && n.better(best) {
			best = n
		}
	}
	for _, i := range s.all {
		if _, in := slices.BinarySearch(m.set, i); in {
			look(without(m.set, i))
			continue
		}
		look(with(m.set, i))
		if len(m.set) > mostSwapped {
			continue
		}
		for _, out := range m.set {
			look(with(without(m.set, out), i))
		}
	}
	return best
}
