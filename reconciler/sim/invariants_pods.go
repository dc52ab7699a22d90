package sim

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// disruptedTaint is on a node that is being removed.
var disruptedTaint = corev1.Taint{Key: karpv1.DisruptedTaintKey, Effect: corev1.TaintEffectNoSchedule}

// checkNodesHaveClaims: a node of ours has a claim that names its instance, but
// for a moment while both go, or while its instance is reclaimed.
func (i *Invariants) checkNodesHaveClaims(claimed map[string]bool) {
	ours := map[string]bool{}
	for _, in := range i.cloud.instances {
		ours[in.ProviderID] = !in.managed
	}
	for _, n := range List[*corev1.Node](i.world.API) {
		id := n.Spec.ProviderID
		if claimed[id] || n.Labels[karpv1.NodePoolLabelKey] == "" && !ours[id] || i.removing(n.Name) {
			continue
		}
		if i.lasts("node "+string(n.UID), i.OrphanGrace) {
			i.add("node-without-claim", "no NodeClaim names the instance %s of node %s", id, n.Name)
		}
	}
}

// checkTaints: only a node that an open decision removes keeps new pods away.
func (i *Invariants) checkTaints(owner map[string]string) {
	if i.Removing == nil {
		return
	}
	for _, n := range List[*corev1.Node](i.world.API) {
		claim := owner[n.Spec.ProviderID]
		if hasTaint(n, disruptedTaint) && !i.removing(n.Name) && !i.removing(claim) {
			i.add("tainted-for-nothing", "node %s is tainted %s and no open decision removes it", n.Name, disruptedTaint.Key)
		}
	}
}

// checkDaemons: room was left for the daemons of every node of ours.
func (i *Invariants) checkDaemons() {
	nodes := map[string]bool{}
	for _, n := range List[*corev1.Node](i.world.API) {
		nodes[n.Name] = n.Labels[karpv1.NodeInitializedLabelKey] == "true" && n.DeletionTimestamp == nil && nodeReady(n)
	}
	for _, p := range List[*corev1.Pod](i.world.API) {
		if p.Spec.NodeName == "" && nodes[daemonNode(p)] && p.DeletionTimestamp == nil && i.lasts("daemon "+string(p.UID), i.DaemonGrace) {
			i.add("daemon-without-room", "daemon %s finds no room on its node %s", KeyOf(p), daemonNode(p))
		}
	}
}

// checkPodsAreHelped: a pod that waits for a node gets one.
func (i *Invariants) checkPodsAreHelped() {
	if i.PodGrace == 0 {
		return
	}
	for _, p := range List[*corev1.Pod](i.world.API) {
		if provisionable(p) && i.lasts("pod "+string(p.UID), i.PodGrace) {
			i.add("pod-waits", "pod %s waits for a node for more than %s", KeyOf(p), i.PodGrace)
		}
	}
}

// evicted: an eviction spares what is protected, and leaves a budget as many
// pods as it asks for.
func (i *Invariants) evicted(p *corev1.Pod) {
	if notToDisrupt(p, i.world.Now()) {
		i.add("evicted-protected", "pod %s is evicted, though %s protects it", KeyOf(p), karpv1.DoNotDisruptAnnotationKey)
	}
	for _, b := range List[*policyv1.PodDisruptionBudget](i.world.API) {
		if b.Namespace != p.Namespace || !selects(b.Spec.Selector, p.Labels) || !podReady(p) {
			continue
		}
		if healthy, desired, err := i.world.budget(b); err != nil || healthy < desired {
			i.add("evicted-over-budget", "pod %s is evicted, and PodDisruptionBudget %s has %d healthy pods of %d", KeyOf(p), KeyOf(b), healthy, desired)
		}
	}
}

// notToDisrupt says whether the annotation protects the pod: "true" for ever, a
// duration for so long from its start.
func notToDisrupt(p *corev1.Pod, now time.Time) bool {
	value := p.Annotations[karpv1.DoNotDisruptAnnotationKey]
	d, err := time.ParseDuration(value)
	if err != nil || d <= 0 {
		return value == "true"
	}
	return p.Status.StartTime == nil || now.Before(p.Status.StartTime.Add(d))
}

// deleted: a pod is deleted past its budgets only when its node's termination
// grace period leaves no more than its own, and never without any.
func (i *Invariants) deleted(p *corev1.Pod, grace time.Duration) {
	if grace < time.Second {
		i.add("deleted-without-grace", "pod %s is deleted with a grace of %s", KeyOf(p), grace)
	}
	own := time.Duration(*p.Spec.TerminationGracePeriodSeconds) * time.Second
	end := deadlineOf(i.world.claimOf(p.Spec.NodeName))
	if end.IsZero() || i.world.Now().Before(end.Add(-own)) {
		i.add("deleted-too-early", "pod %s is deleted past its budgets, and its node %s has more time than its grace of %s", KeyOf(p), p.Spec.NodeName, own)
	}
}

// deadlineOf is when the node of the claim ends whatever is on it; zero if never.
func deadlineOf(nc *karpv1.NodeClaim) time.Time {
	switch {
	case nc == nil || nc.DeletionTimestamp == nil:
		return time.Time{}
	case nc.Annotations[karpv1.NodeClaimTerminationTimestampAnnotationKey] != "":
		at, err := time.Parse(time.RFC3339, nc.Annotations[karpv1.NodeClaimTerminationTimestampAnnotationKey])
		if err == nil {
			return at
		}
	}
	if d := nc.Spec.TerminationGracePeriod; d != nil {
		return nc.DeletionTimestamp.Add(d.Duration)
	}
	return time.Time{}
}

// terminated: no instance is terminated under a pod that had to leave first.
func (i *Invariants) terminated(in *instance) {
	now := i.world.Now()
	node := slices.IndexFunc(List[*corev1.Node](i.world.API), func(n *corev1.Node) bool {
		return n.Spec.ProviderID == in.ProviderID && n.Labels[karpv1.NodeRegisteredLabelKey] == "true"
	})
	if node < 0 {
		return
	}
	name := List[*corev1.Node](i.world.API)[node].Name
	if end := deadlineOf(i.world.claimOf(name)); !end.IsZero() && !now.Before(end) {
		return
	}
	for _, p := range List[*corev1.Pod](i.world.API) {
		stuck := p.DeletionTimestamp != nil && now.Sub(p.DeletionTimestamp.Time) >= time.Minute
		if p.Spec.NodeName == name && !terminal(p) && !stuck && !ownerIs(p, KindNode) && !tolerated(p.Spec.Tolerations, disruptedTaint) {
			i.add("terminated-with-pods", "instance %s is terminated while pod %s is on its node %s", in.ID, KeyOf(p), name)
		}
	}
}
