package pipeline

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/disruption"
	"github.com/reeve-project/reeve/reconciler/policy"
)

// disruptEvery is how often wasteful nodes are looked for (Karpenter,
// pkg/controllers/disruption/controller.go, pollingPeriod).
const disruptEvery = 10 * time.Second

// disrupt looks for nodes to remove, if it is time.
func (p *Pipeline) disrupt(ctx context.Context, w *World) ([]*decision.Decision, error) {
	if w.Snapshot.Time.Sub(p.disrupted) < disruptEvery {
		return nil, nil
	}
	p.disrupted = w.Snapshot.Time
	ds, err := w.Consolidate(ctx)
	if err != nil {
		return nil, err
	}
	p.tellBlocked(ctx, w)
	return slices.DeleteFunc(ds, p.underWay), nil
}

// tellBlocked has an event say why a node stays, when that is news.
func (p *Pipeline) tellBlocked(ctx context.Context, w *World) {
	told := make(map[disruption.Blocked]bool, len(w.blocked))
	for _, b := range w.blocked {
		told[b] = true
		if n := w.Snapshot.Node(b.Node); n != nil && n.Name != "" && !p.blocked[b] {
			p.Cluster.Event(ctx, "Node/"+n.Name, false, b.Reason, b.Message)
		}
	}
	p.blocked = told
}

// Consolidate proposes the next removal of empty or wasteful nodes and lets the
// policies judge it, in rounds: what they deny is left out and another is
// sought. It is one decision or none.
func (w *World) Consolidate(ctx context.Context) ([]*decision.Decision, error) {
	n, err := w.newDisruption(ctx)
	if err != nil {
		return nil, err
	}
	var first *decision.Decision
	for round, left := 0, maxRounds; left > 0; round++ {
		cmd, blocked, err := disruption.Propose(n.in)
		if err != nil {
			return nil, fmt.Errorf("consolidate: %w", err)
		}
		w.blocked = blocked
		if cmd == nil {
			break
		}
		d, err := n.proposal(cmd)
		if err != nil {
			return nil, err
		}
		most := n.in.Most
		objected, err := n.judge(ctx, d, round)
		if err != nil {
			return nil, err
		}
		if !objected {
			return w.conclude(n, d)
		}
		if n.in.Most == most {
			// Halving ends by itself, so it does not count.
			left--
		}
		if len(d.Verdict.Violations) > 0 {
			first = cmp.Or(first, d)
		}
	}
	// A proposal that was only excluded from is not denied, and must not be
	// mistaken for one that nobody objected to.
	if first == nil {
		return nil, nil
	}
	return w.conclude(n, first)
}

// conclude seals the decision with what was said on the way to it.
func (w *World) conclude(n *disruptionTalk, d *decision.Decision) ([]*decision.Decision, error) {
	d.Rounds, d.Evaluations = n.rounds, n.evaluations
	d.Verdict.Allowed = len(d.Verdict.Violations) == 0
	for _, pool := range n.pools(d) {
		d.Verdict.Exclusions = append(d.Verdict.Exclusions, n.offering.exclusions[pool]...)
		d.Verdict.Warnings = append(slices.Clone(n.offering.warnings[pool]), d.Verdict.Warnings...)
	}
	d.Summary = summarizeRemoval(d)
	d, err := w.finish(d)
	if err != nil {
		return nil, err
	}
	return []*decision.Decision{d}, nil
}

// disruptionTalk is propose and judge going back and forth about nodes to
// remove.
type disruptionTalk struct {
	w        *World
	in       disruption.Input
	offering *negotiation
	rounds   []decision.Round
	// evaluations are those of the decision stage, and of the offering stages
	// that had a part in it.
	evaluations []decision.Evaluation
}

func (w *World) newDisruption(ctx context.Context) (*disruptionTalk, error) {
	types, notReady, err := w.resolve()
	if err != nil {
		return nil, err
	}
	neg := newNegotiation(w, w.Snapshot, types, notReady)
	if err := neg.offerings(ctx); err != nil {
		return nil, err
	}
	neg.withholdShut()
	in := neg.input()
	return &disruptionTalk{w: w, offering: neg, in: disruption.Input{
		Snapshot: w.Snapshot, Fleet: in.Fleet, Types: in.Types, NotReady: in.NotReady, Exclusions: in.Exclusions, Denied: map[string]string{},
	}}, nil
}

