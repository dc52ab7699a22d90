package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/lifecycle"
	"github.com/reeve-project/reeve/reconciler/port"
)

const (
	// A node that is being terminated gets no traffic from load balancers any
	// more (Karpenter, pkg/controllers/node/termination).
	excludeFromBalancers = corev1.LabelNodeExcludeBalancers
	excludedBy           = "karpenter"
)

var disruptedTaint = karpv1.DisruptedNoScheduleTaint

// remove ends the nodes of a decision that waits for nothing.
func (p *Pipeline) remove(ctx context.Context, snap *cluster.Snapshot, r *port.Record) error {
	var errs []error
	for _, n := range r.Decision.Proposal.Nodes {
		if r.Outcome.Ended(n.Claim) {
			continue
		}
		if err := p.terminate(ctx, snap, r, n.Claim); err != nil {
			errs = append(errs, fmt.Errorf("NodeClaim %s: %w", n.Claim, err))
		}
	}
	return errors.Join(errs...)
}

// terminate does what comes next in ending a claim and its node: taint, delete,
// drain, terminate the instance, and let go when it is gone. Where a more
// urgent decision ends the same node, this one only watches.
func (p *Pipeline) terminate(ctx context.Context, snap *cluster.Snapshot, r *port.Record, claim string) error {
	node := snap.NodeOf(claim)
	if node == nil {
		p.step(r, decision.Step{Time: snap.Time, State: decision.Terminated, Claim: claim})
		return nil
	}
	if node.Removing != "" && node.Removing != r.Decision.ID {
		return nil
	}
	if err := p.taint(ctx, snap, r, node); err != nil {
		return err
	}
	if !node.Claim.Deleting {
		if err := p.Cluster.DeleteClaim(ctx, claim); err != nil && !isGone(err) {
			return fmt.Errorf("delete: %w", err)
		}
	}
	going := asDeleted(node, r, snap.Time)
	if lifecycle.Next(going, lifecycle.EvidenceOf(snap, node), snap.Time).Action == lifecycle.Evacuate {
		done, err := p.drain(ctx, snap, r, going)
		if err != nil || !done {
			return err
		}
		going = asDeleted(node, r, snap.Time)
	}
	return p.end(ctx, snap, r, going)
}

// asDeleted is the node as it is once its claim has been deleted, at that
// instant if it was not before. It is drained when the outcome says so.
func asDeleted(n *cluster.Node, r *port.Record, now time.Time) *cluster.Node {
	out, claim := *n, *n.Claim
	out.Claim, out.Deleting = &claim, true
	if out.DeletedAt.IsZero() {
		out.DeletedAt = now
	}
	claim.Conditions.Drained = r.Outcome.Has(n.Key(), decision.Drained)
	return &out
}

// taint keeps pods and load balancers off a node that is going.
func (p *Pipeline) taint(ctx context.Context, snap *cluster.Snapshot, r *port.Record, node *cluster.Node) error {
	key := node.Key()
	if node.Name == "" || r.Outcome.Has(key, decision.Tainted) {
		return nil
	}
	if err := p.Cluster.Taint(ctx, node.Name, disruptedTaint); err != nil && !isGone(err) {
		return fmt.Errorf("taint node %s: %w", node.Name, err)
	}
	p.step(r, decision.Step{Time: snap.Time, State: decision.Tainted, Claim: key, Node: node.Name})
	return nil
}

// drain evicts the pods of the node, tier by tier, and says whether none is
// left that it waits for.
func (p *Pipeline) drain(ctx context.Context, snap *cluster.Snapshot, r *port.Record, node *cluster.Node) (bool, error) {
	key := node.Key()
	if err := p.Cluster.Label(ctx, node.Name, excludeFromBalancers, excludedBy); err != nil && !isGone(err) {
		return false, fmt.Errorf("label node %s: %w", node.Name, err)
	}
	pods, err := p.Cluster.Pods(ctx, node.Name)
	if err != nil {
		return false, fmt.Errorf("pods of node %s: %w", node.Name, err)
	}
	next := lifecycle.NextDrain(node, pods, snap.Time)
	if err := p.evict(ctx, next); err != nil {
		return false, err
	}
	if !next.Drained {
		return false, nil
	}
	if err := p.Cluster.SetCondition(ctx, key, port.Condition{Type: karpv1.ConditionTypeDrained, True: true}); err != nil && !isGone(err) {
		return false, fmt.Errorf("condition %s: %w", karpv1.ConditionTypeDrained, err)
	}
	p.step(r, decision.Step{Time: snap.Time, State: decision.Drained, Claim: key, Node: node.Name})
	return true, nil
}

// evict asks for the evictions and deletions that are due. One that a budget
// holds up comes again in the next pass.
func (p *Pipeline) evict(ctx context.Context, d lifecycle.Drain) error {
	var errs []error
	for _, pod := range d.Evict {
		if err := p.Cluster.Evict(ctx, pod); err != nil && !isGone(err) && !errors.Is(err, port.ErrBlocked) {
			errs = append(errs, fmt.Errorf("evict pod %s: %w", pod.Key(), err))
		}
	}
	for _, f := range d.Delete {
		if err := p.Cluster.DeletePod(ctx, f.Pod, f.Grace); err != nil && !isGone(err) {
			errs = append(errs, fmt.Errorf("delete pod %s: %w", f.Pod.Key(), err))
		}
	}
	return errors.Join(errs...)
}

