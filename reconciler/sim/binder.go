package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// bindPods is the scheduler: it takes the pods that wait by priority and then
// by age, and binds each to the best node it may run on. A pod that fits
// nowhere gets the condition that says so, and room is made for it if pods of
// lower priority are in its way.
func (w *World) bindPods() {
	pending := w.waiting()
	if len(pending) == 0 {
		return
	}
	v := w.View()
	for _, p := range pending {
		if len(p.Spec.SchedulingGates) > 0 {
			w.unscheduled(p, corev1.PodReasonSchedulingGated, "Scheduling is blocked due to non-empty scheduling gates")
			continue
		}
		best, why := v.nominee(p), ""
		if best == nil {
			best, why = v.best(p, w.mostAllocated)
		}
		if best == nil {
			w.nominate(v, p, w.preempt(v, p))
			w.unscheduled(p, corev1.PodReasonUnschedulable, why)
			continue
		}
		w.bind(p, best.node.Name)
		// The stored pod is a new object with the node's name in it.
		bound, err := Get[*corev1.Pod](w.API, KeyOf(p))
		w.must(err)
		if err == nil {
			v.put(bound, best)
		}
	}
}

// waiting are the pods without node that the default scheduler is in charge of,
// in the order in which it takes them.
func (w *World) waiting() []*corev1.Pod {
	var out []*corev1.Pod
	for _, p := range List[*corev1.Pod](w.API) {
		if p.Spec.NodeName == "" && p.DeletionTimestamp == nil && !terminal(p) && p.Spec.SchedulerName == corev1.DefaultSchedulerName {
			out = append(out, p)
		}
	}
	slices.SortStableFunc(out, func(a, b *corev1.Pod) int {
		return cmp.Or(
			cmp.Compare(*b.Spec.Priority, *a.Spec.Priority),
			// The room that was made for a pod is its own among equals.
			compareBool(a.Status.NominatedNodeName == "", b.Status.NominatedNodeName == ""),
			// Pods of one instant have an order too.
			cmp.Compare(w.API.made[a.UID], w.API.made[b.UID]),
		)
	})
	return out
}

// best is the node to place the pod on, or why there is none.
func (v *View) best(pod *corev1.Pod, most bool) (*nodeView, string) {
	var best *nodeView
	var bestScore [2]int64
	refused := map[string]int{}
	for _, n := range v.nodes {
		if reason := v.refusal(pod, n); reason != "" {
			refused[reason]++
			continue
		}
		score := [2]int64{-unwanted(pod, n), v.score(pod, n, most)}
		// Nodes come by name, so the first of equals has the smaller name.
		if best == nil || slices.Compare(score[:], bestScore[:]) > 0 {
			best, bestScore = n, score
		}
	}
	if best != nil {
		return best, ""
	}
	reasons := slices.Sorted(maps.Keys(refused))
	for i, r := range reasons {
		reasons[i] = fmt.Sprintf("%d %s", refused[r], r)
	}
	text := fmt.Sprintf("0/%d nodes are available", len(v.nodes))
	if len(reasons) > 0 {
		text += ": " + strings.Join(reasons, ", ")
	}
	return nil, text + "."
}

// unwanted is how many PreferNoSchedule taints the pod does not tolerate.
func unwanted(pod *corev1.Pod, n *nodeView) int64 {
	var out int64
	for _, t := range n.node.Spec.Taints {
		if t.Effect == corev1.TaintEffectPreferNoSchedule && !tolerated(pod.Spec.Tolerations, t) {
			out++
		}
	}
	return out
}

// score is the share of CPU and memory that would stay free, or be used, in
// hundredths of a percent.
func (v *View) score(pod *corev1.Pod, n *nodeView, most bool) int64 {
	used := n.used.Plus(v.requestsOf(pod))
	var out int64
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		have := n.allocatable[name]
		if have <= 0 {
			continue
		}
		share := used[name]
		if !most {
			share = have - used[name]
		}
		// Dividing first keeps terabytes of memory within an int64.
		out += share * 100 / max(have/100, 1)
	}
	return out
}

func (w *World) bind(p *corev1.Pod, node string) {
	w.must(Update(w.API, actorScheduler, KeyOf(p), "bind to "+node, func(c *corev1.Pod) error {
		c.Spec.NodeName = node
		c.Status.NominatedNodeName = ""
		setPodCondition(c, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: w.API.stamp()})
		return nil
	}))
}

// unscheduled tells why the pod waits, if that is news.
func (w *World) unscheduled(p *corev1.Pod, reason, message string) {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Reason == reason && c.Message == message {
			return
		}
	}
	w.must(Update(w.API, actorScheduler, KeyOf(p), reason, func(c *corev1.Pod) error {
		setPodCondition(c, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason, Message: message, LastTransitionTime: w.API.stamp()})
		return nil
	}))
}
