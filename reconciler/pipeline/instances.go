package pipeline

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/port"
)

const (
	// lookEvery is how often EC2 is asked what runs when nothing is going on
	// (Karpenter, pkg/controllers/nodeclaim/garbagecollection), and lookSoon how
	// often while an instance is ending or a node does not answer.
	lookEvery = 2 * time.Minute
	lookSoon  = 5 * time.Second
	// lookFirst is how often a new leader looks, for its first looks.
	lookFirst  = 10 * time.Second
	firstLooks = 20
	// settlesWithin is how long an instance may be missing from what EC2 lists
	// though it was launched.
	settlesWithin = time.Minute
)

// instances is what EC2 says of the cluster's instances, as of a while ago.
type instances struct {
	all   map[string]port.Instance
	list  []port.Instance
	taken time.Time
	looks int
	stale bool
	// ended are instances that EC2 took our word for ending.
	ended map[string]bool
}

// end notes that EC2 was told to end the instances. The next look comes with
// the next pass.
func (i *instances) end(ids []string) {
	if i.ended == nil {
		i.ended = map[string]bool{}
	}
	for _, id := range ids {
		i.ended[id] = true
	}
	i.stale = true
}

// gone says whether EC2 does not have the instance any more.
func (i *instances) gone(id string) bool {
	if i.all == nil {
		return false
	}
	in, ok := i.all[id]
	return !ok || in.State == "terminated"
}

// terminating says whether EC2 was told to end the instance.
func (i *instances) terminating(id string) bool {
	state := i.all[id].State
	return state == "shutting-down" || state == "terminated"
}

// due says whether to look again. What was launched since the last look is not
// known to it, so a claim younger than that is a reason too.
func (i *instances) due(snap *cluster.Snapshot) bool {
	age := snap.Time.Sub(i.taken)
	switch {
	case i.all == nil || i.stale || age >= lookEvery:
		return true
	case age < lookSoon:
		return false
	case i.looks < firstLooks && age >= lookFirst:
		return true
	}
	for _, n := range snap.Nodes {
		if n.Claim != nil && n.Claim.ProviderID != "" && (n.Deleting || n.Claim.Conditions.Registered && !n.Ready) {
			return true
		}
	}
	return false
}

// refresh asks EC2 what runs.
func (i *instances) refresh(ctx context.Context, cloud port.Cloud, snap *cluster.Snapshot) error {
	all, err := cloud.Instances(ctx)
	if err != nil {
		return fmt.Errorf("list instances: %w", err)
	}
	i.list, i.all, i.taken, i.stale = all, make(map[string]port.Instance, len(all)), snap.Time, false
	i.looks++
	maps.DeleteFunc(i.ended, func(id string, _ bool) bool { return !claimed(snap, id) })
	for _, in := range all {
		i.all[in.ID] = in
	}
	return nil
}

// look asks EC2 if it is time, and notes in the snapshot what it says: the
// state of each claim's instance, and instances that belong to nobody. If EC2
// does not say, its last word counts: pods are moved and messages are answered
// all the same.
func (p *Pipeline) look(ctx context.Context, snap *cluster.Snapshot) {
	if p.instances.due(snap) {
		if err := p.instances.refresh(ctx, p.Cloud, snap); err != nil {
			p.report(snap.Time, err)
		}
	}
	owned := map[string]bool{}
	for _, n := range snap.Nodes {
		if n.Claim == nil || n.Claim.ProviderID == "" {
			continue
		}
		id := instanceID(n.Claim.ProviderID)
		owned[id] = true
		if in, ok := p.instances.all[id]; ok {
			n.Claim.InstanceState = in.State
		} else if p.instances.ended[id] || p.instances.taken.Sub(n.Claim.Conditions.LaunchedAt) > settlesWithin {
			n.Claim.InstanceState = cluster.InstanceGone
		}
	}
	p.orphans(snap, owned)
}

// orphans notes the instances that belong to no claim and that no open decision
// waits for: one that is launching may not know its instances yet.
func (p *Pipeline) orphans(snap *cluster.Snapshot, owned map[string]bool) {
	open := map[string]bool{}
	for _, r := range p.open {
		open[r.Decision.ID] = true
	}
	for _, in := range p.instances.list {
		if owned[in.ID] || open[in.Decision] || in.State == "shutting-down" || in.State == "terminated" {
			continue
		}
		snap.Orphans = append(snap.Orphans, cluster.Instance{
			ID: in.ID, NodePool: in.Tags[nodePoolTag], InstanceType: in.InstanceType, Zone: in.Zone, CapacityType: in.CapacityType,
			Launched: in.Launched, Decision: in.Decision, Claim: in.Claim,
		})
	}
}

// instanceEnds says whether EC2 is ending the instance of the node, or has.
func instanceEnds(n *cluster.Node) bool {
	return instanceIsGone(n) || n.Claim != nil && n.Claim.InstanceState == "shutting-down"
}

// instanceIsGone says whether EC2 has ended the instance of the node.
func instanceIsGone(n *cluster.Node) bool {
	if n.Claim == nil {
		return false
	}
	switch n.Claim.InstanceState {
	case cluster.InstanceGone, "terminated":
		return true
	default:
		return false
	}
}
