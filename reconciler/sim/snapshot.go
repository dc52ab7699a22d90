package sim

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/lifecycle"
	"github.com/reeve-project/reeve/reconciler/resources"
)

// snapshot reads the cluster as the pipeline sees it.
func (w *World) snapshot() *cluster.Snapshot {
	s := &cluster.Snapshot{Time: w.Now()}
	sets := w.daemonSets()
	for _, ds := range List[*appsv1.DaemonSet](w.API) {
		if ds.DeletionTimestamp != nil {
			continue
		}
		pod := daemonPod(ds, "")
		setDefaults(pod)
		s.DaemonSets = append(s.DaemonSets, &cluster.DaemonSet{Namespace: ds.Namespace, Name: ds.Name, Shape: cluster.NewShape(pod)})
	}
	bound := map[string][]*cluster.Pod{}
	for _, p := range List[*corev1.Pod](w.API) {
		switch {
		case terminal(p):
		case p.Spec.NodeName != "":
			bound[p.Spec.NodeName] = append(bound[p.Spec.NodeName], podValue(p, sets))
		case preempting(p):
			bound[p.Status.NominatedNodeName] = append(bound[p.Status.NominatedNodeName], podValue(p, sets))
		case provisionable(p):
			s.Pending = append(s.Pending, podValue(p, sets))
		}
	}
	s.Budgets = w.budgets()
	s.Nodes = nodeValues(List[*corev1.Node](w.API), List[*karpv1.NodeClaim](w.API), bound)
	return s.Seal()
}

// budgets are the disruption budgets as their controller would write their
// status: one that it cannot compute allows nothing.
func (w *World) budgets() []*cluster.PodDisruptionBudget {
	var out []*cluster.PodDisruptionBudget
	for _, b := range List[*policyv1.PodDisruptionBudget](w.API) {
		v := &cluster.PodDisruptionBudget{Namespace: b.Namespace, Name: b.Name, Selector: b.Spec.Selector, AlwaysAllow: always(b)}
		if healthy, desired, err := w.budget(b); err == nil {
			v.Allowed = int32(max(healthy-desired, 0))
		}
		out = append(out, v)
	}
	return out
}

func (w *World) daemonSets() map[types.UID]*appsv1.DaemonSet {
	out := map[types.UID]*appsv1.DaemonSet{}
	for _, ds := range List[*appsv1.DaemonSet](w.API) {
		out[ds.UID] = ds
	}
	return out
}

// preempting says whether room is being made for the pod on the node it is
// nominated to.
func preempting(p *corev1.Pod) bool {
	return p.Spec.NodeName == "" && p.Status.NominatedNodeName != "" && p.DeletionTimestamp == nil
}

// provisionable says whether a node could help the pod: the scheduler found no
// room, nothing is being preempted for it, and it is not made for a certain
// node (Karpenter, pkg/utils/pod, IsProvisionable).
func provisionable(p *corev1.Pod) bool {
	if p.Spec.NodeName != "" || p.Status.NominatedNodeName != "" || p.DeletionTimestamp != nil || terminal(p) {
		return false
	}
	for _, ref := range p.OwnerReferences {
		if ref.Kind == "DaemonSet" || ref.Kind == "Node" {
			return false
		}
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable {
			return true
		}
	}
	return false
}

// podValue is the pod as decisions see it. A DaemonSet's pod gets back the node
// affinity of its template: the controller replaced it by the node's name, and
// with that no two of them would share a shape.
func podValue(p *corev1.Pod, sets map[types.UID]*appsv1.DaemonSet) *cluster.Pod {
	ref := metav1.GetControllerOf(p)
	if ref == nil || sets[ref.UID] == nil {
		return cluster.NewPod(p)
	}
	c := p.DeepCopy()
	c.Spec.Affinity = sets[ref.UID].Spec.Template.Spec.Affinity.DeepCopy()
	return cluster.NewPod(c)
}

// nodeValues joins nodes and claims by provider id. A claim whose provider id
// several nodes have is joined to none of them.
func nodeValues(nodes []*corev1.Node, claims []*karpv1.NodeClaim, bound map[string][]*cluster.Pod) []*cluster.Node {
	byProvider := map[string][]*cluster.Node{}
	var out []*cluster.Node
	for _, n := range nodes {
		v := nodeValue(n)
		v.Pods = bound[n.Name]
		out = append(out, v)
		byProvider[v.ProviderID] = append(byProvider[v.ProviderID], v)
	}
	for _, nc := range claims {
		c := lifecycle.FromNodeClaim(nc)
		if same := byProvider[c.ProviderID]; c.ProviderID != "" && len(same) == 1 && same[0].Claim == nil {
			same[0].Claim = c
			deleted(same[0], nc)
			continue
		}
		v := &cluster.Node{ProviderID: c.ProviderID, Claim: c}
		deleted(v, nc)
		out = append(out, v)
	}
	return out
}

// deleted says of the node when the object, its claim or itself, was deleted.
// The claim's time, which is taken last, wins.
func deleted(n *cluster.Node, o metav1.Object) {
	if at := o.GetDeletionTimestamp(); at != nil {
		n.Deleting, n.DeletedAt = true, at.UTC()
	}
}

func nodeValue(n *corev1.Node) *cluster.Node {
	out := &cluster.Node{
		Name:        n.Name,
		ProviderID:  n.Spec.ProviderID,
		Labels:      n.Labels,
		Annotations: n.Annotations,
		Taints:      n.Spec.Taints,
		Capacity:    resources.From(n.Status.Capacity),
		Allocatable: resources.From(n.Status.Allocatable),
		Ready:       nodeReady(n),
	}
	deleted(out, n)
	if n.Spec.Unschedulable {
		// A cordoned node says so in a field; decisions look at taints.
		cordon := corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}
		if !hasTaint(n, cordon) {
			out.Taints = append(append([]corev1.Taint(nil), n.Spec.Taints...), cordon)
		}
	}
	return out
}
