package sim

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Priorities of the classes that every cluster has.
const (
	priorityNodeCritical    = 2_000_001_000
	priorityClusterCritical = 2_000_000_000
)

// setDefaults fills in what the API server's defaulting and its default
// admission plugins fill in, as far as placement depends on it.
func setDefaults(o Object) {
	switch o := o.(type) {
	case *corev1.Pod:
		defaultPod(o)
	case *corev1.Node:
		defaultNode(o)
	case *corev1.Namespace:
		o.Labels = with(o.Labels, corev1.LabelMetadataName, o.Name)
	}
}

func defaultPod(pod *corev1.Pod) {
	spec := &pod.Spec
	spec.SchedulerName = cmp.Or(spec.SchedulerName, corev1.DefaultSchedulerName)
	spec.RestartPolicy = cmp.Or(spec.RestartPolicy, corev1.RestartPolicyAlways)
	if spec.TerminationGracePeriodSeconds == nil {
		spec.TerminationGracePeriodSeconds = new(int64(corev1.DefaultTerminationGracePeriodSeconds))
	}
	if spec.Priority == nil {
		spec.Priority = new(priorityOf(spec.PriorityClassName))
	}
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		// Admission plugin DefaultTolerationSeconds.
		t := corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))}
		if !slices.ContainsFunc(spec.Tolerations, func(o corev1.Toleration) bool {
			return (o.Key == key || o.Key == "") && (o.Effect == corev1.TaintEffectNoExecute || o.Effect == "")
		}) {
			spec.Tolerations = append(spec.Tolerations, t)
		}
	}
	for _, cs := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range cs {
			defaultRequests(&cs[i])
		}
	}
	pod.Status.Phase = cmp.Or(pod.Status.Phase, corev1.PodPending)
}

func priorityOf(class string) int32 {
	switch class {
	case "system-node-critical":
		return priorityNodeCritical
	case "system-cluster-critical":
		return priorityClusterCritical
	default:
		return 0
	}
}

// defaultRequests: a limit without a request is the request.
func defaultRequests(c *corev1.Container) {
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

// defaultNode: admission plugin TaintNodesByCondition keeps pods off a node
// until the node lifecycle controller has seen it ready.
func defaultNode(node *corev1.Node) {
	if !nodeReady(node) {
		setTaint(node, corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule})
	}
	node.Labels = with(node.Labels, corev1.LabelHostname, cmp.Or(node.Labels[corev1.LabelHostname], node.Name))
}

func with(m map[string]string, key, value string) map[string]string {
	out := maps.Clone(m)
	if out == nil {
		out = map[string]string{}
	}
	out[key] = value
	return out
}

func nodeReady(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func sameTaint(a, b corev1.Taint) bool { return a.Key == b.Key && a.Effect == b.Effect }

// setTaint adds the taint; one with the same key and effect is replaced.
func setTaint(node *corev1.Node, t corev1.Taint) {
	removeTaint(node, t)
	node.Spec.Taints = append(node.Spec.Taints, t)
}

func removeTaint(node *corev1.Node, t corev1.Taint) {
	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(o corev1.Taint) bool { return sameTaint(o, t) })
}

func hasTaint(node *corev1.Node, t corev1.Taint) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(o corev1.Taint) bool { return sameTaint(o, t) })
}

// terminal says whether the pod has ended for good.
func terminal(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func podReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// setPodCondition sets the condition and says whether anything changed.
func setPodCondition(pod *corev1.Pod, c corev1.PodCondition) {
	i := slices.IndexFunc(pod.Status.Conditions, func(o corev1.PodCondition) bool { return o.Type == c.Type })
	if i < 0 {
		pod.Status.Conditions = append(pod.Status.Conditions, c)
		return
	}
	if pod.Status.Conditions[i].Status == c.Status {
		c.LastTransitionTime = pod.Status.Conditions[i].LastTransitionTime
	}
	pod.Status.Conditions[i] = c
}
