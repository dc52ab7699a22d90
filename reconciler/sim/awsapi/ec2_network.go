package awsapi

import (
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// vpc is the id of the account's only network.
const vpc = "vpc-0a1b2c3d4e5f60718"

// tagList is the tags sorted by key.
func tagList(tags map[string]string) []types.Tag {
	out := []types.Tag{}
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		out = append(out, types.Tag{Key: new(k), Value: new(tags[k])})
	}
	return out
}

// byIDs are the things with those ids, in the order of the list; all without
// ids. One that does not exist is an error of the code.
func byIDs[T any](list []T, ids []string, id func(T) string, code, message string) ([]T, error) {
	if len(ids) == 0 {
		return list, nil
	}
	for _, want := range ids {
		if !slices.ContainsFunc(list, func(x T) bool { return id(x) == want }) {
			return nil, errorf(code, message, want)
		}
	}
	var out []T
	for _, x := range list {
		if slices.Contains(ids, id(x)) {
			out = append(out, x)
		}
	}
	return out, nil
}

func (e *Endpoint) describeSubnets(in *ec2.DescribeSubnetsInput) (*ec2.DescribeSubnetsOutput, error) {
	list, err := byIDs(e.ec2.subnets, in.SubnetIds, func(s *Subnet) string { return s.ID }, "InvalidSubnetID.NotFound", "The subnet ID '%s' does not exist")
	if err != nil {
		return nil, err
	}
	list, err = selected(list, in.Filters, &Subnet{}, func(s *Subnet) (attributes, map[string]string) {
		return attributes{
			"subnet-id": one(s.ID), "availability-zone": one(s.Zone), "availability-zone-id": one(s.ZoneID),
			"vpc-id": one(vpc), "state": one("available"),
		}, s.Tags
	})
	if err != nil {
		return nil, err
	}
	list, next, err := page(list, in.MaxResults, in.NextToken, bounds{5, 1000, 1000})
	out := &ec2.DescribeSubnetsOutput{NextToken: next, Subnets: []types.Subnet{}}
	for _, s := range list {
		out.Subnets = append(out.Subnets, types.Subnet{
			SubnetId: new(s.ID), AvailabilityZone: new(s.Zone), AvailabilityZoneId: new(s.ZoneID), AvailableIpAddressCount: new(int32(s.Free)),
			VpcId: new(vpc), State: types.SubnetStateAvailable, OwnerId: new(e.options.Account), Tags: tagList(s.Tags),
		})
	}
	return out, err
}

func (e *Endpoint) describeSecurityGroups(in *ec2.DescribeSecurityGroupsInput) (*ec2.DescribeSecurityGroupsOutput, error) {
	list, err := byIDs(e.ec2.groups, in.GroupIds, func(g SecurityGroup) string { return g.ID }, "InvalidGroup.NotFound", "The security group '%s' does not exist")
	if err != nil {
		return nil, err
	}
	if list, err = byIDs(list, in.GroupNames, func(g SecurityGroup) string { return g.Name }, "InvalidGroup.NotFound", "The security group '%s' does not exist"); err != nil {
		return nil, err
	}
	list, err = selected(list, in.Filters, SecurityGroup{}, func(g SecurityGroup) (attributes, map[string]string) {
		return attributes{"group-id": one(g.ID), "group-name": one(g.Name), "vpc-id": one(vpc)}, g.Tags
	})
	if err != nil {
		return nil, err
	}
	list, next, err := page(list, in.MaxResults, in.NextToken, bounds{5, 1000, 1000})
	out := &ec2.DescribeSecurityGroupsOutput{NextToken: next, SecurityGroups: []types.SecurityGroup{}}
	for _, g := range list {
		out.SecurityGroups = append(out.SecurityGroups, types.SecurityGroup{
			GroupId: new(g.ID), GroupName: new(g.Name), VpcId: new(vpc), OwnerId: new(e.options.Account), Tags: tagList(g.Tags),
		})
	}
	return out, err
}

func (e *Endpoint) describeImages(in *ec2.DescribeImagesInput) (*ec2.DescribeImagesOutput, error) {
	list, err := byIDs(e.ec2.images, in.ImageIds, func(im Image) string { return im.ID }, "InvalidAMIID.NotFound", "The image id '[%s]' does not exist")
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(slices.Clone(list), func(im Image) bool {
		return !e.owned(im, in.Owners) || e.deprecated(im) && !deref(in.IncludeDeprecated) && im.Owner != e.options.Account
	})
	list, err = selected(list, in.Filters, Image{}, func(im Image) (attributes, map[string]string) {
		return attributes{
			"image-id": one(im.ID), "name": one(im.Name), "architecture": one(im.Architecture), "state": one("available"),
			"owner-id": one(im.Owner), "owner-alias": one(im.Owner), "virtualization-type": one("hvm"), "root-device-type": one("ebs"),
		}, im.Tags
	})
	if err != nil {
		return nil, err
	}
	list, next, err := page(list, in.MaxResults, in.NextToken, bounds{1, 1000, len(list)})
	out := &ec2.DescribeImagesOutput{NextToken: next, Images: []types.Image{}}
	for _, im := range list {
		out.Images = append(out.Images, imageInfo(im))
	}
	return out, err
}

func (e *Endpoint) deprecated(im Image) bool {
	return !im.Deprecated.IsZero() && !im.Deprecated.After(e.world.Now())
}

// owned says whether one of the owners has the image; everybody does when none
// is asked for.
func (e *Endpoint) owned(im Image, owners []string) bool {
	return len(owners) == 0 || slices.ContainsFunc(owners, func(o string) bool {
		return o == im.Owner || o == "self" && im.Owner == e.options.Account
	})
}

func imageInfo(im Image) types.Image {
	out := types.Image{
		ImageId: new(im.ID), Name: new(im.Name), Architecture: types.ArchitectureValues(im.Architecture), State: types.ImageStateAvailable,
		OwnerId: new(im.Owner), CreationDate: new(im.Created.UTC().Format(timeForm)), Tags: tagList(im.Tags),
		RootDeviceType: types.DeviceTypeEbs, RootDeviceName: new("/dev/xvda"), VirtualizationType: types.VirtualizationTypeHvm,
	}
	if strings.Trim(im.Owner, "0123456789") != "" {
		out.ImageOwnerAlias = new(im.Owner)
	}
	if !im.Deprecated.IsZero() {
		out.DeprecationTime = new(im.Deprecated.UTC().Format(timeForm))
	}
	return out
}
