package awsapi

import (
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/reeve-project/reeve/reconciler/catalog"
)

// SetCatalog changes what can be bought and its prices. It must be of the same
// region.
func (e *Endpoint) SetCatalog(d *catalog.Data) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.options.Catalog = d
	clear(e.ec2.shapes)
}

// offered are the types that are sold in some zone of the region.
func (e *Endpoint) offered() []*catalog.Type {
	var out []*catalog.Type
	list := e.options.Catalog.Types()
	for i := range list {
		if len(list[i].Zones) > 0 {
			out = append(out, &list[i])
		}
	}
	return out
}

func (e *Endpoint) describeInstanceTypes(in *ec2.DescribeInstanceTypesInput) (*ec2.DescribeInstanceTypesOutput, error) {
	if len(in.InstanceTypes) > 0 && in.MaxResults != nil {
		return nil, errorf("InvalidParameterCombination", "The parameter instanceTypes cannot be used with the parameter maxResults")
	}
	list := e.offered()
	if len(in.InstanceTypes) > 0 {
		list = nil
		for _, name := range in.InstanceTypes {
			t, ok := e.options.Catalog.Type(string(name))
			if !ok || len(t.Zones) == 0 {
				return nil, errorf("InvalidInstanceType", "The following supplied instance types do not exist: [%s]", name)
			}
			list = append(list, t)
		}
	}
	list, err := selected(list, in.Filters, &catalog.Type{}, typeAttributes)
	if err != nil {
		return nil, err
	}
	list, next, err := page(list, in.MaxResults, in.NextToken, bounds{5, 100, 100})
	if err != nil {
		return nil, err
	}
	out := &ec2.DescribeInstanceTypesOutput{NextToken: next, InstanceTypes: []types.InstanceTypeInfo{}}
	for _, t := range list {
		out.InstanceTypes = append(out.InstanceTypes, typeInfo(t))
	}
	return out, nil
}

func typeAttributes(t *catalog.Type) (attributes, map[string]string) {
	bare := "false"
	if t.Bare() {
		bare = "true"
	}
	return attributes{
		"instance-type":                         one(t.Name),
		"supported-virtualization-type":         one("hvm"),
		"processor-info.supported-architecture": one(t.Arch),
		"supported-usage-class":                 t.Usage,
		"bare-metal":                            one(bare),
		"hypervisor":                            one(t.Hypervisor),
	}, nil
}

// typeInfo is what EC2 says about the type, as far as the catalog knows.
func typeInfo(t *catalog.Type) types.InstanceTypeInfo {
	out := types.InstanceTypeInfo{
		InstanceType: types.InstanceType(t.Name), BareMetal: new(t.Bare()), Hypervisor: types.InstanceTypeHypervisor(t.Hypervisor),
		SupportedVirtualizationTypes: []types.VirtualizationType{types.VirtualizationTypeHvm},
		SupportedRootDeviceTypes:     []types.RootDeviceType{types.RootDeviceTypeEbs},
		ProcessorInfo: &types.ProcessorInfo{
			Manufacturer: new(t.Manufacturer), SupportedArchitectures: []types.ArchitectureType{types.ArchitectureType(t.Arch)},
			SustainedClockSpeedInGhz: clock(t.MHz),
		},
		VCpuInfo:    &types.VCpuInfo{DefaultVCpus: new(int32(t.VCPUs))},
		MemoryInfo:  &types.MemoryInfo{SizeInMiB: new(t.MiB)},
		NetworkInfo: networkInfo(t),
		EbsInfo:     &types.EbsInfo{EbsOptimizedSupport: types.EbsOptimizedSupportUnsupported},
		GpuInfo:     gpuInfo(t), NeuronInfo: neuronInfo(t), InferenceAcceleratorInfo: acceleratorInfo(t),
		InstanceStorageSupported: new(t.StorageGB() > 0), InstanceStorageInfo: storageInfo(t),
	}
	for _, u := range t.Usage {
		out.SupportedUsageClasses = append(out.SupportedUsageClasses, types.UsageClassType(u))
	}
	if t.EBSMbps > 0 {
		out.EbsInfo = &types.EbsInfo{
			EbsOptimizedSupport: types.EbsOptimizedSupportDefault,
			EbsOptimizedInfo:    &types.EbsOptimizedInfo{MaximumBandwidthInMbps: new(int32(t.EBSMbps))},
		}
	}
	return out
}

// clock is nil where EC2 tells none.
func clock(mhz int64) *float64 {
	if mhz == 0 {
		return nil
	}
	return new(float64(mhz) / 1000)
}

func networkInfo(t *catalog.Type) *types.NetworkInfo {
	out := &types.NetworkInfo{
		DefaultNetworkCardIndex: new(int32(0)), MaximumNetworkCards: new(int32(len(t.Cards))), Ipv4AddressesPerInterface: new(int32(t.IPv4)),
		EfaSupported: new(t.EFAs > 0), EncryptionInTransitSupported: new(t.Encrypted),
	}
	total := int32(0)
	for i, n := range t.Cards {
		total += int32(n)
		out.NetworkCards = append(out.NetworkCards, types.NetworkCardInfo{NetworkCardIndex: new(int32(i)), MaximumNetworkInterfaces: new(int32(n))})
	}
	out.MaximumNetworkInterfaces = &total
	if t.EFAs > 0 {
		out.EfaInfo = &types.EfaInfo{MaximumEfaInterfaces: new(int32(t.EFAs))}
	}
	return out
}

func storageInfo(t *catalog.Type) *types.InstanceStorageInfo {
	switch {
	case t.NVMeGB > 0:
		return &types.InstanceStorageInfo{TotalSizeInGB: new(t.NVMeGB), NvmeSupport: types.EphemeralNvmeSupportRequired}
	case t.DiskGB > 0:
		return &types.InstanceStorageInfo{TotalSizeInGB: new(t.DiskGB), NvmeSupport: types.EphemeralNvmeSupportUnsupported}
	}
	return nil
}

