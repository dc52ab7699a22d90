package cluster

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Covers says whether the pod counts under the budget. A selector that does
// not parse covers nothing, as in the API server.
func (b *PodDisruptionBudget) Covers(p *Pod) bool {
	return b.Namespace == p.Namespace && b.Matcher().Matches(labels.Set(p.Shape.Labels))
}

// Matcher is the selector of the budget; one that is missing or does not parse
// matches nothing.
func (b *PodDisruptionBudget) Matcher() labels.Selector {
	sel, err := metav1.LabelSelectorAsSelector(b.Selector)
	if err != nil {
		return labels.Nothing()
	}
	return sel
}

// BudgetsOf are the budgets that the pod counts under, in the snapshot's order.
func (s *Snapshot) BudgetsOf(p *Pod) []*PodDisruptionBudget {
	var out []*PodDisruptionBudget
	for _, b := range s.Budgets {
		if b.Covers(p) {
			out = append(out, b)
		}
	}
	return out
}

// Evictable says whether the API server would take an eviction of the pod now,
// as far as budgets go: none covers it, or one that allows it. More than one
// budget on a pod blocks every eviction (Kubernetes, pkg/registry/core/pod/storage/eviction.go).
func (s *Snapshot) Evictable(p *Pod) bool {
	bs := s.BudgetsOf(p)
	switch len(bs) {
	case 0:
		return true
	case 1:
		return bs[0].Allowed > 0 || bs[0].AlwaysAllow && p.Unready
	default:
		return false
	}
}
