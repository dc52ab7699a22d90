package sim

import (
	"context"
	"fmt"
	"slices"
	"strings"

	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/port"
)

// ResolveNodeClass finds subnets, security groups, images and instance profile
// of the class. What is not found is a condition that is False, and Ready with
// it; the reasons are Karpenter's. An alias that no image family has is a
// terminal error.
func (c *Cloud) ResolveNodeClass(ctx context.Context, class *ec2v1.EC2NodeClass) (ec2v1.EC2NodeClassStatus, error) {
	var out ec2v1.EC2NodeClassStatus
	err := c.world.call(ctx, "cloud", "ResolveNodeClass", class.Name, func() error {
		var err error
		out, err = c.resolve(class)
		return err
	})
	return out, err
}

func (c *Cloud) resolve(class *ec2v1.EC2NodeClass) (ec2v1.EC2NodeClassStatus, error) {
	amis, err := c.images(class)
	if err != nil {
		return ec2v1.EC2NodeClassStatus{}, port.Terminal(fmt.Errorf("EC2NodeClass %s: %w", class.Name, err))
	}
	out := ec2v1.EC2NodeClassStatus{
		AMIs: amis, Subnets: c.subnets(class), SecurityGroups: c.groups(class), InstanceProfile: c.profile(class),
	}
	out.Conditions = c.classConditions(&out)
	return out, nil
}

func (c *Cloud) classConditions(s *ec2v1.EC2NodeClassStatus) []status.Condition {
	ready, conditions := true, []status.Condition{}
	add := func(kind string, ok bool, reason, message string) {
		cond := status.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: kind, LastTransitionTime: metav1.NewTime(c.world.Clock.start)}
		if !ok {
			cond.Status, cond.Reason, cond.Message = metav1.ConditionFalse, reason, message
		}
		ready = ready && ok
		conditions = append(conditions, cond)
	}
	add(ec2v1.ConditionTypeAMIsReady, len(s.AMIs) > 0, "AMINotFound", "AMISelector did not match any AMIs")
	add(ec2v1.ConditionTypeSubnetsReady, len(s.Subnets) > 0, "SubnetsNotFound", "SubnetSelector did not match any Subnets")
	add(ec2v1.ConditionTypeSecurityGroupsReady, len(s.SecurityGroups) > 0, "SecurityGroupsNotFound", "SecurityGroupSelector did not match any SecurityGroups")
	add(ec2v1.ConditionTypeInstanceProfileReady, s.InstanceProfile != "", "InstanceProfileNotFound", "neither a role nor an instance profile is given")
	add(ec2v1.ConditionTypeValidationSucceeded, ready, "DependenciesNotReady", "Awaiting AMI, Instance Profile, Security Group, and Subnet resolution")
	add(status.ConditionReady, ready, "UnhealthyDependents", "not everything was found")
	return conditions
}

func (c *Cloud) subnets(class *ec2v1.EC2NodeClass) []ec2v1.Subnet {
	var out []ec2v1.Subnet
	for _, s := range c.options.Subnets {
		if slices.ContainsFunc(class.Spec.SubnetSelectorTerms, func(t ec2v1.SubnetSelectorTerm) bool {
			return (t.ID == "" || t.ID == s.ID) && hasTags(s.Tags, t.Tags) && (t.ID != "" || len(t.Tags) > 0)
		}) {
			out = append(out, ec2v1.Subnet{ID: s.ID, Zone: s.Zone, ZoneID: s.ZoneID})
		}
	}
	slices.SortFunc(out, func(a, b ec2v1.Subnet) int { return strings.Compare(a.ID, b.ID) })
	return out
}

