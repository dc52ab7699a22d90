// Package convert turns objects of the Kubernetes API into the values that
// decisions are made on. It has no client: whoever holds the objects, an
// informer's store or a file that kubectl wrote, gets the same snapshot.
package convert

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/lifecycle"
	"github.com/reeve-project/reeve/reconciler/resources"
)

// Objects are the objects of a cluster that decisions depend on. No list holds
// nil or the same object twice.
type Objects struct {
	Nodes      []*corev1.Node
	NodeClaims []*karpv1.NodeClaim
	Pods       []*corev1.Pod
	DaemonSets []*appsv1.DaemonSet
	Budgets    []*policyv1.PodDisruptionBudget
	// PriorityClasses give the pods of DaemonSets their priority; every other
	// pod has got it from the API server.
	PriorityClasses []*schedulingv1.PriorityClass
}

// Snapshot is the cluster at the instant, sealed. The status of EC2NodeClasses
// and all else that only the cloud or the ledger knows is for the caller to
// add, who then seals it again. The snapshot shares maps and slices with the
// objects, so neither may be changed.
func (o *Objects) Snapshot(now time.Time) *cluster.Snapshot {
	s := &cluster.Snapshot{Time: now}
	sets := make(map[types.UID]*appsv1.DaemonSet, len(o.DaemonSets))
	for _, ds := range o.DaemonSets {
		if ds.UID != "" {
			sets[ds.UID] = ds
		}
		if ds.DeletionTimestamp == nil {
			s.DaemonSets = append(s.DaemonSets, &cluster.DaemonSet{Namespace: ds.Namespace, Name: ds.Name, Shape: cluster.NewShape(o.daemonPod(ds))})
		}
	}
	bound := map[string][]*cluster.Pod{}
	for _, p := range o.Pods {
		switch StateOf(p) {
		case Bound:
			bound[p.Spec.NodeName] = append(bound[p.Spec.NodeName], podValue(p, sets))
		case Preempting:
			bound[p.Status.NominatedNodeName] = append(bound[p.Status.NominatedNodeName], podValue(p, sets))
		case Pending:
			s.Pending = append(s.Pending, podValue(p, sets))
		}
	}
	for _, b := range o.Budgets {
		s.Budgets = append(s.Budgets, budgetValue(b))
	}
	s.Nodes = o.nodes(bound)
	return s.Seal()
}

// nodes joins nodes and claims by provider id. A claim whose provider id
// several nodes have is joined to none of them: nobody can say which it is.
func (o *Objects) nodes(bound map[string][]*cluster.Pod) []*cluster.Node {
	byProvider := map[string][]*cluster.Node{}
	var out []*cluster.Node
	for _, n := range o.Nodes {
		v := nodeValue(n)
		v.Pods = bound[n.Name]
		out = append(out, v)
		byProvider[v.ProviderID] = append(byProvider[v.ProviderID], v)
	}
	for _, nc := range o.NodeClaims {
		c := lifecycle.FromNodeClaim(nc)
		same := byProvider[c.ProviderID]
		if c.ProviderID == "" || len(same) != 1 || same[0].Claim != nil {
			v := &cluster.Node{ProviderID: c.ProviderID, Claim: c}
			setDeleted(v, nc)
			out = append(out, v)
			continue
		}
		same[0].Claim = c
		setDeleted(same[0], nc)
	}
	return out
}

func nodeValue(n *corev1.Node) *cluster.Node {
	out := &cluster.Node{
		Name: n.Name, ProviderID: n.Spec.ProviderID,
		Labels: n.Labels, Annotations: n.Annotations, Taints: n.Spec.Taints,
		Capacity: resources.From(n.Status.Capacity), Allocatable: resources.From(n.Status.Allocatable),
		Ready: slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		}),
	}
	setDeleted(out, n)
	// A cordoned node says so in a field, and its taint may come later.
	// Decisions look at taints.
	cordon := corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}
	if n.Spec.Unschedulable && !slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&cordon) }) {
		out.Taints = append(slices.Clone(n.Spec.Taints), cordon)
	}
	return out
}

// setDeleted says of the node when the object, its claim or itself, was
// deleted. The claim's time, which is set last, wins.
func setDeleted(n *cluster.Node, o metav1.Object) {
	if at := o.GetDeletionTimestamp(); at != nil {
		n.Deleting, n.DeletedAt = true, at.UTC()
	}
}

// budgetValue is the budget as evictions meet it. While its controller has not
// seen the latest change the API server lets nothing go (Kubernetes,
// pkg/registry/core/pod/storage/eviction.go).
func budgetValue(b *policyv1.PodDisruptionBudget) *cluster.PodDisruptionBudget {
	out := &cluster.PodDisruptionBudget{Namespace: b.Namespace, Name: b.Name, Selector: b.Spec.Selector}
	if b.Status.ObservedGeneration >= b.Generation {
		out.Allowed = max(b.Status.DisruptionsAllowed, 0)
	}
	if p := b.Spec.UnhealthyPodEvictionPolicy; p != nil {
		out.AlwaysAllow = *p == policyv1.AlwaysAllow
	}
	return out
}
