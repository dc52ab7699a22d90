package awsapi

import (
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

const (
	noInstance        = "InvalidInstanceID.NotFound"
	noInstanceMessage = "The instance ID '%s' does not exist"
)

// stateCodes are EC2's numbers of the states.
var stateCodes = map[types.InstanceStateName]int32{
	types.InstanceStateNamePending: 0, types.InstanceStateNameRunning: 16, types.InstanceStateNameShuttingDown: 32, types.InstanceStateNameTerminated: 48,
}

func stateOf(name string) *types.InstanceState {
	s := types.InstanceStateName(name)
	return &types.InstanceState{Name: s, Code: new(stateCodes[s])}
}

// visibleInstances are those that reads show already.
func (e *Endpoint) visibleInstances() []*instance {
	var out []*instance
	for _, in := range e.ec2.instances {
		if in.Managed || !in.Launched.Add(e.options.Delays.Instance).After(e.world.Now()) {
			out = append(out, in)
		}
	}
	return out
}

func (e *Endpoint) describeInstances(in *ec2.DescribeInstancesInput) (*ec2.DescribeInstancesOutput, error) {
	if len(in.InstanceIds) > 0 && in.MaxResults != nil {
		return nil, errorf("InvalidParameterCombination", "The parameter instancesSet cannot be used with the parameter maxResults")
	}
	list, err := byIDs(e.visibleInstances(), in.InstanceIds, func(i *instance) string { return i.ID }, noInstance, noInstanceMessage)
	if err != nil {
		return nil, err
	}
	list, err = selected(list, in.Filters, &instance{}, instanceAttributes)
	if err != nil {
		return nil, err
	}
	list, next, err := page(list, in.MaxResults, in.NextToken, bounds{5, 1000, 1000})
	out := &ec2.DescribeInstancesOutput{NextToken: next, Reservations: []types.Reservation{}}
	for _, i := range list {
		out.Reservations = append(out.Reservations, types.Reservation{
			ReservationId: new("r-0" + i.ID[3:]), OwnerId: new(e.options.Account), Instances: []types.Instance{e.instanceInfo(i)},
		})
	}
	return out, err
}

func instanceAttributes(in *instance) (attributes, map[string]string) {
	lifecycle := []string{}
	if in.CapacityType == karpv1.CapacityTypeSpot {
		lifecycle = one(in.CapacityType)
	}
	return attributes{
		"instance-id": one(in.ID), "instance-state-name": one(in.State), "instance-type": one(in.Type), "availability-zone": one(in.Zone),
		"subnet-id": one(in.SubnetID), "vpc-id": one(vpc), "image-id": one(in.ImageID), "instance-lifecycle": lifecycle,
		"private-dns-name": one(in.Node), "instance.group-id": in.SecurityGroups, "spot-instance-request-id": one(in.SpotRequest),
	}, in.Tags
}

func (e *Endpoint) instanceInfo(in *instance) types.Instance {
	out := types.Instance{
		InstanceId: new(in.ID), InstanceType: types.InstanceType(in.Type), ImageId: new(in.ImageID), State: stateOf(in.State), LaunchTime: new(in.Launched),
		Placement: &types.Placement{AvailabilityZone: new(in.Zone), AvailabilityZoneId: new(in.ZoneID), Tenancy: types.TenancyDefault},
		SubnetId:  new(in.SubnetID), VpcId: new(vpc), Tags: tagList(in.Tags), Architecture: types.ArchitectureValues(in.arch),
		PrivateDnsName: new(in.Node), PrivateIpAddress: new(in.address()), SecurityGroups: e.groupsOf(in),
	}
	if in.SpotRequest != "" {
		out.SpotInstanceRequestId, out.InstanceLifecycle = new(in.SpotRequest), types.InstanceLifecycleTypeSpot
	}
	if in.Profile != "" {
		out.IamInstanceProfile = &types.IamInstanceProfile{Arn: new("arn:aws:iam::" + e.options.Account + ":instance-profile/" + in.Profile)}
	}
	// What is terminated has given its network interfaces back.
	if in.State != string(types.InstanceStateNameTerminated) {
		out.NetworkInterfaces = []types.InstanceNetworkInterface{{
			NetworkInterfaceId: new("eni-0" + in.ID[3:]), SubnetId: new(in.SubnetID), VpcId: new(vpc), Groups: e.groupsOf(in), PrivateIpAddress: new(in.address()),
		}}
	}
	return out
}

func (e *Endpoint) groupsOf(in *instance) []types.GroupIdentifier {
	out := []types.GroupIdentifier{}
	for _, g := range e.ec2.groups {
		if slices.Contains(in.SecurityGroups, g.ID) {
			out = append(out, types.GroupIdentifier{GroupId: new(g.ID), GroupName: new(g.Name)})
		}
	}
	return out
}

// terminateInstances ends all or, if one of them does not exist, none.
func (e *Endpoint) terminateInstances(in *ec2.TerminateInstancesInput) (*ec2.TerminateInstancesOutput, error) {
	if len(in.InstanceIds) == 0 {
		return nil, errorf("MissingParameter", "The request must contain the parameter InstanceId")
	}
	list, err := byIDs(e.ec2.instances, in.InstanceIds, func(i *instance) string { return i.ID }, noInstance, noInstanceMessage)
	if err != nil {
		return nil, err
	}
	out := &ec2.TerminateInstancesOutput{}
	for _, i := range list {
		before := stateOf(i.State)
		e.terminate(i)
		out.TerminatingInstances = append(out.TerminatingInstances, types.InstanceStateChange{InstanceId: new(i.ID), PreviousState: before, CurrentState: stateOf(i.State)})
	}
	return out, nil
}
