package sim

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// podEventWindow is how long after a pod event of a node others do not count.
const podEventWindow = 10 * time.Second

// podEvent writes into the NodeClaim of a node when a pod was bound to it, ended
// or began to end, as Karpenter does (pkg/controllers/nodeclaim/podevents).
// DaemonSet pods do not count. Karpenter's watch has it the next moment.
func (w *World) podEvent(old, now Object) {
	before, ok := old.(*corev1.Pod)
	if !ok {
		return
	}
	pod := now.(*corev1.Pod)
	bound := before.Spec.NodeName == "" && pod.Spec.NodeName != ""
	ended := !terminal(before) && terminal(pod)
	ending := before.DeletionTimestamp == nil && pod.DeletionTimestamp != nil
	if pod.Spec.NodeName == "" || !bound && !ended && !ending || ownerIs(pod, KindDaemonSet) {
		return
	}
	w.Clock.After(0, func() { w.touchClaimOf(pod.Spec.NodeName) })
}

func ownerIs(pod *corev1.Pod, kind Kind) bool {
	for _, ref := range pod.OwnerReferences {
		if ref.Kind == string(kind) {
			return true
		}
	}
	return false
}

func (w *World) touchClaimOf(node string) {
	nc := w.claimOf(node)
	if nc == nil || w.Now().Sub(nc.Status.LastPodEventTime.Time) < podEventWindow {
		return
	}
	w.must(Update(w.API, actorPodEvents, nc.Name, "pod event", func(nc *karpv1.NodeClaim) error {
		nc.Status.LastPodEventTime = w.API.stamp()
		return nil
	}))
}

// claimOf is the NodeClaim of the node of that name; nil without.
func (w *World) claimOf(node string) *karpv1.NodeClaim {
	n, err := Get[*corev1.Node](w.API, node)
	if err != nil || n.Spec.ProviderID == "" {
		return nil
	}
	for _, nc := range List[*karpv1.NodeClaim](w.API) {
		if nc.Status.ProviderID == n.Spec.ProviderID {
			return nc
		}
	}
	return nil
}
