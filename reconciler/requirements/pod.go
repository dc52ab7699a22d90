package requirements

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// ErrMatchFields says that a required node affinity term selects nodes by
// field (matchFields) instead of by label, which this algebra does not express.
var ErrMatchFields = errors.New("node affinity with matchFields is not supported")

// PodTerms are the hard label requirements of a pod: its node selector together
// with each term of its required node affinity. The terms are alternatives: a
// node has to meet one of the sets. Without required affinity there is one set.
// A term without expressions matches no node and is left out, as in
// kube-scheduler, so the result can be empty: then no node fits. Preferred
// terms are not looked at. It fails with ErrMatchFields on matchFields, and as
// New does on a malformed expression.
func PodTerms(nodeSelector map[string]string, affinity *corev1.Affinity) ([]Set, error) {
	base := FromLabels(nodeSelector)
	if affinity == nil || affinity.NodeAffinity == nil ||
		affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return []Set{base}, nil
	}
	terms := affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	out := make([]Set, 0, len(terms))
	for i, term := range terms {
		if len(term.MatchFields) > 0 {
			return nil, fmt.Errorf("required node affinity term %d: %w", i, ErrMatchFields)
		}
		if len(term.MatchExpressions) == 0 {
			continue
		}
		s, err := FromNodeSelector(term.MatchExpressions)
		if err != nil {
			return nil, fmt.Errorf("required node affinity term %d: %w", i, err)
		}
		out = append(out, base.Merge(s))
	}
	return out, nil
}
