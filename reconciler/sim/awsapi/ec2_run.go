package awsapi

import (
	"cmp"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// runInstances checks a launch; it launches nothing, since fleets do.
func (e *Endpoint) runInstances(in *ec2.RunInstancesInput, dry bool) (*ec2.RunInstancesOutput, error) {
	if deref(in.MinCount) < 1 || deref(in.MaxCount) < deref(in.MinCount) {
		return nil, errorf("InvalidParameterValue", "The counts %d and %d are no range from 1.", deref(in.MinCount), deref(in.MaxCount))
	}
	if _, err := tagsFor(in.TagSpecifications, types.ResourceTypeInstance); err != nil {
		return nil, err
	}
	data, err := e.runData(in)
	if err != nil {
		return nil, err
	}
	capacityType := karpv1.CapacityTypeOnDemand
	if o := in.InstanceMarketOptions; o != nil && o.MarketType == types.MarketTypeSpot {
		capacityType = karpv1.CapacityTypeSpot
	}
	override := types.FleetLaunchTemplateOverridesRequest{SubnetId: in.SubnetId}
	if in.Placement != nil {
		override.AvailabilityZone = in.Placement.AvailabilityZone
	}
	if _, err := e.candidate(&template{data: data}, override, capacityType); err != nil {
		return nil, err
	}
	if !dry {
		return nil, errorf("UnsupportedOperation", "The simulated EC2 launches by CreateFleet; RunInstances answers dry runs.")
	}
	return nil, nil
}

// runData is the data of the template with the input's over it.
func (e *Endpoint) runData(in *ec2.RunInstancesInput) (*types.RequestLaunchTemplateData, error) {
	data := types.RequestLaunchTemplateData{}
	if t := in.LaunchTemplate; t != nil {
		found, err := e.findTemplate(t.LaunchTemplateId, t.LaunchTemplateName)
		if err != nil {
			return nil, err
		}
		data = *found.data
	}
	if _, err := decodeUserData(in.UserData); err != nil {
		return nil, err
	}
	data.InstanceType = cmp.Or(in.InstanceType, data.InstanceType)
	if in.ImageId != nil {
		data.ImageId = in.ImageId
	}
	if in.SecurityGroupIds != nil {
		data.SecurityGroupIds = in.SecurityGroupIds
	}
	if p := in.IamInstanceProfile; p != nil {
		data.IamInstanceProfile = &types.LaunchTemplateIamInstanceProfileSpecificationRequest{Name: p.Name}
	}
	if in.NetworkInterfaces != nil {
		data.NetworkInterfaces = nil
	}
	for _, n := range in.NetworkInterfaces {
		data.NetworkInterfaces = append(data.NetworkInterfaces, types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest{Groups: n.Groups, SubnetId: n.SubnetId})
	}
	return &data, nil
}
