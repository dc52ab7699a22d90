package aws

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/port"
	"github.com/reeve-project/reeve/reconciler/requirements"
	"github.com/reeve-project/reeve/reconciler/resources"
)

const (
	// maxTypes is how many instance types one call names (Karpenter,
	// pkg/providers/instance).
	maxTypes = 60
	// maxOverrides is how many combinations of type and subnet EC2 takes in a
	// fleet of type instant.
	maxOverrides = 300
)

// checkLaunch says what is wrong with a request.
func checkLaunch(req port.LaunchRequest) error {
	switch {
	case req.Token == "":
		return fmt.Errorf("the client token is missing")
	case len(req.Claims) == 0:
		return fmt.Errorf("there is no claim to launch for")
	case req.Class == nil || req.Template == nil:
		return fmt.Errorf("the class or the template is missing")
	case req.CapacityType != karpv1.CapacityTypeSpot && req.CapacityType != karpv1.CapacityTypeOnDemand:
		return fmt.Errorf("capacity type %q is neither spot nor on-demand", req.CapacityType)
	case len(req.Offerings) == 0:
		return fmt.Errorf("there is no offering to choose from")
	}
	for _, o := range req.Offerings {
		if o.CapacityType != req.CapacityType {
			return fmt.Errorf("offering %s in %s is %s, and the launch is %s", o.InstanceType, o.Zone, o.CapacityType, req.CapacityType)
		}
	}
	return nil
}

// plan is the call for a request that was not made before. All that it depends
// on is the request, the cluster, and the free addresses of the subnets.
func (c *Cloud) plan(ctx context.Context, req port.LaunchRequest) (*launch, error) {
	info, err := c.clusterInfo(ctx)
	if err != nil {
		return nil, err
	}
	l := &launch{}
	shapes, err := l.choose(req)
	if err != nil {
		return nil, port.Terminal(err)
	}
	l.addresses = l.perNode * int64(len(req.Claims))
	l.subnets = map[string]string{}
	groups, err := group(c.options.Cluster, info, req, shapes, l.offerings)
	if err != nil {
		return nil, port.Terminal(err)
	}
	byZone := c.addresses.choose(subnetsIn(req.Class, l.offerings), l.addresses)
	for zone, id := range byZone {
		l.subnets[id] = zone
	}
	l.input = fleetInput(req)
	for _, g := range groups {
		l.templates = append(l.templates, g.template)
		l.input.LaunchTemplateConfigs = append(l.input.LaunchTemplateConfigs, g.config(l.images, byZone))
	}
	return l, nil
}

// choose keeps the offerings that can be launched: of at most so many types,
// each with an image, in zones with a subnet. It gives the shape of each type.
func (l *launch) choose(req port.LaunchRequest) (map[string]shape, error) {
	byName := map[string]*catalog.InstanceType{}
	for _, t := range req.Types {
		byName[t.Name] = t
	}
	zones := map[string]bool{}
	for _, s := range req.Class.Status.Subnets {
		zones[s.Zone] = true
	}
	images, err := readImages(req.Class)
	if err != nil {
		return nil, err
	}
	shapes := map[string]shape{}
	l.images = map[string]string{}
	for _, o := range req.Offerings {
		t := byName[o.InstanceType]
		if t == nil || !zones[o.Zone] || slices.Contains(l.offerings, o) || len(l.offerings) == maxOverrides {
			continue
		}
		if _, seen := shapes[t.Name]; !seen {
			image := imageFor(images, t)
			if image == "" || len(shapes) == maxTypes {
				continue
			}
			shapes[t.Name] = shape{image: image, maxPods: t.Capacity[corev1.ResourcePods], efas: efasOf(req, t)}
			l.images[t.Name] = image
			if pods := shapes[t.Name].maxPods; l.perNode == 0 || pods < l.perNode {
				l.perNode = pods
			}
		}
		l.offerings = append(l.offerings, o)
	}
	if len(l.offerings) == 0 {
		return nil, fmt.Errorf("none of the %d offerings has a resolved instance type, an image of EC2NodeClass %s and a subnet in its zone: look at the status of the class", len(req.Offerings), req.Class.Name)
	}
	return shapes, nil
}

// efasOf is how many Elastic Fabric Adapters a node gets: all of the type when
// the claims ask for some.
func efasOf(req port.LaunchRequest, t *catalog.InstanceType) int64 {
	if q, asked := req.Template.Spec.Resources.Requests[ec2v1.ResourceEFA]; !asked || q.IsZero() {
		return 0
	}
	return t.Capacity[ec2v1.ResourceEFA]
}

