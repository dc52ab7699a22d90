package awsapi

import (
	"cmp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/sim"
)

// Codes for why a candidate was not launched although all it names is there.
const (
	codeNoCapacity  = "InsufficientInstanceCapacity"
	codeNoAddresses = "InsufficientFreeAddressesInSubnet"
	codeVCPULimit   = "VcpuLimitExceeded"
	codeSpotLimit   = "MaxSpotInstanceCountExceeded"
)

// fleet is a CreateFleet call that has been understood.
type fleet struct {
	id           string
	total, least int
	capacityType string
	strategy     string
	tags         map[string]string
	candidates   []*candidate
	errors       []types.CreateFleetError
}

// SetCapacity says how many more instances EC2 has of the pool; below zero is
// without bound, as every pool is at first.
func (e *Endpoint) SetCapacity(p Pool, n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ec2.capacity[p] = n
}

// createFleet is CreateFleet of type instant.
//
// On-demand capacity is allocated by lowest-price (the default) or prioritized.
// Spot capacity is allocated by this model, which is deterministic:
// price-capacity-optimized (and its default, lowest-price, alike) takes pools
// that have capacity for the whole target, cheapest first, before those that
// have less; capacity-optimized takes pools with the most capacity first;
// capacity-optimized-prioritized orders by priority what has capacity for all.
// A pool without a bound has capacity for everything.
func (e *Endpoint) createFleet(in *ec2.CreateFleetInput, dry bool) (*ec2.CreateFleetOutput, error) {
	if dry {
		_, err := e.readFleet(in)
		return nil, err
	}
	return once(e, "CreateFleet", in.ClientToken, in, func() (*ec2.CreateFleetOutput, error) {
		f, err := e.readFleet(in)
		if err != nil {
			return nil, err
		}
		return e.fulfil(f), nil
	})
}

// readFleet checks what concerns the whole call; what concerns one override
// only becomes one of the fleet's errors.
func (e *Endpoint) readFleet(in *ec2.CreateFleetInput) (*fleet, error) {
	f, err := fleetTarget(in)
	if err != nil {
		return nil, err
	}
	if f.tags, err = tagsFor(in.TagSpecifications, types.ResourceTypeInstance); err != nil {
		return nil, err
	}
	f.id = "fleet-" + sim.HexID("fleet", deref(in.ClientToken), len(e.faults.log), e.world.Now().UnixNano())
	if len(in.LaunchTemplateConfigs) == 0 {
		return nil, errorf("MissingParameter", "The request must contain the parameter LaunchTemplateConfigs")
	}
	for _, config := range in.LaunchTemplateConfigs {
		if err := e.readConfig(f, config); err != nil {
			return nil, err
		}
	}
	f.sort(e.ec2.capacity)
	return f, nil
}

func (e *Endpoint) readConfig(f *fleet, config types.FleetLaunchTemplateConfigRequest) error {
	spec := config.LaunchTemplateSpecification
	if spec == nil {
		return errorf("MissingParameter", "The request must contain the parameter LaunchTemplateSpecification")
	}
	t, err := e.findTemplate(spec.LaunchTemplateId, spec.LaunchTemplateName)
	if err != nil {
		return err
	}
	if v := deref(spec.Version); v != "$Latest" && v != "$Default" && v != "1" {
		return errorf("InvalidLaunchTemplateId.VersionNotFound", "Could not find launch template version %q of %s", v, t.id)
	}
	overrides := config.Overrides
	if len(overrides) == 0 {
		overrides = []types.FleetLaunchTemplateOverridesRequest{{}}
	}
	for _, o := range overrides {
		if o.InstanceRequirements != nil || o.WeightedCapacity != nil {
			return errorf("UnsupportedOperation", "The simulated EC2 launches by instance type, without weights.")
		}
		c, err := e.candidate(t, o, f.capacityType)
		if err != nil {
			f.refuse(c, err)
			continue
		}
		f.candidates = append(f.candidates, c)
	}
	return nil
}

// fleetTarget reads how much is to be launched, and how it is chosen.
func fleetTarget(in *ec2.CreateFleetInput) (*fleet, error) {
	target := in.TargetCapacitySpecification
	switch {
	case in.Type != types.FleetTypeInstant:
		return nil, errorf("UnsupportedOperation", "The simulated EC2 launches fleets of type instant, not %q.", in.Type)
	case target == nil || deref(target.TotalTargetCapacity) < 1:
		return nil, errorf("InvalidTargetCapacitySpecification", "The total target capacity must be at least 1.")
	}
	f := &fleet{total: int(*target.TotalTargetCapacity), capacityType: string(target.DefaultTargetCapacityType)}
	spot, onDemand := int(deref(target.SpotTargetCapacity)), int(deref(target.OnDemandTargetCapacity))
	switch f.capacityType {
	case karpv1.CapacityTypeSpot:
		f.strategy = string(types.SpotAllocationStrategyLowestPrice)
		if o := in.SpotOptions; o != nil {
			f.strategy, f.least = cmp.Or(string(o.AllocationStrategy), f.strategy), int(deref(o.MinTargetCapacity))
		}
		if spot > 0 && spot != f.total || onDemand > 0 {
			return nil, errorf("UnsupportedOperation", "The simulated EC2 launches either spot or on-demand instances.")
		}
	case karpv1.CapacityTypeOnDemand:
		f.strategy = string(types.FleetOnDemandAllocationStrategyLowestPrice)
		if o := in.OnDemandOptions; o != nil {
			f.strategy, f.least = cmp.Or(string(o.AllocationStrategy), f.strategy), int(deref(o.MinTargetCapacity))
		}
		if onDemand > 0 && onDemand != f.total || spot > 0 {
			return nil, errorf("UnsupportedOperation", "The simulated EC2 launches either spot or on-demand instances.")
		}
	default:
		return nil, errorf("InvalidTargetCapacitySpecification", "The simulated EC2 has no capacity of type %q.", f.capacityType)
	}
	return f, f.checkStrategy()
}

