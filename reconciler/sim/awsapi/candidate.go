package awsapi

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/resources"
)

// candidate is one way in which an instance may be launched: a template with
// what overrides it.
type candidate struct {
	template     *template
	override     types.FleetLaunchTemplateOverridesRequest
	capacityType string
	typ          *catalog.Type
	subnet       *Subnet
	image        *Image
	groups       []string
	profile      string
	// price per hour; zero if none is listed.
	price resources.Price
}

// pool is what the candidate takes capacity of.
func (c *candidate) pool() Pool { return Pool{c.typ.Name, c.subnet.Zone, c.capacityType} }

// addresses is how many addresses of the subnet an instance takes.
func (c *candidate) addresses() int { return max(len(c.template.data.NetworkInterfaces), 1) }

// candidate finds everything that the template and the override name. The
// error is the one that EC2 gives for the override; what was found by then is
// there.
func (e *Endpoint) candidate(t *template, o types.FleetLaunchTemplateOverridesRequest, capacityType string) (*candidate, error) {
	o.InstanceType = cmp.Or(o.InstanceType, t.data.InstanceType)
	if o.ImageId == nil {
		o.ImageId = t.data.ImageId
	}
	c := &candidate{template: t, override: o, capacityType: capacityType}
	for _, step := range []func(*candidate) error{e.findType, e.findSubnet, e.findImage, e.findGroups, e.findProfile, e.findOffering} {
		if err := step(c); err != nil {
			return c, err
		}
	}
	return c, nil
}

func (e *Endpoint) findType(c *candidate) error {
	t, ok := e.options.Catalog.Type(string(c.override.InstanceType))
	if !ok || len(t.Zones) == 0 {
		return errorf("InvalidParameterValue", "Invalid instance type: '%s'", c.override.InstanceType)
	}
	c.typ = t
	return nil
}

// findSubnet takes the subnet that is named, else the first one of the zone
// that is named, else the first one in a zone that has the type.
func (e *Endpoint) findSubnet(c *candidate) error {
	id, zone := deref(c.override.SubnetId), deref(c.override.AvailabilityZone)
	if id == "" && len(c.template.data.NetworkInterfaces) > 0 {
		id = deref(c.template.data.NetworkInterfaces[0].SubnetId)
	}
	if id != "" {
		if c.subnet = e.ec2.subnet(id); c.subnet == nil {
			return errorf("InvalidSubnetID.NotFound", "The subnet ID '%s' does not exist", id)
		}
		if zone != "" && c.subnet.Zone != zone {
			return errorf("InvalidParameterValue", "The subnet '%s' is in availability zone %s, not in %s.", id, c.subnet.Zone, zone)
		}
		return nil
	}
	if _, ok := e.options.zone(zone); zone != "" && !ok {
		return errorf("InvalidParameterValue", "Invalid availability zone: [%s]", zone)
	}
	for _, s := range e.ec2.subnets {
		if zone == s.Zone || zone == "" && slices.Contains(c.typ.Zones, s.ZoneID) {
			c.subnet = s
			return nil
		}
	}
	return errorf("MissingInput", "No subnets found for the default VPC. Please specify a subnet.")
}

func (e *Endpoint) findImage(c *candidate) error {
	id := deref(c.override.ImageId)
	if id == "" {
		return errorf("MissingParameter", "The request must contain the parameter ImageId")
	}
	if c.image = e.ec2.image(id); c.image == nil {
		return errorf("InvalidAMIID.NotFound", "The image id '[%s]' does not exist", id)
	}
	if c.image.Architecture != c.typ.Arch {
		return errorf("InvalidParameterValue", "The architecture '%s' of the specified instance type does not match the architecture '%s' of the specified AMI.", c.typ.Arch, c.image.Architecture)
	}
	return nil
}

func (e *Endpoint) findGroups(c *candidate) error {
	ids := slices.Clone(c.template.data.SecurityGroupIds)
	for _, n := range c.template.data.NetworkInterfaces {
		ids = append(ids, n.Groups...)
	}
	slices.Sort(ids)
	c.groups = slices.Compact(ids)
	for _, id := range c.groups {
		if !slices.ContainsFunc(e.ec2.groups, func(g SecurityGroup) bool { return g.ID == id }) {
			return errorf("InvalidGroup.NotFound", "The security group '%s' does not exist", id)
		}
	}
	return nil
}

func (e *Endpoint) findProfile(c *candidate) error {
	if p := c.template.data.IamInstanceProfile; p != nil {
		c.profile = deref(p.Name)
	}
	if c.profile != "" && e.options.InstanceProfileExists != nil && !e.options.InstanceProfileExists(c.profile) {
		return errorf("InvalidParameterValue", "Value (%s) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name", c.profile)
	}
	return nil
}

// findOffering refuses what is not sold: there, or as spot.
func (e *Endpoint) findOffering(c *candidate) error {
	d := e.options.Catalog
	if !slices.Contains(c.typ.Zones, c.subnet.ZoneID) {
		return errorf("Unsupported", "Your requested instance type (%s) is not supported in your requested Availability Zone (%s).", c.typ.Name, c.subnet.Zone)
	}
	if !slices.Contains(c.typ.Usage, c.capacityType) {
		return errorf("Unsupported", "The instance type %s does not support the usage class %s.", c.typ.Name, c.capacityType)
	}
	if c.capacityType != karpv1.CapacityTypeSpot {
		c.price, _ = d.OnDemandPrice(c.typ.Name)
		return nil
	}
	c.price, _ = d.SpotPrice(c.typ.Name, c.subnet.ZoneID)
	limit := deref(c.override.MaxPrice)
	if limit == "" {
		return nil
	}
	most, err := resources.ParsePrice(limit)
	if err != nil {
		return errorf("InvalidParameterValue", "Value (%s) for parameter maxPrice is invalid.", limit)
	}
	if most < c.price {
		return errorf("SpotMaxPriceTooLow", "Your Spot request price of %s is lower than the minimum required Spot request fulfillment price of %s.", limit, c.price.Decimal())
	}
	return nil
}

// where names type and zone for people.
func (c *candidate) where() string { return fmt.Sprintf("%s in %s", c.typ.Name, c.subnet.Zone) }
