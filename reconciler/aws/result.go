package aws

import (
	"cmp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/port"
)

// result reads the answer. Instances are in the order of their ids, which is
// the order of the claims they are for.
func (c *Cloud) result(req port.LaunchRequest, l *launch, answer *ec2.CreateFleetOutput) port.LaunchResult {
	out := port.LaunchResult{Refused: l.refusals(answer.Errors)}
	for _, in := range answer.Instances {
		for _, id := range in.InstanceIds {
			if id != "" {
				out.Instances = append(out.Instances, c.launched(req, l, in, id))
			}
		}
	}
	slices.SortFunc(out.Instances, func(a, b port.Instance) int { return strings.Compare(a.ID, b.ID) })
	for i := range out.Instances {
		if i < len(req.Claims) {
			out.Instances[i].Claim = req.Claims[i]
		}
	}
	return out
}

// launched is an instance as CreateFleet tells of it. What the catalog knows of
// its type and offering is the caller's to add.
func (c *Cloud) launched(req port.LaunchRequest, l *launch, in types.CreateFleetInstance, id string) port.Instance {
	p := placeOf(in)
	zone := cmp.Or(p.zone, l.subnets[p.subnet])
	name := string(in.InstanceType)
	return port.Instance{
		ID: id, ProviderID: providerID(zone, id), InstanceType: name, Zone: zone, CapacityType: req.CapacityType,
		ImageID: cmp.Or(p.image, l.images[name]), Tags: instanceTags(req), Launched: c.clock.Now(), State: string(types.InstanceStateNamePending),
		Decision: req.Decision, Group: req.Group,
	}
}

func providerID(zone, id string) string { return "aws:///" + zone + "/" + id }

// place is where CreateFleet says that it launched.
type place struct{ zone, subnet, image string }

func placeOf(in types.CreateFleetInstance) place {
	o := overridesOf(in.LaunchTemplateAndOverrides)
	return place{
		zone:   cmp.Or(aws.ToString(in.AvailabilityZone), aws.ToString(o.AvailabilityZone)),
		subnet: cmp.Or(aws.ToString(in.SubnetId), aws.ToString(o.SubnetId)),
		image:  aws.ToString(o.ImageId),
	}
}

func overridesOf(r *types.LaunchTemplateAndOverridesResponse) types.FleetLaunchTemplateOverrides {
	if r == nil || r.Overrides == nil {
		return types.FleetLaunchTemplateOverrides{}
	}
	return *r.Overrides
}

// refusals are the offerings that the errors of an answer say there is no
// capacity for, in the order of the request. An error that names no offering is
// about all of them.
func (l *launch) refusals(errors []types.CreateFleetError) []port.Refusal {
	refused := map[decision.Offering]port.Refusal{}
	for _, e := range errors {
		code := aws.ToString(e.ErrorCode)
		if !isUnfulfillable(code) && code != codeNoSpotRole {
			continue
		}
		o := overridesOf(e.LaunchTemplateAndOverrides)
		zone := cmp.Or(aws.ToString(o.AvailabilityZone), l.subnets[aws.ToString(o.SubnetId)])
		for _, offering := range l.offerings {
			about := (o.InstanceType == "" || string(o.InstanceType) == offering.InstanceType) && (zone == "" || zone == offering.Zone)
			if code == codeNoSpotRole {
				about = offering.CapacityType == karpv1.CapacityTypeSpot
			}
			if _, have := refused[offering]; about && !have {
				refused[offering] = port.Refusal{Offering: offering, Code: code, Message: aws.ToString(e.ErrorMessage)}
			}
		}
	}
	var out []port.Refusal
	for _, o := range l.offerings {
		if r, ok := refused[o]; ok {
			out = append(out, r)
		}
	}
	return out
}
