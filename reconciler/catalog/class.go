package catalog

import (
	"fmt"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/requirements"
)

func (d *Data) readClass(class *awsv1.EC2NodeClass, s Settings) (*classInput, error) {
	c := &classInput{name: class.Name, settings: s, interfaces: class.Spec.NetworkInterfaces, labels: map[string]requirements.Set{}}
	var err error
	if c.family, err = familyOf(class); err != nil {
		return nil, err
	}
	if c.kubelet, err = readKubelet(class.Spec.Kubelet); err != nil {
		return nil, fmt.Errorf("spec.kubelet.%w", err)
	}
	if c.images, err = readImages(class.Status.AMIs); err != nil {
		return nil, err
	}
	c.raid0 = class.Spec.InstanceStorePolicy != nil && *class.Spec.InstanceStorePolicy == awsv1.InstanceStorePolicyRAID0
	c.rootStorage = rootStorage(class.Spec.BlockDeviceMappings, c.family)
	for _, n := range c.interfaces {
		if n.NetworkCardIndex < 0 || n.DeviceIndex < 0 {
			return nil, fmt.Errorf("spec.networkInterfaces: network card %d, device %d: an index is below zero", n.NetworkCardIndex, n.DeviceIndex)
		}
		if n.InterfaceType != awsv1.InterfaceTypeEFAOnly {
			continue
		}
		c.efaOnly++
		if n.NetworkCardIndex == 0 {
			c.efaOnlyFirstCard++
		}
	}
	c.zones, c.closed = d.zonesOfClass(class)
	c.connectionTracking = class.Spec.ConnectionTracking != nil
	c.placementGroup = class.Spec.PlacementGroupSelector != nil
	if o := class.Spec.CPUOptions; o != nil && o.NestedVirtualization != nil {
		c.nestedVirtualization = *o.NestedVirtualization == "enabled"
	}
	return c, nil
}

func readImages(amis []awsv1.AMI) ([]requirements.Set, error) {
	var out []requirements.Set
	for i, ami := range amis {
		s, err := requirements.FromNodeSelector(ami.Requirements)
		if err != nil {
			return nil, fmt.Errorf("status.amis[%d]: %w", i, err)
		}
		out = append(out, s)
	}
	return out, nil
}

// rootStorage is the size of the device that holds pods' ephemeral storage, in
// bytes. Devices without a size are skipped.
func rootStorage(devices []*awsv1.BlockDeviceMapping, f family) int64 {
	size := func(d *awsv1.BlockDeviceMapping) (int64, bool) {
		if d.EBS == nil || d.EBS.VolumeSize == nil {
			return 0, false
		}
		return d.EBS.VolumeSize.Value(), true
	}
	for _, d := range devices {
		if d.RootVolume {
			if n, ok := size(d); ok {
				return n
			}
			break // Karpenter looks at the first root volume only
		}
	}
	if f.name == awsv1.AMIFamilyCustom && len(devices) > 0 {
		if n, ok := size(devices[len(devices)-1]); ok {
			return n
		}
	}
	for _, d := range devices {
		if f.device != "" && d.DeviceName != nil && *d.DeviceName == f.device {
			if n, ok := size(d); ok {
				return n
			}
			break
		}
	}
	return f.storage
}

// zonesOfClass are the zones of the region in which the class has a subnet. The
// names are those of the subnets, since only the account knows them. If there is
// none, all zones are given with the reason why nothing can be launched.
func (d *Data) zonesOfClass(class *awsv1.EC2NodeClass) ([]Zone, string) {
	if len(class.Status.Subnets) == 0 {
		return d.zones, fmt.Sprintf("EC2NodeClass %s has no subnets in its status", class.Name)
	}
	var out []Zone
	for _, z := range d.zones {
		for _, s := range class.Status.Subnets {
			if s.ZoneID == z.ID || (s.ZoneID == "" && s.Zone == z.Name) {
				out = append(out, Zone{Name: s.Zone, ID: z.ID})
				break
			}
		}
	}
	if len(out) == 0 {
		return d.zones, fmt.Sprintf("no subnet of EC2NodeClass %s is in a zone of %s", class.Name, d.region)
	}
	return out, ""
}
