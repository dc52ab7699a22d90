package pipeline

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/lifecycle"
	"github.com/reeve-project/reeve/reconciler/port"
)

// Handover is the decision that a new leader begins with. No policy judges it:
// a rule that could forbid a leader could stop the record of everything else.
func Handover(clusterName, identity string, epoch int64, now time.Time) *decision.Decision {
	return &decision.Decision{
		Kind: decision.Handover, Cluster: clusterName, Mode: fleet.Enforce, Time: now,
		Summary: fmt.Sprintf("handover: %s leads with epoch %d", identity, epoch),
		Verdict: decision.Verdict{Allowed: true},
		Proposal: decision.Proposal{
			Reason:   "a new leader has begun",
			Handover: &decision.Leader{Epoch: epoch, Previous: epoch - 1, Identity: identity},
		},
		Engine: decision.CurrentEngine(),
	}
}

// Liveness proposes and judges the removal of claims that did not become nodes:
// EC2 had no capacity, or a time-out has passed.
func (w *World) Liveness(ctx context.Context) ([]*decision.Decision, error) {
	var out []*decision.Decision
	for _, n := range w.Snapshot.Nodes {
		why := lost(w.Snapshot, n)
		if why == "" {
			continue
		}
		c := n.Claim
		reason, _, _ := strings.Cut(why, ":")
		d := &decision.Decision{
			Kind:    decision.Liveness,
			Summary: fmt.Sprintf("liveness(%s): %s", c.Name, oneLine(why)),
			Proposal: decision.Proposal{
				NodePool: c.NodePool, Reason: reason, Cost: -c.Price,
				Nodes: []decision.Node{{
					Name: n.Name, Claim: c.Name, NodePool: c.NodePool, InstanceType: c.InstanceType, Zone: c.Zone,
					CapacityType: c.CapacityType, ProviderID: c.ProviderID, Price: c.Price, Pods: podGroups(n.Pods), Detail: why,
				}},
			},
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
		out = append(out, d)
	}
	return out, nil
}

// lost is why a claim will not become a node, empty if it may still.
func lost(s *cluster.Snapshot, n *cluster.Node) string {
	if n.Claim == nil || n.Deleting || n.Claim.Decision == "" || n.Claim.Conditions.Registered {
		return ""
	}
	if step := lifecycle.Next(n, evidence(s, n), s.Time); step.Action == lifecycle.GiveUp || step.Action == lifecycle.TimeOut {
		return step.Reason + ": " + step.Message
	}
	return ""
}

// remove deletes the claims of a liveness decision with whatever was launched
// for them. No pod can be on them: they never were nodes that pods may go to.
func (p *Pipeline) remove(ctx context.Context, snap *cluster.Snapshot, r *port.Record) error {
	var errs []error
	for _, n := range r.Decision.Proposal.Nodes {
		if r.Outcome.Has(n.Claim, decision.Terminated) {
			continue
		}
		if err := p.removeOne(ctx, snap, n); err != nil {
			errs = append(errs, fmt.Errorf("NodeClaim %s: %w", n.Claim, err))
			continue
		}
		p.step(r, decision.Step{Time: snap.Time, State: decision.Terminated, Claim: n.Claim})
	}
	return errors.Join(errs...)
}

func (p *Pipeline) removeOne(ctx context.Context, snap *cluster.Snapshot, n decision.Node) error {
	if snap.Node(n.Claim) == nil {
		return nil
	}
	if err := p.Cluster.DeleteClaim(ctx, n.Claim); err != nil && !isGone(err) {
		return fmt.Errorf("delete: %w", err)
	}
	ids, err := p.instancesOf(ctx, n)
	if err != nil {
		return fmt.Errorf("list instances: %w", err)
	}
	if len(ids) > 0 {
		if err := p.Cloud.Terminate(ctx, ids); err != nil && !isGone(err) {
			return fmt.Errorf("terminate %s: %w", strings.Join(ids, ", "), err)
		}
	}
	if err := p.Cluster.Finalize(ctx, n.Claim); err != nil && !isGone(err) {
		return fmt.Errorf("finalize: %w", err)
	}
	return nil
}

// instancesOf are the instances of a claim: the one it names or, as a launch
// may have had no answer, those that carry its tag.
func (p *Pipeline) instancesOf(ctx context.Context, n decision.Node) ([]string, error) {
	if id := instanceID(n.ProviderID); id != "" {
		return []string{id}, nil
	}
	all, err := p.Cloud.Instances(ctx)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, in := range all {
		if in.Claim == n.Claim {
			ids = append(ids, in.ID)
		}
	}
	return ids, nil
}

// instanceID is the last part of "aws:///<zone>/<instance id>".
func instanceID(providerID string) string {
	return providerID[strings.LastIndex(providerID, "/")+1:]
}
