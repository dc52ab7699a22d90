package disruption

import "slices"

// search looks for the set of nodes whose removal saves most.
type search struct {
	*tries
	// all are the candidates that are looked at, in their rank.
	all   []int
	best  *move
	until int64
}

// exhaustive is up to how many candidates all their sets are tried.
const exhaustive = 10

// searchSteps bounds the effort, in steps of the rearranger.
const searchSteps = 6_000_000

func newSearch(t *tries) *search {
	s := &search{tries: t, until: t.r.Steps() + searchSteps}
	for i := range t.nodes[:min(len(t.nodes), mostNodes)] {
		s.all = append(s.all, i)
	}
	return s
}

func (s *search) run() *move {
	switch {
	case len(s.all) < 2 || s.p.in.Most == 1:
	case len(s.all) <= exhaustive:
		s.allSets()
	default:
		s.prefixes()
	}
	return s.best
}

// try looks at a set and keeps it when it is the best so far. It is nil when
// the set does not work, is not allowed or when the effort is spent.
func (s *search) try(set []int) *move {
	if len(set) < 2 || len(set) > mostNodes || s.r.Steps() > s.until || !s.allowed(set) {
		return nil
	}
	m := s.of(set)
	if m != nil && m.better(s.best) {
		s.best = m
	}
	return m
}

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
