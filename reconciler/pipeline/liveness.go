package pipeline

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/lifecycle"
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

// Liveness proposes and judges the removal of claims that did not become nodes,
// because EC2 had no capacity or a time-out has passed, and of nodes whose
// instance is gone.
func (w *World) Liveness(ctx context.Context) ([]*decision.Decision, error) {
	var out []*decision.Decision
	for _, n := range w.Snapshot.Nodes {
		why := lost(w.Snapshot, n)
		if why == "" {
			continue
		}
		reason, _, _ := strings.Cut(why, ":")
		d, err := w.propose(ctx, removal{kind: decision.Liveness, node: n, reason: reason, detail: why})
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}

// reasonInstanceGone is the reason of a node whose instance was ended outside
// (Karpenter, pkg/controllers/nodeclaim/garbagecollection).
const reasonInstanceGone = "instance_gone"

// lost is why a claim will not become a node, empty if it may still.
func lost(s *cluster.Snapshot, n *cluster.Node) string {
	if !isOurs(n) || n.Removing != "" {
		return ""
	}
	// One that is being deleted and has not registered is nobody else's to end:
	// Delete leaves nodes without an instance to this.
	if instanceIsGone(n) && !n.Ready && (n.Claim.Conditions.Registered || n.Deleting) {
		return reasonInstanceGone + ": EC2 has ended instance " + instanceID(n.Claim.ProviderID) + " and its node does not answer"
	}
	if n.Deleting || n.Claim.Conditions.Registered {
		return ""
	}
	if step := lifecycle.Next(n, lifecycle.EvidenceOf(s, n), s.Time); step.Action == lifecycle.GiveUp || step.Action == lifecycle.TimeOut {
		return step.Reason + ": " + step.Message
	}
	return ""
}

// instanceID is the last part of "aws:///<zone>/<instance id>".
func instanceID(providerID string) string {
	return providerID[strings.LastIndex(providerID, "/")+1:]
}
