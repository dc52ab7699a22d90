package aws

import (
	"context"

	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
)

// Sweep deletes launch templates that nothing was launched from for a minute.
func (c *Cloud) Sweep(ctx context.Context, _ []*ec2v1.EC2NodeClass) error {
	return c.sweepTemplates(ctx)
}
