package catalog

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/requirements"
)

// typeName splits a type's name: category, size in terabytes of some
// high-memory families, generation.
var typeName = regexp.MustCompile(`^([a-z]+)(?:-[0-9]+tb)?([0-9]+).*\.`)

// kubeArch is the architecture as Kubernetes names it.
func (t *Type) kubeArch() string {
	if t.Arch == "x86_64" {
		return karpv1.ArchitectureAmd64
	}
	return t.Arch
}

// fixedLabels are the requirements of a type that no EC2NodeClass changes,
// sorted by key (AWS.md section 2). Labels that the type does not have are
// there as DoesNotExist.
func fixedLabels(t *Type, region string) requirements.Set {
	category, generation := "", ""
	if m := typeName.FindStringSubmatch(t.Name); m != nil {
		category, generation = m[1], m[2]
	}
	famName, size, _ := strings.Cut(t.Name, ".")
	reqs := []requirements.Requirement{
		label(awsv1.LabelInstanceCategory, category),
		label(awsv1.LabelInstanceGeneration, generation),
		label(awsv1.LabelInstanceFamily, famName),
		label(awsv1.LabelInstanceSize, size),
		label(awsv1.LabelInstanceCapabilityFlex, strconv.FormatBool(strings.Contains(famName, "-flex"))),
		label(awsv1.LabelInstanceCPU, decimal(t.VCPUs)),
		label(awsv1.LabelInstanceCPUManufacturer, kebab(t.Manufacturer)),
		label(awsv1.LabelInstanceCPUSustainedClockSpeedMhz, decimal(t.MHz)),
		label(awsv1.LabelInstanceMemory, decimal(t.MiB)),
		label(awsv1.LabelInstanceEBSBandwidth, known(t.EBSMbps)),
		label(awsv1.LabelInstanceNetworkBandwidth, known(t.NetworkMbps)),
		label(awsv1.LabelInstanceLocalNVME, known(t.NVMeGB)),
		label(awsv1.LabelInstanceEncryptionInTransitSupported, strconv.FormatBool(t.Encrypted)),
		// The empty value is the label of bare metal, not its absence.
		requirements.In(awsv1.LabelInstanceHypervisor, t.Hypervisor),
		requirements.In(awsv1.LabelInstanceTenancy, "default", "dedicated"),
		requirements.DoesNotExist(awsv1.LabelCapacityReservationID),
		requirements.DoesNotExist(awsv1.LabelCapacityReservationInterruptible),
		requirements.DoesNotExist(awsv1.LabelCapacityReservationType),
		requirements.DoesNotExist(awsv1.LabelPlacementGroupID),
		requirements.DoesNotExist(awsv1.LabelPlacementGroupPartition),
		requirements.In(corev1.LabelInstanceTypeStable, t.Name),
		requirements.In(corev1.LabelArchStable, t.kubeArch()),
		requirements.In(corev1.LabelTopologyRegion, region),
		requirements.In(karpv1.CapacityTypeLabelKey, capacityTypes(t)...),
	}
	reqs = append(reqs, gpuLabels(t)...)
	reqs = append(reqs, acceleratorLabels(t)...)
	return requirements.NewSet(reqs...)
}

func gpuLabels(t *Type) []requirements.Requirement {
	var name, maker, count, memory string
	if g := t.GPU; g != nil {
		name, maker, count, memory = kebab(g.Name), kebab(g.Manufacturer), decimal(g.Count), decimal(g.MiB)
	}
	return []requirements.Requirement{
		label(awsv1.LabelInstanceGPUName, name), label(awsv1.LabelInstanceGPUManufacturer, maker),
		label(awsv1.LabelInstanceGPUCount, count), label(awsv1.LabelInstanceGPUMemory, memory),
	}
}

func acceleratorLabels(t *Type) []requirements.Requirement {
	var name, maker, count string
	switch {
	case t.Neuron != nil:
		name, maker, count = kebab(t.Neuron.Name), "aws", decimal(t.Neuron.Count)
	case t.Accelerator != nil:
		name, maker, count = kebab(t.Accelerator.Name), kebab(t.Accelerator.Manufacturer), decimal(t.Accelerator.Count)
	}
	return []requirements.Requirement{
		label(awsv1.LabelInstanceAcceleratorName, name), label(awsv1.LabelInstanceAcceleratorManufacturer, maker),
		label(awsv1.LabelInstanceAcceleratorCount, count),
	}
}

// label is the requirement of a type that has the label with that value, or
// that does not have the label when the value is empty.
func label(key, value string) requirements.Requirement {
	if value == "" {
		return requirements.DoesNotExist(key)
	}
	return requirements.In(key, value)
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

// known is the label value of a number for which 0 stands for "not there". The
// count of a GPU is not one: a slice of a GPU counts as 0.
func known(n int64) string {
	if n == 0 {
		return ""
	}
	return decimal(n)
}

func kebab(s string) string { return strings.ToLower(strings.ReplaceAll(s, " ", "-")) }

// capacityTypes are the usage classes that can be asked for without a
// reservation.
func capacityTypes(t *Type) []string {
	var out []string
	for _, c := range []string{karpv1.CapacityTypeOnDemand, karpv1.CapacityTypeSpot} {
		if slices.Contains(t.Usage, c) {
			out = append(out, c)
		}
	}
	return out
}

// classLabels are the requirements that depend on the EC2NodeClass. Most types
// share them with many others, so they are kept by architecture and zones.
func (c *classInput) classLabels(t *Type, zones []Zone) requirements.Set {
	key := t.Arch
	for _, z := range zones {
		key += " " + z.ID
	}
	if s, ok := c.labels[key]; ok {
		return s
	}
	names, ids := make([]string, len(zones)), make([]string, len(zones))
	for i, z := range zones {
		names[i], ids[i] = z.Name, z.ID
	}
	os := requirements.In(corev1.LabelOSStable, c.family.os())
	if c.family.windowsBuild != "" && t.kubeArch() != karpv1.ArchitectureAmd64 {
		os = requirements.In(corev1.LabelOSStable)
	}
	s := requirements.NewSet(
		os,
		label(corev1.LabelWindowsBuild, c.family.windowsBuild),
		requirements.In(corev1.LabelTopologyZone, names...),
		requirements.In(awsv1.LabelTopologyZoneID, ids...),
	)
	c.labels[key] = s
	return s
}
