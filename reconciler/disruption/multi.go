package disruption

// mostNodes is how many nodes a command has at most (Karpenter:
// firstNConsolidationOption).
const mostNodes = 100

// multi finds several nodes whose pods fit on the rest and on at most one new
// node.
func (p *pass) multi() *Command {
	s := newSearch(p.tries)
	if best := s.run(); best != nil {
		return p.tries.command(Multi, best)
	}
	return nil
}