func (c *Cloud) groups(class *ec2v1.EC2NodeClass) []ec2v1.SecurityGroup {
	var out []ec2v1.SecurityGroup
	for _, g := range c.options.SecurityGroups {
		if slices.ContainsFunc(class.Spec.SecurityGroupSelectorTerms, func(t ec2v1.SecurityGroupSelectorTerm) bool {
			return (t.ID == "" || t.ID == g.ID) && (t.Name == "" || t.Name == g.Name) && hasTags(g.Tags, t.Tags) && (t.ID+t.Name != "" || len(t.Tags) > 0)
		}) {
			out = append(out, ec2v1.SecurityGroup{ID: g.ID, Name: g.Name})
		}
	}
	slices.SortFunc(out, func(a, b ec2v1.SecurityGroup) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// hasTags says whether the tags contain those wanted; "*" stands for any value.
func hasTags(have, want map[string]string) bool {
	for k, v := range want {
		got, ok := have[k]
		if !ok || v != "*" && v != got {
			return false
		}
	}
	return true
}

func (c *Cloud) profile(class *ec2v1.EC2NodeClass) string {
	if p := class.Spec.InstanceProfile; p != nil && *p != "" {
		return *p
	}
	if class.Spec.Role == "" {
		return ""
	}
	return c.options.Cluster + "_" + HexID(c.data.Region(), class.Name, class.Spec.Role)
}

// variant is one kind of EKS image: for an architecture, with or without
// drivers for devices.
type variant struct{ arch, devices string }

// imageVariants are those that AWS publishes for a family.
var imageVariants = map[string][]variant{
	"al2023":       {{"amd64", "standard"}, {"arm64", "standard"}, {"amd64", "nvidia"}, {"arm64", "nvidia"}, {"amd64", "neuron"}},
	"bottlerocket": {{"amd64", "standard"}, {"arm64", "standard"}, {"amd64", "nvidia"}, {"arm64", "nvidia"}},
}

// images resolves the selector terms: aliases to the images of a release, ids
// to themselves, taken to be for amd64. Names, tags and SSM parameters select nothing: the account has
// no images of its own.
func (c *Cloud) images(class *ec2v1.EC2NodeClass) ([]ec2v1.AMI, error) {
	var out []ec2v1.AMI
	for i, t := range class.Spec.AMISelectorTerms {
		switch {
		case t.ID != "":
			out = append(out, ec2v1.AMI{ID: t.ID, Name: t.ID, Requirements: []corev1.NodeSelectorRequirement{in(corev1.LabelArchStable, karpv1.ArchitectureAmd64)}})
		case t.Alias != "":
			amis, err := c.release(t.Alias)
			if err != nil {
				return nil, fmt.Errorf("amiSelectorTerms[%d]: %w", i, err)
			}
			out = append(out, amis...)
		}
	}
	return out, nil
}

func in(key string, values ...string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
}

func (c *Cloud) release(alias string) ([]ec2v1.AMI, error) {
	family, version, ok := strings.Cut(alias, "@")
	variants, known := imageVariants[strings.ToLower(family)]
	if !ok || !known {
		return nil, fmt.Errorf("alias %q: want family@version with family al2023 or bottlerocket", alias)
	}
	releases := c.options.Releases[strings.ToLower(family)]
	if version == ec2v1.AliasVersionLatest && len(releases) > 0 {
		version = releases[len(releases)-1]
	}
	if !slices.Contains(releases, version) {
		return nil, nil
	}
	var out []ec2v1.AMI
	for _, v := range variants {
		out = append(out, ec2v1.AMI{
			ID:           "ami-0" + HexID(family, version, v.arch, v.devices),
			Name:         fmt.Sprintf("eks-node-%s-%s-%s-%s", family, v.arch, v.devices, version),
			Requirements: v.requirements(),
		})
	}
	return out, nil
}

func (v variant) requirements() []corev1.NodeSelectorRequirement {
	absent := func(key string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpDoesNotExist}
	}
	exists := func(key string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpExists}
	}
	out := []corev1.NodeSelectorRequirement{in(corev1.LabelArchStable, v.arch)}
	switch v.devices {
	case "nvidia":
		return append(out, exists(ec2v1.LabelInstanceGPUCount))
	case "neuron":
		return append(out, exists(ec2v1.LabelInstanceAcceleratorCount))
	default:
		return append(out, absent(ec2v1.LabelInstanceGPUCount), absent(ec2v1.LabelInstanceAcceleratorCount))
	}
}

// Release publishes a newer release of the images of a family.
func (c *Cloud) Release(family, version string) {
	c.options.Releases = cloneReleases(c.options.Releases)
	c.options.Releases[family] = append(c.options.Releases[family], version)
}

func cloneReleases(in map[string][]string) map[string][]string {
	out := make(map[string][]string, len(in)+1)
	for k, v := range in {
		out[k] = slices.Clone(v)
	}
	return out
}
