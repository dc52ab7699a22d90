package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// filter says why the pod cannot run on the node, or "" if nothing of its own
// is in the way. The texts are those of kube-scheduler's events, so that people
// find what they are used to.
type filter func(v *View, pod *corev1.Pod, n *nodeView) string

// filters in the order in which kube-scheduler runs its plugins.
var filters = []filter{
	filterUnschedulable, filterNodeName, filterTaints, filterNodeAffinity, filterPorts,
	filterResources, filterVolumes, filterClaims, filterSpread, filterPodAffinity,
}

// Feasible says whether the pod may be placed on the node of that name, and why
// not. It knows nothing of the engine: each filter is written from the
// Kubernetes documentation.
func (v *View) Feasible(pod *corev1.Pod, node string) (bool, string) {
	n := v.byName[node]
	if n == nil {
		return false, "there is no such node"
	}
	reason := v.refusal(pod, n)
	return reason == "", reason
}

func (v *View) refusal(pod *corev1.Pod, n *nodeView) string {
	for _, f := range filters {
		if reason := f(v, pod, n); reason != "" {
			return reason
		}
	}
	return ""
}

func filterUnschedulable(_ *View, pod *corev1.Pod, n *nodeView) string {
	taint := corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}
	if n.node.Spec.Unschedulable && !tolerated(pod.Spec.Tolerations, taint) {
		return "node(s) were unschedulable"
	}
	return ""
}

func filterNodeName(_ *View, pod *corev1.Pod, n *nodeView) string {
	if pod.Spec.NodeName != "" && pod.Spec.NodeName != n.node.Name {
		return "node(s) didn't match the requested node name"
	}
	return ""
}

func filterTaints(_ *View, pod *corev1.Pod, n *nodeView) string {
	for _, t := range n.node.Spec.Taints {
		if t.Effect != corev1.TaintEffectPreferNoSchedule && !tolerated(pod.Spec.Tolerations, t) {
			return fmt.Sprintf("node(s) had untolerated taint {%s: %s}", t.Key, t.Value)
		}
	}
	return ""
}

// tolerated says whether one of the tolerations matches the taint: the effect
// equal or empty, the key equal or (with Exists) empty, and the value equal
// unless the operator is Exists.
func tolerated(ts []corev1.Toleration, taint corev1.Taint) bool {
	return slices.ContainsFunc(ts, func(t corev1.Toleration) bool {
		if t.Effect != "" && t.Effect != taint.Effect {
			return false
		}
		switch t.Operator {
		case corev1.TolerationOpExists:
			return t.Key == "" || t.Key == taint.Key
		case corev1.TolerationOpEqual, "":
			return t.Key == taint.Key && t.Value == taint.Value
		default:
			// Comparing operators are behind a gate that is off by default.
			return false
		}
	})
}

func filterNodeAffinity(_ *View, pod *corev1.Pod, n *nodeView) string {
	_, reason := matchesNode(pod, n.node)
	return reason
}

// matchesNode says whether the pod's node selector and required node affinity
// allow the node.
func matchesNode(pod *corev1.Pod, node *corev1.Node) (bool, string) {
	const reason = "node(s) didn't match Pod's node affinity/selector"
	if !contains(node.Labels, pod.Spec.NodeSelector) || !hasKeys(node.Labels, pod.Spec.NodeSelector) {
		return false, reason
	}
	a := pod.Spec.Affinity
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return true, ""
	}
	terms := a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	if slices.ContainsFunc(terms, func(t corev1.NodeSelectorTerm) bool { return matchesTerm(t, node) }) {
		return true, ""
	}
	return false, reason
}

// hasKeys: an empty value asked for is not the same as a missing label.
func hasKeys(have, want map[string]string) bool {
	for k := range want {
		if _, ok := have[k]; !ok {
			return false
		}
	}
	return true
}

// matchesTerm: all expressions of a term have to hold; an empty term matches
// nothing.
func matchesTerm(t corev1.NodeSelectorTerm, node *corev1.Node) bool {
	if len(t.MatchExpressions)+len(t.MatchFields) == 0 {
		return false
	}
	for _, e := range t.MatchExpressions {
		value, ok := node.Labels[e.Key]
		if !matchesExpression(e, value, ok) {
			return false
		}
	}
	for _, e := range t.MatchFields {
		if e.Key != "metadata.name" || !matchesExpression(e, node.Name, true) {
			return false
		}
	}
	return true
}

func matchesExpression(e corev1.NodeSelectorRequirement, value string, present bool) bool {
	switch e.Operator {
	case corev1.NodeSelectorOpIn:
		return present && slices.Contains(e.Values, value)
	case corev1.NodeSelectorOpNotIn:
		return !present || !slices.Contains(e.Values, value)
	case corev1.NodeSelectorOpExists:
		return present
	case corev1.NodeSelectorOpDoesNotExist:
		return !present
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
		if !present || len(e.Values) != 1 {
			return false
		}
		have, err1 := strconv.ParseInt(value, 10, 64)
		bound, err2 := strconv.ParseInt(e.Values[0], 10, 64)
		if err1 != nil || err2 != nil {
			return false
		}
		if e.Operator == corev1.NodeSelectorOpGt {
			return have > bound
		}
		return have < bound
	default:
		return false
	}
}

func filterPorts(_ *View, pod *corev1.Pod, n *nodeView) string {
	for _, h := range hostPortsOf(pod) {
		if slices.ContainsFunc(n.ports, h.conflicts) {
			return "node(s) didn't have free ports for the requested pod ports"
		}
	}
	return ""
}

func filterResources(v *View, pod *corev1.Pod, n *nodeView) string {
	want := v.requestsOf(pod)
	lacking := want.Lacking(n.allocatable.Minus(n.used))
	if len(lacking) == 0 {
		return ""
	}
	if lacking[0] == corev1.ResourcePods && len(lacking) == 1 {
		return "Too many pods"
	}
	names := make([]string, len(lacking))
	for i, name := range lacking {
		names[i] = "Insufficient " + string(name)
	}
	return strings.Join(names, ", ")
}

// filterVolumes lets through what needs nothing of the node and refuses the
// rest: the simulation has no volumes that it could judge.
func filterVolumes(_ *View, pod *corev1.Pod, _ *nodeView) string {
	for _, vol := range pod.Spec.Volumes {
		s := vol.VolumeSource
		switch {
		case s.EmptyDir != nil, s.ConfigMap != nil, s.Secret != nil, s.DownwardAPI != nil, s.Projected != nil, s.HostPath != nil, s.NFS != nil, s.Image != nil:
		default:
			return fmt.Sprintf("volume %q is of a kind that the simulation cannot judge", vol.Name)
		}
	}
	return ""
}

func filterClaims(_ *View, pod *corev1.Pod, _ *nodeView) string {
	if len(pod.Spec.ResourceClaims) > 0 {
		return "resource claims are nothing that the simulation can judge"
	}
	return ""
}
