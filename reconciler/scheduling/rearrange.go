package scheduling

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/requirements"
	"github.com/reeve-project/reeve/reconciler/resources"
)

// Rearrangement is what becomes of the pods when some sources are taken away.
type Rearrangement struct {
	// NewNodes is how many nodes would have to be made: none, one, or two for
	// any more; see Explain.
	NewNodes int
	// Leans are the keys of nodes that are not initialized and that pods of
	// the sources would go to, sorted.
	Leans []string
	// Draft is the new node when there is one.
	Draft *Draft

	r       *Rearranger
	sources []int
	places  []place
	rest    []share
}

// Draft is a new node whose launch list is still open.
type Draft struct {
	r       *Rearranger
	node    *node
	sources []int
	left    vector
	ignored []int64 // by share of the node, how many pods are left out
	options []Option
	filters []Filter
}

// Option is a type that can be launched.
type Option struct {
	// Type that holds the pods.
	Type *catalog.InstanceType
	// Offerings that can be launched, the cheapest first.
	Offerings []catalog.Offering

	t *ptype
}

// Remove says what becomes of the pods when the sources of these indexes are
// taken away.
func (r *Rearranger) Remove(sources []int) *Rearrangement {
	out := &Rearrangement{r: r, sources: slices.Clone(sources)}
	r.t.start(r, sources)
	r.fill()
	rest := r.rest()
	if len(rest) > 0 {
		out.NewNodes = 1
		n := r.oneNode(rest, sources)
		if n == nil {
			out.NewNodes = 2
			out.rest = rest
			return out
		}
		out.Draft = r.draft(n, out.sources)
	}
	out.places = slices.Clone(r.t.places)
	out.findLeans()
	return out
}

// rest are the pods that no room was found for and that new nodes have to
// hold.
func (r *Rearranger) rest() []share {
	var rest []share
	for i, g := range r.p.groups {
		if n := r.t.demand[i] - r.ignored(g); n > 0 {
			rest = append(rest, share{g: g, n: n})
		}
	}
	return rest
}

// Explain says of a rearrangement that needs several nodes why no single one
// will do: how many it would take at least, or which pod has no place at all
// and why.
func (m *Rearrangement) Explain() (nodes int, stuck string) {
	for _, s := range m.rest {
		if !m.r.placeable(s.g, m.sources) {
			return 0, m.r.stuckBecause(s.g, m.sources)
		}
	}
	return m.r.count(m.rest, m.sources), ""
}

func (r *Rearranger) stuckBecause(g *group, sources []int) string {
	why := g.message
	if g.reason == "" {
		for _, pl := range r.p.pools {
			if pl.limits != nil {
				pl.limits.left = r.left(pl, sources)
			}
		}
		_, why, _ = r.p.explain(g)
		r.liftLimits()
	}
	return fmt.Sprintf("no place for pod %s: %s", r.podsOf(g, sources)[0].Key(), why)
}

// count is how many nodes are opened when each takes as many pods as it can,
// in their order.
func (r *Rearranger) count(rest []share, sources []int) int {
	nodes := 0
	for left := slices.Clone(rest); len(left) > 0; nodes++ {
		var inside []share
		var over []share
		for _, s := range left {
			n := r.most(inside, s, sources)
			if n > 0 {
				inside = append(inside, share{g: s.g, n: n})
			}
			if n < s.n {
				over = append(over, share{g: s.g, n: s.n - n})
			}
		}
		if len(inside) == 0 {
			break
		}
		left = over
	}
	return max(nodes, 2)
}

// most is how many pods of a share fit on one node beside others.
func (r *Rearranger) most(inside []share, s share, sources []int) int64 {
	fits := func(n int64) bool {
		return r.oneNode(append(slices.Clone(inside), share{g: s.g, n: n}), sources) != nil
	}
	low, high := int64(0), s.n
	for low < high {
		mid := (low + high + 1) / 2
		if fits(mid) {
			low = mid
			continue
		}
		high = mid - 1
	}
	return low
}

func (m *Rearrangement) findLeans() {
	for _, pl := range m.places {
		n := m.r.p.rooms[pl.room].node
		if m.r.moved[pl.g.index] && !n.Initialized() && !slices.Contains(m.Leans, n.Key()) {
			m.Leans = append(m.Leans, n.Key())
		}
	}
	slices.Sort(m.Leans)
}

