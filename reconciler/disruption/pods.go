package disruption

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/cluster"
)

// reschedulable says whether a pod of a node needs another place when the node
// goes. One that the scheduler only makes room for is not on it yet.
func reschedulable(p *cluster.Pod) bool { return !p.Preempting && p.Reschedulable() }

func doNotDisrupt(p *cluster.Pod, now time.Time) bool {
	active, _ := p.DoNotDisrupt(now)
	return active
}

// unreadable says of an annotation that is ignored why it is.
func unreadable(p *cluster.Pod) string {
	if _, problem := p.ProtectedUntil(); problem == "" {
		return ""
	}
	return fmt.Sprintf("Invalid %s annotation of pod %s: %q is neither \"true\" nor a positive duration, ignoring annotation",
		karpv1.DoNotDisruptAnnotationKey, p.Key(), p.Shape.Annotations[karpv1.DoNotDisruptAnnotationKey])
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
		out.selectors = append(out.selectors, b.Matcher())
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
	if p.Terminating || p.Preempting || p.Shape.Owner.Kind == "Node" || doNotDisrupt(p, now) || p.Tolerates(karpv1.DisruptedNoScheduleTaint) {
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
