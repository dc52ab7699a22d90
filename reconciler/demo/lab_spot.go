package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/ledger"
	"github.com/reeve-project/reeve/reconciler/sim"
	"github.com/reeve-project/reeve/reconciler/sim/awsapi"
)

// spotToSpot replaces spot nodes by cheaper ones where there is enough to choose
// from, and loses one to EC2.
func spotToSpot() scene {
	sc := lab("spot-to-spot", "Spot nodes", inPool("wide"), inPool("narrow"))
	sc.steps = []step{
		{"A fleet is pushed", acceptFleet},
		{"The managed nodes are cordoned", cordonManaged},
		{"Twelve pods of 1 CPU for each of two NodePools", scaleBoth(12)},
		{"Three replicas each: one node has 15 cheaper types, the other has 4", replacedWhereWide},
		{"EC2 takes a spot instance back", takenBack},
		{"The offering is left alone for three minutes", avoided},
	}
	return sc
}

// inPool is a Deployment of pods of 1 CPU for nodes of the pool.
func inPool(pool string) *appsv1.Deployment {
	d := sim.NewDeployment("default", pool, 0, cpu("1"))
	d.Spec.Template.Spec.NodeSelector = map[string]string{"lab.example.com/pool": pool}
	return d
}

// cordonManaged keeps pods off the managed nodes, as `kubectl cordon` does.
func cordonManaged(_ context.Context, s *stage) error {
	for _, n := range sim.List[*corev1.Node](s.world.API) {
		cordon := func(n *corev1.Node) error { n.Spec.Unschedulable = true; return nil }
		if err := sim.Update(s.world.API, "kubectl", n.Name, "cordon", cordon); err != nil {
			return err
		}
		s.print.line("node %s is cordoned", n.Name)
	}
	return nil
}

// scaleBoth gives both Deployments so many replicas and waits until they run.
func scaleBoth(replicas int) func(context.Context, *stage) error {
	return func(ctx context.Context, s *stage) error {
		for _, pool := range []string{"wide", "narrow"} {
			if err := s.world.Scale("default/"+pool, int32(replicas)); err != nil {
				return err
			}
		}
		wide, narrow := s.allRunning("wide", replicas), s.allRunning("narrow", replicas)
		return s.until(ctx, patience, func() bool { return wide() && narrow() })
	}
}

// unavailable is how long the offering of a spot instance that EC2 takes back is
// left alone.
const unavailable = 3 * time.Minute

// leastTypes is how many cheaper types a spot node needs to be replaced by a
// spot node.
const leastTypes = 15

// replacedWhereWide scales both Deployments down: the node of wide is replaced,
// that of narrow stays though it is the same.
func replacedWhereWide(ctx context.Context, s *stage) error {
	since := s.world.Now()
	before := s.ofPool("narrow")
	if err := scaleBoth(3)(ctx, s); err != nil {
		return err
	}
	if err := s.quiet(ctx); err != nil {
		return err
	}
	entries, err := s.recorded(ctx, since, decision.Consolidate)
	if err != nil {
		return err
	}
	if len(entries) != 1 || entries[0].Decision.Proposal.NodePool != "wide" || len(entries[0].Decision.Proposal.Claims) != 1 {
		return fmt.Errorf("the record has %d consolidations, and the lab one, of NodePool wide with a replacement", len(entries))
	}
	p := &entries[0].Decision.Proposal
	types, err := p.Claims[0].Launchable.Resolve(p.Lists)
	if err != nil {
		return err
	}
	if len(types) != leastTypes {
		return fmt.Errorf("EC2 may choose from %d types, and the lab says %d", len(types), leastTypes)
	}
	now := s.ofPool("narrow")
	if len(before) != 1 || len(now) != 1 || before[0].ID != now[0].ID {
		return errors.New("the node of NodePool narrow was replaced, and too few types are cheaper")
	}
	s.print.line("EC2 could choose from %d types for NodePool wide; NodePool narrow keeps its %s", len(types), now[0].Type)
	return nil
}

// ofPool are the instances of the NodePool that run or are about to.
func (s *stage) ofPool(pool string) []awsapi.Instance {
	return slices.DeleteFunc(s.instances(), func(in awsapi.Instance) bool { return in.Tags[karpv1.NodePoolLabelKey] != pool })
}