func gpuInfo(t *catalog.Type) *types.GpuInfo {
	if t.GPU == nil {
		return nil
	}
	return &types.GpuInfo{Gpus: []types.GpuDeviceInfo{{
		Count: new(int32(t.GPU.Count)), Manufacturer: new(t.GPU.Manufacturer), Name: new(t.GPU.Name),
		MemoryInfo: &types.GpuDeviceMemoryInfo{SizeInMiB: new(int32(t.GPU.MiB))},
	}}}
}

func neuronInfo(t *catalog.Type) *types.NeuronInfo {
	if t.Neuron == nil {
		return nil
	}
	return &types.NeuronInfo{NeuronDevices: []types.NeuronDeviceInfo{{
		Count: new(int32(t.Neuron.Count)), Name: new(t.Neuron.Name), CoreInfo: &types.NeuronDeviceCoreInfo{Count: new(int32(t.Neuron.Cores))},
	}}}
}

func acceleratorInfo(t *catalog.Type) *types.InferenceAcceleratorInfo {
	if t.Accelerator == nil {
		return nil
	}
	return &types.InferenceAcceleratorInfo{Accelerators: []types.InferenceDeviceInfo{{
		Count: new(int32(t.Accelerator.Count)), Manufacturer: new(t.Accelerator.Manufacturer), Name: new(t.Accelerator.Name),
	}}}
}

func (e *Endpoint) describeInstanceTypeOfferings(in *ec2.DescribeInstanceTypeOfferingsInput) (*ec2.DescribeInstanceTypeOfferingsOutput, error) {
	var list []types.InstanceTypeOffering
	add := func(t *catalog.Type, location string) {
		list = append(list, types.InstanceTypeOffering{InstanceType: types.InstanceType(t.Name), LocationType: in.LocationType, Location: &location})
	}
	for _, t := range e.offered() {
		switch in.LocationType {
		case types.LocationTypeAvailabilityZone, types.LocationTypeAvailabilityZoneId:
			for _, z := range e.options.Catalog.Zones() {
				if !slices.Contains(t.Zones, z.ID) {
					continue
				}
				if in.LocationType == types.LocationTypeAvailabilityZone {
					add(t, z.Name)
				} else {
					add(t, z.ID)
				}
			}
		case types.LocationTypeRegion, "":
			in.LocationType = types.LocationTypeRegion
			add(t, e.Region())
		default:
			return nil, errorf("InvalidParameterValue", "Value (%s) for parameter locationType is invalid.", in.LocationType)
		}
	}
	list, err := selected(list, in.Filters, types.InstanceTypeOffering{}, func(o types.InstanceTypeOffering) (attributes, map[string]string) {
		return attributes{"instance-type": one(o.InstanceType), "location": one(deref(o.Location))}, nil
	})
	if err != nil {
		return nil, err
	}
	list, next, err := page(list, in.MaxResults, in.NextToken, bounds{5, 1000, 1000})
	return &ec2.DescribeInstanceTypeOfferingsOutput{InstanceTypeOfferings: list, NextToken: next}, err
}

// spotProducts are the products whose spot prices are listed.
var spotProducts = []string{"Linux/UNIX", "Linux/UNIX (Amazon VPC)"}

// describeSpotPriceHistory knows the prices of now only: they are what they
// have been since before the start time.
func (e *Endpoint) describeSpotPriceHistory(in *ec2.DescribeSpotPriceHistoryInput) (*ec2.DescribeSpotPriceHistoryOutput, error) {
	list := []types.SpotPrice{}
	now := e.world.Now()
	if len(in.ProductDescriptions) > 0 && !slices.ContainsFunc(in.ProductDescriptions, func(p string) bool { return slices.Contains(spotProducts, p) }) {
		return &ec2.DescribeSpotPriceHistoryOutput{SpotPriceHistory: list}, nil
	}
	for _, t := range e.offered() {
		if len(in.InstanceTypes) > 0 && !slices.Contains(in.InstanceTypes, types.InstanceType(t.Name)) {
			continue
		}
		for _, z := range e.options.Catalog.Zones() {
			p, ok := e.options.Catalog.SpotPrice(t.Name, z.ID)
			if !ok || in.AvailabilityZone != nil && *in.AvailabilityZone != z.Name {
				continue
			}
			list = append(list, types.SpotPrice{
				InstanceType: types.InstanceType(t.Name), AvailabilityZone: new(z.Name), AvailabilityZoneId: new(z.ID),
				ProductDescription: types.RIProductDescriptionLinuxUnix, SpotPrice: new(sixDecimals(p.Decimal())), Timestamp: &now,
			})
		}
	}
	list, err := selected(list, in.Filters, types.SpotPrice{}, func(p types.SpotPrice) (attributes, map[string]string) {
		return attributes{
			"instance-type": one(p.InstanceType), "availability-zone": one(deref(p.AvailabilityZone)), "availability-zone-id": one(deref(p.AvailabilityZoneId)),
			"product-description": spotProducts, "spot-price": one(deref(p.SpotPrice)),
		}, nil
	})
	if err != nil {
		return nil, err
	}
	list, next, err := page(list, in.MaxResults, in.NextToken, bounds{1, 10000, 1000})
	return &ec2.DescribeSpotPriceHistoryOutput{SpotPriceHistory: list, NextToken: next}, err
}

// sixDecimals is a price as EC2 writes it: at least six decimals.
func sixDecimals(s string) string {
	whole, part, _ := strings.Cut(s, ".")
	return whole + "." + part + strings.Repeat("0", max(6-len(part), 0))
}
