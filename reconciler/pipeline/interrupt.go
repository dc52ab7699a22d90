package pipeline

import (
	"context"
	"fmt"
	"slices"
	"time"

	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/port"
)

const (
	// maxMessages bounds what one pass takes from the queue, so that a flood
	// does not keep it from acting on what it has.
	maxMessages = 1000
	// maxHeld bounds the messages that wait for their decision: the queue keeps
	// the others.
	maxHeld = 10 * maxMessages
	// A message about an instance that no claim is known to have is kept that
	// long while something is being launched: the claim may be written soon.
	messagePatience = time.Minute
)

// received is a message with the time of its first receipt.
type received struct {
	port.Message
	at time.Time
}

// receive takes what is in the queue. A queue that cannot be read is reported
// and holds nothing up: instances that end are also found by looking.
func (p *Pipeline) receive(ctx context.Context, now time.Time) {
	if p.Queue == nil || p.fleet.Cluster.Mode == fleet.Observe || p.fleet.Cluster.InterruptionQueue == "" {
		// What was received before is somebody else's to answer: it comes again.
		p.messages = nil
		return
	}
	if len(p.messages) >= maxHeld {
		return
	}
	got, err := p.Queue.Receive(ctx, maxMessages)
	if err != nil {
		p.report(now, fmt.Errorf("interruption queue %s: %w", p.fleet.Cluster.InterruptionQueue, err))
	}
	for _, m := range got {
		if m.Problem != "" {
			p.Log.Warn("message of the interruption queue is not understood and dropped", "message", m.ID, "problem", m.Problem)
		}
		// A message that comes again has another handle; only the last is valid.
		if i := slices.IndexFunc(p.messages, func(o received) bool { return o.ID == m.ID && m.ID != "" }); i >= 0 {
			p.messages[i].Message = m
			continue
		}
		p.messages = append(p.messages, received{m, now})
	}
}

// interruptions are what the messages say of instances that claims have.
func (p *Pipeline) interruptions(snap *cluster.Snapshot) []cluster.Interruption {
	if len(p.messages) == 0 {
		return nil
	}
	ours := ownInstances(snap)
	var out []cluster.Interruption
	for _, m := range p.messages {
		for _, in := range m.Interruptions {
			if n := ours[in.Instance]; n != nil {
				out = append(out, in)
				p.avoid(m.at, in, n.Claim)
			}
		}
	}
	return out
}

// avoid keeps away from the offering of an interrupted spot instance for a
// while: EC2 is taking capacity back there (karpenter-provider-aws,
// pkg/controllers/interruption).
func (p *Pipeline) avoid(at time.Time, in cluster.Interruption, c *cluster.Claim) {
	if in.Kind == cluster.SpotInterruption && c.CapacityType == karpv1.CapacityTypeSpot {
		p.markUnavailable(at, []port.Refusal{{Offering: decision.Offering{InstanceType: c.InstanceType, Zone: c.Zone, CapacityType: c.CapacityType}}})
	}
}

// ownInstances are the claims by the id of their instance.
func ownInstances(snap *cluster.Snapshot) map[string]*cluster.Node {
	out := map[string]*cluster.Node{}
	for _, n := range snap.Nodes {
		if n.Claim != nil && n.Claim.ProviderID != "" {
			out[instanceID(n.Claim.ProviderID)] = n
		}
	}
	return out
}

// answered deletes the messages that have been answered: what they ask for is
// recorded, or they ask for nothing. It comes after record; a message whose
// decision was not recorded stays and is received again.
func (p *Pipeline) answered(ctx context.Context, snap *cluster.Snapshot) error {
	if len(p.messages) == 0 {
		return nil
	}
	ours := ownInstances(snap)
	var done []port.Message
	var kept []received
	for _, m := range p.messages {
		if p.early(ours, snap.Time, m) {
			kept = append(kept, m)
			continue
		}
		p.advise(ctx, ours, m)
		done = append(done, m.Message)
	}
	if err := p.Queue.Delete(ctx, done); err != nil {
		return fmt.Errorf("interruption queue: delete %s: %w", plural(len(done), "message"), err)
	}
	p.messages = kept
	return nil
}

// early says whether the message is about an instance that a claim may yet be
// found to have.
func (p *Pipeline) early(ours map[string]*cluster.Node, now time.Time, m received) bool {
	launching := slices.ContainsFunc(p.open, func(r *port.Record) bool { return len(r.Decision.Proposal.Claims) > 0 })
	return launching && now.Sub(m.at) < messagePatience && slices.ContainsFunc(m.Interruptions, func(in cluster.Interruption) bool {
		return ours[in.Instance] == nil
	})
}

// advise tells people of what the message means.
func (p *Pipeline) advise(ctx context.Context, ours map[string]*cluster.Node, m received) {
	for _, in := range m.Interruptions {
		n := ours[in.Instance]
		if n == nil {
			continue
		}
		reason, warning := eventOf(in)
		p.Cluster.Event(ctx, "NodeClaim/"+n.Claim.Name, warning, reason, in.Kind+actionOf(in))
	}
}

// eventOf is the reason of Karpenter's event for the message
// (karpenter-provider-aws, pkg/controllers/interruption/events).
func eventOf(in cluster.Interruption) (reason string, warning bool) {
	switch in.Kind {
	case cluster.SpotInterruption:
		return "SpotInterrupted", true
	case cluster.RebalanceRecommendation:
		return "SpotRebalanceRecommendation", false
	case cluster.HealthEvent:
		return "InstanceUnhealthy", true
	case cluster.ReservationInterruption:
		return "CapacityReservationInstanceInterrupted", true
	}
	if in.Action == "stopping" || in.Action == "stopped" {
		return "InstanceStopping", true
	}
	return "InstanceTerminating", true
}
