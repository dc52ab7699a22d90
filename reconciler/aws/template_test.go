package aws

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/api/resource"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/port"
	"github.com/reeve-project/reeve/reconciler/requirements"
)

// plainRequest is one for nodes of a class that says little.
func plainRequest() port.LaunchRequest {
	req := port.LaunchRequest{
		Decision: "d1", Group: 3, CapacityType: "on-demand", Class: &ec2v1.EC2NodeClass{}, Template: &karpv1.NodeClaim{},
		Tags: map[string]string{"team": "a", "reeve.dev/decision": "d1", "eks:eks-cluster-name": "myeks"},
	}
	req.Class.Spec.AMIFamily = new(ec2v1.AMIFamilyAL2023)
	req.Class.Status.SecurityGroups = []ec2v1.SecurityGroup{{ID: "sg-2"}, {ID: "sg-1"}}
	req.Class.Status.InstanceProfile = "myeks_1"
	return req
}

func makeTemplate(t *testing.T, edit func(*port.LaunchRequest), s shape, info ClusterInfo) template {
	t.Helper()
	req := plainRequest()
	if edit != nil {
		edit(&req)
	}
	out, err := newTemplate("myeks", info, req, s)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

var testInfo = ClusterInfo{Endpoint: "https://ABC.eks.amazonaws.com", CA: "Q0E=", CIDR: "10.100.0.0/16", Version: "1.34"}

var oneShape = shape{image: "ami-1", maxPods: 29}

func TestATemplateWithoutWishesHasKarpentersDefaults(t *testing.T) {
	got := makeTemplate(t, nil, oneShape, testInfo)
	tags := []types.Tag{{Key: aws.String("eks:eks-cluster-name"), Value: aws.String("myeks")}, {Key: aws.String("team"), Value: aws.String("a")}}
	want := &types.RequestLaunchTemplateData{
		ImageId:            aws.String("ami-1"),
		IamInstanceProfile: &types.LaunchTemplateIamInstanceProfileSpecificationRequest{Name: aws.String("myeks_1")},
		BlockDeviceMappings: []types.LaunchTemplateBlockDeviceMappingRequest{{DeviceName: aws.String("/dev/xvda"), Ebs: &types.LaunchTemplateEbsBlockDeviceRequest{
			Encrypted: aws.Bool(true), VolumeSize: aws.Int32(20), VolumeType: types.VolumeTypeGp3,
		}}},
		MetadataOptions: &types.LaunchTemplateInstanceMetadataOptionsRequest{
			HttpEndpoint: "enabled", HttpProtocolIpv6: "disabled", HttpPutResponseHopLimit: aws.Int32(1), HttpTokens: "required", InstanceMetadataTags: "disabled",
		},
		NetworkInterfaces: []networkInterface{{DeviceIndex: aws.Int32(0), Groups: []string{"sg-1", "sg-2"}}},
		Monitoring:        &types.LaunchTemplatesMonitoringRequest{Enabled: aws.Bool(false)},
		TagSpecifications: []types.LaunchTemplateTagSpecificationRequest{{ResourceType: types.ResourceTypeNetworkInterface, Tags: tags}},
	}
	got.data.UserData = nil
	if diff := cmp.Diff(want, got.data, unexported); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(tags, got.tags, unexported); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
}

var unexported = cmpopts.IgnoreUnexported(
	types.RequestLaunchTemplateData{}, types.LaunchTemplateIamInstanceProfileSpecificationRequest{}, types.LaunchTemplateBlockDeviceMappingRequest{},
	types.LaunchTemplateEbsBlockDeviceRequest{}, types.LaunchTemplateInstanceMetadataOptionsRequest{}, networkInterface{}, types.LaunchTemplatesMonitoringRequest{},
	types.LaunchTemplateTagSpecificationRequest{}, types.Tag{}, types.ConnectionTrackingSpecificationRequest{}, types.LaunchTemplatePlacementRequest{}, types.LaunchTemplateCpuOptionsRequest{},
)

func TestEveryWishOfTheClassIsInTheTemplate(t *testing.T) {
	got := makeTemplate(t, func(r *port.LaunchRequest) {
		s := &r.Class.Spec
		r.CapacityType = "spot"
		r.Requirements = requirements.NewSet(requirements.In(ec2v1.LabelInstanceTenancy, "dedicated"))
		s.InstanceProfile = new("mine")
		s.DetailedMonitoring, s.AssociatePublicIPAddress, s.IPPrefixCount = new(true), new(false), new(int32(2))
		s.MetadataOptions = &ec2v1.MetadataOptions{HTTPEndpoint: new("disabled"), HTTPProtocolIPv6: new("enabled"), HTTPPutResponseHopLimit: new(int64(3)), HTTPTokens: new("optional")}
		s.ConnectionTracking = &ec2v1.ConnectionTracking{TCPEstablishedTimeout: new(int32(60)), UDPStreamTimeout: new(int32(61)), UDPTimeout: new(int32(62))}
		s.CPUOptions = &ec2v1.CPUOptions{NestedVirtualization: new("enabled")}
		s.BlockDeviceMappings = []*ec2v1.BlockDeviceMapping{nil, {DeviceName: new("/dev/xvdb"), EBS: &ec2v1.BlockDevice{
			DeleteOnTermination: new(true), Encrypted: new(false), IOPS: new(int64(4000)), KMSKeyID: new("key"), SnapshotID: new("snap-1"), Throughput: new(int64(200)),
			VolumeInitializationRate: new(int32(100)), VolumeSize: new(resource.MustParse("100G")), VolumeType: new("io2"),
		}}, {DeviceName: new("/dev/xvdc")}}
	}, oneShape, testInfo).data
	want := &types.RequestLaunchTemplateData{
		ImageId:            aws.String("ami-1"),
		IamInstanceProfile: &types.LaunchTemplateIamInstanceProfileSpecificationRequest{Name: aws.String("mine")},
		BlockDeviceMappings: []types.LaunchTemplateBlockDeviceMappingRequest{{DeviceName: aws.String("/dev/xvdb"), Ebs: &types.LaunchTemplateEbsBlockDeviceRequest{
			DeleteOnTermination: aws.Bool(true), Encrypted: aws.Bool(false), Iops: aws.Int32(4000), KmsKeyId: aws.String("key"), SnapshotId: aws.String("snap-1"), Throughput: aws.Int32(200),
			VolumeInitializationRate: aws.Int32(100), VolumeSize: aws.Int32(94), VolumeType: "io2",
		}}, {DeviceName: aws.String("/dev/xvdc")}},
		MetadataOptions: &types.LaunchTemplateInstanceMetadataOptionsRequest{
			HttpEndpoint: "disabled", HttpProtocolIpv6: "enabled", HttpPutResponseHopLimit: aws.Int32(3), HttpTokens: "optional", InstanceMetadataTags: "disabled",
		},
		NetworkInterfaces: []networkInterface{{
			DeviceIndex: aws.Int32(0), Groups: []string{"sg-1", "sg-2"}, AssociatePublicIpAddress: aws.Bool(false), Ipv4PrefixCount: aws.Int32(2),
			ConnectionTrackingSpecification: &types.ConnectionTrackingSpecificationRequest{TcpEstablishedTimeout: aws.Int32(60), UdpStreamTimeout: aws.Int32(61), UdpTimeout: aws.Int32(62)},
		}},
		Monitoring: &types.LaunchTemplatesMonitoringRequest{Enabled: aws.Bool(true)},
		Placement:  &types.LaunchTemplatePlacementRequest{Tenancy: "dedicated"},
		CpuOptions: &types.LaunchTemplateCpuOptionsRequest{NestedVirtualization: "enabled"},
	}
	var tagged []types.ResourceType
	for _, s := range got.TagSpecifications {
		tagged = append(tagged, s.ResourceType)
	}
	if diff := cmp.Diff([]types.ResourceType{"network-interface", "spot-instances-request"}, tagged); diff != "" {
		t.Errorf("tagged (-want +got):\n%s", diff)
	}
	got.UserData, got.TagSpecifications = nil, nil
	if diff := cmp.Diff(want, got, unexported); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNetworkInterfaces(t *testing.T) {
	sg := []string{"sg-1"}
	n := func(card, device int32, kind string) networkInterface {
		return networkInterface{NetworkCardIndex: aws.Int32(card), DeviceIndex: aws.Int32(device), InterfaceType: aws.String(kind), Groups: sg}
	}
	class := func(spec ec2v1.EC2NodeClassSpec) *ec2v1.EC2NodeClass {
		return &ec2v1.EC2NodeClass{Spec: spec, Status: ec2v1.EC2NodeClassStatus{SecurityGroups: []ec2v1.SecurityGroup{{ID: "sg-1"}}}}
	}
	v6 := networkInterface{DeviceIndex: aws.Int32(0), Groups: sg, PrimaryIpv6: aws.Bool(true), Ipv6AddressCount: aws.Int32(1), Ipv6PrefixCount: aws.Int32(1)}
	prefixed := n(0, 0, "interface")
	prefixed.Ipv4PrefixCount = aws.Int32(1)
	tests := []struct {
		name string
		spec ec2v1.EC2NodeClassSpec
		efas int64
		ipv6 bool
		want []networkInterface
	}{
		{"one for each EFA, without public addresses", ec2v1.EC2NodeClassSpec{AssociatePublicIPAddress: new(true)}, 3, false, []networkInterface{n(0, 0, "efa"), n(1, 1, "efa"), n(2, 1, "efa")}},
		{"in an IPv6 cluster", ec2v1.EC2NodeClassSpec{IPPrefixCount: new(int32(1))}, 0, true, []networkInterface{v6}},
		{"as the class prescribes", ec2v1.EC2NodeClassSpec{IPPrefixCount: new(int32(1)), NetworkInterfaces: []*ec2v1.NetworkInterface{
			{InterfaceType: ec2v1.InterfaceTypeInterface}, {NetworkCardIndex: 1, DeviceIndex: 1, InterfaceType: ec2v1.InterfaceTypeEFAOnly},
		}}, 8, false, []networkInterface{prefixed, n(1, 1, "efa-only")}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, networkInterfaces(class(tc.spec), tc.efas, tc.ipv6), unexported); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheNameOfATemplateFollowsFromItsContent(t *testing.T) {
	base := makeTemplate(t, nil, oneShape, testInfo).name
	same := map[string]func(*port.LaunchRequest){
		"another decision": func(r *port.LaunchRequest) { r.Decision, r.Tags["reeve.dev/decision"] = "d2", "d2" },
		"another group":    func(r *port.LaunchRequest) { r.Group, r.Tags["reeve.dev/group"] = 9, "9" },
		"other offerings":  func(r *port.LaunchRequest) { r.Claims = []string{"x"} },
		"the other order of groups": func(r *port.LaunchRequest) {
			r.Class.Status.SecurityGroups = []ec2v1.SecurityGroup{{ID: "sg-1"}, {ID: "sg-2"}}
		},
	}
	for name, edit := range same {
		if got := makeTemplate(t, edit, oneShape, testInfo).name; got != base {
			t.Errorf("%s: %s is not %s", name, got, base)
		}
	}
	differ := map[string]func(*port.LaunchRequest){
		"user data":      func(r *port.LaunchRequest) { r.Class.Spec.UserData = new("#!/bin/sh") },
		"tags":           func(r *port.LaunchRequest) { r.Tags["team"] = "b" },
		"profile":        func(r *port.LaunchRequest) { r.Class.Status.InstanceProfile = "other" },
		"capacity type":  func(r *port.LaunchRequest) { r.CapacityType = "spot" },
		"security group": func(r *port.LaunchRequest) { r.Class.Status.SecurityGroups[0].ID = "sg-3" },
		"label":          func(r *port.LaunchRequest) { r.Template.Labels = map[string]string{"a": "b"} },
	}
	seen := map[string]string{base: "the plain one"}
	for _, name := range sortedKeys(differ) {
		got := makeTemplate(t, differ[name], oneShape, testInfo).name
		if other := seen[got]; other != "" || !strings.HasPrefix(got, "karpenter.k8s.aws/") {
			t.Errorf("%s: %s is the name of %s", name, got, other)
		}
		seen[got] = name
	}
	for _, s := range []shape{{image: "ami-2", maxPods: 29}, {image: "ami-1", maxPods: 58}, {image: "ami-1", maxPods: 29, efas: 1}} {
		if got := makeTemplate(t, nil, s, testInfo).name; seen[got] != "" {
			t.Errorf("shape %v: %s is the name of %s", s, got, seen[got])
		}
	}
}

func TestVolumesThatEC2DoesNotHaveAreRefused(t *testing.T) {
	for want, ebs := range map[string]*ec2v1.BlockDevice{
		"spec.blockDeviceMappings[0]: volumeSize: 0 is not a size from 1Gi to 64Ti":    {VolumeSize: new(resource.MustParse("0"))},
		"spec.blockDeviceMappings[0]: volumeSize: 65Ti is not a size from 1Gi to 64Ti": {VolumeSize: new(resource.MustParse("65Ti"))},
		"spec.blockDeviceMappings[0]: iops: -1 is out of range":                        {IOPS: new(int64(-1))},
		"spec.blockDeviceMappings[0]: throughput: 4294967296 is out of range":          {Throughput: new(int64(1 << 32))},
	} {
		class := &ec2v1.EC2NodeClass{}
		class.Spec.BlockDeviceMappings = []*ec2v1.BlockDeviceMapping{{EBS: ebs}}
		if _, err := blockDevices(class); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	for family, want := range map[string]int{ec2v1.AMIFamilyCustom: 0, ec2v1.AMIFamilyBottlerocket: 2, ec2v1.AMIFamilyAL2: 1, ec2v1.AMIFamilyWindows2022: 1, "x": -1} {
		class := &ec2v1.EC2NodeClass{}
		class.Spec.AMIFamily = &family
		got, err := blockDevices(class)
		if len(got) != max(want, 0) || (err != nil) != (want < 0) {
			t.Errorf("family %s: %d volumes, %v", family, len(got), err)
		}
	}
}

func TestAddressesAreSetAsideAndGivenBack(t *testing.T) {
	a1, a2, b1 := ec2v1.Subnet{ID: "a1", Zone: "a"}, ec2v1.Subnet{ID: "a2", Zone: "a"}, ec2v1.Subnet{ID: "b1", Zone: "b"}
	var b addressBook
	take := func(n int64) map[string]string { return b.choose([]ec2v1.Subnet{a1, a2, b1}, n) }
	if diff := cmp.Diff(map[string]string{"a": "a1", "b": "b1"}, take(10)); diff != "" {
		t.Errorf("where nothing is known (-want +got):\n%s", diff)
	}
	b.observe("a1", 100)
	b.observe("a2", 90)
	for i, want := range []string{"a1", "a2", "a1"} {
		if got := take(20)["a"]; got != want {
			t.Errorf("choice %d is %s, want %s", i, got, want)
		}
	}
	b.release("a2", 20)
	if got := take(1)["a"]; got != "a2" {
		t.Errorf("after addresses were given back it is %s", got)
	}
}

func TestANewClientHasToKnowItsCluster(t *testing.T) {
	for _, o := range []Options{{}, {Cluster: "myeks"}, {Region: "eu-west-1"}} {
		if _, err := New(aws.Config{}, o); err == nil {
			t.Errorf("%+v is enough", o)
		}
	}
	c, err := New(aws.Config{Region: "eu-west-1"}, Options{Cluster: "myeks"})
	if err != nil || c.clock == nil || c.log == nil || c.options.CallTimeout != callTimeout || c.options.Region != "eu-west-1" {
		t.Errorf("client %+v, %v", c, err)
	}
	for region, want := range map[string]string{"eu-west-1": "eu-central-1", "ap-northeast-2": "ap-south-1", "cn-north-1": "cn-northwest-1", "sa-east-1": "us-east-1"} {
		if got := pricingRegion(region); got != want {
			t.Errorf("prices of %s are served in %s, want %s", region, got, want)
		}
	}
}
