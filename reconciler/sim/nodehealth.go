package sim

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// reasonNodeNotReady is why a pod on a node that is not ready is not.
const reasonNodeNotReady = "NodeNotReady"

func (w *World) readyCondition(s corev1.ConditionStatus, reason string) corev1.NodeCondition {
	now := w.API.stamp()
	return corev1.NodeCondition{Type: corev1.NodeReady, Status: s, Reason: reason, LastHeartbeatTime: now, LastTransitionTime: now}
}

// setReady writes the readiness of the node with the taints that follow from
// it: not-ready when its kubelet says so, unreachable when it says nothing.
func (w *World) setReady(actor string, st *machineState, s corev1.ConditionStatus, reason string) {
	err := Update(w.API, actor, st.Name, reason, func(n *corev1.Node) error {
		n.Status.Conditions = []corev1.NodeCondition{w.readyCondition(s, reason)}
		for _, effect := range []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute} {
			taint := corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: effect}
			lost := corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: effect}
			removeTaint(n, taint)
			removeTaint(n, lost)
			switch {
			case s == corev1.ConditionUnknown:
				setTaint(n, lost)
			case s == corev1.ConditionFalse:
				setTaint(n, taint)
			}
		}
		return nil
	})
	w.ignoreGone(err)
}

func (w *World) reportReady(st *machineState) {
	if st.reports() {
		w.setReady(actorKubelet, st, corev1.ConditionTrue, "KubeletReady")
	}
}

// SetNodeReady makes the node ready or not ready, as its kubelet reports.
func (w *World) SetNodeReady(node string, ready bool) error {
	st := w.machineOf(node)
	if st == nil {
		return fmt.Errorf("set node ready: no machine that is up runs node %q", node)
	}
	if ready {
		w.reportReady(st)
	} else {
		w.setReady(actorKubelet, st, corev1.ConditionFalse, "KubeletNotReady")
	}
	return nil
}

// Silence cuts the machine off from the API server: its node becomes not ready
// after Timing.Unreachable, and stays.
func (w *World) Silence(providerID string) {
	if st, ok := w.machines[providerID]; ok && st.reports() {
		w.silence(st)
	}
}

func (w *World) silence(st *machineState) {
	st.silent, st.quiet = true, w.Now()
	since := st.quiet
	w.Clock.After(w.timing.Unreachable, func() {
		if st.silent && st.quiet.Equal(since) && w.runs(st) {
			w.setReady(actorLifecycle, st, corev1.ConditionUnknown, "NodeStatusUnknown")
		}
	})
}

// runs says whether the node of the machine's name is the machine's.
func (w *World) runs(st *machineState) bool {
	n, err := Get[*corev1.Node](w.API, st.Name)
	return err == nil && n.Spec.ProviderID == st.ProviderID
}

// Resume lets a machine that was silenced report again: its node is ready. One
// that was stopped stays stopped.
func (w *World) Resume(providerID string) {
	st, ok := w.machines[providerID]
	if !ok || !st.up || !st.silent {
		return
	}
	st.silent = false
	if w.runs(st) {
		w.reportReady(st)
	}
}

// Stop ends the machine: its kubelet reports no more, the node becomes not ready
// after Timing.Unreachable, and the cloud's node controller, which looks only at
// nodes that are not ready, deletes it after Timing.NodeLost more.
func (w *World) Stop(providerID string) {
	st, ok := w.machines[providerID]
	if !ok || !st.up {
		return
	}
	st.up = false
	if !st.silent {
		w.silence(st)
	}
	lost := max(st.quiet.Add(w.timing.Unreachable).Sub(w.Now()), 0) + max(w.timing.NodeLost, 0)
	w.Clock.After(lost, func() {
		if w.runs(st) {
			w.ignoreGone(Delete[*corev1.Node](w.API, actorLifecycle, st.Name, nil))
		}
	})
}

// reconcilePodHealth makes the pods of nodes that are not ready not ready, as
// the node lifecycle controller does, and lets a kubelet that is back take that
// back.
func (w *World) reconcilePodHealth() {
	healthy := map[string]bool{}
	for _, n := range List[*corev1.Node](w.API) {
		healthy[n.Name] = nodeReady(n)
	}
	for _, p := range List[*corev1.Pod](w.API) {
		if p.Status.Phase != corev1.PodRunning {
			continue
		}
		up, known := healthy[p.Spec.NodeName]
		lost := slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Reason == reasonNodeNotReady
		})
		switch {
		case known && !up && podReady(p):
			w.setPodReady(actorLifecycle, p, corev1.ConditionFalse, reasonNodeNotReady)
		case up && lost:
			w.setPodReady(actorKubelet, p, corev1.ConditionTrue, "")
		}
	}
}

func (w *World) setPodReady(actor string, p *corev1.Pod, s corev1.ConditionStatus, reason string) {
	w.must(Update(w.API, actor, KeyOf(p), "ready "+string(s), func(c *corev1.Pod) error {
		setPodCondition(c, corev1.PodCondition{Type: corev1.PodReady, Status: s, Reason: reason, LastTransitionTime: w.API.stamp()})
		return nil
	}))
}
