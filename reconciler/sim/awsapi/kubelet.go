package awsapi

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// ownLabels are those of Kubernetes' domains that a kubelet may set on itself
// (https://kubernetes.io/docs/reference/command-line-tools-reference/kubelet,
// --node-labels), besides those under ownDomains.
var ownLabels = []string{
	corev1.LabelHostname, corev1.LabelArchStable, corev1.LabelOSStable, corev1.LabelInstanceTypeStable, corev1.LabelTopologyRegion, corev1.LabelTopologyZone,
	"beta.kubernetes.io/arch", "beta.kubernetes.io/instance-type", "beta.kubernetes.io/os",
	"failure-domain.beta.kubernetes.io/region", "failure-domain.beta.kubernetes.io/zone",
}

var ownDomains = []string{"kubelet.kubernetes.io", "node.kubernetes.io"}

// checkLabels refuses what a kubelet refuses to start with.
func checkLabels(labels map[string]string) error {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		domain, _, qualified := strings.Cut(key, "/")
		if qualified && (within(domain, "kubernetes.io") || within(domain, "k8s.io")) && !slices.Contains(ownLabels, key) &&
			!slices.ContainsFunc(ownDomains, func(d string) bool { return within(domain, d) }) {
			return fmt.Errorf("kubelet: unknown 'kubernetes.io' or 'k8s.io' label %q in --node-labels", key)
		}
	}
	return nil
}

func within(domain, parent string) bool {
	return domain == parent || strings.HasSuffix(domain, "."+parent)
}
