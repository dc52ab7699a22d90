package requirements

import (
	"slices"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// The lists are ours rather than karpv1.WellKnownLabels because that one is a
// variable which any linked package can change.
var wellKnown = func() []string {
	keys := []string{
		karpv1.NodePoolLabelKey,
		karpv1.CapacityTypeLabelKey,
		corev1.LabelTopologyZone,
		corev1.LabelTopologyRegion,
		corev1.LabelInstanceTypeStable,
		corev1.LabelArchStable,
		corev1.LabelOSStable,
		corev1.LabelWindowsBuild,
		awsv1.LabelTopologyZoneID,
		awsv1.LabelInstanceCategory,
		awsv1.LabelInstanceFamily,
		awsv1.LabelInstanceGeneration,
		awsv1.LabelInstanceSize,
		awsv1.LabelInstanceCPU,
		awsv1.LabelInstanceCPUManufacturer,
		awsv1.LabelInstanceCPUSustainedClockSpeedMhz,
		awsv1.LabelInstanceMemory,
		awsv1.LabelInstanceEBSBandwidth,
		awsv1.LabelInstanceNetworkBandwidth,
		awsv1.LabelInstanceLocalNVME,
		awsv1.LabelInstanceHypervisor,
		awsv1.LabelInstanceEncryptionInTransitSupported,
		awsv1.LabelInstanceCapabilityFlex,
		awsv1.LabelInstanceGPUName,
		awsv1.LabelInstanceGPUManufacturer,
		awsv1.LabelInstanceGPUCount,
		awsv1.LabelInstanceGPUMemory,
		awsv1.LabelInstanceAcceleratorName,
		awsv1.LabelInstanceAcceleratorManufacturer,
		awsv1.LabelInstanceAcceleratorCount,
		awsv1.LabelInstanceTenancy,
		awsv1.LabelCapacityReservationID,
		awsv1.LabelCapacityReservationType,
		awsv1.LabelCapacityReservationInterruptible,
		awsv1.LabelPlacementGroupID,
		awsv1.LabelPlacementGroupPartition,
	}
	slices.Sort(keys)
	return keys
}()

var normalized = map[string]string{
	corev1.LabelFailureDomainBetaZone:   corev1.LabelTopologyZone,
	corev1.LabelFailureDomainBetaRegion: corev1.LabelTopologyRegion,
	corev1.LabelInstanceType:            corev1.LabelInstanceTypeStable,
	"beta.kubernetes.io/arch":           corev1.LabelArchStable,
	"beta.kubernetes.io/os":             corev1.LabelOSStable,
}

// WellKnown says whether the instance types of the catalog define the label, so
// that a pod may ask for it although no NodePool mentions it. The lists are
// those of Karpenter's core and of its AWS provider, v1.14.0.
func WellKnown(key string) bool {
	_, ok := slices.BinarySearch(wellKnown, key)
	return ok
}

// WellKnownLabels are all labels for which WellKnown is true, sorted.
func WellKnownLabels() []string { return slices.Clone(wellKnown) }

// NormalizeKey is today's name of a deprecated label (failure-domain.beta and
// beta.kubernetes.io) and any other key as it is.
func NormalizeKey(key string) string {
	if today, ok := normalized[key]; ok {
		return today
	}
	return key
}
