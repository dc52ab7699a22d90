package sim

import (
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// reconcileStatefulSets keeps the pods of each StatefulSet by their numbers: one
// is made when all before it are ready, or at once if the policy is Parallel; the
// last is the first to go; and the successor of a pod waits until it is gone.
// Changes of the template come with the next pod that is made.
func (w *World) reconcileStatefulSets() {
	for _, set := range List[*appsv1.StatefulSet](w.API) {
		if set.DeletionTimestamp == nil {
			w.reconcileStatefulSet(set)
		}
	}
}

func (w *World) reconcileStatefulSet(set *appsv1.StatefulSet) {
	want := int(replicasOf(set.Spec.Replicas))
	ordered := set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement
	for n := range want {
		p, err := Get[*corev1.Pod](w.API, set.Namespace+"/"+ordinalName(set, n))
		switch {
		case err != nil:
			w.must(w.API.Create(actorStatefulSet, ordinalPod(set, n)))
			if ordered {
				return
			}
		case terminal(p) && p.DeletionTimestamp == nil:
			w.must(Delete[*corev1.Pod](w.API, actorStatefulSet, KeyOf(p), nil))
		}
		if ordered && (err != nil || !podReady(p) || p.DeletionTimestamp != nil) {
			return
		}
	}
	for n := w.lastOrdinal(set); n >= want; n-- {
		p, err := Get[*corev1.Pod](w.API, set.Namespace+"/"+ordinalName(set, n))
		if err != nil {
			continue
		}
		if p.DeletionTimestamp == nil {
			w.must(Delete[*corev1.Pod](w.API, actorStatefulSet, KeyOf(p), nil))
		}
		if ordered {
			return
		}
	}
}

// lastOrdinal is the highest number of a pod of the set, -1 without pods.
func (w *World) lastOrdinal(set *appsv1.StatefulSet) int {
	last := -1
	for _, p := range List[*corev1.Pod](w.API) {
		if ref := metav1.GetControllerOf(p); ref == nil || ref.UID != set.UID {
			continue
		}
		if n, err := strconv.Atoi(p.Labels[appsv1.PodIndexLabel]); err == nil {
			last = max(last, n)
		}
	}
	return last
}

func ordinalName(set *appsv1.StatefulSet, n int) string { return set.Name + "-" + strconv.Itoa(n) }

func ordinalPod(set *appsv1.StatefulSet, n int) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: *set.Spec.Template.ObjectMeta.DeepCopy(), Spec: *set.Spec.Template.Spec.DeepCopy()}
	pod.Namespace, pod.Name = set.Namespace, ordinalName(set, n)
	pod.Labels = with(with(pod.Labels, appsv1.StatefulSetPodNameLabel, pod.Name), appsv1.PodIndexLabel, strconv.Itoa(n))
	pod.OwnerReferences = []metav1.OwnerReference{controllerRef("apps/v1", string(KindStatefulSet), set)}
	return pod
}
