package aws

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/reeve-project/reeve/reconciler/catalog"
)

// listTypes asks for every instance type of the region that an image of EKS
// can run on, as Karpenter does (pkg/providers/instancetype).
func (c *Cloud) listTypes(ctx context.Context) ([]catalog.Type, error) {
	pages := ec2.NewDescribeInstanceTypesPaginator(c.ec2, &ec2.DescribeInstanceTypesInput{
		Filters: []types.Filter{
			filter("supported-virtualization-type", "hvm"),
			filter("processor-info.supported-architecture", "x86_64", "arm64"),
		},
		MaxResults: awssdk.Int32(100),
	})
	var out []catalog.Type
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("DescribeInstanceTypes: %w", err)
		}
		for i := range page.InstanceTypes {
			t, ok := readType(&page.InstanceTypes[i])
			if !ok {
				continue
			}
			if err := t.Document(); err != nil {
				return nil, err
			}
			out = append(out, t)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("DescribeInstanceTypes: it lists no instance type that nodes can be made of")
	}
	return out, nil
}

// readType is the type as the catalog keeps it. It is false for one that no
// node can be made of: without an architecture that EKS has images for, or
// without the numbers that a node is sized by.
func readType(in *types.InstanceTypeInfo) (catalog.Type, bool) {
	t := catalog.Type{Name: string(in.InstanceType), Hypervisor: string(in.Hypervisor)}
	if p := in.ProcessorInfo; p != nil {
		t.Arch, t.Manufacturer = architecture(p.SupportedArchitectures), awssdk.ToString(p.Manufacturer)
		t.MHz = int64(math.Round(awssdk.ToFloat64(p.SustainedClockSpeedInGhz) * 1000))
	}
	if in.VCpuInfo != nil {
		t.VCPUs = int64(awssdk.ToInt32(in.VCpuInfo.DefaultVCpus))
	}
	if in.MemoryInfo != nil {
		t.MiB = awssdk.ToInt64(in.MemoryInfo.SizeInMiB)
	}
	for _, u := range in.SupportedUsageClasses {
		t.Usage = append(t.Usage, string(u))
	}
	slices.Sort(t.Usage)
	readNetwork(&t, in.NetworkInfo)
	readStorage(&t, in)
	readDevices(&t, in)
	return t, t.Name != "" && t.Arch != "" && t.VCPUs > 0 && t.MiB > 0 && len(t.Cards) > 0
}

// architecture is the first one that Kubernetes has a name for.
func architecture(all []types.ArchitectureType) string {
	for _, a := range all {
		if a == types.ArchitectureTypeX8664 || a == types.ArchitectureTypeArm64 {
			return string(a)
		}
	}
	return ""
}

// readNetwork puts the default network card first: pods get their addresses
// from it.
func readNetwork(t *catalog.Type, in *types.NetworkInfo) {
	if in == nil {
		return
	}
	t.Encrypted = awssdk.ToBool(in.EncryptionInTransitSupported)
	t.IPv4 = int64(awssdk.ToInt32(in.Ipv4AddressesPerInterface))
	if in.EfaInfo != nil {
		t.EFAs = int64(awssdk.ToInt32(in.EfaInfo.MaximumEfaInterfaces))
	}
	first := int(awssdk.ToInt32(in.DefaultNetworkCardIndex))
	for i := range in.NetworkCards {
		n := int64(awssdk.ToInt32(in.NetworkCards[i].MaximumNetworkInterfaces))
		if i == first {
			t.Cards = slices.Insert(t.Cards, 0, n)
			continue
		}
		t.Cards = append(t.Cards, n)
	}
}

