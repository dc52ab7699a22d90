package sim

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func requiredAffinity(pod *corev1.Pod) []corev1.PodAffinityTerm {
	if a := pod.Spec.Affinity; a != nil && a.PodAffinity != nil {
		return a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	return nil
}

func requiredAnti(pod *corev1.Pod) []corev1.PodAffinityTerm {
	if a := pod.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		return a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	return nil
}

// matchesPod says whether a term of the owner's (anti-)affinity is about the
// other pod: its namespace is listed or selected (the owner's own if neither is
// given) and its labels are selected.
func (v *View) matchesPod(owner *corev1.Pod, t corev1.PodAffinityTerm, other *corev1.Pod) bool {
	if !v.inNamespaces(owner, t, other.Namespace) {
		return false
	}
	return selects(withPodKeys(t.LabelSelector, owner.Labels, t.MatchLabelKeys, t.MismatchLabelKeys), other.Labels)
}

func (v *View) inNamespaces(owner *corev1.Pod, t corev1.PodAffinityTerm, namespace string) bool {
	if len(t.Namespaces) == 0 && t.NamespaceSelector == nil {
		return namespace == owner.Namespace
	}
	if slices.Contains(t.Namespaces, namespace) {
		return true
	}
	labels, ok := v.namespaces[namespace]
	return ok && t.NamespaceSelector != nil && selects(t.NamespaceSelector, labels)
}

// withPodKeys narrows the selector by the owner's own values of the given
// labels, as matchLabelKeys and mismatchLabelKeys ask for.
func withPodKeys(s *metav1.LabelSelector, own map[string]string, match, mismatch []string) *metav1.LabelSelector {
	if s == nil || len(match)+len(mismatch) == 0 {
		return s
	}
	out := s.DeepCopy()
	add := func(keys []string, op metav1.LabelSelectorOperator) {
		for _, k := range keys {
			if value, ok := own[k]; ok {
				out.MatchExpressions = append(out.MatchExpressions, metav1.LabelSelectorRequirement{Key: k, Operator: op, Values: []string{value}})
			}
		}
	}
	add(match, metav1.LabelSelectorOpIn)
	add(mismatch, metav1.LabelSelectorOpNotIn)
	return out
}

// inDomain says whether any pod in the node's domain of the topology key
// passes the test.
func (v *View) inDomain(n *nodeView, key string, test func(*corev1.Pod) bool) bool {
	domain, ok := n.node.Labels[key]
	if !ok {
		return false
	}
	for _, o := range v.nodes {
		if d, ok := o.node.Labels[key]; ok && d == domain && slices.ContainsFunc(o.pods, test) {
			return true
		}
	}
	return false
}

func filterPodAffinity(v *View, pod *corev1.Pod, n *nodeView) string {
	if v.only == "" && !v.affinityMet(pod, n) {
		return "node(s) didn't match pod affinity rules"
	}
	for _, t := range requiredAnti(pod) {
		if v.inDomain(n, t.TopologyKey, func(o *corev1.Pod) bool { return v.matchesPod(pod, t, o) }) {
			return "node(s) didn't match pod anti-affinity rules"
		}
	}
	// Anti-affinity of the pods that run already works both ways.
	for _, p := range v.withAnti {
		for _, t := range requiredAnti(p.pod) {
			domain, ok := p.on.node.Labels[t.TopologyKey]
			here, has := n.node.Labels[t.TopologyKey]
			if ok && has && domain == here && v.matchesPod(p.pod, t, pod) {
				return "node(s) didn't satisfy existing pods anti-affinity rules"
			}
		}
	}
	return ""
}

// affinityMet: the node has every term's topology key, and in its domain there
// runs a pod that the term is about. Pods count only if all terms are about
// them. The first pod of a group that wants to be together may go anywhere: no
// such pod runs yet and all terms are about the pod itself.
func (v *View) affinityMet(pod *corev1.Pod, n *nodeView) bool {
	terms := requiredAffinity(pod)
	if len(terms) == 0 {
		return true
	}
	all := func(o *corev1.Pod) bool {
		for _, t := range terms {
			if !v.matchesPod(pod, t, o) {
				return false
			}
		}
		return true
	}
	met := true
	for _, t := range terms {
		if _, ok := n.node.Labels[t.TopologyKey]; !ok {
			return false
		}
		met = met && v.inDomain(n, t.TopologyKey, all)
	}
	if met {
		return true
	}
	for _, o := range v.nodes {
		for _, t := range terms {
			if _, ok := o.node.Labels[t.TopologyKey]; ok && slices.ContainsFunc(o.pods, all) {
				return false
			}
		}
	}
	return all(pod)
}
