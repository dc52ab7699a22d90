package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/port"
)

// validationWait is how long a removal must hold before it begins (Karpenter,
// pkg/controllers/disruption/validation.go).
const validationWait = 15 * time.Second

// consolidate does what comes next for a consolidation: wait, look and judge
// again, taint, replace, look once more, remove.
func (p *Pipeline) consolidate(ctx context.Context, snap *cluster.Snapshot, r *port.Record) error {
	if len(r.Outcome.Steps) == 0 {
		if snap.Time.Sub(r.Decision.Time) < validationWait {
			return nil
		}
		if p.outdated(snap, r.Decision) {
			p.leave(snap, r, decision.Abandoned, "nothing was begun before the specs changed or two minutes had passed")
			return nil
		}
		return p.confirm(ctx, snap, r)
	}
	if err := p.taintRest(ctx, snap, r, decision.Step{}); err != nil {
		return errors.Join(err, p.giveUp(ctx, snap, r, err))
	}
	if p.dirty[r.Decision.ID] {
		// The second judgement is recorded before anything follows from it.
		return nil
	}
	ready, err := p.replaced(ctx, snap, r)
	if err != nil || !ready {
		return err
	}
	var errs []error
	for _, n := range r.Decision.Proposal.Nodes {
		if r.Outcome.Ended(n.Claim) {
			continue
		}
		if err := p.removeQuiet(ctx, snap, r, n); err != nil {
			errs = append(errs, fmt.Errorf("NodeClaim %s: %w", n.Claim, err))
		}
	}
	return errors.Join(errs...)
}

// giveUp ends a decision that some node could not be tainted for in time: its
// replacement would never be made, and its pods would wait for that. What cannot
// be spared now is untainted as a leftover.
func (p *Pipeline) giveUp(ctx context.Context, snap *cluster.Snapshot, r *port.Record, cause error) error {
	if !p.outdated(snap, r.Decision) {
		return nil
	}
	err := p.rollBack(ctx, snap, r, decision.Failed, cause.Error())
	p.leave(snap, r, decision.Failed, cause.Error())
	return err
}

// leave ends every part of the decision that has not ended.
func (p *Pipeline) leave(snap *cluster.Snapshot, r *port.Record, state decision.State, why string) {
	subjects := r.Decision.Subjects()
	if len(subjects) == 0 {
		subjects = []string{""}
	}
	for _, s := range subjects {
		if !r.Outcome.Ended(s) {
			p.step(r, decision.Step{Time: snap.Time, State: state, Claim: s, Message: why})
		}
	}
}

// confirm looks again after the wait. The second judgement is recorded with the
// first step that follows from it.
func (p *Pipeline) confirm(ctx context.Context, snap *cluster.Snapshot, r *port.Record) error {
	c, err := p.world(snap).Confirm(ctx, r.Decision)
	if err != nil {
		return err
	}
	judged := decision.Step{Violations: c.Violations, Evaluation: c.Evaluation}
	for _, n := range r.Decision.Proposal.Nodes {
		if why, ok := c.Drop[n.Claim]; ok {
			judged.Time, judged.State, judged.Claim, judged.Message = snap.Time, decision.Dropped, n.Claim, why
			p.step(r, judged)
			p.hold(snap, r, n.Claim)
			judged = decision.Step{}
		}
	}
	return p.taintRest(ctx, snap, r, judged)
}

// taintRest taints the nodes that go, so that no pod comes to them any more,
// and looks whether one came just before: the API server is asked, and no
// cache (CASES C10; Karpenter does not look again).
func (p *Pipeline) taintRest(ctx context.Context, snap *cluster.Snapshot, r *port.Record, judged decision.Step) error {
	var errs []error
	for _, n := range r.Decision.Proposal.Nodes {
		node := snap.NodeOf(n.Claim)
		if node == nil || node.Deleting || r.Outcome.Ended(n.Claim) || r.Outcome.Has(n.Claim, decision.Tainted) {
			continue
		}
		why, err := p.taintQuiet(ctx, snap, r, node)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("NodeClaim %s: %w", n.Claim, err))
		case why != "" && len(r.Decision.Proposal.Claims) > 0:
			// The replacement was sized for other pods.
			return p.rollBack(ctx, snap, r, decision.Dropped, why)
		case why != "":
			errs = append(errs, p.spare(ctx, snap, r, n, decision.Dropped, why))
		default:
			judged.Time, judged.State, judged.Claim, judged.Node = snap.Time, decision.Tainted, n.Claim, node.Name
			p.step(r, judged)
			judged = decision.Step{}
		}
	}
	if p.allEnded(r) {
		p.leave(snap, r, decision.Dropped, "nothing is left to replace")
	}
	return errors.Join(errs...)
}

