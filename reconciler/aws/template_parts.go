package aws

import (
	"fmt"
	"math"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/reeve-project/reeve/reconciler/aws/bootstrap"
)

// blockDevices are the volumes of a node: those of the class, or Karpenter's for
// the family of its images.
func blockDevices(class *ec2v1.EC2NodeClass) ([]types.LaunchTemplateBlockDeviceMappingRequest, error) {
	list := class.Spec.BlockDeviceMappings
	if len(list) == 0 {
		family, err := bootstrap.FamilyOf(class)
		if err != nil {
			return nil, err
		}
		list = defaultDevices(family)
	}
	var out []types.LaunchTemplateBlockDeviceMappingRequest
	for i, m := range list {
		if m == nil {
			continue
		}
		device, err := blockDevice(m)
		if err != nil {
			return nil, fmt.Errorf("spec.blockDeviceMappings[%d]: %w", i, err)
		}
		out = append(out, device)
	}
	return out, nil
}

func blockDevice(m *ec2v1.BlockDeviceMapping) (types.LaunchTemplateBlockDeviceMappingRequest, error) {
	out := types.LaunchTemplateBlockDeviceMappingRequest{DeviceName: m.DeviceName}
	b := m.EBS
	if b == nil {
		return out, nil
	}
	size, err := gibibytes(b.VolumeSize)
	if err != nil {
		return out, err
	}
	out.Ebs = &types.LaunchTemplateEbsBlockDeviceRequest{
		DeleteOnTermination: b.DeleteOnTermination, Encrypted: b.Encrypted, KmsKeyId: b.KMSKeyID, SnapshotId: b.SnapshotID,
		VolumeInitializationRate: b.VolumeInitializationRate, VolumeSize: size,
	}
	if b.VolumeType != nil {
		out.Ebs.VolumeType = types.VolumeType(*b.VolumeType)
	}
	if out.Ebs.Iops, err = int32Of("iops", b.IOPS); err != nil {
		return out, err
	}
	out.Ebs.Throughput, err = int32Of("throughput", b.Throughput)
	return out, err
}

func int32Of(field string, n *int64) (*int32, error) {
	if n == nil {
		return nil, nil
	}
	if *n < 0 || *n > math.MaxInt32 {
		return nil, fmt.Errorf("%s: %d is out of range", field, *n)
	}
	return aws.Int32(int32(*n)), nil
}

// gibibytes is the size as EC2 takes it, rounded up.
func gibibytes(q *resource.Quantity) (*int32, error) {
	if q == nil {
		return nil, nil
	}
	n := q.Value() >> 30
	if q.Value() > n<<30 {
		n++
	}
	if n < 1 || n > 64<<10 {
		return nil, fmt.Errorf("volumeSize: %s is not a size from 1Gi to 64Ti", q)
	}
	return aws.Int32(int32(n)), nil
}

// defaultDevices are Karpenter's (pkg/providers/amifamily): Bottlerocket keeps
// the system on a small volume of its own, and an image of the user's has its
// own mappings.
func defaultDevices(family string) []*ec2v1.BlockDeviceMapping {
	volume := func(device, size string) *ec2v1.BlockDeviceMapping {
		return &ec2v1.BlockDeviceMapping{DeviceName: aws.String(device), EBS: &ec2v1.BlockDevice{
			Encrypted: aws.Bool(true), VolumeType: aws.String(string(types.VolumeTypeGp3)), VolumeSize: new(resource.MustParse(size)),
		}}
	}
	switch family {
	case ec2v1.AMIFamilyBottlerocket:
		return []*ec2v1.BlockDeviceMapping{volume("/dev/xvda", "4Gi"), volume("/dev/xvdb", "20Gi")}
	case ec2v1.AMIFamilyAL2, ec2v1.AMIFamilyAL2023:
		return []*ec2v1.BlockDeviceMapping{volume("/dev/xvda", "20Gi")}
	case ec2v1.AMIFamilyCustom:
		return nil
	}
	return []*ec2v1.BlockDeviceMapping{volume("/dev/sda1", "50Gi")}
}

// networkInterface is one of a launch template.
type networkInterface = types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest

// networkInterfaces are those that the class prescribes, one per EFA, or a
// single one. The first takes pods.
func networkInterfaces(class *ec2v1.EC2NodeClass, efas int64, ipv6 bool) []networkInterface {
	groups := make([]string, 0, len(class.Status.SecurityGroups))
	for _, g := range class.Status.SecurityGroups {
		groups = append(groups, g.ID)
	}
	slices.Sort(groups)
	var out []networkInterface
	switch {
	case len(class.Spec.NetworkInterfaces) > 0:
		for _, n := range class.Spec.NetworkInterfaces {
			out = append(out, networkInterface{
				NetworkCardIndex: aws.Int32(n.NetworkCardIndex), DeviceIndex: aws.Int32(n.DeviceIndex), InterfaceType: aws.String(string(n.InterfaceType)), Groups: groups,
			})
		}
	case efas > 0:
		for card := range int32(min(efas, math.MaxInt16)) {
			// EC2 takes device 0 on the first card only.
			out = append(out, networkInterface{
				NetworkCardIndex: aws.Int32(card), DeviceIndex: aws.Int32(min(card, 1)), InterfaceType: aws.String("efa"), Groups: groups,
			})
		}
	default:
		out = []networkInterface{{DeviceIndex: aws.Int32(0), Groups: groups}}
	}
	for i := range out {
		if aws.ToString(out[i].InterfaceType) != string(ec2v1.InterfaceTypeEFAOnly) {
			address(&out[i], class.Spec, ipv6, i == 0 && len(out) == 1)
		}
	}
	return out
}

// address says which addresses an interface gets. EC2 gives public ones only to
// nodes with a single interface.
func address(n *networkInterface, spec ec2v1.EC2NodeClassSpec, ipv6, only bool) {
	if only {
		n.AssociatePublicIpAddress = spec.AssociatePublicIPAddress
	}
	if t := spec.ConnectionTracking; t != nil {
		n.ConnectionTrackingSpecification = &types.ConnectionTrackingSpecificationRequest{
			TcpEstablishedTimeout: t.TCPEstablishedTimeout, UdpStreamTimeout: t.UDPStreamTimeout, UdpTimeout: t.UDPTimeout,
		}
	}
	first := aws.ToInt32(n.DeviceIndex) == 0 && aws.ToInt32(n.NetworkCardIndex) == 0
	if ipv6 && first {
		n.PrimaryIpv6, n.Ipv6AddressCount = aws.Bool(true), aws.Int32(1)
	}
	switch {
	case spec.IPPrefixCount == nil:
	case ipv6:
		n.Ipv6PrefixCount = spec.IPPrefixCount
	default:
		n.Ipv4PrefixCount = spec.IPPrefixCount
	}
}