// Placements say where the sources' pods go, sorted by node and pod. Pods that
// are not in it are on the new node.
func (m *Rearrangement) Placements() []Placement {
	at := map[string]int{}
	var out []Placement
	given := map[*group]int64{}
	for _, pl := range m.places {
		from := given[pl.g]
		given[pl.g] += pl.n
		if !m.r.moved[pl.g.index] {
			continue
		}
		key := m.r.p.rooms[pl.room].node.Key()
		i, ok := at[key]
		if !ok {
			i = len(out)
			at[key] = i
			out = append(out, Placement{Node: key})
		}
		out[i].Pods = append(out[i].Pods, m.r.podsOf(pl.g, m.sources)[from:from+pl.n]...)
	}
	for _, p := range out {
		slices.SortFunc(p.Pods, func(a, b *cluster.Pod) int { return cmp.Compare(a.Key(), b.Key()) })
	}
	slices.SortFunc(out, func(a, b Placement) int { return cmp.Compare(a.Node, b.Node) })
	return out
}

func (r *Rearranger) draft(n *node, sources []int) *Draft {
	d := &Draft{r: r, node: n, sources: sources, left: r.left(n.pl, sources)}
	for _, s := range n.shares {
		d.ignored = append(d.ignored, r.ignored(s.g))
	}
	return d
}

// Options are the types that hold the draft's pods, each with the offerings
// that can be launched, the cheapest first.
func (d *Draft) Options() []Option {
	if d.options != nil {
		return d.options
	}
	l := launchList{filters: slices.Clone(d.node.pl.filters)}
	slack := slices.Clone(d.left)
	slack.addTimes(d.node.cand.use, -1)
	for _, o := range d.r.p.fitting(d.node, slack, &l) {
		d.options = append(d.options, Option{Type: o.t.InstanceType, Offerings: o.offers, t: o.t})
	}
	d.filters = l.filters
	d.r.p.steps += int64(len(d.options))
	return d.options
}

// Requirements of the node: those of the NodePool's template and of the pods.
func (d *Draft) Requirements() requirements.Set { return d.node.combo.reqs }

func (d *Draft) pods() []*cluster.Pod {
	var out []*cluster.Pod
	for i, s := range d.node.shares {
		all := d.r.podsOf(s.g, d.sources)
		end := int64(len(all)) - d.ignored[i]
		out = append(out, all[end-s.n:end]...)
	}
	return out
}

// ignored is how many pods of a group are left out at its end.
func (r *Rearranger) ignored(g *group) int64 {
	return min(r.stuck[g.index], r.t.demand[g.index])
}

// Step is one filter on the options of a draft.
type Step struct {
	// By names the step in the claim's filters.
	By string
	// Keep are the options that pass; their offerings may have been narrowed.
	Keep []Option
}

// Planned is the choice that a claim of these options would count on: of the
// capacity type that would be asked for first, the cheapest; false when no
// option is left after the filters of a launch.
func (d *Draft) Planned(options []Option) (Choice, bool) {
	var l launchList
	l.choose(d.launchable(&l, options))
	return l.chosen, l.chosen.InstanceType != ""
}

func (d *Draft) launchable(l *launchList, options []Option) []launchOption {
	list := make([]launchOption, len(options))
	for i, o := range options {
		list[i] = launchOption{t: o.t, offers: o.Offerings}
	}
	if !d.node.pl.minValues {
		list = l.filter(FilterExotic, dropExotic(list))
		if kept, applies := dropDearSpot(list); applies {
			list = l.filter(FilterSpotPrice, kept)
		}
	}
	slices.SortStableFunc(list, compareOptions)
	return list
}

// Claim closes the draft: the options of the last step, at most as many as
// given, are what the cloud may choose from. capacityType, unless it is empty,
// is the only one that may be launched. It is nil when nothing is left.
func (d *Draft) Claim(steps []Step, most int, capacityType string) *Claim {
	options := d.Options()
	l := launchList{filters: slices.Clone(d.filters)}
	for _, s := range steps {
		options = s.Keep
		l.filters = append(l.filters, Filter{By: s.By, Left: len(options)})
	}
	list := d.launchable(&l, options)
	by := FilterCheapest
	if most != MaxLaunchable {
		by = fmt.Sprintf("cheapest %d", most)
	}
	list = l.filter(by, truncate(d.node, list, most))
	if len(list) == 0 {
		return nil
	}
	l.choose(list)
	l.finish(d.node, list)
	reqs := d.node.combo.reqs
	if capacityType != "" {
		reqs = reqs.With(requirements.In(capacityTypeLabel, capacityType))
	}
	return &Claim{
		NodePool: d.node.pl.name, NodeClass: d.node.pl.class, Requirements: reqs,
		Types: l.types, InstanceType: l.chosen.InstanceType, Offering: l.chosen.Offering,
		Requests: l.requests, Daemons: l.daemons, Pods: d.pods(), Filters: l.filters, Cheapest: l.cheapest,
	}
}

// Price of the cheapest offering of the draft, before any filter.
func (d *Draft) Price() resources.Price { return d.node.cand.price }

// NodePool is the name of the draft's NodePool.
func (d *Draft) NodePool() string { return d.node.pl.name }