// taintQuiet taints the node and says why it must stay all the same.
func (p *Pipeline) taintQuiet(ctx context.Context, snap *cluster.Snapshot, r *port.Record, node *cluster.Node) (string, error) {
	if err := p.Cluster.Taint(ctx, node.Name, disruptedTaint); err != nil {
		return "", fmt.Errorf("taint node %s: %w", node.Name, err)
	}
	pods, err := p.Cluster.Pods(ctx, node.Name)
	if err != nil {
		return "", fmt.Errorf("pods of node %s: %w", node.Name, err)
	}
	if why := forbidden(snap, pods); why != "" {
		return why, nil
	}
	for _, pod := range pods {
		known := slices.ContainsFunc(node.Pods, func(o *cluster.Pod) bool { return o.UID == pod.UID })
		if !known && !pod.Preempting && pod.Reschedulable() {
			return "pod " + pod.Key() + " has come to the node meanwhile", nil
		}
	}
	cond := port.Condition{Type: karpv1.ConditionTypeDisruptionReason, True: true, Reason: r.Decision.Proposal.Reason}
	if err := p.Cluster.SetCondition(ctx, node.Key(), cond); err != nil {
		return "", fmt.Errorf("condition %s: %w", cond.Type, err)
	}
	return "", nil
}

// forbidden is the pod that forbids to remove its node, if one does.
func forbidden(snap *cluster.Snapshot, pods []*cluster.Pod) string {
	for _, pod := range pods {
		if active, _ := pod.DoNotDisrupt(snap.Time); active && !pod.Preempting {
			return "pod " + pod.Key() + " must not be disrupted (karpenter.sh/do-not-disrupt)"
		}
	}
	return ""
}

// replaced creates and follows the replacement and says whether it is ready. If
// it fails, the nodes stay.
func (p *Pipeline) replaced(ctx context.Context, snap *cluster.Snapshot, r *port.Record) (bool, error) {
	claims := r.Decision.Proposal.Claims
	if len(claims) == 0 || p.allEnded(r) {
		return len(claims) == 0, nil
	}
	if err := p.raise(ctx, snap, r); err != nil {
		return false, err
	}
	ready := true
	for i := range claims {
		if r.Outcome.Has(claims[i].Name, decision.Failed) {
			return false, p.rollBack(ctx, snap, r, decision.Failed, "the replacement "+claims[i].Name+" failed")
		}
		ready = ready && r.Outcome.Has(claims[i].Name, decision.Initialized)
	}
	return ready, nil
}

// allEnded says whether no node of the decision is left to remove.
func (p *Pipeline) allEnded(r *port.Record) bool {
	return !slices.ContainsFunc(r.Decision.Proposal.Nodes, func(n decision.Node) bool { return !r.Outcome.Ended(n.Claim) })
}

// rollBack lets pods on the nodes again. One that somebody else deletes is let
// go of, so that a decision of its own drains it: this one would wait for its
// replacement for ever.
func (p *Pipeline) rollBack(ctx context.Context, snap *cluster.Snapshot, r *port.Record, state decision.State, why string) error {
	var errs []error
	for _, n := range r.Decision.Proposal.Nodes {
		node := snap.NodeOf(n.Claim)
		switch {
		case r.Outcome.Ended(n.Claim):
		case node != nil && node.Deleting:
			p.step(r, decision.Step{Time: snap.Time, State: decision.Dropped, Claim: n.Claim, Node: n.Name, Message: "it is being deleted, and " + why})
		default:
			errs = append(errs, p.spare(ctx, snap, r, n, state, why))
		}
	}
	if p.allEnded(r) {
		p.leave(snap, r, decision.Dropped, "nothing is left to replace")
	}
	return errors.Join(errs...)
}

// spare takes the taint off a node that stays, and leaves it alone for a while.
func (p *Pipeline) spare(ctx context.Context, snap *cluster.Snapshot, r *port.Record, n decision.Node, state decision.State, why string) error {
	if err := p.release(ctx, n, why); err != nil {
		return err
	}
	p.step(r, decision.Step{Time: snap.Time, State: state, Claim: n.Claim, Node: n.Name, Message: why})
	p.hold(snap, r, n.Claim)
	return nil
}

// release takes the taint off a node, and the reason out of its claim.
func (p *Pipeline) release(ctx context.Context, n decision.Node, why string) error {
	if err := p.Cluster.Untaint(ctx, n.Name, disruptedTaint); err != nil && !isGone(err) {
		return fmt.Errorf("untaint node %s: %w", n.Name, err)
	}
	cond := port.Condition{Type: karpv1.ConditionTypeDisruptionReason, Reason: "Spared", Message: why}
	if err := p.Cluster.SetCondition(ctx, n.Claim, cond); err != nil && !isGone(err) {
		return fmt.Errorf("NodeClaim %s: condition %s: %w", n.Claim, cond.Type, err)
	}
	return nil
}

// removeQuiet removes a node unless a pod on it has come to forbid that.
func (p *Pipeline) removeQuiet(ctx context.Context, snap *cluster.Snapshot, r *port.Record, n decision.Node) error {
	node := snap.NodeOf(n.Claim)
	if node != nil && node.Name != "" && !node.Deleting && (node.Removing == "" || node.Removing == r.Decision.ID) {
		pods, err := p.Cluster.Pods(ctx, node.Name)
		if err != nil && !isGone(err) {
			return fmt.Errorf("pods of node %s: %w", node.Name, err)
		}
		if why := forbidden(snap, pods); why != "" {
			return p.spare(ctx, snap, r, n, decision.Dropped, why)
		}
	}
	return p.terminate(ctx, snap, r, n.Claim)
}