func (f *fleet) checkStrategy() error {
	known := []string{"lowest-price", "prioritized"}
	if f.capacityType == karpv1.CapacityTypeSpot {
		known = []string{"lowest-price", "price-capacity-optimized", "capacity-optimized", "capacity-optimized-prioritized"}
	}
	if !slices.Contains(known, f.strategy) {
		return errorf("InvalidParameterValue", "The allocation strategy %q is none of %s.", f.strategy, strings.Join(known, ", "))
	}
	return nil
}

// sort puts the candidates into the order in which they are tried.
func (f *fleet) sort(capacity map[Pool]int) {
	room := func(c *candidate) int {
		if n, bounded := capacity[c.pool()]; bounded && n >= 0 {
			return min(n, f.total)
		}
		return f.total
	}
	price := func(a, b *candidate) int {
		// What has no listed price comes last.
		return cmp.Or(cmp.Compare(b2i(a.price == 0), b2i(b.price == 0)), cmp.Compare(a.price, b.price))
	}
	priority := func(a, b *candidate) int { return cmp.Compare(deref(a.override.Priority), deref(b.override.Priority)) }
	order := map[string]func(a, b *candidate) int{
		"lowest-price":                   price,
		"prioritized":                    priority,
		"price-capacity-optimized":       func(a, b *candidate) int { return cmp.Or(cmp.Compare(room(b), room(a)), price(a, b)) },
		"capacity-optimized":             func(a, b *candidate) int { return cmp.Or(cmp.Compare(room(b), room(a)), price(a, b)) },
		"capacity-optimized-prioritized": func(a, b *candidate) int { return cmp.Or(cmp.Compare(room(b), room(a)), priority(a, b)) },
	}[f.strategy]
	slices.SortStableFunc(f.candidates, func(a, b *candidate) int {
		return cmp.Or(order(a, b), strings.Compare(a.typ.Name, b.typ.Name), strings.Compare(a.subnet.Zone, b.subnet.Zone))
	})
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// fulfil launches what there is capacity for. A fleet that cannot have its
// least launches nothing.
func (e *Endpoint) fulfil(f *fleet) *ec2.CreateFleetOutput {
	counts := e.plan(f)
	out := &ec2.CreateFleetOutput{FleetId: new(f.id), Instances: []types.CreateFleetInstance{}}
	sum := 0
	for _, n := range counts {
		sum += n
	}
	for i, c := range f.candidates {
		if counts[i] == 0 || sum < f.least {
			continue
		}
		set := types.CreateFleetInstance{
			InstanceType: c.override.InstanceType, Lifecycle: types.InstanceLifecycle(c.capacityType), LaunchTemplateAndOverrides: c.response(),
			AvailabilityZone: new(c.subnet.Zone), AvailabilityZoneId: new(c.subnet.ZoneID), SubnetId: new(c.subnet.ID),
		}
		for range counts[i] {
			set.InstanceIds = append(set.InstanceIds, e.launch(f, c))
		}
		out.Instances = append(out.Instances, set)
	}
	out.Errors = f.errors
	return out
}

// plan is how many instances of each candidate to launch.
func (e *Endpoint) plan(f *fleet) []int {
	counts := make([]int, len(f.candidates))
	addresses, taken, left := map[*Subnet]int{}, map[Pool]int{}, f.total
	quota := e.quotaLeft(f.capacityType)
	for i, c := range f.candidates {
		for ; left > 0; left-- {
			most, bounded := e.ec2.capacity[c.pool()]
			var err error
			switch {
			case quota.bounded && int64(quota.left) < c.typ.VCPUs:
				err = errorf(quota.code, "You have requested more vCPU capacity than your current vCPU limit allows for %s.", c.where())
			case c.subnet.Free < addresses[c.subnet]+c.addresses():
				err = errorf(codeNoAddresses, "There are not enough free addresses in subnet '%s' to satisfy the requested number of instances.", c.subnet.ID)
			case bounded && most >= 0 && taken[c.pool()] >= most:
				err = errorf(codeNoCapacity, "We currently do not have sufficient %s capacity in the Availability Zone you requested (%s).", c.typ.Name, c.subnet.Zone)
			}
			if err != nil {
				f.refuse(c, err)
				break
			}
			counts[i]++
			taken[c.pool()]++
			addresses[c.subnet] += c.addresses()
			quota.left -= int(c.typ.VCPUs)
		}
		if left == 0 {
			break
		}
	}
	return counts
}

func (f *fleet) refuse(c *candidate, err error) {
	known := err.(*APIError)
	f.errors = append(f.errors, types.CreateFleetError{
		ErrorCode: new(known.Code), ErrorMessage: new(known.Message), Lifecycle: types.InstanceLifecycle(f.capacityType), LaunchTemplateAndOverrides: c.response(),
	})
}

// response repeats what was asked for, with what follows from the template.
func (c *candidate) response() *types.LaunchTemplateAndOverridesResponse {
	o := c.override
	out := &types.FleetLaunchTemplateOverrides{
		InstanceType: o.InstanceType, SubnetId: o.SubnetId, ImageId: o.ImageId, AvailabilityZone: o.AvailabilityZone, MaxPrice: o.MaxPrice, Priority: o.Priority,
	}
	return &types.LaunchTemplateAndOverridesResponse{
		LaunchTemplateSpecification: &types.FleetLaunchTemplateSpecification{LaunchTemplateId: new(c.template.id), Version: new("1")},
		Overrides:                   out,
	}
}
