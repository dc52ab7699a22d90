package catalog

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/requirements"
	"github.com/reeve-project/reeve/reconciler/resources"
)

func ptr[T any](v T) *T { return &v }

func quantities(t *testing.T, pairs ...string) resources.List {
	t.Helper()
	out := resources.List{}
	for i := 0; i < len(pairs); i += 2 {
		name := corev1.ResourceName(pairs[i])
		q, err := resource.ParseQuantity(pairs[i+1])
		if err != nil {
			t.Fatal(err)
		}
		out[name] = resources.Amount(name, q)
	}
	return out
}

// m5.large has 2 CPUs, 8192 MiB, 3 interfaces with 10 addresses each; c5d.large
// has a local disk of 50 GB. The amounts are worked out by hand from the
// formulas.
func TestNodeSizeFollowsTheClass(t *testing.T) {
	device := func(name, size string, root bool) *awsv1.BlockDeviceMapping {
		d := &awsv1.BlockDeviceMapping{DeviceName: &name, RootVolume: root, EBS: &awsv1.BlockDevice{}}
		if size != "" {
			d.EBS.VolumeSize = ptr(resource.MustParse(size))
		}
		return d
	}
	devices := func(family string, d ...*awsv1.BlockDeviceMapping) func(*awsv1.EC2NodeClassSpec) {
		return func(s *awsv1.EC2NodeClassSpec) { s.AMIFamily, s.BlockDeviceMappings = &family, d }
	}
	kubelet := func(k awsv1.KubeletConfiguration) func(*awsv1.EC2NodeClassSpec) {
		return func(s *awsv1.EC2NodeClassSpec) { s.Kubelet = &k }
	}
	family := func(name string, k *awsv1.KubeletConfiguration) func(*awsv1.EC2NodeClassSpec) {
		return func(s *awsv1.EC2NodeClassSpec) { s.AMIFamily, s.Kubelet = &name, k }
	}
	policy := awsv1.InstanceStorePolicyRAID0
	efaOnly := func(s *awsv1.EC2NodeClassSpec) {
		s.NetworkInterfaces = []*awsv1.NetworkInterface{{InterfaceType: awsv1.InterfaceTypeInterface}, {DeviceIndex: 1, InterfaceType: awsv1.InterfaceTypeEFAOnly}}
	}
	for _, tc := range []struct {
		name, typ string
		change    func(*awsv1.EC2NodeClassSpec)
		settings  Settings
		want      []string
	}{
		{"the defaults", "m5.large", func(*awsv1.EC2NodeClassSpec) {}, DefaultSettings(),
			[]string{"cpu", "1930m", "memory", "6903Mi", "pods", "29", "ephemeral-storage", "17Gi"}},
		{"no memory overhead and a reserved interface", "m5.large", func(*awsv1.EC2NodeClassSpec) {}, Settings{ReservedENIs: 1},
			[]string{"cpu", "1930m", "memory", "7518Mi", "pods", "20", "ephemeral-storage", "17Gi"}},
		{"all interfaces reserved", "m5.large", func(*awsv1.EC2NodeClassSpec) {}, Settings{VMMemoryOverheadPPM: 75_000, ReservedENIs: 3},
			[]string{"cpu", "1930m", "memory", "6903Mi", "pods", "0", "ephemeral-storage", "17Gi"}},
		{"maxPods does not change what is reserved", "m5.large", kubelet(awsv1.KubeletConfiguration{MaxPods: ptr[int32](110)}), DefaultSettings(),
			[]string{"cpu", "1930m", "memory", "6903Mi", "pods", "110", "ephemeral-storage", "17Gi"}},
		{"podsPerCore limits", "m5.large", kubelet(awsv1.KubeletConfiguration{PodsPerCore: ptr[int32](4)}), DefaultSettings(),
			[]string{"cpu", "1930m", "memory", "6903Mi", "pods", "8", "ephemeral-storage", "17Gi"}},
		{"Bottlerocket ignores podsPerCore and reserves for its pods", "m5.large",
			family("Bottlerocket", &awsv1.KubeletConfiguration{PodsPerCore: ptr[int32](4), MaxPods: ptr[int32](10)}), DefaultSettings(),
			[]string{"cpu", "1930m", "memory", "7112Mi", "pods", "10", "ephemeral-storage", "17Gi"}},
		{"Windows has 110 pods and a bigger disk", "m5.large", family("Windows2022", nil), DefaultSettings(),
			[]string{"cpu", "1930m", "memory", "6012Mi", "pods", "110", "ephemeral-storage", "44Gi", "vpc.amazonaws.com/PrivateIPv4Address", "9"}},
		{"reserved amounts replace and add up", "m5.large", kubelet(awsv1.KubeletConfiguration{
			KubeReserved: map[string]string{"cpu": "200m", "memory": "1Gi"}, SystemReserved: map[string]string{"cpu": "100m", "ephemeral-storage": "2Gi"}}), DefaultSettings(),
			[]string{"cpu", "1700m", "memory", "6453Mi", "pods", "29", "ephemeral-storage", "15Gi"}},
		{"eviction thresholds as amount and share", "m5.large", kubelet(awsv1.KubeletConfiguration{
			EvictionHard: map[string]string{"memory.available": "500Mi", "nodefs.available": "12.5%"}}), DefaultSettings(),
			[]string{"cpu", "1930m", "memory", "6503Mi", "pods", "29", "ephemeral-storage", "16.5Gi"}},
		{"a threshold of 100 % is off", "m5.large", kubelet(awsv1.KubeletConfiguration{
			EvictionHard: map[string]string{"memory.available": "100%", "nodefs.available": "100%"}}), DefaultSettings(),
			[]string{"cpu", "1930m", "memory", "7003Mi", "pods", "29", "ephemeral-storage", "19Gi"}},
		{"more reserved than there is leaves nothing", "m5.large", kubelet(awsv1.KubeletConfiguration{SystemReserved: map[string]string{"memory": "1Ti"}}), DefaultSettings(),
			[]string{"cpu", "1930m", "memory", "0", "pods", "29", "ephemeral-storage", "17Gi"}},
		{"the root volume counts first", "m5.large", devices("AL2023", device("/dev/xvda", "30Gi", false), device("/dev/xvdz", "100Gi", true)), DefaultSettings(),
			[]string{"cpu", "1930m", "memory", "6903Mi", "pods", "29", "ephemeral-storage", "89Gi"}},
		{"else the family's device", "m5.large", devices("Bottlerocket", device("/dev/xvda", "4Gi", false), device("/dev/xvdb", "50Gi", false)), DefaultSettings(),
			[]string{"cpu", "1930m", "memory", "6903Mi", "pods", "29", "ephemeral-storage", "44Gi"}},
		{"a device without a size has the family's", "m5.large", devices("AL2", device("/dev/xvda", "", true)), DefaultSettings(),
			[]string{"cpu", "1930m", "memory", "6903Mi", "pods", "29", "ephemeral-storage", "17Gi"}},
		{"a custom image uses the last device", "m5.large", devices("Custom", device("/dev/xvda", "30Gi", false), device("/dev/x", "70Gi", false)), DefaultSettings(),
			[]string{"cpu", "1930m", "memory", "6903Mi", "pods", "29", "ephemeral-storage", "62Gi"}},
		{"local disks count only when they are joined", "c5d.large", func(*awsv1.EC2NodeClassSpec) {}, DefaultSettings(),
			[]string{"cpu", "1930m", "memory", "3114Mi", "pods", "29", "ephemeral-storage", "17Gi"}},
		{"joined local disks are the pods' storage", "c5d.large", func(s *awsv1.EC2NodeClassSpec) { s.InstanceStorePolicy = &policy }, DefaultSettings(),
			[]string{"cpu", "1930m", "memory", "3114Mi", "pods", "29", "ephemeral-storage", "43926258176"}},
		{"joining needs local disks", "m5.large", func(s *awsv1.EC2NodeClassSpec) { s.InstanceStorePolicy = &policy }, DefaultSettings(),
			[]string{"cpu", "1930m", "memory", "6903Mi", "pods", "29", "ephemeral-storage", "17Gi"}},
		{"interfaces for EFA only take pods away", "m5.large", efaOnly, DefaultSettings(),
			[]string{"cpu", "1930m", "memory", "7002Mi", "pods", "20", "ephemeral-storage", "17Gi", "vpc.amazonaws.com/efa", "1"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := embeddedData(t, "us-east-1")
			class := al2023(d)
			tc.change(&class.Spec)
			types, err := d.Resolve(class, tc.settings)
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(types, func(it *InstanceType) bool { return it.Name == tc.typ })
			got := types[i].Allocatable.Clone()
			delete(got, awsv1.ResourceAWSPodENI)
			if diff := cmp.Diff(quantities(t, tc.want...), got); diff != "" {
				t.Errorf("allocatable (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAcceleratorsAreResourcesAndLabels(t *testing.T) {
	d := embeddedData(t, "us-east-1")
	types := resolved(t, d, al2023(d))
	for name, want := range map[string][]string{
		"g4dn.xlarge":   {"nvidia.com/gpu", "1"},
		"g4ad.xlarge":   {"amd.com/gpu", "1"},
		"inf2.xlarge":   {"aws.amazon.com/neuron", "1", "aws.amazon.com/neuroncore", "2"},
		"trn1.32xlarge": {"aws.amazon.com/neuron", "16", "aws.amazon.com/neuroncore", "32", "vpc.amazonaws.com/efa", "8"},
	} {
		for key, amount := range quantities(t, want...) {
			if got := types[name].Allocatable[key]; got != amount {
				t.Errorf("%s: %s = %d, want %d", name, key, got, amount)
			}
		}
		if !types[name].Exotic() {
			t.Errorf("%s is not exotic", name)
		}
	}
	if !types["m5.metal"].Exotic() || types["m5.large"].Exotic() {
		t.Error("metal is exotic, m5.large is not")
	}
}

func TestZonesComeFromTheSubnets(t *testing.T) {
	d := smallData(t)
	class := al2023(d)
	// This account calls z2 "test-1a".
	class.Status.Subnets = []awsv1.Subnet{{ID: "s1", Zone: "test-1a", ZoneID: "z2"}, {ID: "s2", Zone: "test-1x", ZoneID: "z9"}, {ID: "s3", Zone: "test-1a", ZoneID: "z2"}}
	c9 := resolved(t, d, class)["c9.large"]
	want := []Offering{
		{Zone: "test-1a", ZoneID: "z2", CapacityType: "spot", Price: 30_100_000, Available: true},
		{Zone: "test-1a", ZoneID: "z2", CapacityType: "on-demand", Price: 85_500_001, Available: true},
	}
	if diff := cmp.Diff(want, c9.Offerings); diff != "" {
		t.Errorf("offerings (-want +got):\n%s", diff)
	}
	for key, value := range map[string]string{corev1.LabelTopologyZone: "test-1a", awsv1.LabelTopologyZoneID: "z2", corev1.LabelTopologyRegion: "test-1"} {
		if got, _ := c9.Requirements.Get(key).Single(); got != value {
			t.Errorf("%s = %q, want %q", key, got, value)
		}
	}
	// A subnet without zone id is matched by name.
	class.Status.Subnets = []awsv1.Subnet{{ID: "s1", Zone: "test-1a"}}
	if got := resolved(t, d, class)["c9.large"].Offerings; len(got) != 2 || got[0].ZoneID != "z1" {
		t.Errorf("offerings = %+v", got)
	}
}

func TestOfferingsAreSortedByPriceZoneAndCapacityType(t *testing.T) {
	d, err := smallData(t).WithPrices(OnDemandPrices{"c9.large": 50}, SpotPrices{"c9.large": {"z1": 50, "z2": 40}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range resolved(t, d, al2023(d))["c9.large"].Offerings {
		got = append(got, fmt.Sprintf("%d %s %s", o.Price, o.Zone, o.CapacityType))
	}
	want := []string{"40 test-1b spot", "50 test-1a on-demand", "50 test-1a spot", "50 test-1b on-demand"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("offerings (-want +got):\n%s", diff)
	}
}

func TestWhatMakesOfferingsUnavailable(t *testing.T) {
	arch := func(a string) awsv1.AMI {
		return awsv1.AMI{ID: "ami-1", Requirements: []corev1.NodeSelectorRequirement{
			{Key: corev1.LabelArchStable, Operator: corev1.NodeSelectorOpIn, Values: []string{a}},
			{Key: awsv1.LabelInstanceGPUCount, Operator: corev1.NodeSelectorOpDoesNotExist},
		}}
	}
	for _, tc := range []struct {
		name, typ string
		change    func(*awsv1.EC2NodeClass)
		want      string
	}{
		{"nothing", "m5.large", func(*awsv1.EC2NodeClass) {}, ""},
		{"an image that fits", "m5.large", func(c *awsv1.EC2NodeClass) { c.Status.AMIs = []awsv1.AMI{arch("arm64"), arch("amd64")} }, ""},
		{"no image for the architecture", "m5.large", func(c *awsv1.EC2NodeClass) { c.Status.AMIs = []awsv1.AMI{arch("arm64")} },
			"no image of EC2NodeClass default fits the type (architecture amd64)"},
		{"an image that is not for GPUs", "g4dn.xlarge", func(c *awsv1.EC2NodeClass) { c.Status.AMIs = []awsv1.AMI{arch("amd64")} },
			"no image of EC2NodeClass default fits the type (architecture amd64)"},
		{"no subnets yet", "m5.large", func(c *awsv1.EC2NodeClass) { c.Status.Subnets = nil }, "EC2NodeClass default has no subnets in its status"},
		{"subnets elsewhere", "m5.large", func(c *awsv1.EC2NodeClass) {
			c.Status.Subnets = []awsv1.Subnet{{ID: "s", Zone: "us-east-1-bos-1a", ZoneID: "use1-bos1-az1"}}
		},
			"no subnet of EC2NodeClass default is in a zone of us-east-1"},
		{"AL2023 on a1", "a1.large", func(*awsv1.EC2NodeClass) {}, "AL2023 does not run on a1 instances"},
		{"AL2 on a1", "a1.large", func(c *awsv1.EC2NodeClass) { c.Spec.AMIFamily = ptr("AL2") }, ""},
		{"connection tracking on xen", "m4.large", func(c *awsv1.EC2NodeClass) { c.Spec.ConnectionTracking = &awsv1.ConnectionTracking{} },
			"EC2NodeClass default sets connection tracking, which needs a nitro instance"},
		{"connection tracking on nitro", "m5.large", func(c *awsv1.EC2NodeClass) { c.Spec.ConnectionTracking = &awsv1.ConnectionTracking{} }, ""},
		{"nested virtualization", "m5.large", func(c *awsv1.EC2NodeClass) {
			c.Spec.CPUOptions = &awsv1.CPUOptions{NestedVirtualization: ptr("enabled")}
		},
			"EC2NodeClass default asks for nested virtualization, and the catalog does not know which types have it"},
		{"a placement group", "m5.large", func(c *awsv1.EC2NodeClass) { c.Spec.PlacementGroupSelector = &awsv1.PlacementGroupSelector{} },
			"EC2NodeClass default selects a placement group, and the catalog does not know which types fit it"},
		{"a second network card", "m5.large", func(c *awsv1.EC2NodeClass) {
			c.Spec.NetworkInterfaces = []*awsv1.NetworkInterface{{NetworkCardIndex: 1, InterfaceType: awsv1.InterfaceTypeInterface}}
		}, "EC2NodeClass default prescribes network interfaces that the type does not have"},
		{"more devices than the card takes", "m5.large", func(c *awsv1.EC2NodeClass) {
			c.Spec.NetworkInterfaces = []*awsv1.NetworkInterface{{DeviceIndex: 3, InterfaceType: awsv1.InterfaceTypeInterface}}
		}, "EC2NodeClass default prescribes network interfaces that the type does not have"},
		{"EFA without EFA", "m5.large", func(c *awsv1.EC2NodeClass) {
			c.Spec.NetworkInterfaces = []*awsv1.NetworkInterface{{DeviceIndex: 1, InterfaceType: awsv1.InterfaceTypeEFAOnly}}
		}, "EC2NodeClass default prescribes network interfaces that the type does not have"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := embeddedData(t, "us-east-1")
			class := al2023(d)
			tc.change(class)
			it := resolved(t, d, class)[tc.typ]
			if len(it.Offerings) == 0 {
				t.Fatal("there are no offerings")
			}
			for _, o := range it.Offerings {
				if o.Available != (tc.want == "") || o.Reason != tc.want {
					t.Fatalf("offering %+v, want reason %q", o, tc.want)
				}
			}
			if _, ok := it.Cheapest(requirements.Set{}); ok != (tc.want == "") {
				t.Errorf("Cheapest found one: %v", ok)
			}
		})
	}
}

func TestWindowsRunsOnAmd64Only(t *testing.T) {
	d := embeddedData(t, "us-east-1")
	class := al2023(d)
	class.Spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{Alias: "windows2025@latest"}}
	types := resolved(t, d, class)
	asked := requirements.NewSet(requirements.In(corev1.LabelOSStable, "windows"), requirements.In(corev1.LabelWindowsBuild, "10.0.26100"))
	if err := types["m5.large"].Requirements.Compatible(asked, requirements.WellKnown); err != nil {
		t.Errorf("m5.large: %v", err)
	}
	if types["m6g.large"].Requirements.IsCompatible(asked, requirements.WellKnown) {
		t.Error("m6g.large runs Windows")
	}
	if _, ok := types["m6g.large"].Capacity[awsv1.ResourcePrivateIPv4Address]; ok {
		t.Error("m6g.large has addresses for Windows pods")
	}
}

func TestResolveRefusesWhatItCannotRead(t *testing.T) {
	kubelet := func(k awsv1.KubeletConfiguration) func(*awsv1.EC2NodeClass) {
		return func(c *awsv1.EC2NodeClass) { c.Spec.Kubelet = &k }
	}
	alias := func(a string) func(*awsv1.EC2NodeClass) {
		return func(c *awsv1.EC2NodeClass) {
			c.Spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{ID: "ami-1"}, {Alias: a}}
		}
	}
	for _, tc := range []struct {
		name   string
		change func(*awsv1.EC2NodeClass)
		want   string
	}{
		{"an unknown family", func(c *awsv1.EC2NodeClass) { c.Spec.AMIFamily = ptr("Ubuntu") },
			`spec.amiFamily: "Ubuntu" is unknown: use one of AL2, AL2023, Bottlerocket, Custom, Windows2019, Windows2022, Windows2025`},
		{"an unknown alias", alias("ubuntu@latest"), `spec.amiSelectorTerms[1].alias: family of "ubuntu@latest" is unknown: write family@version with one of ` +
			`al2, al2023, bottlerocket, windows2019, windows2022, windows2025`},
		{"no family at all", func(c *awsv1.EC2NodeClass) { c.Spec.AMISelectorTerms = nil },
			`spec.amiFamily: is missing: set it, or select images by an alias such as al2023@v20260318`},
		{"an expression", kubelet(awsv1.KubeletConfiguration{KubeReserved: map[string]string{"cpu": "vcpus * 10"}}),
			`spec.kubelet.kubeReserved.cpu: "vcpus * 10" is not a quantity: write one such as 100m or 512Mi`},
		{"a negative reserve", kubelet(awsv1.KubeletConfiguration{SystemReserved: map[string]string{"memory": "-1Gi"}}),
			`spec.kubelet.systemReserved.memory: "-1Gi" is below zero`},
		{"a threshold of words", kubelet(awsv1.KubeletConfiguration{EvictionHard: map[string]string{"memory.available": "little"}}),
			`spec.kubelet.evictionHard[memory.available]: "little" is neither a quantity nor a percentage: write one such as 100Mi or 5%`},
		{"a threshold above everything", kubelet(awsv1.KubeletConfiguration{EvictionHard: map[string]string{"nodefs.available": "101%"}}),
			`spec.kubelet.evictionHard[nodefs.available]: "101%" is not a percentage from 0% to 100%`},
		{"a percentage with a unit", kubelet(awsv1.KubeletConfiguration{EvictionHard: map[string]string{"nodefs.available": "1m%"}}),
			`spec.kubelet.evictionHard[nodefs.available]: "1m%" is not a percentage from 0% to 100%`},
		{"negative maxPods", kubelet(awsv1.KubeletConfiguration{MaxPods: ptr[int32](-1)}), `spec.kubelet.maxPods: -1 is below zero`},
		{"a malformed image", func(c *awsv1.EC2NodeClass) {
			c.Status.AMIs = []awsv1.AMI{{Requirements: []corev1.NodeSelectorRequirement{{Key: "k", Operator: "Near"}}}}
		}, `status.amis[0]: expression 0: requirement on label "k": operator "Near" is unknown: use In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte or Lte`},
		{"a negative device", func(c *awsv1.EC2NodeClass) { c.Spec.NetworkInterfaces = []*awsv1.NetworkInterface{{DeviceIndex: -1}} },
			`spec.networkInterfaces: network card 0, device -1: an index is below zero`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := smallData(t)
			class := al2023(d)
			tc.change(class)
			_, err := d.Resolve(class, DefaultSettings())
			if diff := cmp.Diff(`EC2NodeClass "default": `+tc.want, fmt.Sprint(err)); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
	if _, err := smallData(t).Resolve(nil, DefaultSettings()); err == nil {
		t.Error("no class was accepted")
	}
	for _, s := range []Settings{{VMMemoryOverheadPPM: -1}, {VMMemoryOverheadPPM: million}, {ReservedENIs: -1}} {
		if _, err := smallData(t).Resolve(al2023(smallData(t)), s); err == nil {
			t.Errorf("settings %+v were accepted", s)
		}
	}
}

func TestSettingsOfAFleet(t *testing.T) {
	for _, tc := range []struct {
		name string
		in   fleet.EngineSettings
		want Settings
		err  string
	}{
		{"nothing is set", fleet.EngineSettings{}, Settings{VMMemoryOverheadPPM: 75_000}, ""},
		{"both are set", fleet.EngineSettings{VMMemoryOverheadPercent: "0.0501", ReservedENIs: 2}, Settings{VMMemoryOverheadPPM: 50_100, ReservedENIs: 2}, ""},
		{"no overhead", fleet.EngineSettings{VMMemoryOverheadPercent: "0"}, Settings{}, ""},
		{"a percentage", fleet.EngineSettings{VMMemoryOverheadPercent: "7.5"}, Settings{},
			"engine.vmMemoryOverheadPercent: 7.5 is not a share from 0 to below 1 with at most six decimals: write one such as 0.075"},
		{"too fine", fleet.EngineSettings{VMMemoryOverheadPercent: json.Number("0.0000001")}, Settings{},
			"engine.vmMemoryOverheadPercent: 0.0000001 is not a share from 0 to below 1 with at most six decimals: write one such as 0.075"},
		{"negative interfaces", fleet.EngineSettings{ReservedENIs: -1}, Settings{}, "engine.reservedENIs: -1 is below zero"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := SettingsOf(tc.in)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if diff := cmp.Diff(tc.err, text); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("settings (-want +got):\n%s", diff)
			}
		})
	}
}
