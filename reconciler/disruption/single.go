package disruption

import (
	"cmp"
	"fmt"
	"slices"
)

// single takes the first node that can be removed or replaced by itself, the
// NodePools taking turns, and notes why the others cannot (Karpenter:
// singlenodeconsolidation.go).
func (p *pass) single() *Command {
	t := p.tries
	for _, i := range t.inTurns() {
		if why := p.balance.hopeless(t.nodes[i]); why != "" {
			p.block(t.nodes[i].Node, EventUnconsolidatable, why)
			continue
		}
		m, why := t.attempt([]int{i})
		if m != nil {
			return t.command(Single, m)
		}
		if why == "" {
			why = t.explain(i)
		}
		p.block(t.nodes[i].Node, EventUnconsolidatable, why)
	}
	return nil
}

// explain says why one new node would not do for the pods of a node.
func (t *tries) explain(i int) string {
	nodes, stuck := t.r.Remove([]int{i}).Explain()
	if stuck != "" {
		return "Not all pods would schedule: " + stuck
	}
	return fmt.Sprintf("Can't remove without creating %d candidates", nodes)
}

// inTurns are the candidates in their order, one of each NodePool after the
// other.
func (t *tries) inTurns() []int {
	byPool := map[string][]int{}
	var pools []string
	for i, c := range t.nodes {
		name := c.NodePool.Name
		if byPool[name] == nil {
			pools = append(pools, name)
		}
		byPool[name] = append(byPool[name], i)
	}
	slices.SortFunc(pools, cmp.Compare)
	out := make([]int, 0, len(t.nodes))
	for turn := 0; len(out) < len(t.nodes); turn++ {
		for _, name := range pools {
			if turn < len(byPool[name]) {
				out = append(out, byPool[name][turn])
			}
		}
	}
	return out
}
