package scheduling

import (
	"slices"

	"github.com/reeve-project/reeve/reconciler/cluster"
)

// trial is the scratch space in which a rearrangement is worked out.
type trial struct {
	dims int
	// left of every room, one after the other; whole is its content while
	// nothing was placed.
	left, whole []int64
	taken       []bool // by room: its node is taken away
	demand      []int64
	places      []place
	// extra is what was placed on rooms beyond amounts, where it matters.
	extra map[int]*room
}

// place is pods of a group on a room.
type place struct {
	g    *group
	room int
	n    int64
}

func (t *trial) init(r *Rearranger) {
	t.dims = len(r.p.dims)
	for _, room := range r.p.rooms {
		t.whole = append(t.whole, room.left...)
	}
	t.left = make([]int64, len(t.whole))
	t.taken = make([]bool, len(r.p.rooms))
	t.demand = make([]int64, len(r.p.groups))
}

// start sets the scratch space up for taking the sources away.
func (t *trial) start(r *Rearranger, sources []int) {
	copy(t.left, t.whole)
	clear(t.taken)
	for i, pods := range r.base {
		t.demand[i] = int64(len(pods))
	}
	t.places, t.extra = t.places[:0], nil
	for _, i := range sources {
		s := &r.sources[i]
		if s.room >= 0 {
			t.taken[s.room] = true
		}
		for _, sh := range s.shares {
			t.demand[sh.g.index] += int64(len(sh.pods))
		}
	}
}

// fill gives the groups the room there is, in the order of Solve.
func (r *Rearranger) fill() {
	t := &r.t
	for i, g := range r.p.groups {
		if g.reason != "" || t.demand[i] == 0 {
			continue
		}
		for _, k := range r.open {
			r.p.steps++
			n := r.times(g, k)
			if n == 0 || t.taken[k] || (r.closed[k] && r.moved[i]) || !r.lets(g, k) {
				continue
			}
			r.put(g, k, min(n, t.demand[i]))
			if t.demand[i] == 0 {
				break
			}
		}
	}
}

// times is how many pods of the group fit on the room as it is now.
func (r *Rearranger) times(g *group, k int) int64 {
	n := g.req.timesIn(vector(r.t.left[k*r.t.dims : (k+1)*r.t.dims]))
	if n == 0 || (g.owns == nil && g.matches == nil && len(g.shape.HostPorts) == 0) {
		return n
	}
	room := *r.p.rooms[k]
	if x := r.t.extra[k]; x != nil {
		room.owned, room.matched, room.ports = x.owned, x.matched, x.ports
	}
	room.left = vector(r.t.left[k*r.t.dims : (k+1)*r.t.dims])
	return room.times(g)
}

// lets remembers whether labels and taints of a room let a group in.
func (r *Rearranger) lets(g *group, k int) bool {
	known := &r.admits[g.index][k]
	if *known == 0 {
		*known = 2
		if r.p.roomAdmits(r.p.rooms[k], g, nil) {
			*known = 1
		}
	}
	return *known == 1
}

func (r *Rearranger) put(g *group, k int, n int64) {
	t := &r.t
	vector(t.left[k*t.dims:(k+1)*t.dims]).addTimes(g.req, -n)
	t.demand[g.index] -= n
	t.places = append(t.places, place{g: g, room: k, n: n})
	if g.owns == nil && g.matches == nil && len(g.shape.HostPorts) == 0 {
		return
	}
	x := t.extra[k]
	if x == nil {
		was := r.p.rooms[k]
		x = &room{owned: was.owned, matched: was.matched, ports: slices.Clone(was.ports)}
		if t.extra == nil {
			t.extra = map[int]*room{}
		}
		t.extra[k] = x
	}
	x.hold(g.owns, g.matches)
	x.ports = append(x.ports, g.shape.HostPorts...)
}

// findStuck works out which waiting pods no question is about: they find no
// place when nothing is taken away, and no NodePool can make a node for one of
// them within its limits.
func (r *Rearranger) findStuck() {
	r.stuck = make([]int64, len(r.p.groups))
	r.t.start(r, nil)
	r.fill()
	for i, g := range r.p.groups {
		if n := r.t.demand[i]; n > 0 && !r.placeable(g, nil) {
			r.stuck[i] = n
		}
	}
}

// placeable says whether some pool can make a node for a pod of the group
// within the limits that taking the sources away leaves.
func (r *Rearranger) placeable(g *group, sources []int) bool {
	return g.reason == "" && r.oneNode([]share{{g: g, n: 1}}, sources) != nil
}

// oneNode is a node of the first pool that can hold all the pods, or nil.
func (r *Rearranger) oneNode(shares []share, sources []int) *node {
	for _, pl := range r.p.pools {
		if n := r.nodeIn(pl, shares, sources); n != nil {
			return n
		}
	}
	return nil
}

// nodeIn is one node of the pool for all the pods, or nil.
func (r *Rearranger) nodeIn(pl *pool, shares []share, sources []int) *node {
	p := r.p
	if pl.why != "" {
		return nil
	}
	p.compileTypes(pl)
	c, load := pl.root, make(vector, len(p.dims))
	out := &node{pl: pl, load: load}
	for i, s := range shares {
		p.steps++
		id, next := p.joining(pl, c, s.g)
		if next == nil || (s.g.alone && s.n > 1) {
			return nil
		}
		for _, o := range shares[:i] {
			if s.g.conflicts.has(o.g.index) {
				return nil
			}
		}
		c = next
		load.addTimes(s.g.req, s.n)
		out.shares = append(out.shares, share{g: s.g, class: id, n: s.n})
	}
	cand := c.within(pl, load, r.left(pl, sources))
	if cand == nil {
		return nil
	}
	out.combo, out.cand = c, *cand
	return out
}

// joining is the first alternative under which pods of the group may join a
// node of the pool, and what the node then is.
func (p *problem) joining(pl *pool, c *combo, g *group) (int, *combo) {
	if (g.barred != nil && g.barred[pl.index] != "") || untolerated(pl.taints, g.shape.Tolerations) != nil {
		return 0, nil
	}
	for _, id := range g.classes {
		if p.admission(pl, id) != nil {
			continue
		}
		if next := p.with(pl, c, id); next != nil {
			return id, next
		}
	}
	return 0, nil
}

// left is what the pool's limits leave once the sources are gone: they are
// given back, as Karpenter does, though for a while both are there.
func (r *Rearranger) left(pl *pool, sources []int) vector {
	if len(pl.limits.names) == 0 {
		return nil
	}
	left := slices.Clone(r.limits[pl.index])
	for _, i := range sources {
		if n := r.sources[i].node; poolOf(n) == pl.name {
			left.addTimes(pl.limits.of(r.p.capacity(n)), 1)
		}
	}
	return left
}

// within is the cheapest candidate that holds the load and that the limits
// allow, or nil.
func (c *combo) within(pl *pool, load, left vector) *candidate {
	best := c.forLoad(load)
	if best == nil || best.use.fits(left) {
		return best
	}
	list := c.all
	if pl.minValues {
		list = c.plain
	}
	for i := range list {
		if load.fits(list[i].room) && list[i].use.fits(left) {
			return &list[i]
		}
	}
	return nil
}

// podsOf are the pods of a group that a rearrangement moves, in the order in
// which they are given places.
func (r *Rearranger) podsOf(g *group, sources []int) []*cluster.Pod {
	out := slices.Clone(r.base[g.index])
	for _, i := range sources {
		for _, sh := range r.sources[i].shares {
			if sh.g == g {
				out = append(out, sh.pods...)
			}
		}
	}
	return out
}
