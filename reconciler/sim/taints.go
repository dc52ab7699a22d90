package sim

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// taintKey is a taint of a node.
type taintKey struct {
	node types.UID
	key  string
}

// reconcileTaints deletes the pods that do not tolerate a NoExecute taint of
// their node: at once, or after the shortest of the times for which they do.
func (w *World) reconcileTaints() {
	byNode := map[string][]*corev1.Pod{}
	for _, p := range List[*corev1.Pod](w.API) {
		if p.Spec.NodeName != "" {
			byNode[p.Spec.NodeName] = append(byNode[p.Spec.NodeName], p)
		}
	}
	there := map[taintKey]bool{}
	for _, n := range List[*corev1.Node](w.API) {
		taints := w.noExecute(n, there)
		for _, p := range byNode[n.Name] {
			if p.DeletionTimestamp == nil && !terminal(p) {
				w.endByTaint(p, taints)
			}
		}
	}
	for k := range w.tainted {
		if !there[k] {
			delete(w.tainted, k)
		}
	}
}

// noExecute are the node's NoExecute taints with the time since when.
func (w *World) noExecute(n *corev1.Node, there map[taintKey]bool) map[corev1.Taint]time.Time {
	out := map[corev1.Taint]time.Time{}
	for _, t := range n.Spec.Taints {
		if t.Effect != corev1.TaintEffectNoExecute {
			continue
		}
		k := taintKey{n.UID, t.ToString()}
		there[k] = true
		if _, ok := w.tainted[k]; !ok {
			w.tainted[k] = w.Now()
		}
		out[t] = w.tainted[k]
	}
	return out
}

// endByTaint deletes the pod if its time is over, or comes back when it is.
func (w *World) endByTaint(p *corev1.Pod, taints map[corev1.Taint]time.Time) {
	var end time.Time
	for t, since := range taints {
		d, bounded := toleratedFor(p.Spec.Tolerations, t)
		if at := since.Add(d); bounded && (end.IsZero() || at.Before(end)) {
			end = at
		}
	}
	switch {
	case end.IsZero():
		delete(w.leaving, p.UID)
	case !end.After(w.Now()):
		w.API.record("Pod/"+KeyOf(p), false, "TaintManagerEviction", "Marking for deletion Pod "+KeyOf(p))
		w.must(Delete[*corev1.Pod](w.API, actorTaints, KeyOf(p), nil))
		delete(w.leaving, p.UID)
	case !w.leaving[p.UID].Equal(end):
		w.leaving[p.UID] = end
		w.Clock.After(end.Sub(w.Now()), func() { w.changed(KindPod) })
	}
}

// toleratedFor is for how long the tolerations allow a pod to stay in spite of
// the taint; bounded is false if for ever.
func toleratedFor(ts []corev1.Toleration, taint corev1.Taint) (d time.Duration, bounded bool) {
	forever := false
	for _, t := range ts {
		if !tolerated([]corev1.Toleration{t}, taint) {
			continue
		}
		if t.TolerationSeconds == nil {
			forever = true
			continue
		}
		own := time.Duration(max(*t.TolerationSeconds, 0)) * time.Second
		if !bounded || own < d {
			d, bounded = own, true
		}
	}
	return d, bounded || !forever
}
