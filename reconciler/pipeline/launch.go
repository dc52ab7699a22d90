package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/lifecycle"
	"github.com/reeve-project/reeve/reconciler/port"
)

// launch launches the claims, one call a group. A call that fails without an
// answer is repeated in the next pass with the same token, so that nothing is
// launched twice.
func (p *Pipeline) launch(ctx context.Context, snap *cluster.Snapshot, r *port.Record, claims []*decision.Claim) error {
	byGroup := map[int][]*decision.Claim{}
	var order []int
	for _, c := range claims {
		if byGroup[c.Group] == nil {
			order = append(order, c.Group)
		}
		byGroup[c.Group] = append(byGroup[c.Group], c)
	}
	var errs []error
	for _, g := range order {
		if !complete(snap, r, g, byGroup[g]) {
			continue
		}
		if err := p.launchGroup(ctx, snap, r, byGroup[g]); err != nil {
			errs = append(errs, fmt.Errorf("launch group %d: %w", g, err))
		}
	}
	return errors.Join(errs...)
}

// complete says whether every claim of the group is launched, failed or about to
// be launched. One that could not be created yet holds up the others: they are
// launched by the same call.
func complete(snap *cluster.Snapshot, r *port.Record, group int, ready []*decision.Claim) bool {
	for i := range r.Decision.Proposal.Claims {
		c := &r.Decision.Proposal.Claims[i]
		if c.Group != group || slices.Contains(ready, c) || r.Outcome.Has(c.Name, decision.Failed) {
			continue
		}
		if n := snap.NodeOf(c.Name); n == nil || !n.Claim.Conditions.Launched {
			return false
		}
	}
	return true
}

// launchGroup launches what is left of a group. The request is the same however
// often it is made, since EC2 takes a token only with the parameters it has
// seen with it.
func (p *Pipeline) launchGroup(ctx context.Context, snap *cluster.Snapshot, r *port.Record, claims []*decision.Claim) error {
	if first := claims[0]; p.fleet.NodePool(first.NodePool) == nil || p.fleet.NodeClass(first.NodeClass) == nil {
		return p.fail(ctx, snap, r, claims, lifecycle.ReasonNodeClassNotReady, fmt.Sprintf("NodePool %q or EC2NodeClass %q is no longer in the fleet", first.NodePool, first.NodeClass))
	}
	req, err := p.launchRequest(snap, r, claims)
	if err != nil {
		return err
	}
	if req.Attempt > 1 || len(req.Offerings) == 0 {
		// An attempt that got no answer, this one before a crash or an earlier
		// one, may have launched all the same.
		if claims, err = p.adopt(ctx, snap, r, req, claims); err != nil || len(claims) == 0 {
			return err
		}
	}
	if len(req.Offerings) == 0 {
		return p.fail(ctx, snap, r, claims, lifecycle.ReasonInsufficientCapacity, capacityMessage(nil))
	}
	res, err := p.Cloud.Launch(ctx, req)
	switch {
	case errors.Is(err, port.ErrTokenUsed):
		return p.nextAttempt(ctx, snap, r, req, claims)
	case port.IsTerminal(err):
		return p.refusedLaunch(ctx, snap, r, req, claims, err)
	case err != nil && !errors.Is(err, port.ErrInsufficientCapacity):
		return err
	}
	p.markUnavailable(snap.Time, res.Refused)
	rest, err := p.assign(ctx, snap, r, req, claims, res.Instances)
	if err != nil {
		return err
	}
	return p.fail(ctx, snap, r, rest, lifecycle.ReasonInsufficientCapacity, capacityMessage(res.Refused))
}

