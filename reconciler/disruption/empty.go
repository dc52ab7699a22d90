package disruption

import "fmt"

// allowance hands out what the budgets of each pool leave for one reason.
type allowance struct {
	budgets []Budget
	left    map[string]int
}

func (p *pass) allowance(reason string) *allowance {
	a := &allowance{budgets: Budgets(p.in.Snapshot, p.in.Fleet, reason), left: map[string]int{}}
	for _, b := range a.budgets {
		a.left[b.NodePool] = b.Left()
	}
	return a
}

// take uses one disruption of the pool, if one is left.
func (a *allowance) take(pool string) bool {
	if a.left[pool] <= 0 {
		return false
	}
	a.left[pool]--
	return true
}

// of are the budgets of the pools that the nodes are of.
func (a *allowance) of(nodes []*Candidate) []Budget {
	var out []Budget
	for _, b := range a.budgets {
		for _, c := range nodes {
			if c.NodePool.Name == b.NodePool {
				out = append(out, b)
				break
			}
		}
	}
	return out
}

func overBudget(reason string) string {
	return fmt.Sprintf("No allowed disruptions for disruption reason %s due to blocking budget", reason)
}

// empty removes all empty nodes at once, as far as budgets go (Karpenter:
// emptiness.go).
func (p *pass) empty() *Command {
	nodes, a := p.emptyNodes(nil)
	if len(nodes) == 0 {
		return nil
	}
	return newCommand(Empty, nodes, a)
}

// emptyNodes are the candidates that are empty and may go; only those of the
// given keys unless there are none.
func (p *pass) emptyNodes(only map[string]bool) ([]*Candidate, *allowance) {
	a := p.allowance(ReasonEmpty)
	var out []*Candidate
	for _, c := range p.candidates {
		if !c.Empty() || (only != nil && !only[c.Node.Key()]) {
			continue
		}
		if why := p.unconsolidatable(c, ReasonEmpty); why != "" {
			p.block(c.Node, EventUnconsolidatable, why)
			continue
		}
		if p.in.Most > 0 && len(out) == p.in.Most {
			break
		}
		if !a.take(c.NodePool.Name) {
			p.block(c.Node, EventBlocked, overBudget(ReasonEmpty))
			continue
		}
		out = append(out, c)
	}
	return out, a
}

func newCommand(m Method, nodes []*Candidate, a *allowance) *Command {
	out := &Command{Method: m, Reason: m.Reason(), Nodes: nodes, Budgets: a.of(nodes)}
	for _, c := range nodes {
		out.Savings += c.Price
	}
	return out
}
