package awsapi

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/sim"
)

// How long an instance is in its states.
const (
	// pendingTime is how long it is pending before it runs.
	pendingTime = 5 * time.Second
	// shutdownTime is how long one that was terminated is shutting down.
	shutdownTime = 20 * time.Second
	// terminatedTime is how long one that is terminated is still described.
	terminatedTime = time.Hour
	// spotNotice is how long before its end a spot instance is warned.
	spotNotice = 2 * time.Minute
)

// instance is one that EC2 knows.
type instance struct {
	Instance
	number    int
	vcpus     int64
	subnet    *Subnet
	addresses int
	arch      string
	health    Health
}

func (in *instance) alive() bool {
	return in.State == string(types.InstanceStateNamePending) || in.State == string(types.InstanceStateNameRunning)
}

// address is its private IPv4 address, which its name is made from.
func (in *instance) address() string { return strings.Join(octets(in.number), ".") }

func octets(n int) []string {
	return []string{"10", "0", fmt.Sprint(n / 250), fmt.Sprint(4 + n%250)}
}

// value is a copy that the caller may keep.
func (in *instance) value() Instance {
	out := in.Instance
	out.Tags = maps.Clone(in.Tags)
	out.SecurityGroups = slices.Clone(in.SecurityGroups)
	return out
}

// Instances are all that EC2 still knows in the order of their launch, those
// of managed node groups and terminated ones included.
func (e *Endpoint) Instances() []Instance {
	e.mu.Lock()
	defer e.mu.Unlock()
	var out []Instance
	for _, in := range e.ec2.instances {
		out = append(out, in.value())
	}
	return out
}

// Instance is the one with that id; false if EC2 does not know it (any more).
func (e *Endpoint) Instance(id string) (Instance, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	in := e.ec2.instance(id)
	if in == nil {
		return Instance{}, false
	}
	return in.value(), true
}

// OnState has the function called whenever an instance enters a state. It is
// called with the endpoint locked: it must not call the endpoint's methods.
func (e *Endpoint) OnState(f func(Instance)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ec2.onState = append(e.ec2.onState, f)
}

// OnWarning has the function called when EC2 warns a spot instance. It is
// called as that of OnState is.
func (e *Endpoint) OnWarning(f func(Instance)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ec2.onWarning = append(e.ec2.onWarning, f)
}

func (s *ec2State) instance(id string) *instance {
	i := slices.IndexFunc(s.instances, func(in *instance) bool { return in.ID == id })
	if i < 0 {
		return nil
	}
	return s.instances[i]
}

// enter has the instance enter the state.
func (e *Endpoint) enter(in *instance, state types.InstanceStateName) {
	in.State = string(state)
	for _, f := range e.ec2.onState {
		f(in.value())
	}
}

// later does something with the mutex held once the time has passed.
func (e *Endpoint) later(d time.Duration, do func()) {
	e.world.Clock.After(d, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		do()
	})
}

// newInstance takes a number, a name and an id for an instance.
func (e *Endpoint) newInstance(c *candidate, parts ...any) *instance {
	n := e.ec2.launched
	e.ec2.launched++
	id := "i-0" + sim.HexID(append(parts, n)...)
	in := &instance{number: n, vcpus: c.typ.VCPUs, subnet: c.subnet, addresses: c.addresses(), arch: c.typ.Arch}
	in.Instance = Instance{
		ID: id, ProviderID: "aws:///" + c.subnet.Zone + "/" + id, Type: c.typ.Name, Zone: c.subnet.Zone, ZoneID: c.subnet.ZoneID, SubnetID: c.subnet.ID,
		CapacityType: c.capacityType, Price: c.price, SecurityGroups: c.groups, Profile: c.profile, Launched: e.world.Now(), Tags: map[string]string{},
		Node: fmt.Sprintf("ip-%s.%s.compute.internal", strings.Join(octets(n), "-"), e.Region()),
	}
	if c.image != nil {
		in.ImageID = c.image.ID
	}
	e.ec2.instances = append(e.ec2.instances, in)
	c.subnet.Free -= in.addresses
	return in
}

// launch starts an instance of the candidate and boots its machine. It gives
// the instance's id.
func (e *Endpoint) launch(f *fleet, c *candidate) string {
	in := e.newInstance(c, f.id)
	in.Fleet = f.id
	if c.capacityType == karpv1.CapacityTypeSpot {
		in.SpotRequest = "sir-" + in.ID[3:11]
	}
	for _, s := range c.template.data.TagSpecifications {
		if s.ResourceType == types.ResourceTypeInstance {
			for _, t := range s.Tags {
				in.Tags[deref(t.Key)] = deref(t.Value)
			}
		}
	}
	maps.Copy(in.Tags, f.tags)
	maps.Copy(in.Tags, map[string]string{
		"aws:ec2:fleet-id": f.id, "aws:ec2launchtemplate:id": c.template.id, "aws:ec2launchtemplate:version": "1",
	})
	if n, bounded := e.ec2.capacity[c.pool()]; bounded && n > 0 {
		e.ec2.capacity[c.pool()]--
	}
	e.enter(in, types.InstanceStateNamePending)
	e.boot(in, c)
	e.later(pendingTime, func() {
		if in.State == string(types.InstanceStateNamePending) {
			e.enter(in, types.InstanceStateNameRunning)
		}
	})
	return in.ID
}

// terminate ends the instance: its machine stops at once. One that is gone
// stays gone.
func (e *Endpoint) terminate(in *instance) {
	if !in.alive() {
		return
	}
	e.enter(in, types.InstanceStateNameShuttingDown)
	e.world.Stop(in.ProviderID)
	e.later(shutdownTime, func() {
		e.enter(in, types.InstanceStateNameTerminated)
		in.subnet.Free += in.addresses
		e.later(terminatedTime, func() {
			e.ec2.instances = slices.DeleteFunc(e.ec2.instances, func(x *instance) bool { return x == in })
		})
	})
}

// Kill terminates an instance as somebody at the console does. One that EC2
// does not know, or that ends already, stays as it is.
func (e *Endpoint) Kill(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if in := e.ec2.instance(id); in != nil {
		e.terminate(in)
	}
}

// SpotWarning has EC2 take a spot instance back: it is warned now and
// terminated two minutes later. It fails for what is no running spot instance.
func (e *Endpoint) SpotWarning(id string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	in := e.ec2.instance(id)
	if in == nil || !in.alive() || in.CapacityType != karpv1.CapacityTypeSpot {
		return fmt.Errorf("spot warning: there is no running spot instance %s", id)
	}
	for _, f := range e.ec2.onWarning {
		f(in.value())
	}
	e.later(spotNotice, func() { e.terminate(in) })
	return nil
}
