package disruption

import (
	"cmp"
	"slices"

	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/resources"
	"github.com/reeve-project/reeve/reconciler/scheduling"
)

// Input is everything a command depends on.
type Input struct {
	// Snapshot of the cluster, sealed. Its pending pods are counted on to take
	// the room they need; pods of nodes that are being removed may be among
	// them or not.
	Snapshot *cluster.Snapshot
	// Fleet in force.
	Fleet *fleet.Fleet
	// Types by EC2NodeClass name as the catalog resolved them. A class that is
	// missing is not ready.
	Types map[string][]*catalog.InstanceType
	// NotReady says why a class has no types.
	NotReady map[string]string
	// Exclusions are the offerings that policy took out of the choice.
	Exclusions scheduling.Exclusions
	// Denied is by node key the rule that forbids removing the node. It grows
	// from round to round of propose and judge.
	Denied map[string]string
	// Most is how many nodes a command may have; 0 is no bound.
	Most int
}

// Method is how a command was found.
type Method string

// The methods, in the order in which they are tried.
const (
	// Empty removes nodes without pods that would have to move.
	Empty Method = "empty"
	// Multi removes several nodes, with or without a replacement.
	Multi Method = "multi"
	// Single removes or replaces one node.
	Single Method = "single"
)

// The reasons that budgets know. They are the values of Karpenter's
// DisruptionReason.
const (
	// ReasonEmpty is the reason of method Empty.
	ReasonEmpty = string(karpv1.DisruptionReasonEmpty)
	// ReasonUnderutilized is the reason of methods Multi and Single.
	ReasonUnderutilized = string(karpv1.DisruptionReasonUnderutilized)
	// ReasonDrifted is the reason of replacing drifted nodes.
	ReasonDrifted = string(karpv1.DisruptionReasonDrifted)
)

// Reason is the reason for which budgets allow the method.
func (m Method) Reason() string {
	if m == Empty {
		return ReasonEmpty
	}
	return ReasonUnderutilized
}

// Command is nodes to remove together.
type Command struct {
	// Method that found it.
	Method Method
	// Reason for budgets: "Empty" or "Underutilized".
	Reason string
	// Nodes to remove, the best first.
	Nodes []*Candidate
	// Claims is the node to make in their place, if any. It is no longer than
	// one.
	Claims []*scheduling.Claim
	// Placements are where pods of the nodes find room that there is already.
	// An empty node's pods, if it has any, are not looked at.
	Placements []scheduling.Placement
	// Budgets are those that bounded it, by NodePool.
	Budgets []Budget
	// Savings is the price of the nodes less that of the claim at its planned
	// offering.
	Savings resources.Price
	// Steps is the effort spent, the same on every machine.
	Steps int64
}

// Keys of the nodes to remove, in their order.
func (c *Command) Keys() []string {
	out := make([]string, len(c.Nodes))
	for i, n := range c.Nodes {
		out[i] = n.Node.Key()
	}
	return out
}

// The event reasons of Blocked, as Karpenter names them.
const (
	// EventBlocked is on nodes that must not be disrupted now.
	EventBlocked = "DisruptionBlocked"
	// EventUnconsolidatable is on nodes that nothing is saved by removing.
	EventUnconsolidatable = "Unconsolidatable"
)

// Blocked says why a node stays.
type Blocked struct {
	// Node is the key of the node.
	Node string
	// Reason is EventBlocked or EventUnconsolidatable.
	Reason string
	// Message is for people, in Karpenter's words where it has some.
	Message string
}

// Propose finds the next command, nil when there is nothing to do, and says of
// the nodes that were looked at and stay why they do. How far single nodes are
// looked at depends on what was found before. It fails on incomplete input
// only.
func Propose(in Input) (*Command, []Blocked, error) {
	p, err := newPass(in)
	if err != nil {
		return nil, nil, err
	}
	cmd := p.empty()
	if cmd == nil {
		if err := p.compile(); err != nil {
			return nil, nil, err
		}
		if cmd = p.multi(); cmd == nil {
			cmd = p.single()
		}
	}
	return cmd, p.reasons(cmd), nil
}

// reasons are why nodes stay that are not in the command, sorted by node.
func (p *pass) reasons(cmd *Command) []Blocked {
	chosen := map[string]bool{}
	if cmd != nil {
		for _, key := range cmd.Keys() {
			chosen[key] = true
		}
	}
	out := slices.DeleteFunc(slices.Clone(p.blocked), func(b Blocked) bool { return chosen[b.Node] })
	slices.SortFunc(out, func(a, b Blocked) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(out)
}

func (p *pass) block(n *cluster.Node, reason, message string) {
	p.blocked = append(p.blocked, Blocked{Node: n.Key(), Reason: reason, Message: message})
}
