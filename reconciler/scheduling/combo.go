package scheduling

import (
	"cmp"
	"slices"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/requirements"
	"github.com/reeve-project/reeve/reconciler/resources"
)

// combo is a set of pod requirements that share a node of a pool: what the node
// must be like when pods of all these classes are on it. Combos are made when
// the search first meets them and then only looked up.
type combo struct {
	classes []int // sorted
	reqs    requirements.Set
	// all are the types that meet them, cheapest first. at is the index in all
	// by the pool's type index, -1 where a type does not meet them.
	all []candidate
	at  []int32
	// plain and exotic are the candidates worth trying, by cost: for each
	// other type one of them costs no more and holds no less. Exotic ones are
	// launched only where no plain type holds the load.
	plain, exotic []candidate
	// narrowed says that some class picks among the offerings of a type.
	narrowed bool
	next     map[int]*combo
}

// candidate is an instance type under a combo.
type candidate struct {
	t     int // index in the pool's types
	room  vector
	price resources.Price // of the cheapest offering
	cost  resources.Price // what the search minimises
	// use is what a node reserves of the pool's limits.
	use vector
}

// reset drops all combos of a pool, after its costs or limits have changed.
func (p *problem) reset(pl *pool) {
	pl.combos = map[string]*combo{}
	root := &combo{reqs: pl.reqs, next: map[int]*combo{}}
	for i, t := range pl.types {
		if t.use.fits(pl.limits.left) {
			root.all = append(root.all, candidate{t: i, room: t.room, price: t.offers[0].Price, cost: p.cost(pl, t.use, t.offers[0].Price), use: t.use})
		}
	}
	pl.root = root
	p.finish(pl, root)
}

// with is the combo that a node turns into when pods of the class join it, or
// nil when they cannot.
func (p *problem) with(pl *pool, c *combo, classID int) *combo {
	if classID == 0 {
		return c
	}
	if n, ok := c.next[classID]; ok {
		return n
	}
	n := p.join(pl, c, classID)
	c.next[classID] = n
	return n
}

func (p *problem) join(pl *pool, c *combo, classID int) *combo {
	at, found := slices.BinarySearch(c.classes, classID)
	if found {
		return c
	}
	classes := slices.Insert(slices.Clone(c.classes), at, classID)
	key := comboKey(classes)
	if known, ok := pl.combos[key]; ok {
		return known
	}
	n := p.newCombo(pl, c, classID)
	if n != nil {
		n.classes = classes
	}
	pl.combos[key] = n
	return n
}

func comboKey(classes []int) string {
	b := make([]byte, 0, 2*len(classes))
	for _, c := range classes {
		b = append(b, byte(c), byte(c>>8), byte(c>>16))
	}
	return string(b)
}

// newCombo narrows a combo by a class; nil when no type is left.
func (p *problem) newCombo(pl *pool, from *combo, classID int) *combo {
	cl := p.classes[classID]
	if p.admission(pl, classID) != nil || from.reqs.Intersects(cl.reqs) != nil {
		return nil
	}
	out := &combo{reqs: from.reqs.Merge(cl.reqs), next: map[int]*combo{}}
	asked := cl.reqs.Keys()
	sel := newSelector(out.reqs)
	narrows := cl.reqs.Has(capacityTypeLabel) || cl.reqs.Has(corev1.LabelTopologyZone) || cl.reqs.Has(awsv1.LabelTopologyZoneID)
	for _, cand := range from.all {
		p.steps++
		t := pl.types[cand.t]
		if !meetsKeys(t.Requirements, out.reqs, asked) || portsConflict(cl.ports, t.overhead.ports) {
			continue
		}
		if narrows {
			o := cheapest(t.offers, sel)
			if o == nil {
				continue
			}
			cand.price = o.Price
			cand.cost = p.cost(pl, t.use, o.Price)
		}
		out.all = append(out.all, cand)
	}
	if len(out.all) == 0 {
		return nil
	}
	out.narrowed = from.narrowed || narrows
	if narrows {
		slices.SortStableFunc(out.all, func(a, b candidate) int { return cmp.Compare(a.price, b.price) })
	}
	p.finish(pl, out)
	return out
}

// admission is why the pool's template can never meet a class, or nil.
func (p *problem) admission(pl *pool, classID int) error {
	err, known := pl.admitted[classID]
	if !known {
		err = pl.reqs.Compatible(p.classes[classID].reqs, requirements.WellKnown)
		pl.admitted[classID] = err
	}
	return err
}

func meetsKeys(has, wanted requirements.Set, keys []string) bool {
	for _, key := range keys {
		if h, ok := has.Lookup(key); ok && !h.Meets(wanted.Get(key)) {
			return false
		}
	}
	return true
}

// cheapest is the cheapest of the offerings that the selector takes.
func cheapest(offers []catalog.Offering, sel selector) *catalog.Offering {
	for i := range offers {
		if sel.takes(&offers[i]) {
			return &offers[i]
		}
	}
	return nil
}

// finish fills in what the search looks up.
func (p *problem) finish(pl *pool, c *combo) {
	c.at = make([]int32, len(pl.types))
	for i := range c.at {
		c.at[i] = -1
	}
	for i, cand := range c.all {
		c.at[cand.t] = int32(i)
	}
	var plain, exotic []candidate
	for _, cand := range p.robust(pl, c) {
		if pl.types[cand.t].exotic && !pl.minValues {
			exotic = append(exotic, cand)
			continue
		}
		plain = append(plain, cand)
	}
	c.plain, c.exotic = p.undominated(plain), p.undominated(exotic)
}

// undominated drops the candidates for which another costs no more and holds no
// less; the rest is sorted by cost.
func (p *problem) undominated(in []candidate) []candidate {
	slices.SortStableFunc(in, func(a, b candidate) int { return cmp.Compare(a.cost, b.cost) })
	var out []candidate
	for _, cand := range in {
		p.steps++
		if !slices.ContainsFunc(out, func(o candidate) bool { return o.room.covers(cand.room) }) {
			out = append(out, cand)
		}
	}
	return out
}

// forLoad is the cheapest candidate that holds the load, or nil.
func (c *combo) forLoad(load vector) *candidate {
	for _, list := range [2][]candidate{c.plain, c.exotic} {
		for i := range list {
			if load.fits(list[i].room) {
				return &list[i]
			}
		}
	}
	return nil
}
