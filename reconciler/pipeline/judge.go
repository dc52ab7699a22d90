package pipeline

import (
	"context"
	"fmt"

	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/policy"
)

// judgeOffering asks what a NodePool must not choose from.
func (w *World) judgeOffering(ctx context.Context, pool *karpv1.NodePool, types *resolvedTypes) (policy.Result, error) {
	specs, err := w.caches.specsOf(w.Fleet)
	if err != nil {
		return policy.Result{}, err
	}
	query, err := specs.Query(pool.Name, w.Snapshot.NodeClass(pool.Spec.Template.Spec.NodeClassRef.Name), types.judged)
	if err != nil {
		return policy.Result{}, err
	}
	return w.Judge.Offering(ctx, policy.Case{Fleet: w.Fleet, Now: w.Snapshot.Time}, query)
}

// judgeDecision asks what policy says of a proposal.
func (w *World) judgeDecision(ctx context.Context, d *decision.Decision, types *policy.Types, round int) (policy.Result, error) {
	query, err := policy.NewDecisionQuery(policy.DecisionParts{
		Kind: d.Kind, Proposal: d.Proposal, Fleet: w.Fleet, Snapshot: w.Snapshot, Types: types,
	})
	if err != nil {
		return policy.Result{}, fmt.Errorf("judge %s: %w", d.Kind, err)
	}
	return w.Judge.Decision(ctx, policy.Case{Fleet: w.Fleet, Now: w.Snapshot.Time, Round: round}, query)
}
