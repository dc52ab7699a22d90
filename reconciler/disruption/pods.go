package disruption

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/cluster"
)

// reschedulable says whether a pod of a node needs another place when the node
// goes. A terminating pod of a StatefulSet does: its successor can only be made
// once it is gone (Karpenter: pkg/utils/pod, IsReschedulable).
func reschedulable(p *cluster.Pod) bool {
	kind := p.Shape.Owner.Kind
	return kind != "DaemonSet" && kind != "Node" && !p.Preempting && (!p.Terminating || kind == "StatefulSet")
}

// doNotDisrupt says whether the pod's annotation protects it now: "true", or a
// duration that has not passed since the pod started. What cannot be read does
// not protect (Karpenter: IsDoNotDisruptActive).
func doNotDisrupt(p *cluster.Pod, now time.Time) bool {
	value, ok := p.Shape.Annotations[karpv1.DoNotDisruptAnnotationKey]
	if !ok || p.Terminating {
		return false
	}
	if value == "true" {
		return true
	}
	d, err := time.ParseDuration(value)
	if err != nil || d <= 0 {
		return false
	}
	return p.Started.IsZero() || now.Sub(p.Started) < d
}

// unreadable says of an annotation that is ignored why it is.
func unreadable(p *cluster.Pod) string {
	value, ok := p.Shape.Annotations[karpv1.DoNotDisruptAnnotationKey]
	if d, err := time.ParseDuration(value); !ok || value == "true" || (err == nil && d > 0) {
		return ""
	}
	return fmt.Sprintf("Invalid %s annotation of pod %s is ignored: %q is neither \"true\" nor a positive duration", karpv1.DoNotDisruptAnnotationKey, p.Key(), value)
}

// A thousandth of the cost of evicting a pod is a unit; one pod costs 1000.
const (
	milli = 1000
	// baseCost is the cost of disrupting a node without pods (Karpenter:
	// PerNodeBaseDisruptionCost).
	baseCost = milli
	// The clamp on one pod's cost.
	mostPodCost = 10 * milli
)

// evictionCost is the cost of evicting the pod in thousandths: one, plus its
// pod-deletion-cost by 2^27, plus its priority by 2^25, within ten either way.
// It is rounded up, so that what costs anything is never free (Karpenter:
// pkg/utils/disruption, EvictionCost).
func evictionCost(sh *cluster.Shape) int64 {
	const unit = 1 << 27
	sum := int64(unit)
	if text, ok := sh.Annotations[corev1.PodDeletionCost]; ok {
		if n, err := strconv.ParseInt(text, 10, 32); err == nil {
			sum += n
		}
	}
	sum += int64(sh.Priority) * 4
	up := sum * milli
	cost := up / unit
	if up > 0 && up%unit != 0 {
		cost++
	}
	return min(max(cost, -mostPodCost), mostPodCost)
}

// rescheduleCost is the cost of disrupting a node with these reschedulable pods
// in thousandths (Karpenter: RescheduleDisruptionCost).
func rescheduleCost(pods []*cluster.Pod) int64 {
	sum := int64(baseCost)
	for _, p := range pods {
		sum += max(evictionCost(p.Shape), 0)
	}
	return sum
}

// budgets of pods, by shape: which PodDisruptionBudgets select the pod.
type podBudgets struct {
	list      []*cluster.PodDisruptionBudget
	selectors []labels.Selector
	byShape   map[*cluster.Shape][]*cluster.PodDisruptionBudget
}

func newPodBudgets(s *cluster.Snapshot) *podBudgets {
	out := &podBudgets{list: s.Budgets, byShape: map[*cluster.Shape][]*cluster.PodDisruptionBudget{}}
	for _, b := range s.Budgets {
		selector, err := metav1.LabelSelectorAsSelector(b.Selector)
		if err != nil {
			// The API server refuses such a selector; matching everything can
			// only keep nodes.
			selector = labels.Everything()
		}
		out.selectors = append(out.selectors, selector)
	}
	return out
}

func (b *podBudgets) of(sh *cluster.Shape) []*cluster.PodDisruptionBudget {
	found, known := b.byShape[sh]
	if !known {
		for i, pdb := range b.list {
			if pdb.Namespace == sh.Namespace && b.selectors[i].Matches(labels.Set(sh.Labels)) {
				found = append(found, pdb)
			}
		}
		b.byShape[sh] = found
	}
	return found
}

// blocks says why the budgets do not let the pod be evicted, or is empty
// (Karpenter: pkg/utils/pdb, isEvictable).
func (b *podBudgets) blocks(p *cluster.Pod, now time.Time) string {
	if p.Terminating || p.Preempting || p.Shape.Owner.Kind == "Node" || doNotDisrupt(p, now) || toleratesDisrupted(p.Shape) {
		return ""
	}
	matching := b.of(p.Shape)
	if len(matching) > 1 {
		keys := make([]string, len(matching))
		for i, pdb := range matching {
			keys[i] = pdb.Key()
		}
		return fmt.Sprintf("Eviction does not support multiple PDBs (PodDisruptionBudget(s)=[%s])", strings.Join(keys, " "))
	}
	for _, pdb := range matching {
		if pdb.Allowed <= 0 && (!pdb.AlwaysAllow || !p.Unready) {
			return fmt.Sprintf("Pdb prevents pod evictions (PodDisruptionBudget=[%s])", pdb.Key())
		}
	}
	return ""
}

// toleratesDisrupted says whether the drain of a node leaves the pod alone.
func toleratesDisrupted(sh *cluster.Shape) bool {
	taint := &karpv1.DisruptedNoScheduleTaint
	return slices.ContainsFunc(sh.Tolerations, func(t corev1.Toleration) bool {
		if (t.Key != "" && t.Key != taint.Key) || (t.Effect != "" && t.Effect != taint.Effect) {
			return false
		}
		return t.Operator == corev1.TolerationOpExists || (t.Key != "" && t.Value == taint.Value)
	})
}
