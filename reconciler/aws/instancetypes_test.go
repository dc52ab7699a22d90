package aws

import (
	"errors"
	"strings"
	"testing"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"

	"github.com/reeve-project/reeve/reconciler/catalog"
)

// ec2Type is an answer with what the endpoint of the simulation never says.
func ec2Type(edit ...func(*types.InstanceTypeInfo)) *types.InstanceTypeInfo {
	out := &types.InstanceTypeInfo{
		InstanceType: "x9.large", Hypervisor: "nitro", SupportedUsageClasses: []types.UsageClassType{"spot", "on-demand"},
		ProcessorInfo: &types.ProcessorInfo{SupportedArchitectures: []types.ArchitectureType{"i386", "x86_64"}, SustainedClockSpeedInGhz: awssdk.Float64(2.3), Manufacturer: awssdk.String("Intel")},
		VCpuInfo:      &types.VCpuInfo{DefaultVCpus: awssdk.Int32(2)}, MemoryInfo: &types.MemoryInfo{SizeInMiB: awssdk.Int64(8192)},
		NetworkInfo: &types.NetworkInfo{
			DefaultNetworkCardIndex: awssdk.Int32(1), Ipv4AddressesPerInterface: awssdk.Int32(10),
			NetworkCards: []types.NetworkCardInfo{{MaximumNetworkInterfaces: awssdk.Int32(1)}, {MaximumNetworkInterfaces: awssdk.Int32(3)}, {MaximumNetworkInterfaces: awssdk.Int32(2)}},
		},
		EbsInfo:             &types.EbsInfo{EbsOptimizedSupport: "supported", EbsOptimizedInfo: &types.EbsOptimizedInfo{MaximumBandwidthInMbps: awssdk.Int32(4750)}},
		InstanceStorageInfo: &types.InstanceStorageInfo{TotalSizeInGB: awssdk.Int64(900), NvmeSupport: "supported"},
	}
	for _, e := range edit {
		e(out)
	}
	return out
}

func TestATypeAsEC2SaysIt(t *testing.T) {
	want := catalog.Type{
		Name: "x9.large", Arch: "x86_64", VCPUs: 2, MiB: 8192, Manufacturer: "Intel", MHz: 2300, Hypervisor: "nitro",
		Usage: []string{"on-demand", "spot"}, NVMeGB: 900, Cards: []int64{3, 1, 2}, IPv4: 10,
	}
	got, ok := readType(ec2Type())
	if diff := cmp.Diff(want, got); diff != "" || !ok {
		t.Errorf("type (-want +got):\n%s", diff)
	}
	t.Run("of two kinds of GPU neither is a label", func(t *testing.T) {
		got, _ := readType(ec2Type(func(i *types.InstanceTypeInfo) { i.GpuInfo = &types.GpuInfo{Gpus: make([]types.GpuDeviceInfo, 2)} }))
		if got.GPU != nil {
			t.Errorf("GPU %+v", got.GPU)
		}
	})
	t.Run("Inferentia that is listed twice is a Neuron device", func(t *testing.T) {
		got, _ := readType(ec2Type(func(i *types.InstanceTypeInfo) {
			i.NeuronInfo = &types.NeuronInfo{NeuronDevices: []types.NeuronDeviceInfo{{Count: awssdk.Int32(1), Name: awssdk.String("Inferentia")}}}
			i.InferenceAcceleratorInfo = &types.InferenceAcceleratorInfo{Accelerators: []types.InferenceDeviceInfo{{Count: awssdk.Int32(1), Name: awssdk.String("Inferentia")}}}
		}))
		if got.Accelerator != nil || got.Neuron == nil || got.Neuron.Name != "Inferentia" {
			t.Errorf("accelerator %+v, Neuron %+v", got.Accelerator, got.Neuron)
		}
	})
	for name, edit := range map[string]func(*types.InstanceTypeInfo){
		"without an architecture of EKS": func(i *types.InstanceTypeInfo) {
			i.ProcessorInfo.SupportedArchitectures = []types.ArchitectureType{"arm64_mac"}
		},
		"without a processor":    func(i *types.InstanceTypeInfo) { i.ProcessorInfo = nil },
		"without CPUs":           func(i *types.InstanceTypeInfo) { i.VCpuInfo = nil },
		"without memory":         func(i *types.InstanceTypeInfo) { i.MemoryInfo = nil },
		"without a network":      func(i *types.InstanceTypeInfo) { i.NetworkInfo = nil },
		"without a network card": func(i *types.InstanceTypeInfo) { i.NetworkInfo.NetworkCards = nil },
	} {
		t.Run(name+" it is passed over", func(t *testing.T) {
			if got, ok := readType(ec2Type(edit)); ok {
				t.Errorf("type %+v", got)
			}
		})
	}
}

func TestPricesOfTheList(t *testing.T) {
	entry := func(name, unit, price string) string {
		return `{"product":{"attributes":{"instanceType":"` + name + `"}},"terms":{"OnDemand":{"a":{"priceDimensions":{"b":{"pricePerUnit":{"` + unit + `":"` + price + `"}}}}}}}`
	}
	for _, c := range []struct {
		name, item, currency, want string
		fails                      bool
	}{
		{"a price in dollars", entry("m5.large", "USD", "0.0960000000"), "USD", "0.096", false},
		{"a price in yuan", entry("m5.large", "CNY", "0.6"), "CNY", "0.6", false},
		{"one in another currency is none", entry("m5.large", "CNY", "0.6"), "USD", "0", false},
		{"one of nothing is none", entry("m5.large", "USD", "0.0000000000"), "USD", "0", false},
		{"one that is no number is none", entry("m5.large", "USD", "free"), "USD", "0", false},
		{"one of no type is none", entry("", "USD", "1"), "USD", "0", false},
		{"an entry that is no JSON is an error", "{", "USD", "0", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, got, err := readPrice([]byte(c.item), c.currency)
			if got.Decimal() != c.want || (err != nil) != c.fails {
				t.Errorf("price %s, %v; want %s", got.Decimal(), err, c.want)
			}
		})
	}
}

func TestLocalZonesAreNotZonesOfTheRegion(t *testing.T) {
	for id, want := range map[string]bool{"use1-az1": false, "use1-bos1-az1": true, "use1-wl1-bos-wlz1": true} {
		if localZone(id) != want {
			t.Errorf("%s is local: %t", id, !want)
		}
	}
}

func TestErrorsThatQuoteWhatWasSentAreCut(t *testing.T) {
	brief := errors.New("unexpected end of JSON input")
	if got := short(brief); got != brief {
		t.Errorf("%q became %q", brief, got)
	}
	// The byte at which it is cut lies within a letter.
	if got, want := short(errors.New("x"+strings.Repeat("é", 100))).Error(), "x"+strings.Repeat("é", 63)+" …"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