// takenBack has EC2 warn the spot instance of NodePool wide and follows what is
// done about it.
func takenBack(ctx context.Context, s *stage) error {
	all := s.ofPool("wide")
	if len(all) != 1 {
		return fmt.Errorf("NodePool wide has %d instances, and the lab one", len(all))
	}
	lost, warned := all[0], s.world.Now()
	if err := s.account.SpotWarning(lost.ID); err != nil {
		return err
	}
	s.print.line("%s  warning   %s: %s %s goes in two minutes", warned.Format(time.TimeOnly), lost.ID, lost.Type, lost.Zone)
	calls, err := s.calls(ctx)
	if err != nil {
		return err
	}
	if err := before(calls, "spool Put", "sqs DeleteMessageBatch", "cluster Taint", "cluster Evict", "ec2 CreateFleet"); err != nil {
		return fmt.Errorf("the pass after the warning: %w", err)
	}
	if err := s.until(ctx, patience, s.allRunning("wide", 3)); err != nil {
		return err
	}
	if err := s.pass(ctx, warned.Add(2*time.Minute).Sub(s.world.Now())); err != nil {
		return err
	}
	if in, ok := s.account.Instance(lost.ID); ok && in.State != "terminated" {
		return fmt.Errorf("two minutes after the warning instance %s is %s", lost.ID, in.State)
	}
	return s.answered(ctx, warned, lost)
}

// answered holds the record and the cluster to what an interruption asks for.
func (s *stage) answered(ctx context.Context, warned time.Time, lost awsapi.Instance) error {
	if visible, hidden := s.account.Queue().Depth(); visible+hidden > 0 {
		return fmt.Errorf("%d messages are left in the queue", visible+hidden)
	}
	interrupt, err := s.only(ctx, warned, decision.Interrupt)
	if err != nil {
		return err
	}
	provision, err := s.only(ctx, warned, decision.Provision)
	if err != nil {
		return err
	}
	if interrupt.View.Commit() != provision.View.Commit() {
		return errors.New("the replacement was not decided in the pass that answered the warning")
	}
	now := s.ofPool("wide")
	if len(now) != 1 || !now[0].Launched.Equal(warned) {
		return errors.New("the replacement was not launched in the pass that answered the warning")
	}
	if pool(now[0]) == pool(lost) {
		return fmt.Errorf("the replacement is %v again", pool(lost))
	}
	drained, ok := s.written(lost.Tags["karpenter.sh/nodeclaim"], "Drained")
	ready, came := s.written(now[0].Node, "Initialize")
	if !ok || !came || !drained.Before(ready) {
		return errors.New("the drain waited for the new node")
	}
	s.print.line("drained %s after the warning, %s before the new node was ready", drained.Sub(warned), ready.Sub(drained))
	return nil
}

// only is the one decision of the kind that is recorded since.
func (s *stage) only(ctx context.Context, since time.Time, kind decision.Kind) (ledger.Entry, error) {
	entries, err := s.recorded(ctx, since, kind)
	if err != nil {
		return ledger.Entry{}, err
	}
	if len(entries) != 1 {
		return ledger.Entry{}, fmt.Errorf("%d decisions of kind %s are recorded, and the lab says one", len(entries), kind)
	}
	return entries[0], nil
}

func pool(in awsapi.Instance) awsapi.Pool {
	return awsapi.Pool{InstanceType: in.Type, Zone: in.Zone, CapacityType: in.CapacityType}
}

// avoided buys nodes for three more pods twice: within three minutes of the
// warning, when the offering that EC2 took back is left alone, and after them.
func avoided(ctx context.Context, s *stage) error {
	interrupt, err := s.only(ctx, begin, decision.Interrupt)
	if err != nil {
		return err
	}
	n := &interrupt.Decision.Proposal.Nodes[0]
	lost := awsapi.Pool{InstanceType: n.InstanceType, Zone: n.Zone, CapacityType: n.CapacityType}
	soon, err := s.buy(ctx, 6)
	if err != nil {
		return err
	}
	if soon.Launched.Sub(interrupt.Decision.Time) >= unavailable || pool(soon) == lost {
		return fmt.Errorf("%s after the warning a node is %v", soon.Launched.Sub(interrupt.Decision.Time), pool(soon))
	}
	if err := s.pass(ctx, interrupt.Decision.Time.Add(unavailable).Sub(s.world.Now())); err != nil {
		return err
	}
	later, err := s.buy(ctx, 9)
	if err != nil {
		return err
	}
	if pool(later) != lost {
		return fmt.Errorf("the cheapest offering %v is not used again, but %v", lost, pool(later))
	}
	s.print.line("%s %s is bought again %s after the warning", lost.InstanceType, lost.Zone, later.Launched.Sub(interrupt.Decision.Time))
	return nil
}

// buy scales the Deployment wide and gives the instance that was launched for
// it.
func (s *stage) buy(ctx context.Context, replicas int) (awsapi.Instance, error) {
	since := s.world.Now()
	if err := s.world.Scale("default/wide", int32(replicas)); err != nil {
		return awsapi.Instance{}, err
	}
	if err := s.until(ctx, patience, s.allRunning("wide", replicas)); err != nil {
		return awsapi.Instance{}, err
	}
	bought := slices.DeleteFunc(s.ofPool("wide"), func(in awsapi.Instance) bool { return in.Launched.Before(since) })
	if len(bought) != 1 {
		return awsapi.Instance{}, fmt.Errorf("%d instances were launched, and the lab says one", len(bought))
	}
	return bought[0], nil
}
