package scheduling

import (
	"cmp"
	"slices"

	"github.com/reeve-project/reeve/reconciler/requirements"
)

// robust gives the candidates of a combo the room that they really offer where
// the pool asks for a variety of instance types (minValues): a load has to fit
// so many other types as well that the variety is reached. Each candidate is
// taken together with the types that shrink it least; what fits the smallest
// of them, resource by resource, fits them all.
func (p *problem) robust(pl *pool, c *combo) []candidate {
	if !pl.minValues {
		return slices.Clone(c.all)
	}
	var out []candidate
	for _, cand := range p.undominated(slices.Clone(c.all)) {
		if r, ok := p.withVariety(pl, c, cand); ok {
			out = append(out, r)
		}
	}
	return out
}

func (p *problem) withVariety(pl *pool, c *combo, cand candidate) (candidate, bool) {
	v := newVariety(c.reqs)
	v.add(pl.types[cand.t].Requirements)
	others := slices.Clone(c.all)
	p.steps += int64(len(others))
	slices.SortStableFunc(others, func(a, b candidate) int { return cmp.Compare(keeps(b.room, cand.room), keeps(a.room, cand.room)) })
	cand.room, cand.use = slices.Clone(cand.room), slices.Clone(cand.use)
	for _, o := range others {
		if v.reached() {
			break
		}
		if !v.add(pl.types[o.t].Requirements) {
			continue
		}
		for i, x := range o.room {
			cand.room[i] = min(cand.room[i], x)
		}
		for i, x := range o.use {
			cand.use[i] = max(cand.use[i], x)
		}
	}
	cand.cost = p.cost(pl, cand.use, cand.price)
	return cand, v.reached()
}

// keeps is how much of the room is left when it is cut to another one: the
// smallest share over the resources.
func keeps(other, room vector) int64 {
	least := int64(1) << shareBits
	for i, x := range room {
		if x > 0 {
			least = min(least, shareOf(max(min(other[i], x), 0), x))
		}
	}
	return least
}

// variety counts the distinct values that types show for keys with minValues.
type variety struct {
	keys []string
	want []int
	seen []map[string]bool
}

func newVariety(reqs requirements.Set) *variety {
	v := &variety{}
	for r := range reqs.All() {
		if r.MinValues() > 0 {
			v.keys = append(v.keys, r.Key())
			v.want = append(v.want, r.MinValues())
			v.seen = append(v.seen, map[string]bool{})
		}
	}
	return v
}

// add counts a type and says whether it brought what was still short.
func (v *variety) add(labels requirements.Set) bool {
	brought := false
	for i, key := range v.keys {
		r, ok := labels.Lookup(key)
		if !ok || r.Complement() {
			continue
		}
		for _, value := range r.Values() {
			if !v.seen[i][value] {
				brought = brought || len(v.seen[i]) < v.want[i]
				v.seen[i][value] = true
			}
		}
	}
	return brought
}

func (v *variety) reached() bool {
	for i, want := range v.want {
		if len(v.seen[i]) < want {
			return false
		}
	}
	return true
}