// proposal turns a command of the engine into what is judged and recorded.
func (n *disruptionTalk) proposal(cmd *disruption.Command) (*decision.Decision, error) {
	lists := n.offering.lists
	p := decision.Proposal{
		Reason: cmd.Reason, Method: string(cmd.Method), Cost: -cmd.Savings, Lists: lists,
		Search: &decision.Search{Steps: cmd.Steps},
	}
	for _, c := range cmd.Nodes {
		node := nodeOf(c.Node, "")
		node.Price, node.DisruptionCostMilli = c.Price, c.CostMilli
		p.Nodes = append(p.Nodes, node)
		p.Search.Pods += len(c.Pods)
	}
	p.NodePool = commonPool(p.Nodes)
	for i, c := range cmd.Claims {
		pc := planned(c, lists)
		pc.Index = i
		p.Claims = append(p.Claims, pc)
	}
	for _, pl := range cmd.Placements {
		p.Placements = append(p.Placements, decision.Placement{Node: pl.Node, Pods: podGroups(pl.Pods)})
	}
	for _, b := range cmd.Budgets {
		p.Budgets = append(p.Budgets, decision.Budget{NodePool: b.NodePool, Reason: b.Reason, Allowed: b.Allowed, InUse: b.InUse, Unlimited: b.Unlimited})
	}
	if err := group(p.Claims); err != nil {
		return nil, err
	}
	return &decision.Decision{Kind: decision.Consolidate, Proposal: p}, nil
}

// commonPool is the NodePool of the nodes, empty if they have several.
func commonPool(nodes []decision.Node) string {
	pool := nodes[0].NodePool
	if slices.ContainsFunc(nodes, func(n decision.Node) bool { return n.NodePool != pool }) {
		return ""
	}
	return pool
}

// pools are the NodePools that the decision is about.
func (n *disruptionTalk) pools(d *decision.Decision) []string {
	set := map[string]bool{}
	for i := range d.Proposal.Claims {
		set[d.Proposal.Claims[i].NodePool] = true
	}
	return slices.Sorted(maps.Keys(set))
}

// judge lets the policies judge the proposal and says whether they object; what
// they object to is then left out of the next one.
func (n *disruptionTalk) judge(ctx context.Context, d *decision.Decision, round int) (bool, error) {
	res, err := n.w.judgeDecision(ctx, d, n.typesOf(d), round)
	if err != nil {
		return false, err
	}
	n.evaluations = append(n.evaluations, res.Evaluation)
	d.Verdict.Violations, d.Verdict.Warnings = res.Violations, res.Warnings
	excluded := false
	var exclusions []decision.Exclusion
	for _, pool := range n.pools(d) {
		before := len(n.offering.exclusions[pool])
		grew, err := n.offering.exclude(pool, res)
		if err != nil {
			return false, err
		}
		excluded = excluded || grew
		exclusions = append(exclusions, n.offering.exclusions[pool][before:]...)
	}
	if !excluded && len(res.Violations) == 0 {
		return false, nil
	}
	n.leaveOut(d, res.Violations)
	n.in.Exclusions = n.offering.excluded
	n.rounds = append(n.rounds, decision.Round{
		NodePool: d.Proposal.NodePool, Summary: afterColon(summarizeRemoval(d)), Denied: res.Violations, Excluded: exclusions,
	})
	return true, nil
}

// typesOf are the types that the replacement is chosen from, as policies see
// them.
func (n *disruptionTalk) typesOf(d *decision.Decision) *policy.Types {
	if pools := n.pools(d); len(pools) > 0 {
		return n.offering.judged(pools[0])
	}
	return nil
}

// leaveOut keeps out of the next proposal the nodes that findings name. A set
// that is denied without a name is tried again with half as many nodes.
func (n *disruptionTalk) leaveOut(d *decision.Decision, findings []decision.Finding) {
	nodes := d.Proposal.Nodes
	for _, f := range findings {
		i := slices.IndexFunc(nodes, func(o decision.Node) bool {
			return f.Resource == "Node/"+o.Name && o.Name != "" || f.Resource == "NodeClaim/"+o.Claim
		})
		switch {
		case i >= 0:
			n.in.Denied[nodes[i].Claim] = f.Rule
		case len(nodes) > 1:
			n.in.Most = len(nodes) / 2
		default:
			n.in.Denied[nodes[0].Claim] = f.Rule
		}
	}
}

// summarizeRemoval is a consolidation in one line:
// "consolidate(default): replace 3 nodes by 1 × c5a.4xlarge ap-northeast-2a, saves $0.086/h".
func summarizeRemoval(d *decision.Decision) string {
	p := &d.Proposal
	name := string(d.Kind)
	if p.NodePool != "" {
		name += "(" + p.NodePool + ")"
	}
	what := plural(len(p.Nodes), "node")
	if p.Method == string(disruption.Empty) {
		what = plural(len(p.Nodes), "empty node")
	}
	s := name + ": remove " + what
	if len(p.Claims) > 0 {
		s = name + ": replace " + what + " by " + countTypes(p.Claims)
	}
	s += fmt.Sprintf(", saves %s", -p.Cost)
	if len(d.Verdict.Violations) > 0 {
		s += ", denied by " + strings.Join(rules(d.Verdict.Violations), ", ")
	}
	return s
}

func afterColon(s string) string {
	_, after, _ := strings.Cut(s, ": ")
	return after
}
