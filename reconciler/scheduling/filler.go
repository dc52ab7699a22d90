package scheduling

// filler fills nodes by value; it keeps its buffers between fillings.
type filler struct {
	s      *search
	counts []int64
	left   vector
	inv    []float64
	active []int
	req    []float64 // of the items, one after the other
}

func newFiller(s *search) *filler {
	f := &filler{s: s, counts: make([]int64, len(s.items)), left: make(vector, len(s.dims)), inv: make([]float64, len(s.dims))}
	for _, it := range s.items {
		for _, x := range it.g.req {
			f.req = append(f.req, float64(x))
		}
	}
	return f
}

// fill chooses pods of the rest for one node of the candidate: again and again
// the item that gives most value for the share of the room it takes (Toyoda's
// rule), half of what fits at a time so that the shares stay right. It answers
// how many of each item (only until the next call), and their value.
func (f *filler) fill(cand candidate, rest []int64) ([]int64, float64) {
	s := f.s
	counts := f.counts
	clear(counts)
	copy(f.left, cand.room)
	f.start(rest)
	c, value := s.pl.root, 0.0
	for {
		f.weigh()
		i := f.pick(cand, c, counts, rest)
		if i < 0 {
			return counts, value
		}
		it := &s.items[i]
		n := max(min(it.g.req.timesIn(f.left)/2, rest[i]-counts[i]), 1)
		if it.g.alone {
			n = 1
		}
		c = s.with(s.pl, c, it.class)
		counts[i] += n
		value += mul(s.value[i], float64(n))
		f.left.addTimes(it.g.req, -n)
	}
}

func (f *filler) start(rest []int64) {
	f.active = f.active[:0]
	for i, n := range rest {
		if n > 0 {
			f.active = append(f.active, i)
		}
	}
}

// weigh sets what a unit of each resource weighs: the less is left, the more.
func (f *filler) weigh() {
	for r, x := range f.left {
		f.inv[r] = 1 / float64(max(x, 1))
	}
}

// pick is the best item that can still be added, or -1. Items that cannot are
// dropped: room and combo only get narrower.
func (f *filler) pick(cand candidate, c *combo, counts, rest []int64) int {
	s := f.s
	best, score := -1, 0.0
	kept := f.active[:0]
	s.steps += int64(len(f.active))
	for _, i := range f.active {
		it := &s.items[i]
		if counts[i] == rest[i] || !it.g.req.fits(f.left) || !f.joins(it, i, cand, c, counts) {
			continue
		}
		kept = append(kept, i)
		if v := s.value[i] / f.weight(i); best < 0 || v > score {
			best, score = i, v
		}
	}
	f.active = kept
	return best
}

func (f *filler) weight(i int) float64 {
	sum := 0.0
	for r, x := range f.req[i*len(f.inv) : (i+1)*len(f.inv)] {
		sum += mul(x, f.inv[r])
	}
	return sum
}

// joins says whether rules let one more pod of the item onto the node.
func (f *filler) joins(it *item, i int, cand candidate, c *combo, counts []int64) bool {
	s := f.s
	if it.g.conflicts != nil {
		if it.g.alone && counts[i] > 0 {
			return false
		}
		for j, n := range counts {
			if n > 0 && j != i && it.g.conflicts.has(s.items[j].g.index) {
				return false
			}
		}
	}
	if it.class == 0 {
		return true
	}
	n := s.with(s.pl, c, it.class)
	return n != nil && n.at[cand.t] >= 0
}
