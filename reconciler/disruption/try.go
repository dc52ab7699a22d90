package disruption

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"
	"time"

	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/resources"
	"github.com/reeve-project/reeve/reconciler/scheduling"
)

// tries tells what taking sets of nodes away would save, and remembers it.
type tries struct {
	p *pass
	r *scheduling.Rearranger
	// nodes are the candidates that may be removed for lack of use, ranked;
	// sets are indexes of them.
	nodes     []*Candidate
	allowance *allowance
	known     map[string]*move
}

// move is the removal of a set of nodes that works.
type move struct {
	set         []int // sorted
	nodes       []*Candidate
	rearranged  *scheduling.Rearrangement
	replacement *replacement // nil: deletion
	savings     resources.Price
}

// compile prepares the simulation of removals.
func (p *pass) compile() error {
	t := &tries{p: p, known: map[string]*move{}, allowance: p.allowance(ReasonUnderutilized)}
	m := scheduling.Moves{Closed: map[string]bool{}}
	for _, c := range p.candidates {
		if c.Empty() {
			continue
		}
		if why := p.underutilizable(c); why != "" {
			p.block(c.Node, EventUnconsolidatable, why)
			continue
		}
		if t.allowance.left[c.NodePool.Name] <= 0 {
			p.block(c.Node, EventBlocked, overBudget(ReasonUnderutilized))
			continue
		}
		t.nodes = append(t.nodes, c)
		m.Sources = append(m.Sources, scheduling.Source{Node: c.Node.Key(), Pods: c.Pods})
	}
	m.Leaving = p.leaving()
	for _, n := range p.in.Snapshot.Nodes {
		if p.settling(n) {
			m.Closed[n.Key()] = true
		}
	}
	var err error
	t.r, err = scheduling.NewRearranger(scheduling.Input{
		Snapshot: p.in.Snapshot, Fleet: p.in.Fleet, Types: p.in.Types, NotReady: p.in.NotReady, Exclusions: p.in.Exclusions,
	}, m)
	p.tries = t
	return err
}

// settling says whether consolidateAfter has not passed yet on a node: such a
// node takes no pods of candidates (Karpenter: IsUnderConsolidateAfter).
func (p *pass) settling(n *cluster.Node) bool {
	if n.Claim == nil || !n.Initialized() {
		return false
	}
	np := p.in.Fleet.NodePool(n.Claim.NodePool)
	if np == nil {
		return false
	}
	until, on := settles(np, n)
	return on && *np.Spec.Disruption.ConsolidateAfter.Duration > 0 && until.After(p.now)
}

// leaving are the pods of nodes that are being removed and that will need
// another place, unless they are among the pending ones already or may not be
// evicted now.
func (p *pass) leaving() []*cluster.Pod {
	waiting := map[string]bool{}
	for _, pod := range p.in.Snapshot.Pending {
		waiting[pod.Key()] = true
	}
	var out []*cluster.Pod
	for _, n := range p.in.Snapshot.Nodes {
		if !isRemoved(n) {
			continue
		}
		for _, pod := range n.Pods {
			if !waiting[pod.Key()] && p.leaves(pod, p.now) {
				out = append(out, pod)
			}
		}
	}
	return out
}

func (p *pass) leaves(pod *cluster.Pod, now time.Time) bool {
	return reschedulable(pod) && !doNotDisrupt(pod, now) && p.pdbs.blocks(pod, now) == ""
}

// allowed says whether budgets let the set go at once, and whether it is not
// too large.
func (t *tries) allowed(set []int) bool {
	if most := t.p.in.Most; most > 0 && len(set) > most {
		return false
	}
	count := map[string]int{}
	for _, i := range set {
		pool := t.nodes[i].NodePool.Name
		if count[pool]++; count[pool] > t.allowance.left[pool] {
			return false
		}
	}
	return true
}

// of is the move that removes the set, or nil when it does not work.
func (t *tries) of(set []int) *move {
	key := setKey(set)
	if m, ok := t.known[key]; ok {
		return m
	}
	m, _ := t.attempt(set)
	t.known[key] = m
	return m
}

func setKey(set []int) string {
	b := make([]byte, 0, 2*len(set))
	for _, i := range set {
		b = binary.BigEndian.AppendUint32(b, uint32(i))
	}
	return string(b)
}

// attempt works the removal of a set out. When it does not work, why is empty
// if finding out would cost more than it is worth: see explain.
func (t *tries) attempt(set []int) (m *move, why string) {
	m = &move{set: slices.Clone(set)}
	for _, i := range set {
		m.nodes = append(m.nodes, t.nodes[i])
	}
	m.rearranged = t.r.Remove(set)
	m.savings = priceOfAll(m.nodes)
	switch {
	case m.rearranged.NewNodes > 1:
		return nil, ""
	case len(m.rearranged.Leans) > 0:
		return nil, "Would schedule against uninitialized " + strings.Join(m.rearranged.Leans, ", ")
	case m.rearranged.NewNodes == 1:
		if m.rearranged.Draft.Price() >= m.savings {
			// Unless the reason is another one, which replace knows.
			if len(set) > 1 {
				return nil, tooDear
			}
		}
		if m.replacement, why = t.p.replace(m.nodes, m.rearranged.Draft); m.replacement == nil {
			return nil, why
		}
		m.savings -= m.replacement.planned.Offering.Price
	}
	if why := t.p.balance.refuses(m); why != "" {
		return nil, why
	}
	return m, ""
}

// better says whether a is to be preferred: it saves more, or disrupts fewer
// nodes, or makes none, or comes first by names.
func (a *move) better(b *move) bool {
	if b == nil {
		return true
	}
	return cmp.Or(
		cmp.Compare(b.savings, a.savings), cmp.Compare(len(a.nodes), len(b.nodes)),
		cmp.Compare(a.rearranged.NewNodes, b.rearranged.NewNodes), slices.Compare(a.names(), b.names()),
	) < 0
}

func (a *move) names() []string {
	var out []string
	for _, c := range a.nodes {
		out = append(out, c.Node.Key())
	}
	slices.Sort(out)
	return out
}

func (t *tries) command(method Method, m *move) *Command {
	out := newCommand(method, m.nodes, t.allowance)
	out.Placements = m.rearranged.Placements()
	out.Savings = m.savings
	if m.replacement != nil {
		out.Claims = []*scheduling.Claim{m.replacement.claim()}
	}
	out.Steps = t.r.Steps()
	return out
}
