package aws

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/port"
)

const (
	// terminateBatch is how many instances one TerminateInstances call names.
	terminateBatch = 500
	// instancePage is how many instances one DescribeInstances call tells of.
	instancePage = 1000
)

// Instances lists the instances of this cluster that are not terminated, in the
// order of their ids: those with the tags that Karpenter and Reeve launch with. Price, Capacity,
// Allocatable and Labels are left empty: they are the catalog's.
func (c *Cloud) Instances(ctx context.Context) ([]port.Instance, error) {
	pages := ec2.NewDescribeInstancesPaginator(c.ec2, &ec2.DescribeInstancesInput{
		MaxResults: aws.Int32(instancePage),
		Filters: []types.Filter{
			filter("tag-key", karpv1.NodePoolLabelKey),
			filter("tag-key", ec2v1.LabelNodeClass),
			filter("tag:"+ec2v1.EKSClusterNameTagKey, c.options.Cluster),
			filter("instance-state-name", "pending", "running", "stopping", "stopped", "shutting-down"),
		},
	})
	var out []port.Instance
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, kinded("ec2:DescribeInstances", err)
		}
		for _, r := range page.Reservations {
			for _, in := range r.Instances {
				out = append(out, described(in))
			}
		}
	}
	slices.SortFunc(out, func(a, b port.Instance) int { return strings.Compare(a.ID, b.ID) })
	return out, nil
}

// described is an instance as DescribeInstances tells of it.
func described(in types.Instance) port.Instance {
	tags := tagMap(in.Tags)
	out := port.Instance{
		ID: aws.ToString(in.InstanceId), InstanceType: string(in.InstanceType), ImageID: aws.ToString(in.ImageId),
		CapacityType: karpv1.CapacityTypeOnDemand, Tags: tags, Launched: aws.ToTime(in.LaunchTime).UTC(),
		Claim: tags[ec2v1.NodeClaimTagKey], Decision: tags[cluster.DecisionAnnotation], Group: -1,
	}
	if in.InstanceLifecycle == types.InstanceLifecycleTypeSpot || aws.ToString(in.SpotInstanceRequestId) != "" {
		out.CapacityType = karpv1.CapacityTypeSpot
	}
	if in.Placement != nil {
		out.Zone = aws.ToString(in.Placement.AvailabilityZone)
	}
	if in.State != nil {
		out.State = string(in.State.Name)
	}
	if n, err := strconv.Atoi(tags[port.GroupTag]); err == nil && n >= 0 {
		out.Group = n
	}
	out.ProviderID = providerID(out.Zone, out.ID)
	return out
}

// Terminate terminates the instances, some hundred a call. Those that are gone
// are success. One that EC2 does not terminate does not keep the others alive;
// the error names it.
func (c *Cloud) Terminate(ctx context.Context, ids []string) error {
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	var refused *port.TerminateError
	for batch := range slices.Chunk(ids, terminateBatch) {
		refused = join(refused, c.terminate(ctx, batch))
	}
	if refused == nil {
		return nil
	}
	return refused
}

// join is both errors as one, nil if there is none.
func join(a, b *port.TerminateError) *port.TerminateError {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	return &port.TerminateError{Instances: append(slices.Clone(a.Instances), b.Instances...), Err: errors.Join(a.Err, b.Err)}
}

// terminate terminates a batch. EC2 refuses all of it because of one, so what it
// names is left out, and if it names none, the halves are tried.
func (c *Cloud) terminate(ctx context.Context, ids []string) *port.TerminateError {
	if len(ids) == 0 {
		return nil
	}
	_, err := c.ec2.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: ids})
	gone := hasCode(err, codeNoInstance)
	wrapped := kinded("ec2:TerminateInstances", err)
	switch {
	case err == nil, gone && len(ids) == 1:
		return nil
	case !gone && !port.IsTerminal(wrapped), hasCode(err, unauthorized...):
		return &port.TerminateError{Instances: ids, Err: wrapped}
	case len(ids) == 1:
		return &port.TerminateError{Instances: ids, Err: fmt.Errorf("instance %s: %w", ids[0], wrapped)}
	}
	if rest := without(ids, instanceID.FindAllString(messageOf(err), -1)); gone && len(rest) < len(ids) {
		return c.terminate(ctx, rest)
	}
	half := len(ids) / 2
	return join(c.terminate(ctx, ids[:half]), c.terminate(ctx, ids[half:]))
}

var instanceID = regexp.MustCompile(`\bi-[0-9a-f]+\b`)

func without(ids, drop []string) []string {
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return slices.Contains(drop, id) })
}

// Tag adds tags to the instance; port.ErrNotFound when it is gone.
func (c *Cloud) Tag(ctx context.Context, id string, tags map[string]string) error {
	if len(tags) == 0 {
		return nil
	}
	_, err := c.ec2.CreateTags(ctx, &ec2.CreateTagsInput{Resources: []string{id}, Tags: ec2Tags(tags)})
	if err := kinded("ec2:CreateTags", err); err != nil {
		return fmt.Errorf("instance %s: %w", cmp.Or(id, "without an id"), err)
	}
	return nil
}
