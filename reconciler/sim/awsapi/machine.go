package awsapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/resources"
	"github.com/reeve-project/reeve/reconciler/sim"
)

// shape is everything but the instance type that decides on a node's size.
type shape string

// size is what a node reports.
type size struct{ capacity, allocatable resources.List }

// boot boots the machine of the instance with what its user data says. If no
// node can come of that, the instance runs all the same, as EC2's do.
func (e *Endpoint) boot(in *instance, c *candidate) {
	b, err := readUserData(c.image.Family, e.options.Cluster, c.template.userData)
	var s size
	if err == nil {
		s, err = e.size(c.typ.Name, c.image.Family, b, devicesOf(c.template.data))
	}
	if err != nil {
		in.Trouble = err.Error()
		return
	}
	m := e.machine(in, s, b.labels)
	m.Taints = b.taints
	for _, t := range b.taints {
		if slices.ContainsFunc(e.options.StartupTaints, func(s corev1.Taint) bool { return s.MatchTaint(&t) }) {
			m.StartupTaints = append(m.StartupTaints, t)
		}
	}
	var boot sim.Boot
	if e.options.Boot != nil {
		boot = e.options.Boot(in.value())
	}
	e.world.Start(m, boot)
}

// machine is the instance with the labels that its kubelet and AWS's cloud
// controller know, and those that the kubelet was given.
func (e *Endpoint) machine(in *instance, s size, given map[string]string) sim.Machine {
	labels := maps.Clone(given)
	if labels == nil {
		labels = map[string]string{}
	}
	arch := karpv1.ArchitectureAmd64
	if in.arch == string(types.ArchitectureTypeArm64) {
		arch = karpv1.ArchitectureArm64
	}
	maps.Copy(labels, map[string]string{
		corev1.LabelHostname: in.Node, corev1.LabelArchStable: arch, corev1.LabelOSStable: string(corev1.Linux), corev1.LabelInstanceTypeStable: in.Type,
		corev1.LabelTopologyZone: in.Zone, corev1.LabelTopologyRegion: e.Region(), ec2v1.LabelTopologyZoneID: in.ZoneID,
	})
	return sim.Machine{Name: in.Node, ProviderID: in.ProviderID, Labels: labels, Capacity: s.capacity.Kubernetes(), Allocatable: s.allocatable.Kubernetes()}
}

// devicesOf are the block devices of the template.
func devicesOf(d *types.RequestLaunchTemplateData) []*ec2v1.BlockDeviceMapping {
	var out []*ec2v1.BlockDeviceMapping
	for _, b := range d.BlockDeviceMappings {
		m := &ec2v1.BlockDeviceMapping{DeviceName: b.DeviceName, EBS: &ec2v1.BlockDevice{}}
		if b.Ebs != nil && b.Ebs.VolumeSize != nil {
			m.EBS.VolumeSize = new(resource.MustParse(fmt.Sprintf("%dGi", *b.Ebs.VolumeSize)))
		}
		out = append(out, m)
	}
	return out
}

// families are the image families by the names in Image.
var families = map[string]string{"al2023": ec2v1.AMIFamilyAL2023, "bottlerocket": ec2v1.AMIFamilyBottlerocket, "": ec2v1.AMIFamilyCustom}

// size is what a node of the type reports when it boots so.
func (e *Endpoint) size(name, family string, b bootstrap, devices []*ec2v1.BlockDeviceMapping) (size, error) {
	class := &ec2v1.EC2NodeClass{}
	class.Name = "launch template"
	class.Spec.AMIFamily = new(families[family])
	class.Spec.Kubelet = b.kubelet
	class.Spec.BlockDeviceMappings = devices
	if b.raid0 {
		class.Spec.InstanceStorePolicy = new(ec2v1.InstanceStorePolicyRAID0)
	}
	raw, err := json.Marshal(class.Spec)
	if err != nil {
		return size{}, fmt.Errorf("size of the node: %w", err)
	}
	sizes, ok := e.ec2.shapes[shape(raw)]
	if !ok {
		all, err := e.options.Catalog.Resolve(class, e.settings())
		if err != nil {
			return size{}, fmt.Errorf("size of the node: %w", err)
		}
		sizes = make(map[string]size, len(all))
		for _, it := range all {
			sizes[it.Name] = size{it.Capacity, it.Allocatable}
		}
		e.ec2.shapes[shape(raw)] = sizes
	}
	return sizes[name], nil
}

func (e *Endpoint) settings() catalog.Settings {
	if e.options.Settings != nil {
		return *e.options.Settings
	}
	return catalog.DefaultSettings()
}

// AddManaged adds a node of a managed node group, which is ready at once and
// none of Reeve's. It gives the node's name, and fails for a type that is not
// sold on demand in the zone, or a zone without a subnet.
func (e *Endpoint) AddManaged(group, instanceType, zone string) (string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := &template{data: &types.RequestLaunchTemplateData{}}
	c := &candidate{template: t, capacityType: karpv1.CapacityTypeOnDemand}
	c.override.InstanceType, c.override.AvailabilityZone = types.InstanceType(instanceType), &zone
	for _, step := range []func(*candidate) error{e.findType, e.findSubnet, e.findOffering} {
		if err := step(c); err != nil {
			return "", fmt.Errorf("managed node group %s: %w", group, err)
		}
	}
	s, err := e.size(instanceType, "al2023", bootstrap{}, nil)
	if err != nil {
		return "", fmt.Errorf("managed node group %s: %w", group, err)
	}
	in := e.newInstance(c, "managed", group)
	in.Managed = true
	in.Tags = map[string]string{"eks:nodegroup-name": group, "eks:cluster-name": e.options.Cluster}
	e.enter(in, types.InstanceStateNameRunning)
	m := e.machine(in, s, map[string]string{"eks.amazonaws.com/nodegroup": group, "eks.amazonaws.com/capacityType": "ON_DEMAND"})
	if err := e.world.AddNode(m); err != nil {
		return "", fmt.Errorf("managed node group %s: %w", group, err)
	}
	return m.Name, nil
}
