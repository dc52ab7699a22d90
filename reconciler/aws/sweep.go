package aws

import (
	"context"
	"errors"

	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
)

// Sweep deletes launch templates that nothing was launched from for a minute,
// and instance profiles that no class has any more.
func (c *Cloud) Sweep(ctx context.Context, classes []*ec2v1.EC2NodeClass) error {
	return errors.Join(c.sweepTemplates(ctx), c.sweepProfiles(ctx, classes))
}
