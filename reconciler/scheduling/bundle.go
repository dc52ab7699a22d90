package scheduling

import (
	"encoding/binary"
	mathbits "math/bits"
	"slices"
)

// maxItems is how many items the search takes as they are. Beyond it, items of
// nearly equal requests are searched for as one.
const maxItems = 300

// bundle is items that are searched for as one: the search sees pods of their
// mean size.
type bundle struct {
	item
	members      []item
	sum, largest vector
}

// bundles joins items whose requests are in the same cells of a grid that is
// even on a logarithmic scale, as fine as the number of items allows: from
// eight cells an octave (a spread of at most an eighth) down to one.
func (s *search) bundles() []bundle {
	var out []bundle
	for fine := 3; fine >= 0; fine-- {
		if out = s.bundlesAt(fine); len(out) <= maxItems {
			break
		}
	}
	return out
}

func (s *search) bundlesAt(fine int) []bundle {
	at := map[string]int{}
	var out []bundle
	var key []byte
	for _, it := range s.items {
		if it.g.conflicts != nil {
			out = append(out, bundle{item: it, members: []item{it}})
			continue
		}
		key = cellKey(key[:0], it, fine)
		i, known := at[string(key)]
		if known && s.joinBundle(&out[i], it) {
			continue
		}
		at[string(key)] = len(out)
		sum := make(vector, len(s.dims))
		sum.addTimes(it.g.req, it.n)
		out = append(out, bundle{item: it, members: []item{it}, sum: sum, largest: slices.Clone(it.g.req)})
	}
	for i := range out {
		out[i].settle()
	}
	return out
}

// joinBundle adds an item, unless pods as large as both would fit nowhere.
func (s *search) joinBundle(b *bundle, it item) bool {
	largest := slices.Clone(b.largest)
	for r, x := range it.g.req {
		largest[r] = max(largest[r], x)
	}
	if s.with(s.pl, s.pl.root, it.class).forLoad(largest) == nil {
		return false
	}
	b.largest = largest
	b.sum.addTimes(it.g.req, it.n)
	b.n += it.n
	b.members = append(b.members, it)
	return true
}

// settle gives the bundle the mean of its members' requests, rounded up.
func (b *bundle) settle() {
	if len(b.members) == 1 {
		return
	}
	mean := make(vector, len(b.sum))
	for r, x := range b.sum {
		mean[r] = (x + b.n - 1) / b.n
	}
	b.g = &group{index: b.g.index, shape: b.g.shape, req: mean}
}

func cellKey(b []byte, it item, fine int) []byte {
	b = binary.AppendVarint(b, int64(it.class))
	for _, x := range it.g.req {
		b = binary.AppendUvarint(b, cell(uint64(max(x, 0)), fine))
	}
	return b
}

// cell is the cell of an amount: its leading digits in binary and how many
// follow.
func cell(x uint64, fine int) uint64 {
	follow := mathbits.Len64(x) - 1 - fine
	if follow <= 0 {
		return x
	}
	return uint64(follow+1)<<(fine+1) | x>>follow
}

// runBundled searches with bundles and then fills the nodes it found with the
// real pods. Some pods that the plan counted on do not fit where it put them;
// they are searched for again.
func (s *search) runBundled() *solution {
	parts := s.bundles()
	coarse := &search{problem: s.problem, pl: s.pl}
	for _, b := range parts {
		coarse.items = append(coarse.items, b.item)
	}
	found := coarse.improve(coarse.greedyBest())
	q := &queues{s: s, parts: parts, next: make([]int, len(parts))}
	out := &solution{solver: found.solver + "+bundles"}
	for _, k := range found.packs {
		for range k.times {
			if node, ok := q.fill(&k); ok {
				out.add(node)
			}
		}
	}
	q.rest(out)
	return out
}

// queues hand out the pods of bundles, the largest first.
type queues struct {
	s     *search
	parts []bundle
	next  []int // the member that is handed out
	taken []taken
}

// taken is what the node that is being filled took from a bundle.
type taken struct {
	part, member int
	n            int64
}

// fill makes a node as the packing plans it and tops it up with whatever else
// fits, in the order of the items: the largest first.
func (q *queues) fill(k *packing) (packing, bool) {
	node := packing{times: 1, combo: q.s.pl.root, load: make(vector, len(q.s.dims))}
	q.taken = q.taken[:0]
	for i, n := range k.counts {
		if n > 0 {
			q.take(&node, &k.cand, i, n)
		}
	}
	for i := range q.parts {
		b := &q.parts[i]
		c := q.s.with(q.s.pl, node.combo, b.class)
		// Another combo may offer less room where variety is asked for.
		steady := c == node.combo || !q.s.pl.minValues
		if steady && b.g.conflicts == nil {
			q.take(&node, &k.cand, i, b.n)
		}
	}
	cand := node.combo.forLoad(node.load)
	if len(node.shares) == 0 || cand == nil {
		q.putBack()
		return node, false
	}
	node.cand = *cand
	return node, true
}

func (q *queues) putBack() {
	for _, t := range q.taken {
		q.parts[t.part].n += t.n
		q.parts[t.part].members[t.member].n += t.n
		q.next[t.part] = min(q.next[t.part], t.member)
	}
}

// rest packs what no node took.
func (q *queues) rest(out *solution) {
	left := &search{problem: q.s.problem, pl: q.s.pl}
	for i, b := range q.parts {
		for _, m := range b.members[q.next[i]:] {
			if m.n > 0 {
				left.items = append(left.items, m)
			}
		}
	}
	found := left.apart
	if len(left.items) < len(q.s.items)/2 {
		found = left.run
	}
	for _, k := range found().packs {
		k.shares, k.counts = k.sharesOf(left.items), nil
		out.add(k)
	}
}

// take moves up to n pods of a bundle to the node, as long as they fit on the
// candidate.
func (q *queues) take(node *packing, cand *candidate, i int, n int64) {
	b := &q.parts[i]
	c := q.s.with(q.s.pl, node.combo, b.class)
	if c == nil || c.at[cand.t] < 0 {
		return
	}
	for n > 0 && q.next[i] < len(b.members) {
		m := &b.members[q.next[i]]
		left := slices.Clone(cand.room)
		left.addTimes(node.load, -1)
		take := min(m.g.req.timesIn(left), m.n, n)
		if take == 0 {
			return
		}
		node.combo = c
		node.load.addTimes(m.g.req, take)
		node.shares = append(node.shares, share{g: m.g, class: m.class, n: take})
		q.taken = append(q.taken, taken{part: i, member: q.next[i], n: take})
		b.n, m.n, n = b.n-take, m.n-take, n-take
		if m.n == 0 {
			q.next[i]++
		}
	}
}
