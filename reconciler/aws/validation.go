package aws

import (
	"context"
	"fmt"
	"slices"
	"time"

	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
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
