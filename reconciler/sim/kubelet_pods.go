package sim

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// reconcileKubelets starts bound pods and ends deleted ones.
func (w *World) reconcileKubelets() {
	up := map[string]bool{}
	for _, n := range List[*corev1.Node](w.API) {
		st := w.machines[n.Spec.ProviderID]
		up[n.Name] = st != nil && st.reports() && nodeReady(n)
	}
	for _, p := range List[*corev1.Pod](w.API) {
		if !up[p.Spec.NodeName] || w.busy[p.UID] {
			continue
		}
		pod := p
		switch {
		case p.DeletionTimestamp != nil:
			w.stopPod(p)
		case p.Status.Phase == corev1.PodPending:
			w.busy[p.UID] = true
			w.Clock.After(w.timing.PodStart, func() { w.podStarted(pod) })
		}
	}
}

// stop is a pod that was told to end: since when, and when it will have.
type stop struct{ told, end time.Time }

// stopPod has the pod end when it has stopped or its grace is over. A deletion
// with less grace may come after the first.
func (w *World) stopPod(p *corev1.Pod) {
	d := w.timing.PodStop
	if own, err := time.ParseDuration(p.Annotations[AnnotationStopAfter]); err == nil {
		d = own
	}
	st, again := w.stopping[p.UID]
	if !again {
		st.told = w.Now()
	}
	end := st.told.Add(d)
	if p.DeletionTimestamp.Time.Before(end) {
		end = p.DeletionTimestamp.Time
	}
	if again && !end.Before(st.end) {
		return
	}
	st.end = end
	w.stopping[p.UID] = st
	w.Clock.After(end.Sub(w.Now()), func() { w.podStopped(p) })
}

func (w *World) podStopped(p *corev1.Pod) {
	now, err := Get[*corev1.Pod](w.API, KeyOf(p))
	if err != nil || now.UID != p.UID {
		delete(w.stopping, p.UID)
		return
	}
	if w.machineOf(p.Spec.NodeName) == nil {
		// A kubelet that comes back begins anew.
		delete(w.stopping, p.UID)
		return
	}
	if len(now.Finalizers) > 0 && !terminal(now) {
		// It holds nothing of the node any more, though somebody keeps the object.
		w.must(Update(w.API, actorKubelet, KeyOf(p), "stopped", func(c *corev1.Pod) error { c.Status.Phase = corev1.PodSucceeded; return nil }))
	}
	w.must(Delete[*corev1.Pod](w.API, actorKubelet, KeyOf(p), new(int64(0))))
}

func (w *World) podStarted(p *corev1.Pod) {
	delete(w.busy, p.UID)
	now, err := Get[*corev1.Pod](w.API, KeyOf(p))
	if err != nil || now.UID != p.UID || w.machineOf(p.Spec.NodeName) == nil {
		return
	}
	if now.DeletionTimestamp != nil {
		// The deletion came while it started.
		w.changed(KindPod)
		return
	}
	w.must(Update(w.API, actorKubelet, KeyOf(p), "running", func(c *corev1.Pod) error {
		at := w.API.stamp()
		c.Status.Phase = corev1.PodRunning
		c.Status.StartTime = &at
		setPodCondition(c, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: at})
		return nil
	}))
	if d, err := time.ParseDuration(p.Annotations[AnnotationRunFor]); err == nil && p.Spec.RestartPolicy != corev1.RestartPolicyAlways {
		w.Clock.After(d, func() { w.podEnded(p) })
	}
}

// podEnded is the end of the containers of a pod by themselves.
func (w *World) podEnded(p *corev1.Pod) {
	now, err := Get[*corev1.Pod](w.API, KeyOf(p))
	if err != nil || now.UID != p.UID || terminal(now) || w.machineOf(p.Spec.NodeName) == nil {
		return
	}
	w.must(Update(w.API, actorKubelet, KeyOf(p), "succeeded", func(c *corev1.Pod) error { c.Status.Phase = corev1.PodSucceeded; return nil }))
}
