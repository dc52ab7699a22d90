package lifecycle

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/karpenter/pkg/apis"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// SyncRegistered gives the node what registration gives it: the claim's
// labels, annotations and taints, the finalizer, the owner, and the label that
// says so; it takes the unregistered taint away. The claim's labels win over
// the kubelet's. A node that carries karpenter.sh/do-not-sync-taints keeps the
// taints its kubelet registered with.
func SyncRegistered(node *corev1.Node, claim *karpv1.NodeClaim) {
	keepTaints := node.Labels[karpv1.NodeDoNotSyncTaintsLabelKey] == "true"
	node.Labels = merged(node.Labels, claim.Labels)
	node.Labels[karpv1.NodeRegisteredLabelKey] = "true"
	node.Annotations = merged(node.Annotations, claim.Annotations)
	if !slices.Contains(node.Finalizers, karpv1.TerminationFinalizer) {
		node.Finalizers = append(node.Finalizers, karpv1.TerminationFinalizer)
	}
	own(node, claim)
	if !keepTaints {
		for _, t := range slices.Concat(claim.Spec.Taints, claim.Spec.StartupTaints) {
			if !contains(node.Spec.Taints, t) {
				node.Spec.Taints = append(node.Spec.Taints, t)
			}
		}
	}
	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return t.MatchTaint(&karpv1.UnregisteredNoExecuteTaint)
	})
}

// SyncInitialized gives the node the label that says it is initialized.
func SyncInitialized(node *corev1.Node) {
	node.Labels = merged(node.Labels, map[string]string{karpv1.NodeInitializedLabelKey: "true"})
}

func own(node *corev1.Node, claim *karpv1.NodeClaim) {
	ref := metav1.OwnerReference{
		APIVersion:         apis.Group + "/v1",
		Kind:               "NodeClaim",
		Name:               claim.Name,
		UID:                claim.UID,
		BlockOwnerDeletion: new(true),
	}
	if !slices.ContainsFunc(node.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == ref.UID }) {
		node.OwnerReferences = append(node.OwnerReferences, ref)
	}
}

func merged(base, over map[string]string) map[string]string {
	out := maps.Clone(base)
	if out == nil {
		out = make(map[string]string, len(over)+1)
	}
	maps.Copy(out, over)
	return out
}
