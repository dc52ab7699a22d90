package sim

import (
	"cmp"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// reconcileDeployments gives each Deployment the ReplicaSet of its template and
// moves the replicas there: an older ReplicaSet shrinks as pods of the new one
// become ready.
func (w *World) reconcileDeployments() {
	sets := ownedBy(List[*appsv1.ReplicaSet](w.API))
	ready := map[types.UID]int32{}
	for _, p := range List[*corev1.Pod](w.API) {
		if ref := metav1.GetControllerOf(p); ref != nil && podReady(p) && p.DeletionTimestamp == nil {
			ready[ref.UID]++
		}
	}
	for _, d := range List[*appsv1.Deployment](w.API) {
		if d.DeletionTimestamp != nil {
			continue
		}
		hash := hashOf(10, d.Spec.Template)
		name := d.Name + "-" + hash
		want := replicasOf(d.Spec.Replicas)
		var current *appsv1.ReplicaSet
		for _, rs := range sets[d.UID] {
			if rs.Name == name {
				current = rs
			}
		}
		if current == nil {
			w.must(w.API.Create(actorDeployment, newReplicaSet(d, name, hash, want)))
			continue
		}
		w.scaleSet(current, want)
		for _, rs := range sets[d.UID] {
			if rs != current {
				w.scaleSet(rs, min(replicasOf(rs.Spec.Replicas), max(want-ready[current.UID], 0)))
			}
		}
	}
}

func (w *World) scaleSet(rs *appsv1.ReplicaSet, want int32) {
	if replicasOf(rs.Spec.Replicas) == want {
		return
	}
	w.must(Update(w.API, actorDeployment, KeyOf(rs), "scale to "+strconv.Itoa(int(want)), func(c *appsv1.ReplicaSet) error {
		c.Spec.Replicas = &want
		return nil
	}))
}

func newReplicaSet(d *appsv1.Deployment, name, hash string, replicas int32) *appsv1.ReplicaSet {
	rs := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: name, OwnerReferences: []metav1.OwnerReference{controllerRef("apps/v1", "Deployment", d)}},
		Spec:       appsv1.ReplicaSetSpec{Replicas: &replicas, Template: *d.Spec.Template.DeepCopy()},
	}
	rs.Spec.Template.Labels = with(rs.Spec.Template.Labels, appsv1.DefaultDeploymentUniqueLabelKey, hash)
	rs.Labels = rs.Spec.Template.Labels
	rs.Spec.Selector = metav1.SetAsLabelSelector(rs.Spec.Template.Labels)
	return rs
}

func controllerRef(apiVersion, kind string, owner metav1.Object) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: owner.GetName(), UID: owner.GetUID(), Controller: new(true), BlockOwnerDeletion: new(true)}
}

func replicasOf(n *int32) int32 {
	if n == nil {
		return 1
	}
	return *n
}

// ownedBy groups the objects by the uid of their controller.
func ownedBy[T Object](objects []T) map[types.UID][]T {
	out := map[types.UID][]T{}
	for _, o := range objects {
		if ref := metav1.GetControllerOf(o); ref != nil {
			out[ref.UID] = append(out[ref.UID], o)
		}
	}
	return out
}

// reconcileReplicaSets creates missing pods and deletes those too many.
func (w *World) reconcileReplicaSets() {
	pods := List[*corev1.Pod](w.API)
	owned := ownedBy(pods)
	onNode := map[types.UID]map[string]int{}
	for _, rs := range List[*appsv1.ReplicaSet](w.API) {
		if rs.DeletionTimestamp != nil {
			continue
		}
		active := slices.DeleteFunc(slices.Clone(owned[rs.UID]), func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil || terminal(p) })
		onNode[rs.UID] = map[string]int{}
		for _, p := range active {
			onNode[rs.UID][p.Spec.NodeName]++
		}
		want := int(replicasOf(rs.Spec.Replicas))
		for range want - len(active) {
			w.createPod(actorDeployment, rs, "ReplicaSet", rs.Spec.Template, nil)
		}
		if len(active) > want {
			byNode := onNode[rs.UID]
			slices.SortStableFunc(active, func(a, b *corev1.Pod) int { return byDispensable(a, b, byNode) })
			for _, p := range active[:len(active)-want] {
				w.must(Delete[*corev1.Pod](w.API, actorDeployment, KeyOf(p), nil))
			}
		}
	}
}

// byDispensable is the order in which a ReplicaSet removes pods, as its
// documentation gives it: pending before placed, not ready before ready, lower
// deletion cost, more siblings on the node, then the newer.
func byDispensable(a, b *corev1.Pod, onNode map[string]int) int {
	return cmp.Or(
		compareBool(a.Spec.NodeName != "", b.Spec.NodeName != ""),
		compareBool(podReady(a), podReady(b)),
		cmp.Compare(deletionCost(a), deletionCost(b)),
		cmp.Compare(onNode[b.Spec.NodeName], onNode[a.Spec.NodeName]),
		b.CreationTimestamp.Compare(a.CreationTimestamp.Time),
		cmp.Compare(a.Name, b.Name),
	)
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case !a:
		return -1
	default:
		return 1
	}
}

func deletionCost(p *corev1.Pod) int {
	n, err := strconv.Atoi(p.Annotations[corev1.PodDeletionCost])
	if err != nil {
		return 0
	}
	return n
}

// createPod makes the next pod of the owner, with a name that follows from the
// owner's name and how many it has made.
func (w *World) createPod(actor string, owner metav1.Object, kind string, t corev1.PodTemplateSpec, edit func(*corev1.Pod)) {
	var name string
	for taken := true; taken; {
		w.names[owner.GetUID()]++
		name = owner.GetName() + "-" + safeHash(5, KeyOf(owner), "#", w.names[owner.GetUID()])
		_, taken = w.API.tables[KindPod].lookup(owner.GetNamespace() + "/" + name)
	}
	pod := &corev1.Pod{ObjectMeta: *t.ObjectMeta.DeepCopy(), Spec: *t.Spec.DeepCopy()}
	pod.Namespace, pod.Name = owner.GetNamespace(), name
	pod.OwnerReferences = []metav1.OwnerReference{controllerRef("apps/v1", kind, owner)}
	if edit != nil {
		edit(pod)
	}
	w.must(w.API.Create(actor, pod))
}
