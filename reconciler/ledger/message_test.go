package ledger

import (
	"fmt"
	"strings"
	"testing"

	"github.com/reeve-project/reeve/reconciler/decision"
)

// A message names the nodes that go: three of them, and how many more.
func TestAMessageNamesTheNodesOfADecision(t *testing.T) {
	about := func(n int) *decision.Decision {
		d := &decision.Decision{ID: "d", Kind: decision.Consolidate, Summary: "consolidate: remove"}
		for i := range n {
			d.Proposal.Nodes = append(d.Proposal.Nodes, decision.Node{Claim: fmt.Sprintf("default-%d", i), Name: "ip"})
		}
		return d
	}
	for n, want := range map[int]string{
		1: "\n\nNode: default-0\n\n", 3: "\n\nNodes: default-0, default-1, default-2\n\n", 5: "\n\nNodes: default-0, default-1, default-2 and 2 more\n\n",
	} {
		if got := (&message{decisions: []*decision.Decision{about(n)}}).String(); !strings.Contains(got, want) {
			t.Errorf("%d nodes: %q does not contain %q", n, got, want)
		}
	}
	if got := (&message{decisions: []*decision.Decision{about(0)}}).String(); strings.Contains(got, "Node") {
		t.Errorf("no node: %q", got)
	}
	two := &message{decisions: []*decision.Decision{about(1), about(0)}}
	if got := two.String(); !strings.Contains(got, "* consolidate: remove\n  Node: default-0\n* consolidate: remove\n") {
		t.Errorf("two decisions: %q", got)
	}
}
