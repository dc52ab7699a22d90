package disruption

import (
	"fmt"
	"slices"

	"github.com/reeve-project/reeve/reconciler/scheduling"
)

// Previous is a command that has waited.
type Previous struct {
	// Method that found it.
	Method Method
	// Nodes are the keys of the nodes to remove.
	Nodes []string
	// Types are the names of the launchable types of its replacement; empty
	// for a deletion.
	Types []string
}

// Validate says what is left of a command now: of empty nodes those that still
// may go, of any other command all or nothing. A replacement keeps the types
// it was judged with; they have to be among those that would do today, and
// still be cheaper. The second result says why the command is dropped, when it
// is (Karpenter: validation.go).
func Validate(in Input, prev Previous) (*Command, string, error) {
	in.Most = 0
	p, err := newPass(in)
	if err != nil {
		return nil, "", err
	}
	only := map[string]bool{}
	for _, key := range prev.Nodes {
		only[key] = true
	}
	if prev.Method == Empty {
		nodes, a := p.emptyNodes(only)
		if len(nodes) == 0 {
			return nil, fmt.Sprintf("%d candidates are no longer valid%s", len(prev.Nodes), p.because(prev.Nodes)), nil
		}
		return newCommand(Empty, nodes, a), "", nil
	}
	if err := p.compile(); err != nil {
		return nil, "", err
	}
	cmd, why := p.tries.validate(prev, only)
	return cmd, why, nil
}

// because names the first of the nodes that is blocked, and why.
func (p *pass) because(keys []string) string {
	for _, b := range p.reasons(nil) {
		if slices.Contains(keys, b.Node) {
			return fmt.Sprintf(": %s: %s", b.Node, b.Message)
		}
	}
	return ""
}

func (t *tries) validate(prev Previous, only map[string]bool) (*Command, string) {
	var set []int
	for i, c := range t.nodes {
		if only[c.Node.Key()] {
			set = append(set, i)
		}
	}
	if gone := len(only) - len(set); gone > 0 || len(set) == 0 {
		return nil, fmt.Sprintf("%d candidates are no longer valid%s", gone, t.p.because(prev.Nodes))
	}
	if !t.allowed(set) {
		return nil, "a candidate can no longer be disrupted without violating budgets"
	}
	m := &move{set: set}
	for _, i := range set {
		m.nodes = append(m.nodes, t.nodes[i])
	}
	m.savings = priceOfAll(m.nodes)
	m.rearranged = t.r.Remove(set)
	if why := t.revalidate(m, prev); why != "" {
		return nil, why
	}
	return t.command(prev.Method, m), ""
}

// revalidate compares the simulation with what the command says.
func (t *tries) revalidate(m *move, prev Previous) string {
	r := m.rearranged
	switch {
	case r.NewNodes > 1:
		nodes, stuck := r.Explain()
		if stuck != "" {
			return "not all pods would schedule: " + stuck
		}
		return fmt.Sprintf("scheduling simulation produced new results: %d new nodes", nodes)
	case len(r.Leans) > 0:
		return fmt.Sprintf("would schedule against uninitialized %s", r.Leans[0])
	case (r.NewNodes == 1) != (len(prev.Types) > 0):
		return fmt.Sprintf("scheduling simulation produced new results: %d new nodes", r.NewNodes)
	case r.NewNodes == 0:
		return t.p.balance.refuses(m)
	}
	var why string
	if m.replacement, why = t.p.keep(m.nodes, r.Draft, prev.Types); why != "" {
		return why
	}
	m.savings -= m.replacement.planned.Offering.Price
	return t.p.balance.refuses(m)
}

// filterJudged is the step that leaves the types a replacement was judged with.
const filterJudged = "types of the command"

// keep is the replacement with those of the given types that still are cheaper.
func (p *pass) keep(nodes []*Candidate, d *scheduling.Draft, types []string) (*replacement, string) {
	kept := slices.DeleteFunc(slices.Clone(d.Options()), func(o scheduling.Option) bool { return !slices.Contains(types, o.Type.Name) })
	if len(kept) < len(types) {
		return nil, fmt.Sprintf("scheduling simulation produced new results: %d of %d types would do no more", len(types)-len(kept), len(types))
	}
	r := &replacement{draft: d, most: scheduling.MaxLaunchable}
	r.narrow(filterJudged, kept)
	if why := r.cheaperThan(kept, priceOfAll(nodes)); why != "" {
		return nil, why
	}
	r.pin(allSpot(nodes) && p.in.Fleet.Cluster.Engine.SpotToSpot)
	var ok bool
	if r.planned, ok = d.Planned(r.last()); !ok {
		return nil, tooDear
	}
	return r, ""
}
