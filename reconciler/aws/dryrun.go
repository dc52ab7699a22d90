package aws

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/port"
)

// usualTypes are those that Karpenter checks with, the first that fits.
var usualTypes = []string{"m5.large", "m6g.large"}

// dryRun goes the way of a launch without launching anything, in Karpenter's
// order: it makes a launch template, then asks EC2 whether it would take a
// fleet of it, and an instance in one of the subnets.
func (c *Cloud) dryRun(ctx context.Context, class *ec2v1.EC2NodeClass, s *classState) error {
	req, err := c.dryRunRequest(ctx, class, s)
	if err != nil {
		return err
	}
	l, err := c.plan(ctx, req)
	if port.IsTerminal(err) {
		return &problem{reason: "LaunchTemplateInvalid", again: invalidInterval, message: fmt.Sprintf("no launch template can be made of the class: correct it: %v", err)}
	}
	if err != nil {
		return err
	}
	c.settle(l, &ec2.CreateFleetOutput{})
	if err := c.ensureTemplates(ctx, l.templates); err != nil {
		return dryRunProblem("CreateLaunchTemplate", err)
	}
	l.input.DryRun = awssdk.Bool(true)
	_, err = c.ec2.CreateFleet(ctx, l.input, once)
	if hasCode(err, codeNoTemplate) {
		// EC2 shows it with some delay, or somebody deleted it.
		c.forgetTemplates(l.templates)
		return &problem{reason: reasonPending, again: classRetry, message: "EC2 does not see the launch template yet: " + messageOf(err)}
	}
	if err := dryRunProblem("CreateFleet", err); err != nil {
		return err
	}
	return c.dryRunInstances(ctx, req, l)
}

// once has the SDK not repeat the call: a throttled check can wait.
func once(o *ec2.Options) { o.Retryer = awssdk.NopRetryer{} }

// dryRunInstances is nil when EC2 would launch an instance in one of the
// subnets. Otherwise the first one's error counts: policies are seldom about
// subnets.
func (c *Cloud) dryRunInstances(ctx context.Context, req port.LaunchRequest, l *launch) error {
	var first error
	for i, subnet := range req.Class.Status.Subnets {
		_, err := c.ec2.RunInstances(ctx, runInput(req, l, subnet), once)
		if err = dryRunProblem("RunInstances", err); err == nil {
			return nil
		}
		if i == 0 {
			first = err
		}
	}
	return first
}

func runInput(req port.LaunchRequest, l *launch, subnet ec2v1.Subnet) *ec2.RunInstancesInput {
	nic := types.InstanceNetworkInterfaceSpecification{DeviceIndex: awssdk.Int32(0), SubnetId: awssdk.String(subnet.ID)}
	for _, g := range req.Class.Status.SecurityGroups {
		nic.Groups = append(nic.Groups, g.ID)
	}
	in := &ec2.RunInstancesInput{
		DryRun: awssdk.Bool(true), MinCount: awssdk.Int32(1), MaxCount: awssdk.Int32(1),
		LaunchTemplate:    &types.LaunchTemplateSpecification{LaunchTemplateName: awssdk.String(l.templates[0].name), Version: awssdk.String("$Latest")},
		InstanceType:      types.InstanceType(req.Offerings[0].InstanceType),
		NetworkInterfaces: []types.InstanceNetworkInterfaceSpecification{nic},
	}
	for _, kind := range []types.ResourceType{types.ResourceTypeInstance, types.ResourceTypeVolume, types.ResourceTypeNetworkInterface} {
		in.TagSpecifications = append(in.TagSpecifications, types.TagSpecification{ResourceType: kind, Tags: ec2Tags(instanceTags(req))})
	}
	return in
}