func readStorage(t *catalog.Type, in *types.InstanceTypeInfo) {
	if e := in.EbsInfo; e != nil && e.EbsOptimizedSupport == types.EbsOptimizedSupportDefault && e.EbsOptimizedInfo != nil {
		t.EBSMbps = int64(awssdk.ToInt32(e.EbsOptimizedInfo.MaximumBandwidthInMbps))
	}
	s := in.InstanceStorageInfo
	switch {
	case s == nil:
	case s.NvmeSupport != "" && s.NvmeSupport != types.EphemeralNvmeSupportUnsupported:
		t.NVMeGB = awssdk.ToInt64(s.TotalSizeInGB)
	default:
		t.DiskGB = awssdk.ToInt64(s.TotalSizeInGB)
	}
}

// readDevices reads accelerators. Labels tell of them only where there is
// exactly one kind (AWS.md section 2).
func readDevices(t *catalog.Type, in *types.InstanceTypeInfo) {
	if g := in.GpuInfo; g != nil && len(g.Gpus) == 1 {
		d := g.Gpus[0]
		t.GPU = &catalog.GPU{Count: int64(awssdk.ToInt32(d.Count)), Manufacturer: awssdk.ToString(d.Manufacturer), Name: awssdk.ToString(d.Name)}
		if d.MemoryInfo != nil {
			t.GPU.MiB = int64(awssdk.ToInt32(d.MemoryInfo.SizeInMiB))
		}
	}
	if n := in.NeuronInfo; n != nil && len(n.NeuronDevices) == 1 {
		d := n.NeuronDevices[0]
		t.Neuron = &catalog.Neuron{Count: int64(awssdk.ToInt32(d.Count)), Name: awssdk.ToString(d.Name)}
		if d.CoreInfo != nil {
			t.Neuron.Cores = int64(awssdk.ToInt32(d.CoreInfo.Count))
		}
	}
	// EC2 lists Inferentia and Trainium in both places; what Neuron knows of
	// them is more.
	if a := in.InferenceAcceleratorInfo; a != nil && len(a.Accelerators) == 1 && t.Neuron == nil {
		d := a.Accelerators[0]
		t.Accelerator = &catalog.Accelerator{Count: int64(awssdk.ToInt32(d.Count)), Manufacturer: awssdk.ToString(d.Manufacturer), Name: awssdk.ToString(d.Name)}
	}
}

// listOfferings asks in which zones each type is offered: zone ids by the name
// of the type, sorted. It asks by the ids of zones, which need no translation
// from the names that only this account has for them.
func (c *Cloud) listOfferings(ctx context.Context) (map[string][]string, error) {
	pages := ec2.NewDescribeInstanceTypeOfferingsPaginator(c.ec2, &ec2.DescribeInstanceTypeOfferingsInput{
		LocationType: types.LocationTypeAvailabilityZoneId, MaxResults: awssdk.Int32(1000),
	})
	out := map[string][]string{}
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("DescribeInstanceTypeOfferings: %w", err)
		}
		for _, o := range page.InstanceTypeOfferings {
			name, zone := string(o.InstanceType), awssdk.ToString(o.Location)
			if i, there := slices.BinarySearch(out[name], zone); !there && zone != "" {
				out[name] = slices.Insert(out[name], i, zone)
			}
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("DescribeInstanceTypeOfferings: no type is offered in any zone")
	}
	return out, nil
}

// listZones asks what the account calls its zones: names by id, of the zones
// with a subnet. Zones without one cannot be launched into, so their names do
// not matter.
func (c *Cloud) listZones(ctx context.Context) (map[string]string, error) {
	pages := ec2.NewDescribeSubnetsPaginator(c.ec2, &ec2.DescribeSubnetsInput{MaxResults: awssdk.Int32(500)})
	out := map[string]string{}
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("DescribeSubnets: %w", err)
		}
		for _, s := range page.Subnets {
			if id, name := awssdk.ToString(s.AvailabilityZoneId), awssdk.ToString(s.AvailabilityZone); id != "" && name != "" {
				out[id] = name
			}
		}
	}
	return out, nil
}

// localZone says whether the zone is a Local or Wavelength Zone, which the
// offerings list too: their ids have more parts than "use1-az1".
func localZone(id string) bool { return strings.Count(id, "-") > 1 }
