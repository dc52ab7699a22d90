package aws

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

const (
	// validInterval is how long a dry run that passed is good for, invalidInterval
	// one that did not: a policy that was mended should count soon.
	validInterval   = 30 * time.Minute
	invalidInterval = 2 * time.Minute

	// reasonPending is the reason of a condition that is neither True nor False.
	reasonPending = "ValidationPending"
	// dependenciesNotReady is the reason while something is missing.
	dependenciesNotReady = "DependenciesNotReady"
)

// validate checks that the controller may launch with what the class resolved
// to. The dry run is repeated only when something in it changed, or after half
// an hour.
func (c *Cloud) validate(ctx context.Context, class *ec2v1.EC2NodeClass, s *classState) error {
	v := &s.validation
	if !s.subnets.good || !s.groups.good || !s.amis.good || !s.profile.good {
		*v = resolved[struct{}]{reason: dependenciesNotReady, message: "it is checked once subnets, security groups, images and the instance profile are there"}
		return nil
	}
	key := validationKey(class, s)
	err := v.refresh(c.clock.Now(), key, reasonPending, validInterval, func() (struct{}, error) {
		return struct{}{}, c.checkClass(ctx, class, s)
	})
	return err
}

// validationKey is all that the check depends on. The order of subnets changes
// with their free addresses and does not matter.
func validationKey(class *ec2v1.EC2NodeClass, s *classState) string {
	var subnets []string
	for _, n := range s.subnets.value {
		subnets = append(subnets, n.ID)
	}
	slices.Sort(subnets)
	return keyOf(subnets, s.groups.value, s.amis.value, s.profile.value, class.Spec, class.Annotations)
}

// checkClass is nil for a class that can be launched with.
func (c *Cloud) checkClass(ctx context.Context, class *ec2v1.EC2NodeClass, s *classState) error {
	if err := checkTags(class.Spec.Tags); err != nil {
		return err
	}
	if family := class.AMIFamily(); family != ec2v1.AMIFamilyCustom {
		info, err := c.clusterInfo(ctx)
		if err != nil {
			return &problem{reason: "ClusterResolutionFailed", again: classRetry, message: fmt.Sprintf("what nodes need to join the cluster is not known: %v", err)}
		}
		if family == ec2v1.AMIFamilyAL2023 && info.CIDR == "" {
			return &problem{reason: "ClusterCIDRResolutionFailed", message: fmt.Sprintf(
				"EKS does not tell the range of service addresses of cluster %q, which AL2023 needs: use another family, or a cluster of EKS", c.options.Cluster)}
		}
	}
	return c.dryRun(ctx, class, s)
}

// checkTags refuses tags that only the controller may set.
func checkTags(tags map[string]string) error {
	for _, k := range sortedKeys(tags) {
		for _, p := range ec2v1.RestrictedTagPatterns {
			if p.MatchString(k) {
				return &problem{reason: "TagValidationFailed", again: validInterval, message: fmt.Sprintf(
					"spec.tags: %q is a tag that the controller sets itself: remove it", k)}
			}
		}
	}
	return nil
}

// dryRun asks EC2 whether it would launch an instance in one of the subnets.
func (c *Cloud) dryRun(ctx context.Context, class *ec2v1.EC2NodeClass, s *classState) error {
	var first error
	for _, subnet := range s.subnets.value {
		_, err := c.ec2.RunInstances(ctx, c.dryRunInput(class, s, subnet), func(o *ec2.Options) { o.Retryer = awssdk.NopRetryer{} })
		if hasCode(err, "DryRunOperation") {
			return nil
		}
		if err == nil {
			err = errors.New("EC2 answered a dry run as if it were none")
		}
		if first == nil {
			first = err
		}
	}
	return dryRunProblem(first)
}

// dryRunInput is a launch of one instance. Which type it is does not matter to
// the policies that are tested by it.
func (c *Cloud) dryRunInput(class *ec2v1.EC2NodeClass, s *classState, subnet ec2v1.Subnet) *ec2.RunInstancesInput {
	tags := map[string]string{
		karpv1.NodePoolLabelKey: "", ec2v1.LabelNodeClass: class.Name, ec2v1.EKSClusterNameTagKey: c.options.Cluster,
		"kubernetes.io/cluster/" + c.options.Cluster: "owned",
	}
	for k, v := range class.Spec.Tags {
		tags[k] = v
	}
	in := &ec2.RunInstancesInput{
		DryRun: awssdk.Bool(true), MinCount: awssdk.Int32(1), MaxCount: awssdk.Int32(1),
		ImageId: &s.amis.value[0].ID, InstanceType: types.InstanceType(c.dryRunType(s.amis.value[0], subnet)),
		SubnetId: &subnet.ID, IamInstanceProfile: &types.IamInstanceProfileSpecification{Name: &s.profile.value},
	}
	for _, g := range s.groups.value {
		in.SecurityGroupIds = append(in.SecurityGroupIds, g.ID)
	}
	for _, kind := range []types.ResourceType{types.ResourceTypeInstance, types.ResourceTypeVolume, types.ResourceTypeNetworkInterface} {
		in.TagSpecifications = append(in.TagSpecifications, types.TagSpecification{ResourceType: kind, Tags: ec2Tags(tags)})
	}
	return in
}

// dryRunType is an instance type that the image runs on: the one that Karpenter
// takes, or where the zone does not offer it the first that it does.
func (c *Cloud) dryRunType(ami ec2v1.AMI, subnet ec2v1.Subnet) string {
	arch, usual := "x86_64", "m5.large"
	for _, r := range ami.Requirements {
		if slices.Contains(r.Values, karpv1.ArchitectureArm64) {
			arch, usual = "arm64", "m6g.large"
		}
	}
	c.market.mu.Lock()
	data := c.market.data
	c.market.mu.Unlock()
	if data == nil {
		return usual
	}
	if t, ok := data.Type(usual); ok && slices.Contains(t.Zones, subnet.ZoneID) {
		return usual
	}
	for _, t := range data.Types() {
		if t.Arch == arch && !t.Bare() && strings.HasSuffix(t.Name, ".large") && slices.Contains(t.Zones, subnet.ZoneID) {
			return t.Name
		}
	}
	return usual
}

// dryRunProblem is what the error of a dry run means for the class.
func dryRunProblem(err error) error {
	message := messageOf(err)
	switch {
	case hasCode(err, "UnauthorizedOperation"):
		return &problem{reason: "RunInstancesAuthCheckFailed", again: invalidInterval, message: fmt.Sprintf(
			"the controller may not call ec2:RunInstances with this class: allow it in the IAM policy of its role, with iam:PassRole for the role of the nodes, and look for service control policies: %s", message)}
	case hasCode(err, "InvalidParameterValue") && strings.Contains(message, "Invalid IAM Instance Profile name"):
		// IAM shows a profile that was just made with some delay.
		return &problem{reason: reasonPending, again: classRetry, message: "EC2 does not see the instance profile yet; if this lasts, check that it exists: " + message}
	case codeOf(err) == "" || hasCode(err, slices.Concat(throttled, busy, expired)...) || serverSide(err):
		return kinded("ec2:RunInstances (dry run)", err)
	}
	return &problem{reason: "RunInstancesRejected", again: invalidInterval, message: fmt.Sprintf(
		"EC2 would not launch with this class: correct what it names: %s: %s", codeOf(err), message)}
}
