package sim

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// filterSpread is the DoNotSchedule topology spread constraints: placed here,
// the pods of the domain may outnumber those of the emptiest eligible domain by
// maxSkew at most.
func filterSpread(v *View, pod *corev1.Pod, n *nodeView) string {
	var hard []corev1.TopologySpreadConstraint
	for _, c := range pod.Spec.TopologySpreadConstraints {
		if c.WhenUnsatisfiable == corev1.DoNotSchedule {
			hard = append(hard, c)
		}
	}
	if v.only != "" {
		return ""
	}
	for _, c := range hard {
		domain, ok := n.node.Labels[c.TopologyKey]
		if !ok {
			return "node(s) didn't match pod topology spread constraints (missing required label)"
		}
		counts := v.domainCounts(pod, c, hard)
		least, own := minimum(counts, c), counts[domain]
		if selects(spreadSelector(pod, c), pod.Labels) {
			own++
		}
		if own-least > int(c.MaxSkew) {
			return "node(s) didn't match pod topology spread constraints"
		}
	}
	return ""
}

// minimum is the global minimum: the fewest pods in any eligible domain, or
// zero while there are fewer domains than minDomains.
func minimum(counts map[string]int, c corev1.TopologySpreadConstraint) int {
	if c.MinDomains != nil && len(counts) < int(*c.MinDomains) {
		return 0
	}
	least := -1
	for _, n := range counts {
		if least < 0 || n < least {
			least = n
		}
	}
	return max(least, 0)
}

// domainCounts are the matching pods of the pod's namespace in each eligible
// domain. A node is eligible if it has the keys of all constraints and the
// constraint's policies do not leave it out. Pods that are being deleted do not
// count.
func (v *View) domainCounts(pod *corev1.Pod, c corev1.TopologySpreadConstraint, hard []corev1.TopologySpreadConstraint) map[string]int {
	selector := spreadSelector(pod, c)
	counts := map[string]int{}
	for _, n := range v.nodes {
		if !spreadEligible(pod, c, hard, n.node) {
			continue
		}
		domain := n.node.Labels[c.TopologyKey]
		counts[domain] += 0
		for _, p := range n.pods {
			if p.Namespace == pod.Namespace && p.DeletionTimestamp == nil && selects(selector, p.Labels) {
				counts[domain]++
			}
		}
	}
	return counts
}

func spreadEligible(pod *corev1.Pod, c corev1.TopologySpreadConstraint, hard []corev1.TopologySpreadConstraint, node *corev1.Node) bool {
	for _, h := range hard {
		if _, ok := node.Labels[h.TopologyKey]; !ok {
			return false
		}
	}
	if c.NodeAffinityPolicy == nil || *c.NodeAffinityPolicy == corev1.NodeInclusionPolicyHonor {
		if ok, _ := matchesNode(pod, node); !ok {
			return false
		}
	}
	if c.NodeTaintsPolicy != nil && *c.NodeTaintsPolicy == corev1.NodeInclusionPolicyHonor {
		for _, t := range node.Spec.Taints {
			if t.Effect != corev1.TaintEffectPreferNoSchedule && !tolerated(pod.Spec.Tolerations, t) {
				return false
			}
		}
	}
	return true
}

func spreadSelector(pod *corev1.Pod, c corev1.TopologySpreadConstraint) *metav1.LabelSelector {
	return withPodKeys(c.LabelSelector, pod.Labels, c.MatchLabelKeys, nil)
}
