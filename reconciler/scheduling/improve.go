package scheduling

import (
	"cmp"
	"slices"
)

// Bounds of the improvement, in steps.
const (
	windowExact  = 20_000
	improveSteps = 300_000
	improveNodes = 256
)

// improve takes a few wasteful nodes at a time out of a solution and packs
// their pods again, as long as that lowers the cost and the effort allows.
func (s *search) improve(in *solution) *solution {
	nodes, rest := s.wasteful(in)
	until := s.steps + improveSteps
	for s.steps < until {
		next, better := s.improveOnce(nodes, until)
		if !better {
			break
		}
		nodes = next
	}
	out := &solution{solver: in.solver + "+windows"}
	for _, k := range slices.Concat(nodes, rest) {
		out.add(k)
	}
	if !out.better(in) {
		return in.merged()
	}
	return out.merged()
}

// wasteful splits a solution into single nodes, those that cost most beyond
// the value of their pods first, and the rest.
func (s *search) wasteful(in *solution) (nodes, rest []packing) {
	packs := slices.Clone(in.packs)
	slices.SortStableFunc(packs, func(a, b packing) int { return cmp.Compare(s.waste(b), s.waste(a)) })
	for _, k := range packs {
		for k.times > 0 && len(nodes) < improveNodes {
			one := k
			one.times = 1
			nodes = append(nodes, one)
			k.times--
		}
		if k.times > 0 {
			rest = append(rest, k)
		}
	}
	return nodes, rest
}

func (s *search) waste(k packing) float64 { return dollars(k.cost()) - s.worth(k.load) }

// improveOnce looks for one window of nodes whose pods pack better: the most
// wasteful few together, then pairs.
func (s *search) improveOnce(nodes []packing, until int64) ([]packing, bool) {
	slices.SortStableFunc(nodes, func(a, b packing) int { return cmp.Compare(s.waste(b), s.waste(a)) })
	for _, width := range []int{3, 5, 8} {
		for at := 0; at+width <= len(nodes) && at < 4*width; at += width {
			if next, ok := s.repack(nodes, span(at, width), until); ok {
				return next, true
			}
		}
	}
	for i := 0; i < len(nodes) && i < 12; i++ {
		for j := i + 1; j < len(nodes) && j < 48; j++ {
			if next, ok := s.repack(nodes, []int{i, j}, until); ok {
				return next, true
			}
		}
	}
	return nodes, false
}

func span(at, width int) []int {
	out := make([]int, width)
	for i := range out {
		out[i] = at + i
	}
	return out
}

// repack solves the pods of some nodes anew and replaces the nodes when that
// is cheaper.
func (s *search) repack(nodes []packing, window []int, until int64) ([]packing, bool) {
	if s.steps >= until {
		return nil, false
	}
	old := &solution{}
	sum := make([]int64, len(s.items))
	for _, i := range window {
		old.add(nodes[i])
		for j, n := range nodes[i].counts {
			sum[j] += n
		}
	}
	found := s.part(sum)
	if !found.better(old) {
		return nil, false
	}
	var out []packing
	for i, k := range nodes {
		if !slices.Contains(window, i) {
			out = append(out, k)
		}
	}
	for _, k := range found.packs {
		for range k.times {
			one := k
			one.times = 1
			out = append(out, one)
		}
	}
	return out, true
}

// part solves for some of the pods; counts of the result are by the items of
// the whole.
func (s *search) part(sum []int64) *solution {
	sub := &search{problem: s.problem, pl: s.pl, weight: s.weight}
	var index []int
	for i, n := range sum {
		if n > 0 {
			it := s.items[i]
			it.n = n
			sub.items, index = append(sub.items, it), append(index, i)
			sub.value = append(sub.value, s.value[i])
		}
	}
	var found *solution
	switch {
	case len(sub.items) == 1:
		found = sub.single()
	case sub.exactWork() <= windowExact:
		found = sub.exact()
	default:
		found = sub.greedy(s.ranked)
	}
	for i := range found.packs {
		counts := make([]int64, len(s.items))
		for j, n := range found.packs[i].counts {
			counts[index[j]] = n
		}
		found.packs[i].counts = counts
	}
	return found
}
