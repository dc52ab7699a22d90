package pipeline

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/catalog"
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

// forPolicies are instance types in the form that policies see.
func forPolicies(types []*catalog.InstanceType) (*policy.Types, error) {
	out := make([]policy.InstanceType, 0, len(types))
	for _, t := range types {
		it := policy.InstanceType{Name: t.Name, Labels: t.Requirements.Labels(), Capacity: t.Capacity, Allocatable: t.Allocatable, Offerings: []policy.Offering{}}
		for _, o := range t.Offerings {
			it.Offerings = append(it.Offerings, policy.Offering{Zone: o.Zone, CapacityType: o.CapacityType, Price: o.Price})
		}
		slices.SortFunc(it.Offerings, func(a, b policy.Offering) int {
			return cmp.Or(cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.CapacityType, b.CapacityType))
		})
		out = append(out, it)
	}
	return policy.NewTypes(out)
}
