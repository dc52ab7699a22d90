package catalog

import (
	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/reeve-project/reeve/reconciler/resources"
)

const (
	// Graviton processors keep contiguous memory that the kernel cannot use.
	armReservedMiB = 64
	// Pods of a node whose family does not count interfaces.
	defaultPods = 110
	// Memory that Kubernetes keeps back: a base, and a part for each pod.
	reservedMiB       = 255
	reservedMiBPerPod = 11
	reservedStorage   = 1 * gib
	// Default hard eviction thresholds.
	evictionMemory       = 100 * mib
	evictionStorageShare = 10_000_000 // 10 % in millionths of a percent
	million              = 1_000_000
)

// capacity is what a node of the type reports (AWS.md section 1; Karpenter,
// pkg/providers/instancetype/types.go). Resources that the type does not have
// are left out.
func (c *classInput) capacity(t *Type) resources.List {
	out := resources.List{
		corev1.ResourceCPU:              t.VCPUs * 1000,
		corev1.ResourceMemory:           c.memory(t),
		corev1.ResourceEphemeralStorage: c.storage(t),
		corev1.ResourcePods:             c.pods(t),
	}
	set := func(name corev1.ResourceName, amount int64) {
		if amount > 0 {
			out[name] = amount
		}
	}
	set(awsv1.ResourceAWSPodENI, t.BranchENIs)
	if g := t.GPU; g != nil {
		set(gpuResources[g.Manufacturer], g.Count)
	}
	if n := t.Neuron; n != nil {
		set(awsv1.ResourceAWSNeuron, n.Count)
		set(awsv1.ResourceAWSNeuronCore, n.Count*n.Cores)
	}
	set(awsv1.ResourceEFA, c.efas(t))
	if c.family.windowsBuild != "" && t.kubeArch() == "amd64" && t.VPCLimits {
		set(awsv1.ResourcePrivateIPv4Address, t.IPv4-1)
	}
	return out
}

var gpuResources = map[string]corev1.ResourceName{
	"NVIDIA": awsv1.ResourceNVIDIAGPU, "AMD": awsv1.ResourceAMDGPU, "Habana": awsv1.ResourceHabanaGaudi,
}

// memory is the advertised size less what the hypervisor is assumed to keep, in
// bytes.
func (c *classInput) memory(t *Type) int64 {
	m := t.MiB
	if t.Arch == "arm64" {
		m -= armReservedMiB
	}
	return (m - ceilShare(m, c.settings.VMMemoryOverheadPPM, million)) * mib
}

func (c *classInput) storage(t *Type) int64 {
	if c.raid0 && t.StorageGB() > 0 {
		return t.StorageGB() * gb
	}
	return c.rootStorage
}

func (c *classInput) efas(t *Type) int64 {
	if c.interfaces != nil {
		return c.efaOnly
	}
	return t.EFAs
}

func (c *classInput) pods(t *Type) int64 {
	n := int64(defaultPods)
	switch {
	case c.kubelet.maxPods != nil:
		n = *c.kubelet.maxPods
	case c.family.eniDensity:
		n = c.podsByInterfaces(t, c.settings.ReservedENIs)
	}
	if c.kubelet.podsPerCore > 0 && c.family.podsPerCore {
		n = min(n, c.kubelet.podsPerCore*t.VCPUs)
	}
	return n
}

// podsByInterfaces is how many pods get an address from the VPC CNI: one address
// of each interface is the interface's own, and two pods use the host's.
func (c *classInput) podsByInterfaces(t *Type, reserved int64) int64 {
	n := t.Cards[0] - reserved - c.efaOnlyFirstCard
	if n <= 0 {
		return 0
	}
	return n*(t.IPv4-1) + 2
}

// overhead is what kubelet, system and eviction thresholds keep back.
func (c *classInput) overhead(t *Type, capacity resources.List) resources.List {
	pods := c.podsByInterfaces(t, 0)
	if c.family.reserveForPods {
		pods = capacity[corev1.ResourcePods]
	}
	out := resources.List{
		corev1.ResourceCPU:              reservedCPU(t.VCPUs),
		corev1.ResourceMemory:           (reservedMiBPerPod*pods + reservedMiB) * mib,
		corev1.ResourceEphemeralStorage: reservedStorage,
	}
	for name, amount := range c.kubelet.kubeReserved {
		out[name] = amount
	}
	for name, amount := range c.kubelet.systemReserved {
		out[name] += amount
	}
	memory := threshold{amount: evictionMemory}
	if c.kubelet.memory != nil {
		memory = *c.kubelet.memory
	}
	storage := threshold{millionths: evictionStorageShare, share: true}
	if c.kubelet.storage != nil {
		storage = *c.kubelet.storage
	}
	out[corev1.ResourceMemory] += memory.of(capacity[corev1.ResourceMemory])
	out[corev1.ResourceEphemeralStorage] += storage.of(capacity[corev1.ResourceEphemeralStorage])
	return out
}

// reservedCPU is the share of each core that Kubernetes keeps back, in
// millicores: 6 % of the first core, 1 % of the second, 0.5 % of the third and
// fourth, 0.25 % of the others. Each band is cut to whole millicores.
func reservedCPU(vcpus int64) int64 {
	out := int64(0)
	for _, band := range []struct{ from, to, perTenThousand int64 }{
		{0, 1, 600}, {1, 2, 100}, {2, 4, 50}, {4, vcpus, 25},
	} {
		if cores := min(vcpus, band.to) - band.from; cores > 0 {
			out += cores * 1000 * band.perTenThousand / 10_000
		}
	}
	return out
}

// allocatable is what is left for pods; a node never offers less than nothing.
func allocatable(capacity, overhead resources.List) resources.List {
	out := make(resources.List, len(capacity))
	for name, amount := range capacity {
		out[name] = max(0, amount-overhead[name])
	}
	return out
}