// assign gives instances to the claims of the group that have none, in order,
// and returns the claims that go without. Which claim gets which instance makes
// no difference: all were launched by one request.
func (p *Pipeline) assign(ctx context.Context, snap *cluster.Snapshot, r *port.Record, req port.LaunchRequest, claims []*decision.Claim, all []port.Instance) ([]*decision.Claim, error) {
	taken := map[string]bool{}
	for _, n := range snap.Nodes {
		if n.Claim != nil && n.Claim.ProviderID != "" {
			taken[n.Claim.ProviderID] = true
		}
	}
	var free []port.Instance
	for _, in := range all {
		if !taken[in.ProviderID] {
			free = append(free, in)
		}
	}
	for i, c := range claims {
		if i == len(free) {
			return claims[i:], nil
		}
		if err := p.launched(ctx, snap, r, c.Name, p.described(snap, req, free[i])); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// described is the instance with what its type and offering say of it. It may
// be of an offering that nothing more is launched with.
func (p *Pipeline) described(snap *cluster.Snapshot, req port.LaunchRequest, in port.Instance) port.Instance {
	types, err := p.resolved(snap, req.Class.Name)
	if err != nil {
		types = req.Types
	}
	i := slices.IndexFunc(types, func(t *catalog.InstanceType) bool { return t.Name == in.InstanceType })
	if i < 0 {
		return in
	}
	t := types[i]
	in.Capacity, in.Allocatable, in.Labels = t.Capacity, t.Allocatable, t.Requirements.Labels()
	in.Labels[zoneLabel], in.Labels[karpv1.CapacityTypeLabelKey] = in.Zone, in.CapacityType
	for _, o := range t.Offerings {
		if o.Zone == in.Zone && o.CapacityType == in.CapacityType {
			in.Price = o.Price
			if o.ZoneID != "" {
				in.Labels[ec2v1.LabelTopologyZoneID] = o.ZoneID
			}
		}
	}
	return in
}

// nextAttempt treats a token that was used with other parameters: prices or
// templates have changed since the attempt whose answer was lost. What it
// launched is found by its tags; the rest is launched by another attempt.
func (p *Pipeline) nextAttempt(ctx context.Context, snap *cluster.Snapshot, r *port.Record, req port.LaunchRequest, claims []*decision.Claim) error {
	rest, err := p.adopt(ctx, snap, r, req, claims)
	if err != nil {
		return err
	}
	for _, c := range rest {
		if snap.Time.Sub(lastStep(r.Outcome, c.Name)) < settlesWithin {
			// EC2 may not list yet what it launched: another attempt now could
			// launch it twice.
			err = fmt.Errorf("attempt %d cannot be repeated, and the next one waits until EC2 lists what this one launched, at most %s: %w",
				req.Attempt, settlesWithin, port.ErrTokenUsed)
			continue
		}
		p.step(r, decision.Step{Time: snap.Time, State: decision.Claimed, Claim: c.Name, Attempt: req.Attempt + 1,
			Message: fmt.Sprintf("attempt %d launched nothing for it and cannot be repeated: what it asked for has changed", req.Attempt)})
	}
	return err
}

// refusedLaunch treats an answer that no repetition changes: the request is
// wrong, or Reeve may not make it. What was launched all the same is found by
// its tags; the other claims are given up, and the class rests for a while.
func (p *Pipeline) refusedLaunch(ctx context.Context, snap *cluster.Snapshot, r *port.Record, req port.LaunchRequest, claims []*decision.Claim, cause error) error {
	rest, err := p.adopt(ctx, snap, r, req, claims)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		p.pauseClass(snap.Time, req.Class.Name, cause.Error())
	}
	return p.fail(ctx, snap, r, rest, lifecycle.ReasonLaunchFailed, cause.Error())
}

// adopt gives claims the instances that an earlier attempt launched for their
// group, and returns the claims that have none.
func (p *Pipeline) adopt(ctx context.Context, snap *cluster.Snapshot, r *port.Record, req port.LaunchRequest, claims []*decision.Claim) ([]*decision.Claim, error) {
	all, err := p.Cloud.Instances(ctx)
	if err != nil {
		return nil, fmt.Errorf("list instances: %w", err)
	}
	all = slices.DeleteFunc(slices.Clone(all), func(in port.Instance) bool {
		return in.Decision != r.Decision.ID || in.Group != req.Group || in.State == "shutting-down" || in.State == "terminated"
	})
	return p.assign(ctx, snap, r, req, claims, all)
}

// launchRequest is the call for a group. It names all claims of the attempt that
// have not failed, launched ones included, so that it is the same when it is
// repeated. Each claim that fails begins another attempt.
func (p *Pipeline) launchRequest(snap *cluster.Snapshot, r *port.Record, claims []*decision.Claim) (port.LaunchRequest, error) {
	d, first := r.Decision, claims[0]
	template, err := nodeClaim(p.fleet, d, first)
	if err != nil {
		return port.LaunchRequest{}, err
	}
	types, err := p.resolved(snap, first.NodeClass)
	if err != nil {
		return port.LaunchRequest{}, err
	}
	list, err := offerings(d, first, types, snap)
	if err != nil {
		return port.LaunchRequest{}, err
	}
	class := p.fleet.NodeClass(first.NodeClass).DeepCopy()
	if st := snap.NodeClass(first.NodeClass); st != nil {
		class.Status = st.Status
	}
	req := port.LaunchRequest{
		Decision: d.ID, Group: first.Group, Attempt: 1, NodePool: first.NodePool, Class: class, Template: template,
		CapacityType: first.CapacityType, Offerings: list, Types: offered(types, list), Requirements: first.Requirements, Tags: tags(p.fleet, class, first, d.ID),
	}
	retries := attempts(r.Outcome, first.Name)
	req.Attempt += retries
	for i := range d.Proposal.Claims {
		c := &d.Proposal.Claims[i]
		switch {
		case c.Group != first.Group:
		case r.Outcome.Has(c.Name, decision.Failed):
			req.Attempt++
		case attempts(r.Outcome, c.Name) == retries:
			req.Claims = append(req.Claims, c.Name)
		}
	}
	req.Token = decision.ClientToken(d.ID, req.Group, req.Attempt)
	return req, nil
}

// attempts is how many further attempts the outcome has for the claim.
func attempts(o *decision.Outcome, claim string) int {
	n := 0
	for _, s := range o.Steps {
		if s.Claim == claim && s.Attempt > 0 {
			n++
		}
	}
	return n
}

// offered are the types of the offerings, in the catalog's order.
func offered(types []*catalog.InstanceType, list []decision.Offering) []*catalog.InstanceType {
	names := map[string]bool{}
	for _, o := range list {
		names[o.InstanceType] = true
	}
	var out []*catalog.InstanceType
	for _, t := range types {
		if names[t.Name] {
			out = append(out, t)
		}
	}
	return out
}

func (p *Pipeline) resolved(snap *cluster.Snapshot, class string) ([]*catalog.InstanceType, error) {
	w := p.world(snap)
	all, notReady, err := w.resolve()
	if err != nil {
		return nil, err
	}
	if why := notReady[class]; why != "" {
		return nil, fmt.Errorf("EC2NodeClass %s is not ready: %s", class, why)
	}
	return all[class].types, nil
}

// launched writes an instance into its claim and into the outcome.
func (p *Pipeline) launched(ctx context.Context, snap *cluster.Snapshot, r *port.Record, claim string, in port.Instance) error {
	if err := p.Cluster.MarkLaunched(ctx, claim, in); err != nil {
		return fmt.Errorf("NodeClaim %s: write the launch of %s: %w", claim, in.ID, err)
	}
	if !r.Outcome.Has(claim, decision.Launched) {
		price := in.Price
		p.step(r, decision.Step{Time: snap.Time, State: decision.Launched, Claim: claim, Instance: in.ID,
			InstanceType: in.InstanceType, Zone: in.Zone, CapacityType: in.CapacityType, Price: &price})
	}
	return nil
}

// fail gives claims up: they will not become nodes. Their removal is a decision
// of its own, made in the next pass.
func (p *Pipeline) fail(ctx context.Context, snap *cluster.Snapshot, r *port.Record, claims []*decision.Claim, reason, message string) error {
	var errs []error
	for _, c := range claims {
		p.step(r, decision.Step{Time: snap.Time, State: decision.Failed, Claim: c.Name, Message: reason + ": " + message})
		if err := p.Cluster.MarkLaunchFailed(ctx, c.Name, reason, message); err != nil {
			errs = append(errs, fmt.Errorf("NodeClaim %s: %w", c.Name, err))
		}
	}
	return errors.Join(errs...)
}

func capacityMessage(refused []port.Refusal) string {
	parts := make([]string, 0, len(refused))
	for _, r := range refused {
		parts = append(parts, fmt.Sprintf("%s %s %s: %s", r.Offering.InstanceType, r.Offering.Zone, r.Offering.CapacityType, r.Code))
	}
	if len(parts) == 0 {
		return "every offering of the plan is excluded or known to be without capacity"
	}
	return strings.Join(parts, "; ")
}

// follow registers and initializes a node, and notes what others have done.
func (p *Pipeline) follow(ctx context.Context, snap *cluster.Snapshot, r *port.Record, next lifecycle.Step) error {
	node := snap.NodeOf(next.Claim)
	for _, s := range []struct {
		done  bool
		state decision.State
	}{
		{node.Claim.Conditions.Launched, decision.Launched},
		{node.Claim.Conditions.Registered, decision.Registered},
		{node.Claim.Conditions.Initialized, decision.Initialized},
	} {
		if s.done && !r.Outcome.Has(next.Claim, s.state) {
			step := decision.Step{Time: snap.Time, State: s.state, Claim: next.Claim, Node: node.Name}
			if s.state == decision.Launched {
				c := node.Claim
				step.Instance, step.InstanceType, step.Zone, step.CapacityType, step.Price = instanceID(c.ProviderID), c.InstanceType, c.Zone, c.CapacityType, &c.Price
			}
			p.step(r, step)
		}
	}
	switch next.Action {
	case lifecycle.Register:
		if err := p.Cluster.Register(ctx, next.Claim, next.Node); err != nil {
			return fmt.Errorf("register NodeClaim %s: %w", next.Claim, err)
		}
		p.step(r, decision.Step{Time: snap.Time, State: decision.Registered, Claim: next.Claim, Node: next.Node})
	case lifecycle.Initialize:
		if err := p.tag(ctx, node); err != nil {
			return err
		}
		if err := p.Cluster.Initialize(ctx, next.Claim, next.Node); err != nil {
			return fmt.Errorf("initialize NodeClaim %s: %w", next.Claim, err)
		}
		p.step(r, decision.Step{Time: snap.Time, State: decision.Initialized, Claim: next.Claim, Node: next.Node})
	case lifecycle.GiveUp, lifecycle.TimeOut:
		p.step(r, decision.Step{Time: snap.Time, State: decision.Failed, Claim: next.Claim, Message: next.Reason + ": " + next.Message})
	}
	return nil
}

// tag names the instance after its node and claim, which were not known when it
// was launched (karpenter-provider-aws, pkg/controllers/nodeclaim/tagging).
func (p *Pipeline) tag(ctx context.Context, n *cluster.Node) error {
	id := instanceID(n.Claim.ProviderID)
	err := p.Cloud.Tag(ctx, id, map[string]string{"Name": n.Name, nodeClaimTag: n.Claim.Name})
	if err != nil && !isGone(err) {
		return fmt.Errorf("tag instance %s: %w", id, err)
	}
	return nil
}