// dryRunRequest is a launch of one node that nobody asked for.
func (c *Cloud) dryRunRequest(ctx context.Context, class *ec2v1.EC2NodeClass, s *classState) (port.LaunchRequest, error) {
	resolved := class.DeepCopy()
	resolved.Status = ec2v1.EC2NodeClassStatus{Subnets: s.subnets.value, SecurityGroups: s.groups.value, AMIs: s.amis.value, InstanceProfile: s.profile.value}
	data, err := c.sold(ctx)
	if err != nil {
		return port.LaunchRequest{}, err
	}
	all, err := data.Resolve(resolved, catalog.DefaultSettings())
	if err != nil {
		return port.LaunchRequest{}, &problem{reason: "InstanceTypesUnresolved", again: invalidInterval, message: fmt.Sprintf("the sizes of nodes cannot be computed: correct the class: %v", err)}
	}
	t, o, why := dryRunType(all)
	if t == nil {
		return port.LaunchRequest{}, &problem{reason: "NoCompatibleInstanceTypes", again: invalidInterval, message: "no instance type of the region can be launched with the class: " + why}
	}
	tags := map[string]string{}
	for k, v := range class.Spec.Tags {
		tags[k] = v
	}
	tags["kubernetes.io/cluster/"+c.options.Cluster] = "owned"
	tags[ec2v1.EKSClusterNameTagKey] = c.options.Cluster
	tags[ec2v1.LabelNodeClass] = class.Name
	tags[karpv1.NodePoolLabelKey] = ""
	return port.LaunchRequest{
		Decision: "dry-run", Token: "dry-run-" + class.Name, Claims: []string{"dry-run"}, Class: resolved, Template: &karpv1.NodeClaim{},
		CapacityType: karpv1.CapacityTypeOnDemand, Types: []*catalog.InstanceType{t}, Tags: tags,
		Offerings: []decision.Offering{{InstanceType: t.Name, Zone: o.Zone, CapacityType: o.CapacityType, Price: o.Price}},
	}, nil
}

// sold is the catalog as far as it is known. The built-in one will do before
// AWS was asked: only one type is taken from it.
func (c *Cloud) sold(ctx context.Context) (*catalog.Data, error) {
	c.market.mu.Lock()
	data := c.market.data
	c.market.mu.Unlock()
	if data != nil {
		return data, nil
	}
	if data, err := catalog.Embedded(c.options.Region); err == nil {
		return data, nil
	}
	return c.Catalog(ctx)
}

// dryRunType is a usual type if it is available, and the one with the fewest
// CPUs otherwise. Without any it says why.
func dryRunType(all []*catalog.InstanceType) (best *catalog.InstanceType, at catalog.Offering, why string) {
	rank := func(t *catalog.InstanceType) int {
		if i := slices.Index(usualTypes, t.Name); i >= 0 {
			return i
		}
		return len(usualTypes)
	}
	why = "none is offered on demand in a zone of its subnets"
	for _, t := range all {
		for _, o := range t.Offerings {
			if o.CapacityType != karpv1.CapacityTypeOnDemand {
				continue
			}
			if !o.Available {
				why = o.Reason
				continue
			}
			if best == nil || cmp.Or(rank(t)-rank(best), cmp.Compare(t.Capacity[corev1.ResourceCPU], best.Capacity[corev1.ResourceCPU])) < 0 {
				best, at = t, o
			}
			break
		}
	}
	return best, at, why
}

// dryRunProblem is what the answer of a dry run means for the class; nil if the
// call would have succeeded.
func dryRunProblem(call string, err error) error {
	message := messageOf(err)
	switch {
	case hasCode(err, "DryRunOperation"):
		return nil
	case err == nil:
		return errors.New(call + ": EC2 answered a dry run as if it were none")
	case hasCode(err, unauthorized...):
		return &problem{reason: call + "AuthCheckFailed", again: invalidInterval, message: fmt.Sprintf(
			"the controller may not call ec2:%s with this class: allow it in the IAM policy of its role, with iam:PassRole for the role of the nodes, and look for service control policies: %s", call, message)}
	case hasCode(err, "InvalidParameterValue") && strings.Contains(message, "Invalid IAM Instance Profile name"):
		// IAM shows a profile that was just made with some delay.
		return &problem{reason: reasonPending, again: classRetry, message: "EC2 does not see the instance profile yet; if this lasts, check that it exists: " + message}
	case codeOf(err) == "" || hasCode(err, slices.Concat(throttled, busy, expired)...) || serverSide(err):
		return kinded("ec2:"+call, err)
	}
	return &problem{reason: call + "Rejected", again: invalidInterval, message: fmt.Sprintf(
		"EC2 does not take ec2:%s with this class: correct what it names: %s: %s", call, codeOf(err), message)}
}
