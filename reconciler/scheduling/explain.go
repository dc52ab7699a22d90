package scheduling

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/cluster"
)

// obstacle is what keeps a group off one pool.
type obstacle struct {
	reason, text string
	rules        []string
}

// nearness ranks the reasons: the later, the nearer the pool came to taking
// the pod.
var nearness = []string{
	ReasonNoPool, ReasonNotReady, ReasonTaints, ReasonRequirements, ReasonResources,
	ReasonOfferings, ReasonPolicy, ReasonMinValues, ReasonLimits,
}

// unplaced are the pods without a place; pods with the same words are listed
// together.
func (p *problem) unplaced() []Unplaced {
	var out []Unplaced
	for _, g := range p.groups {
		if g.left() == 0 {
			continue
		}
		u := Unplaced{Reason: g.reason, Message: g.message, Pods: slices.Clone(g.pods[g.placed:])}
		if g.reason == "" {
			u.Reason, u.Message, u.Rules = p.explain(g)
		}
		at := slices.IndexFunc(out, func(o Unplaced) bool { return o.Reason == u.Reason && o.Message == u.Message })
		if at < 0 {
			out = append(out, u)
			continue
		}
		out[at].Pods = append(out[at].Pods, u.Pods...)
	}
	for _, u := range out {
		slices.SortFunc(u.Pods, func(a, b *cluster.Pod) int { return cmp.Compare(a.Key(), b.Key()) })
	}
	slices.SortFunc(out, func(a, b Unplaced) int {
		return cmp.Or(cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Message, b.Message))
	})
	return out
}

// explain says per pool why no node can be made for the group.
func (p *problem) explain(g *group) (reason, message string, rules []string) {
	if len(p.pools) == 0 {
		return ReasonNoPool, "the fleet has no NodePool", nil
	}
	var parts []string
	for _, pl := range p.pools {
		o := p.obstacle(g, pl)
		parts = append(parts, fmt.Sprintf("NodePool %q %s", pl.name, o.text))
		rules = append(rules, o.rules...)
		if reason == "" || nearer(o.reason, reason) {
			reason = o.reason
		}
	}
	slices.Sort(rules)
	return reason, strings.Join(parts, "; "), slices.Compact(rules)
}

func nearer(a, b string) bool { return slices.Index(nearness, a) > slices.Index(nearness, b) }

func (p *problem) obstacle(g *group, pl *pool) obstacle {
	if pl.why != "" {
		return obstacle{reason: ReasonNotReady, text: pl.why}
	}
	if t := untolerated(pl.taints, g.shape.Tolerations); t != nil {
		return obstacle{reason: ReasonTaints, text: fmt.Sprintf("has taint %s that the pod does not tolerate", t.ToString())}
	}
	var best obstacle
	for _, id := range g.classes {
		if o := p.obstacleFor(g, pl, id); best.reason == "" || nearer(o.reason, best.reason) {
			best = o
		}
	}
	return best
}

// obstacleFor follows the group under one of its alternatives through the
// steps of making a node, to the one that leaves nothing.
func (p *problem) obstacleFor(g *group, pl *pool, classID int) obstacle {
	cl := p.classes[classID]
	err := p.admission(pl, classID)
	if err != nil {
		return obstacle{reason: ReasonRequirements, text: "does not meet the pod's requirements: " + err.Error()}
	}
	f := p.follow(g, pl, cl)
	switch {
	case f.labelled == 0:
		return obstacle{reason: ReasonRequirements, text: fmt.Sprintf("has no instance type that meets %s", pl.reqs.Merge(cl.reqs))}
	case f.fitting == 0:
		return obstacle{reason: ReasonResources, text: fmt.Sprintf("has %d instance types that meet the requirements, none with room for %s", f.labelled, asked(g.shape)) + f.daemonNote()}
	case f.offered == 0 && len(f.rules) > 0:
		return obstacle{reason: ReasonPolicy, rules: f.rules, text: fmt.Sprintf("has %d instance types that fit, excluded by %s", f.fitting, strings.Join(f.rules, ", "))}
	case f.offered == 0:
		return obstacle{reason: ReasonOfferings, text: fmt.Sprintf("has %d instance types that fit, none with an offering that can be launched now", f.fitting)}
	}
	if g.barred != nil && g.barred[pl.index] != "" {
		rule := g.barred[pl.index]
		return obstacle{reason: ReasonPolicy, rules: []string{rule}, text: "is closed to the pod by " + rule}
	}
	if f.smallest == nil || pl.limits.of(f.smallest.Capacity).fits(pl.limits.left) {
		return obstacle{reason: ReasonMinValues, text: fmt.Sprintf("asks for more variety (minValues) than the %d instance types that fit have", f.offered)}
	}
	return obstacle{reason: ReasonLimits, text: "is at its limits: " + pl.limits.message(pl.limits.of(f.smallest.Capacity))}
}

// followed counts the types that pass each step.
type followed struct {
	labelled, fitting, offered int
	daemons                    bool
	rules                      []string
	smallest                   *catalog.InstanceType
}

func (f *followed) daemonNote() string {
	if f.daemons {
		return " besides the daemons"
	}
	return ""
}

func (p *problem) follow(g *group, pl *pool, cl class) *followed {
	f := &followed{}
	daemons := p.newOverheads(pl.reqs, pl.taints)
	reqs := pl.reqs.Merge(cl.reqs)
	sel := newSelector(reqs)
	for _, it := range pl.catalog {
		if !offers(it.Requirements, reqs) || !slices.ContainsFunc(it.Offerings, func(o catalog.Offering) bool { return sel.takes(&o) }) {
			continue
		}
		f.labelled++
		over := daemons.of(it)
		f.daemons = f.daemons || !over.list.IsZero()
		t := p.newType(pl, it, over)
		if t == nil || !g.req.fits(t.room) || portsConflict(cl.ports, over.ports) {
			continue
		}
		f.fitting++
		p.followOffers(f, pl, it, sel)
	}
	slices.Sort(f.rules)
	f.rules = slices.Compact(f.rules)
	return f
}

func (p *problem) followOffers(f *followed, pl *pool, it *catalog.InstanceType, sel selector) {
	usable := false
	for i := range it.Offerings {
		o := &it.Offerings[i]
		if !sel.takes(o) || !o.Available || p.isUnavailable(it.Name, o) {
			continue
		}
		if rule := pl.excludedBy(it.Name, o); rule != "" {
			f.rules = append(f.rules, rule)
			continue
		}
		usable = true
	}
	if !usable {
		return
	}
	f.offered++
	if f.smallest == nil || pl.limits.of(it.Capacity).fits(pl.limits.of(f.smallest.Capacity)) {
		f.smallest = it
	}
}
