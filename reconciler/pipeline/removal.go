package pipeline

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/port"
)

// removal is a proposal to remove one node that is going anyway: its instance
// is taken, it was deleted, or it never became a node.
type removal struct {
	kind decision.Kind
	node *cluster.Node
	// reason is a word for machines, detail the same for people.
	reason, detail string
	// interruption is the message that it answers, if it does.
	interruption *decision.Interruption
}

// propose judges the removal. There is nothing to negotiate: one node goes, or
// policy says it must not.
func (w *World) propose(ctx context.Context, r removal) (*decision.Decision, error) {
	d := &decision.Decision{
		Kind:    r.kind,
		Summary: fmt.Sprintf("%s(%s): %s", r.kind, r.node.Key(), oneLine(r.detail)),
		Proposal: decision.Proposal{
			Reason: r.reason, Nodes: []decision.Node{nodeOf(r.node, r.detail)}, Interruption: r.interruption,
		},
	}
	if c := r.node.Claim; c != nil {
		d.Proposal.NodePool, d.Proposal.Cost = c.NodePool, -c.Price
	}
	res, err := w.judgeDecision(ctx, d, nil, 0)
	if err != nil {
		return nil, err
	}
	d.Verdict = decision.Verdict{Allowed: len(res.Violations) == 0, Violations: res.Violations, Warnings: res.Warnings}
	d.Evaluations = append(d.Evaluations, res.Evaluation)
	return w.finish(d)
}

// nodeOf is a node as proposals name it.
func nodeOf(n *cluster.Node, detail string) decision.Node {
	out := decision.Node{Name: n.Name, ProviderID: n.ProviderID, Pods: podGroups(n.Pods), Detail: detail}
	if c := n.Claim; c != nil {
		out.Claim, out.NodePool, out.InstanceType, out.Zone, out.CapacityType = c.Name, c.NodePool, c.InstanceType, c.Zone, c.CapacityType
		out.ProviderID, out.Price = c.ProviderID, c.Price
	}
	return out
}

