package convert

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/reeve-project/reeve/reconciler/cluster"
)

// State is what a pod is to a plan.
type State string

// The states.
const (
	// Bound: it is on a node.
	Bound State = "bound"
	// Preempting: the scheduler makes room for it on a node by ending others.
	Preempting State = "preempting"
	// Pending: the scheduler found no room, and a node could help.
	Pending State = "pending"
	// Ended: it has succeeded or failed, and needs nothing any more.
	Ended State = "ended"
	// Ending: it was deleted before it was bound.
	Ending State = "ending"
	// OfNode: it is made for one certain node, by a DaemonSet or by a kubelet.
	OfNode State = "of its node"
	// Gated: a scheduling gate holds it.
	Gated State = "gated"
	// Unseen: the scheduler has not said yet that there is no room.
	Unseen State = "unseen"
)

// StateOf is the state of a pod. Which pods are Pending follows Karpenter
// (pkg/utils/pod, IsProvisionable).
func StateOf(p *corev1.Pod) State {
	switch {
	case p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed:
		return Ended
	case p.Spec.NodeName != "":
		return Bound
	case p.DeletionTimestamp != nil:
		return Ending
	case p.Status.NominatedNodeName != "":
		return Preempting
	case slices.ContainsFunc(p.OwnerReferences, func(r metav1.OwnerReference) bool { return r.Kind == "DaemonSet" || r.Kind == "Node" }):
		return OfNode
	}
	for _, c := range p.Status.Conditions {
		switch {
		case c.Type != corev1.PodScheduled:
		case c.Reason == corev1.PodReasonUnschedulable:
			return Pending
		case c.Reason == corev1.PodReasonSchedulingGated:
			return Gated
		}
	}
	return Unseen
}

// podValue is the pod as decisions see it. The pod of a DaemonSet gets back the
// node affinity of its template: the controller replaced it by the name of the
// node, and with that no two of them would share a shape.
func podValue(p *corev1.Pod, sets map[types.UID]*appsv1.DaemonSet) *cluster.Pod {
	ref := metav1.GetControllerOf(p)
	if ref == nil || ref.Kind != "DaemonSet" {
		return cluster.NewPod(p)
	}
	c := *p
	if ds := sets[ref.UID]; ds != nil {
		c.Spec.Affinity = ds.Spec.Template.Spec.Affinity
	} else {
		c.Spec.Affinity = nil
	}
	return cluster.NewPod(&c)
}

// daemonPod is a pod of the DaemonSet as it would be on any node.
func (o *Objects) daemonPod(ds *appsv1.DaemonSet) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: *ds.Spec.Template.ObjectMeta.DeepCopy(), Spec: *ds.Spec.Template.Spec.DeepCopy()}
	pod.Namespace = ds.Namespace
	pod.OwnerReferences = append(pod.OwnerReferences, *metav1.NewControllerRef(ds, appsv1.SchemeGroupVersion.WithKind("DaemonSet")))
	for _, t := range daemonTolerations(&pod.Spec) {
		if !slices.ContainsFunc(pod.Spec.Tolerations, func(o corev1.Toleration) bool { return o.MatchToleration(&t) }) {
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, t)
		}
	}
	o.Complete(pod)
	return pod
}

// daemonTolerations are what the DaemonSet controller adds to its pods.
func daemonTolerations(spec *corev1.PodSpec) []corev1.Toleration {
	out := []corev1.Toleration{
		exists(corev1.TaintNodeNotReady, corev1.TaintEffectNoExecute),
		exists(corev1.TaintNodeUnreachable, corev1.TaintEffectNoExecute),
		exists(corev1.TaintNodeDiskPressure, corev1.TaintEffectNoSchedule),
		exists(corev1.TaintNodeMemoryPressure, corev1.TaintEffectNoSchedule),
		exists(corev1.TaintNodePIDPressure, corev1.TaintEffectNoSchedule),
		exists(corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule),
	}
	if spec.HostNetwork {
		out = append(out, exists(corev1.TaintNodeNetworkUnavailable, corev1.TaintEffectNoSchedule))
	}
	return out
}

func exists(key string, effect corev1.TaintEffect) corev1.Toleration {
	return corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: effect}
}

// Complete gives a pod that no API server has seen what one would give it, as
// far as decisions depend on it: requests where there are only limits, a grace
// period, a priority, and the tolerations of a node that is not ready for five
// minutes.
func (o *Objects) Complete(pod *corev1.Pod) {
	spec := &pod.Spec
	if spec.TerminationGracePeriodSeconds == nil {
		spec.TerminationGracePeriodSeconds = new(int64(corev1.DefaultTerminationGracePeriodSeconds))
	}
	if spec.SchedulerName == "" {
		spec.SchedulerName = corev1.DefaultSchedulerName
	}
	if spec.Priority == nil {
		spec.Priority = new(o.priority(spec))
	}
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		if !slices.ContainsFunc(spec.Tolerations, func(t corev1.Toleration) bool {
			return (t.Key == key || t.Key == "") && (t.Effect == corev1.TaintEffectNoExecute || t.Effect == "")
		}) {
			t := exists(key, corev1.TaintEffectNoExecute)
			t.TolerationSeconds = new(int64(300))
			spec.Tolerations = append(spec.Tolerations, t)
		}
	}
	CompleteRequests(pod)
}

// CompleteRequests makes each limit of a container that has no request its
// request, as the API server does for every pod (Kubernetes,
// pkg/apis/core/v1/defaults.go, SetDefaults_Pod).
func CompleteRequests(pod *corev1.Pod) {
	for _, cs := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range cs {
			completeRequests(&cs[i])
		}
	}
}

// The priorities of the classes that every cluster has (Kubernetes,
// pkg/apis/scheduling/types.go).
const (
	clusterCritical = 2_000_000_000
	nodeCritical    = clusterCritical + 1000
)

func (o *Objects) priority(spec *corev1.PodSpec) int32 {
	switch spec.PriorityClassName {
	case "system-node-critical":
		return nodeCritical
	case "system-cluster-critical":
		return clusterCritical
	}
	for _, c := range o.PriorityClasses {
		if c.Name == spec.PriorityClassName || spec.PriorityClassName == "" && c.GlobalDefault {
			return c.Value
		}
	}
	return 0
}

// completeRequests: a limit without a request is the request.
func completeRequests(c *corev1.Container) {
	for name, q := range c.Resources.Limits {
		if _, ok := c.Resources.Requests[name]; ok {
			continue
		}
		if c.Resources.Requests == nil {
			c.Resources.Requests = corev1.ResourceList{}
		}
		c.Resources.Requests[name] = q.DeepCopy()
	}
}
