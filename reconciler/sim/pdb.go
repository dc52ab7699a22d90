package sim

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// evict is the eviction API: it deletes the pod unless a disruption budget is
// in the way, which is the API's TooManyRequests. A pod under two budgets
// cannot be evicted at all, which is its InternalError.
func (w *World) evict(actor, key string) error {
	pod, err := Get[*corev1.Pod](w.API, key)
	if err != nil {
		return err
	}
	if pod.DeletionTimestamp != nil {
		return nil
	}
	// A pod that serves nobody yet, or any more, needs no protection.
	if !terminal(pod) && pod.Status.Phase != corev1.PodPending {
		if err := w.mayDisrupt(pod); err != nil {
			return err
		}
	}
	w.API.record("Pod/"+key, false, "Evicted", "Evicted pod")
	return Delete[*corev1.Pod](w.API, actor, key, nil)
}

func (w *World) mayDisrupt(pod *corev1.Pod) error {
	var over []*policyv1.PodDisruptionBudget
	for _, b := range List[*policyv1.PodDisruptionBudget](w.API) {
		if b.Namespace == pod.Namespace && selects(b.Spec.Selector, pod.Labels) {
			over = append(over, b)
		}
	}
	switch len(over) {
	case 0:
		return nil
	case 1:
	default:
		return apierrors.NewInternalError(fmt.Errorf("pod %s is under more than one PodDisruptionBudget, which the eviction subresource does not support", KeyOf(pod)))
	}
	b := over[0]
	healthy, desired, err := w.budget(b)
	if err != nil {
		return err
	}
	if !podReady(pod) && (always(b) || healthy >= desired && desired > 0) {
		return nil
	}
	if healthy-desired > 0 {
		return nil
	}
	return apierrors.NewTooManyRequests(fmt.Sprintf("Cannot evict pod %s as it would violate the pod's disruption budget %s: it needs %d healthy pods and has %d",
		KeyOf(pod), b.Name, desired, healthy), 10)
}

func always(b *policyv1.PodDisruptionBudget) bool {
	p := b.Spec.UnhealthyPodEvictionPolicy
	return p != nil && *p == policyv1.AlwaysAllow
}

// budget is how many pods of the budget are healthy and how many have to be.
func (w *World) budget(b *policyv1.PodDisruptionBudget) (healthy, desired int, err error) {
	var pods []*corev1.Pod
	for _, p := range List[*corev1.Pod](w.API) {
		if p.Namespace != b.Namespace || !selects(b.Spec.Selector, p.Labels) || terminal(p) {
			continue
		}
		pods = append(pods, p)
		if podReady(p) && p.DeletionTimestamp == nil {
			healthy++
		}
	}
	expected := w.expected(pods)
	switch {
	case b.Spec.MaxUnavailable != nil:
		n, err := intstr.GetScaledValueFromIntOrPercent(b.Spec.MaxUnavailable, expected, true)
		if err != nil {
			return 0, 0, apierrors.NewInternalError(fmt.Errorf("PodDisruptionBudget %s: maxUnavailable: %w", KeyOf(b), err))
		}
		return healthy, max(expected-n, 0), nil
	case b.Spec.MinAvailable != nil:
		n, err := intstr.GetScaledValueFromIntOrPercent(b.Spec.MinAvailable, expected, true)
		if err != nil {
			return 0, 0, apierrors.NewInternalError(fmt.Errorf("PodDisruptionBudget %s: minAvailable: %w", KeyOf(b), err))
		}
		return healthy, n, nil
	default:
		return healthy, 1, nil
	}
}

// expected is how many pods there should be: the replicas of their controllers,
// and one for each pod without.
func (w *World) expected(pods []*corev1.Pod) int {
	n, seen := 0, map[types.UID]bool{}
	for _, p := range pods {
		ref := metav1.GetControllerOf(p)
		replicas, scaled := int32(1), false
		if ref != nil {
			replicas, scaled = w.replicas(p.Namespace, ref)
		}
		switch {
		case !scaled:
			n++
		case !seen[ref.UID]:
			seen[ref.UID] = true
			n += int(replicas)
		}
	}
	return n
}

// replicas is how many pods the controller wants; scaled is false for one that
// has no such number.
func (w *World) replicas(namespace string, ref *metav1.OwnerReference) (n int32, scaled bool) {
	key := namespace + "/" + ref.Name
	switch Kind(ref.Kind) {
	case KindReplicaSet:
		if rs, err := Get[*appsv1.ReplicaSet](w.API, key); err == nil {
			return replicasOf(rs.Spec.Replicas), true
		}
		return 0, true
	case KindStatefulSet:
		if set, err := Get[*appsv1.StatefulSet](w.API, key); err == nil {
			return replicasOf(set.Spec.Replicas), true
		}
		return 0, true
	default:
		return 1, false
	}
}
