package sim

import (
	"cmp"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
)

// nominee is the node that room was made on for the pod, once it has it.
func (v *View) nominee(p *corev1.Pod) *nodeView {
	n := v.byName[p.Status.NominatedNodeName]
	if n == nil || v.refusal(p, n) != "" {
		return nil
	}
	return n
}

// nominate writes the node that room is made on for the pod into its status;
// empty is none. Pods of no higher priority find the room taken.
func (w *World) nominate(v *View, p *corev1.Pod, node string) {
	if n := v.byName[node]; n != nil {
		v.reserve(p, n)
	}
	if p.Status.NominatedNodeName == node {
		return
	}
	note := "nominated to " + node
	if node == "" {
		note = "no longer nominated"
	}
	w.must(Update(w.API, actorScheduler, KeyOf(p), note, func(c *corev1.Pod) error {
		c.Status.NominatedNodeName = node
		return nil
	}))
}

// candidateNode is a node on which a pod would fit without the victims.
type candidateNode struct {
	on      *nodeView
	victims []*corev1.Pod
	// violations is how many of the victims a disruption budget protects.
	violations int
}

// preempt makes room for the pod as the documentation of pod priority and
// preemption says: it deletes the pods of lower priority on the node where that
// does the least harm, each with its grace period, and gives the name of the
// node; empty if no node can be had that way.
func (w *World) preempt(v *View, p *corev1.Pod) string {
	if never := p.Spec.PreemptionPolicy; never != nil && *never == corev1.PreemptNever {
		return ""
	}
	if n := v.byName[p.Status.NominatedNodeName]; n != nil && slices.ContainsFunc(n.pods, func(o *corev1.Pod) bool {
		return o.DeletionTimestamp != nil && *o.Spec.Priority < *p.Spec.Priority
	}) {
		// The victims of last time are still leaving.
		return n.node.Name
	}
	var best *candidateNode
	for _, n := range v.nodes {
		c := w.without(v, p, n)
		// Nodes come by name, so the first of equals has the smaller name.
		if c != nil && (best == nil || c.compare(best) < 0) {
			best = c
		}
	}
	if best == nil {
		return ""
	}
	for _, victim := range best.victims {
		w.evictFor(p, victim)
	}
	w.displace(p, best.on.node.Name)
	return best.on.node.Name
}

// without is the node without as few pods of lower priority as it takes for the
// pod to fit; nil if that does not help. All are taken off, and then as many put
// back as can be: those first that a budget protects, then the more important.
func (w *World) without(v *View, p *corev1.Pod, n *nodeView) *candidateNode {
	var lower []*corev1.Pod
	for _, o := range n.pods {
		if *o.Spec.Priority < *p.Spec.Priority {
			lower = append(lower, o)
		}
	}
	if len(lower) == 0 {
		return nil
	}
	slices.SortStableFunc(lower, byImportance)
	protected := w.protected(lower)
	slices.SortStableFunc(lower, func(a, b *corev1.Pod) int { return compareBool(!protected[a], !protected[b]) })
	for _, o := range lower {
		v.take(o, n)
	}
	out := &candidateNode{on: n}
	fits := v.refusal(p, n) == ""
	for _, o := range lower {
		v.put(o, n)
		if !fits || v.refusal(p, n) == "" {
			continue
		}
		v.take(o, n)
		out.victims = append(out.victims, o)
		if protected[o] {
			out.violations++
		}
	}
	for _, o := range out.victims {
		v.put(o, n)
	}
	if !fits || len(out.victims) == 0 {
		return nil
	}
	return out
}

// byImportance: the higher priority, then the longer running.
func byImportance(a, b *corev1.Pod) int {
	return cmp.Or(cmp.Compare(*b.Spec.Priority, *a.Spec.Priority), startOf(a).Compare(startOf(b)), cmp.Compare(a.Name, b.Name))
}

// startOf is when the pod started; one that has not counts as the latest.
func startOf(p *corev1.Pod) time.Time {
	if p.Status.StartTime == nil {
		return time.Unix(math.MaxInt32, 0)
	}
	return p.Status.StartTime.Time
}

// protected are those of the pods whose end would violate a disruption budget,
// if they ended in this order.
func (w *World) protected(pods []*corev1.Pod) map[*corev1.Pod]bool {
	out := map[*corev1.Pod]bool{}
	for _, b := range List[*policyv1.PodDisruptionBudget](w.API) {
		healthy, desired, err := w.budget(b)
		left := healthy - desired
		if err != nil {
			left = 0
		}
		for _, p := range pods {
			if p.Namespace != b.Namespace || !selects(b.Spec.Selector, p.Labels) || p.DeletionTimestamp != nil {
				continue
			}
			if left--; left < 0 {
				out[p] = true
			}
		}
	}
	return out
}

// compare orders nodes by the harm: protected victims, the priority of the most
// important victim, the sum of priorities, how many, and at last how long the
// most important have run.
func (c *candidateNode) compare(o *candidateNode) int {
	return cmp.Or(
		cmp.Compare(c.violations, o.violations),
		cmp.Compare(c.highest(), o.highest()),
		cmp.Compare(c.sum(), o.sum()),
		cmp.Compare(len(c.victims), len(o.victims)),
		o.earliest().Compare(c.earliest()),
	)
}

func (c *candidateNode) highest() int32 {
	out := int32(math.MinInt32)
	for _, p := range c.victims {
		out = max(out, *p.Spec.Priority)
	}
	return out
}

// sum counts every priority from the lowest there is, so that more victims are
// always worse.
func (c *candidateNode) sum() int64 {
	var out int64
	for _, p := range c.victims {
		out += int64(*p.Spec.Priority) - math.MinInt32
	}
	return out
}

func (c *candidateNode) earliest() time.Time {
	out := time.Unix(math.MaxInt32, 0)
	for _, p := range c.victims {
		if *p.Spec.Priority == c.highest() && startOf(p).Before(out) {
			out = startOf(p)
		}
	}
	return out
}

func (w *World) evictFor(p, victim *corev1.Pod) {
	now, err := Get[*corev1.Pod](w.API, KeyOf(victim))
	if err != nil || now.DeletionTimestamp != nil {
		w.ignoreGone(err)
		return
	}
	w.must(Update(w.API, actorScheduler, KeyOf(victim), "preempted", func(c *corev1.Pod) error {
		setPodCondition(c, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonPreemptionByScheduler, LastTransitionTime: w.API.stamp()})
		return nil
	}))
	w.API.record("Pod/"+KeyOf(victim), false, "Preempted", "Preempted by pod "+string(p.UID)+" on node "+victim.Spec.NodeName)
	w.must(Delete[*corev1.Pod](w.API, actorScheduler, KeyOf(victim), nil))
}

// displace takes the nomination from pods of lower priority: they have to look
// for room again.
func (w *World) displace(p *corev1.Pod, node string) {
	for _, o := range List[*corev1.Pod](w.API) {
		if o.Spec.NodeName == "" && o.Status.NominatedNodeName == node && *o.Spec.Priority < *p.Spec.Priority {
			w.must(Update(w.API, actorScheduler, KeyOf(o), "no longer nominated", func(c *corev1.Pod) error {
				c.Status.NominatedNodeName = ""
				return nil
			}))
		}
	}
}