// image is an AMI of a class with what it asks of a type.
type image struct {
	id   string
	asks requirements.Set
}

func readImages(class *ec2v1.EC2NodeClass) ([]image, error) {
	out := make([]image, 0, len(class.Status.AMIs))
	for _, ami := range class.Status.AMIs {
		asks, err := requirements.FromNodeSelector(ami.Requirements)
		if err != nil {
			return nil, fmt.Errorf("image %s of EC2NodeClass %s: %w", ami.ID, class.Name, err)
		}
		out = append(out, image{ami.ID, asks})
	}
	return out, nil
}

// imageFor is the first image that fits the type.
func imageFor(images []image, t *catalog.InstanceType) string {
	for _, i := range images {
		if t.Requirements.IsCompatible(i.asks, nil) {
			return i.id
		}
	}
	return ""
}

func subnetsIn(class *ec2v1.EC2NodeClass, offerings []decision.Offering) []ec2v1.Subnet {
	used := map[string]bool{}
	for _, o := range offerings {
		used[o.Zone] = true
	}
	return slices.DeleteFunc(slices.Clone(class.Status.Subnets), func(s ec2v1.Subnet) bool { return !used[s.Zone] })
}

// templateGroup is what one launch template launches.
type templateGroup struct {
	template  template
	offerings []decision.Offering
}

// group puts the offerings under the templates of their shapes, sorted by the
// names of these.
func group(cluster string, info ClusterInfo, req port.LaunchRequest, shapes map[string]shape, offerings []decision.Offering) ([]*templateGroup, error) {
	byShape := map[shape]*templateGroup{}
	var out []*templateGroup
	for _, o := range offerings {
		s := shapes[o.InstanceType]
		g := byShape[s]
		if g == nil {
			t, err := newTemplate(cluster, info, req, s)
			if err != nil {
				return nil, fmt.Errorf("EC2NodeClass %s: %w", req.Class.Name, err)
			}
			g = &templateGroup{template: t}
			byShape[s] = g
			out = append(out, g)
		}
		g.offerings = append(g.offerings, o)
	}
	slices.SortFunc(out, func(a, b *templateGroup) int { return strings.Compare(a.template.name, b.template.name) })
	return out, nil
}

func (g *templateGroup) config(images map[string]string, subnets map[string]string) types.FleetLaunchTemplateConfigRequest {
	out := types.FleetLaunchTemplateConfigRequest{LaunchTemplateSpecification: &types.FleetLaunchTemplateSpecificationRequest{
		LaunchTemplateName: aws.String(g.template.name), Version: aws.String("$Latest"),
	}}
	for _, o := range g.offerings {
		out.Overrides = append(out.Overrides, types.FleetLaunchTemplateOverridesRequest{
			InstanceType: types.InstanceType(o.InstanceType), AvailabilityZone: aws.String(o.Zone), SubnetId: aws.String(subnets[o.Zone]),
			ImageId: aws.String(images[o.InstanceType]), Priority: aws.Float64(float64(o.Price) / float64(resources.USD)),
		})
	}
	return out
}

// fleetInput is the call without what it launches from. EC2 chooses the cheapest
// on demand, and for spot weighs the price against the chance of interruption.
func fleetInput(req port.LaunchRequest) *ec2.CreateFleetInput {
	tags := ec2Tags(instanceTags(req))
	out := &ec2.CreateFleetInput{
		Type: types.FleetTypeInstant, ClientToken: aws.String(req.Token), Context: req.Class.Spec.Context,
		TargetCapacitySpecification: &types.TargetCapacitySpecificationRequest{
			TotalTargetCapacity: aws.Int32(int32(len(req.Claims))), DefaultTargetCapacityType: types.DefaultTargetCapacityType(req.CapacityType), //nolint:gosec // A decision has some thousand claims.
		},
	}
	for _, r := range []types.ResourceType{types.ResourceTypeInstance, types.ResourceTypeVolume, types.ResourceTypeFleet} {
		out.TagSpecifications = append(out.TagSpecifications, types.TagSpecification{ResourceType: r, Tags: tags})
	}
	if req.CapacityType == karpv1.CapacityTypeSpot {
		out.SpotOptions = &types.SpotOptionsRequest{AllocationStrategy: types.SpotAllocationStrategyPriceCapacityOptimized}
	} else {
		out.OnDemandOptions = &types.OnDemandOptionsRequest{AllocationStrategy: types.FleetOnDemandAllocationStrategyLowestPrice}
	}
	return out
}
