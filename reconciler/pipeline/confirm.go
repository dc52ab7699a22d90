package pipeline

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/disruption"
	"github.com/reeve-project/reeve/reconciler/policy"
)

// Confirmation is what a second look, after the validation wait, says of a
// removal.
type Confirmation struct {
	// Keep are the claims of the nodes that may still go.
	Keep []string
	// Drop is, by claim, why a node stays.
	Drop map[string]string
	// Violations and Evaluation are the second judgement; there is none when
	// nothing was left to judge.
	Violations []decision.Finding
	Evaluation *decision.Evaluation
}

// previous is the command of a decision, as it is to be validated.
func previous(d *decision.Decision) (disruption.Previous, error) {
	out := disruption.Previous{Method: disruption.Method(d.Proposal.Method)}
	for _, node := range d.Proposal.Nodes {
		out.Nodes = append(out.Nodes, node.Claim)
	}
	for i := range d.Proposal.Claims {
		c := &d.Proposal.Claims[i]
		types, err := c.Launchable.Resolve(d.Proposal.Lists)
		if err != nil {
			return out, fmt.Errorf("claim %s: %w", c.Name, err)
		}
		out.Types = types
	}
	return out, nil
}

// Confirm proposes and judges a removal again, as the world is now.
func (w *World) Confirm(ctx context.Context, d *decision.Decision) (*Confirmation, error) {
	n, err := w.newDisruption(ctx)
	if err != nil {
		return nil, err
	}
	n.in.Snapshot = without(w.Snapshot, d.ID)
	prev, err := previous(d)
	if err != nil {
		return nil, err
	}
	cmd, why, err := disruption.Validate(n.in, prev)
	if err != nil {
		return nil, fmt.Errorf("validate: %w", err)
	}
	out := &Confirmation{Drop: map[string]string{}}
	for _, name := range prev.Nodes {
		out.Drop[name] = cmp.Or(why, "the node is no longer a candidate")
	}
	if cmd == nil {
		return out, nil
	}
	again, err := n.proposal(cmd)
	if err != nil {
		return nil, err
	}
	res, err := w.judgeDecision(ctx, again, n.typesOf(again), len(d.Rounds)+1)
	if err != nil {
		return nil, err
	}
	objections := rules(res.Violations)
	excluding, err := newlyExcluded(d, res)
	if err != nil {
		return nil, err
	}
	objections = append(objections, excluding...)
	out.Violations, out.Evaluation = res.Violations, &res.Evaluation
	for _, node := range again.Proposal.Nodes {
		if len(objections) > 0 {
			out.Drop[node.Claim] = "denied by " + strings.Join(objections, ", ") + " when it was judged again"
			continue
		}
		delete(out.Drop, node.Claim)
		out.Keep = append(out.Keep, node.Claim)
	}
	return out, nil
}

// newlyExcluded are the rules that, at the second judgement, exclude something
// that a replacement may still be launched as. What the first excluded is kept
// from the launch already.
func newlyExcluded(d *decision.Decision, res policy.Result) ([]string, error) {
	lists := maps.Clone(res.Lists)
	if lists == nil {
		lists = map[string][]string{}
	}
	maps.Copy(lists, d.Proposal.Lists)
	var out []string
	for i := range d.Proposal.Claims {
		c := &d.Proposal.Claims[i]
		launchable, err := c.Launchable.Resolve(d.Proposal.Lists)
		if err != nil {
			return nil, fmt.Errorf("claim %s: %w", c.Name, err)
		}
		before, err := newExcluded(d, c.NodePool)
		if err != nil {
			return nil, err
		}
		for _, x := range res.Exclusions {
			names, err := x.Types.Resolve(lists)
			if err != nil {
				return nil, fmt.Errorf("exclusion by %s: %w", x.Rule, err)
			}
			if x.NodePool != "" && x.NodePool != c.NodePool || x.CapacityType != "" && x.CapacityType != c.CapacityType {
				continue
			}
			if slices.ContainsFunc(names, func(name string) bool {
				return slices.Contains(launchable, name) && !before.has(decision.Offering{InstanceType: name, Zone: x.Zone, CapacityType: c.CapacityType})
			}) {
				out = append(out, x.Rule)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// without is the snapshot as if the decision did not remove its nodes.
func without(s *cluster.Snapshot, id string) *cluster.Snapshot {
	out := *s
	out.Nodes = slices.Clone(s.Nodes)
	for i, n := range out.Nodes {
		if n.Removing == id {
			c := *n
			c.Removing = ""
			out.Nodes[i] = &c
		}
	}
	return &out
}