// end terminates the instance of a drained node and, once EC2 says that it is
// gone, lets claim and node go. Instances are terminated together when the
// pass ends.
func (p *Pipeline) end(ctx context.Context, snap *cluster.Snapshot, r *port.Record, node *cluster.Node) error {
	key, id := node.Key(), instanceID(node.Claim.ProviderID)
	if lifecycle.Next(node, lifecycle.EvidenceOf(snap, node), snap.Time).Action != lifecycle.Finalize {
		if !p.instances.terminating(id) || !node.Claim.Conditions.InstanceTerminating {
			p.ending = append(p.ending, ending{instance: id, claim: key})
		}
		return nil
	}
	if err := p.Cluster.Finalize(ctx, key); err != nil && !isGone(err) {
		return fmt.Errorf("finalize: %w", err)
	}
	p.step(r, decision.Step{Time: snap.Time, State: decision.Terminated, Claim: key, Node: node.Name, Instance: id})
	return nil
}

// ending is an instance to terminate when the pass ends.
type ending struct{ instance, claim string }

// flush terminates the instances of the pass in one call.
func (p *Pipeline) flush(ctx context.Context) error {
	if len(p.ending) == 0 {
		return nil
	}
	all := p.ending
	p.ending = nil
	ids := make([]string, len(all))
	for i, e := range all {
		ids[i] = e.instance
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	ended, err := p.endInstances(ctx, ids)
	p.instances.end(ended)
	errs := []error{err}
	for _, e := range all {
		if e.claim == "" || !slices.Contains(ended, e.instance) {
			continue
		}
		err := p.Cluster.SetCondition(ctx, e.claim, port.Condition{Type: karpv1.ConditionTypeInstanceTerminating, True: true})
		if err != nil && !isGone(err) {
			errs = append(errs, fmt.Errorf("NodeClaim %s: condition %s: %w", e.claim, karpv1.ConditionTypeInstanceTerminating, err))
		}
	}
	return errors.Join(errs...)
}

// endInstances says which of the instances EC2 has taken our word for ending.
func (p *Pipeline) endInstances(ctx context.Context, ids []string) ([]string, error) {
	err := p.Cloud.Terminate(ctx, ids)
	var refused *port.TerminateError
	switch some := errors.As(err, &refused); {
	case err == nil, !some && isGone(err):
		return ids, nil
	case !some:
		return nil, fmt.Errorf("terminate %s: %w", plural(len(ids), "instance"), err)
	}
	err = fmt.Errorf("terminate %s of %d: %w", plural(len(refused.Instances), "instance"), len(ids), err)
	return slices.DeleteFunc(ids, func(id string) bool { return slices.Contains(refused.Instances, id) }), err
}

// reclaim terminates the instances of a reclaim that are still there.
func (p *Pipeline) reclaim(snap *cluster.Snapshot, r *port.Record) {
	for _, in := range r.Decision.Proposal.Instances {
		switch {
		case r.Outcome.Ended(in.ID):
		case p.instances.gone(in.ID):
			p.step(r, decision.Step{Time: snap.Time, State: decision.Terminated, Instance: in.ID})
		case claimed(snap, in.ID):
			p.step(r, decision.Step{Time: snap.Time, State: decision.Dropped, Instance: in.ID, Message: "a NodeClaim has the instance by now"})
		case !p.instances.terminating(in.ID):
			p.ending = append(p.ending, ending{instance: in.ID})
		}
	}
}

// claimed says whether a NodeClaim has the instance.
func claimed(snap *cluster.Snapshot, id string) bool {
	return slices.ContainsFunc(snap.Nodes, func(n *cluster.Node) bool {
		return n.Claim != nil && n.Claim.ProviderID != "" && instanceID(n.Claim.ProviderID) == id
	})
}

// untaintLeftovers takes the taint off nodes of ours that no decision removes:
// the one that did was dropped, or its leader died before it could clean up.
func (p *Pipeline) untaintLeftovers(ctx context.Context, snap *cluster.Snapshot) error {
	var errs []error
	for _, n := range snap.Nodes {
		if !isOurs(n) || n.Name == "" || n.Deleting || n.Removing != "" || !isDisrupted(n) {
			continue
		}
		if err := p.Cluster.Untaint(ctx, n.Name, disruptedTaint); err != nil && !isGone(err) {
			errs = append(errs, fmt.Errorf("untaint node %s: %w", n.Name, err))
		}
	}
	return errors.Join(errs...)
}

// isDisrupted says whether the node is tainted as one that is being removed.
func isDisrupted(n *cluster.Node) bool {
	return slices.ContainsFunc(n.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&disruptedTaint) })
}

// isOurs says whether a decision of Reeve made or adopted the claim of the node.
// Others may belong to a Karpenter that is running: it finishes what it or a
// person begins about them.
func isOurs(n *cluster.Node) bool { return n.Claim != nil && n.Claim.Decision != "" }
