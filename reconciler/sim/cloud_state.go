package sim

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/port"
)

// EC2's words for the states of an instance.
const (
	statePending      = "pending"
	stateRunning      = "running"
	stateShuttingDown = "shutting-down"
	stateTerminated   = "terminated"
)

// reclaimAfter is from the warning of a spot interruption to the end of the
// instance.
const reclaimAfter = 2 * time.Minute

func (c *Cloud) find(id string) *instance {
	i := slices.IndexFunc(c.instances, func(in *instance) bool { return in.ID == id })
	if i < 0 {
		return nil
	}
	return c.instances[i]
}

// alive says whether nobody has ended the instance.
func (in *instance) alive() bool { return in.State == statePending || in.State == stateRunning }

// tag adds tags, and reads from all of them what the port reads.
func (in *instance) tag(tags map[string]string) {
	all := maps.Clone(in.Tags)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, tags)
	in.Tags = all
	in.Claim, in.Decision, in.Group = all[tagClaim], all[cluster.DecisionAnnotation], -1
	if n, err := strconv.Atoi(all[port.GroupTag]); err == nil {
		in.Group = n
	}
}

// start puts the instance in the account and boots its machine.
func (c *Cloud) start(in *instance, boot Boot, m Machine) {
	c.instances = append(c.instances, in)
	c.announce(in)
	c.world.Clock.After(pendingTime, func() {
		if in.State == statePending {
			c.setState(in, stateRunning)
		}
	})
	c.world.Start(m, boot)
}

// Kill ends an instance whoever asked for it: its machine stops at once. One
// that is gone stays gone.
func (c *Cloud) Kill(id string) {
	in := c.find(id)
	if in == nil || !in.alive() {
		return
	}
	c.setState(in, stateShuttingDown)
	c.world.Stop(in.ProviderID)
	c.world.Clock.After(shutdownTime, func() { c.setState(in, stateTerminated) })
}

// Interrupt has EC2 take back a spot instance: the warning comes now, the end in
// two minutes. It fails for an instance that is not spot or not running.
func (c *Cloud) Interrupt(id string) error {
	in := c.find(id)
	if in == nil || !in.alive() || in.CapacityType != karpv1.CapacityTypeSpot {
		return fmt.Errorf("interrupt %q: there is no spot instance of that id that runs", id)
	}
	if c.queue != nil {
		c.queue.Send(cluster.Interruption{Kind: cluster.SpotInterruption, Instance: id, Action: "terminate"})
	}
	c.world.Clock.After(reclaimAfter, func() { c.Kill(id) })
	return nil
}

// Attach has the queue told whenever an instance changes its state or is
// interrupted, as EventBridge does.
func (c *Cloud) Attach(q *Queue) { c.queue = q }

func (c *Cloud) setState(in *instance, state string) {
	in.State = state
	c.announce(in)
}

// announce sends the state of the instance. The message that it is pending or
// runs asks for nothing.
func (c *Cloud) announce(in *instance) {
	switch {
	case c.queue == nil:
	case in.alive():
		c.queue.Send()
	default:
		c.queue.Send(cluster.Interruption{Kind: cluster.StateChange, Instance: in.ID, Action: in.State})
	}
}