// Delete proposes to finish what a person has begun: a NodeClaim or node of
// ours that is being deleted and that no open decision removes.
func (w *World) Delete(ctx context.Context) ([]*decision.Decision, error) {
	var out []*decision.Decision
	for _, n := range w.Snapshot.Nodes {
		if !isOurs(n) || !n.Deleting || n.Removing != "" || instanceEnds(n) {
			continue
		}
		r := removal{kind: decision.Delete, node: n, reason: "deleted", detail: "the NodeClaim or its node was deleted by someone else"}
		if w.Fleet.NodePool(n.Claim.NodePool) == nil {
			// Its objects go with it, since it owns them.
			r.reason, r.detail = "nodepool_removed", fmt.Sprintf("NodePool %q is not in the fleet of spec commit %.8s any more", n.Claim.NodePool, w.Fleet.Commit)
		}
		d, err := w.propose(ctx, r)
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}

// An instance may belong to no claim for that long: its claim may not be
// written yet (Karpenter, pkg/controllers/nodeclaim/garbagecollection).
const orphanAge = 30 * time.Second

// Reclaim proposes to terminate instances of the cluster that belong to no
// NodeClaim.
func (w *World) Reclaim(ctx context.Context) ([]*decision.Decision, error) {
	d := &decision.Decision{Kind: decision.Reclaim, Proposal: decision.Proposal{Reason: "orphaned"}}
	for _, in := range w.Snapshot.Orphans {
		if w.Snapshot.Time.Sub(in.Launched) <= orphanAge {
			continue
		}
		d.Proposal.Instances = append(d.Proposal.Instances, decision.Instance{
			ID: in.ID, InstanceType: in.InstanceType, Zone: in.Zone, CapacityType: in.CapacityType, Claim: in.Claim, Decision: in.Decision,
		})
	}
	n := len(d.Proposal.Instances)
	if n == 0 {
		return nil, nil
	}
	d.Summary = fmt.Sprintf("reclaim: %s without NodeClaim: %s", plural(n, "instance"), d.Proposal.Instances[0].ID)
	if n > 1 {
		d.Summary += fmt.Sprintf(" and %d more", n-1)
	}
	res, err := w.judgeDecision(ctx, d, nil, 0)
	if err != nil {
		return nil, err
	}
	d.Verdict = decision.Verdict{Allowed: len(res.Violations) == 0, Violations: res.Violations, Warnings: res.Warnings}
	d.Evaluations = append(d.Evaluations, res.Evaluation)
	if d, err = w.finish(d); err != nil {
		return nil, err
	}
	return []*decision.Decision{d}, nil
}

// Interrupt proposes to give up the nodes whose instances AWS takes or stops:
// one decision for each, whatever the number of messages.
func (w *World) Interrupt(ctx context.Context) ([]*decision.Decision, error) {
	var out []*decision.Decision
	if len(w.Snapshot.Interruptions) == 0 {
		return nil, nil
	}
	byInstance := ownInstances(w.Snapshot)
	for _, m := range w.Snapshot.Interruptions {
		n := byInstance[m.Instance]
		if n == nil || n.Deleting || !takes(m) {
			continue
		}
		delete(byInstance, m.Instance)
		d, err := w.propose(ctx, removal{
			kind: decision.Interrupt, node: n, reason: reasonOf(m), detail: m.Kind + actionOf(m),
			interruption: &decision.Interruption{Kind: m.Kind, Message: m.Message, Instance: m.Instance, Time: m.Time, Action: m.Action},
		})
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}

func actionOf(m cluster.Interruption) string {
	if m.Action == "" {
		return ""
	}
	return " (" + m.Action + ")"
}

// takes says whether the message means that the instance goes; a
// recommendation does not.
func takes(m cluster.Interruption) bool { return m.Kind != cluster.RebalanceRecommendation }

// reasonOf is Karpenter's word for the kind of message
// (karpenter-provider-aws, pkg/controllers/interruption/messages).
func reasonOf(m cluster.Interruption) string {
	switch m.Kind {
	case cluster.SpotInterruption:
		return "spot_interrupted"
	case cluster.HealthEvent:
		return "scheduled_change"
	case cluster.ReservationInterruption:
		return "capacity_reservation_interrupted"
	case cluster.StateChange:
		if m.Action == "stopping" || m.Action == "stopped" {
			return "instance_stopped"
		}
		return "instance_terminated"
	default:
		return "interrupted"
	}
}

// interrupted are the keys of the nodes that an allowed interruption takes in
// this pass.
func (w *World) interrupted(ctx context.Context) (map[string]bool, error) {
	ds, err := w.Interrupt(ctx)
	if err != nil {
		return nil, err
	}
	out := map[string]bool{}
	for _, d := range ds {
		if d.Verdict.Allowed {
			out[d.Proposal.Nodes[0].Claim] = true
		}
	}
	return out, nil
}

// removes says whether decisions of the kind take nodes away.
func removes(k decision.Kind) bool {
	return slices.Contains([]decision.Kind{
		decision.Consolidate, decision.Drift, decision.Expire, decision.Interrupt, decision.Repair, decision.Liveness, decision.Delete,
	}, k)
}

// urgency orders the kinds that remove nodes: the one that a node is going by
// when several decisions are about it.
func urgency(k decision.Kind) int {
	switch k {
	case decision.Interrupt:
		return 3
	case decision.Delete, decision.Liveness:
		return 2
	default:
		return 1
	}
}

// markRemoving notes on each node which open decision removes it.
func markRemoving(snap *cluster.Snapshot, open []*port.Record) {
	best := map[string]int{}
	for _, r := range open {
		d := r.Decision
		if !removes(d.Kind) {
			continue
		}
		for _, n := range d.Proposal.Nodes {
			key := cmp.Or(n.Claim, n.Name)
			node := snap.NodeOf(key)
			if node == nil || r.Outcome.Ended(key) || urgency(d.Kind) <= best[key] {
				continue
			}
			node.Removing, best[key] = d.ID, urgency(d.Kind)
		}
	}
}
