package awse2e_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/sim"
	"github.com/reeve-project/reeve/reconciler/sim/awsapi"
)

// one is a cluster with one pod of 3 CPUs that runs on a node of its own.
func one(t *testing.T, files map[string]string) *rig {
	t.Helper()
	r := newRig(t, files, sim.NewDeployment("default", "big", 1, cpu("3"))).start()
	r.until("the pod runs", 2*time.Minute, func() bool { return r.settled() && r.running() == 1 })
	return r
}

func spotPool() map[string]string {
	return map[string]string{poolsFile: pools(pool{name: "default", requirements: []string{types(fourCPUs...), spot}})}
}

// since are the decisions after the first n that are of the kind.
func (r *rig) since(n int, k decision.Kind) []*decision.Decision {
	return slices.DeleteFunc(slices.Clone(r.decisions[n:]), func(d *decision.Decision) bool { return d.Kind != k })
}

// TestCaseB9FallsBackFromSpotWithoutCapacity is refused spot in every zone,
// launches on demand, and tries spot again after three minutes.
func TestCaseB9FallsBackFromSpotWithoutCapacity(t *testing.T) {
	r := newRig(t, map[string]string{poolsFile: calm(pools(
		pool{name: "cheap", weight: 30, requirements: []string{types("c5a.xlarge"), spot}},
		pool{name: "sure", weight: 10, requirements: []string{types("c5a.xlarge"), onDemand}},
	))}, sim.NewDeployment("default", "big", 1, cpu("3")))
	capacity := func(n int) {
		for _, z := range allZones {
			r.account.SetCapacity(awsapi.Pool{InstanceType: "c5a.xlarge", Zone: region + z, CapacityType: "spot"}, n)
		}
	}
	capacity(0)
	r.start()
	r.until("the pod runs", 3*time.Minute, func() bool { return r.settled() && r.running() == 1 })
	made := r.of(decision.Provision)
	if len(made) != 2 || made[0].Proposal.NodePool != "cheap" || made[1].Proposal.NodePool != "sure" {
		t.Fatalf("want spot to be tried, then on demand:\n%s", r.told())
	}
	if gone := r.of(decision.Liveness); len(gone) != 1 || !strings.HasPrefix(gone[0].Proposal.Reason, "InsufficientCapacity") {
		t.Errorf("want one NodeClaim given up for want of capacity:\n%s", r.told())
	}
	refused := r.steps[made[0].ID][len(r.steps[made[0].ID])-1].Time
	capacity(-1)
	for i, next := range []struct {
		after time.Duration
		pool  string
	}{{150 * time.Second, "sure"}, {181 * time.Second, "cheap"}} {
		r.run(refused.Add(next.after).Sub(r.world.Now()))
		n := len(r.decisions)
		r.must(r.world.Scale("default/big", int32(i+2)))
		r.until("another decision", time.Minute, func() bool { return len(r.since(n, decision.Provision)) > 0 })
		if d := r.since(n, decision.Provision)[0]; d.Proposal.NodePool != next.pool {
			t.Errorf("%s after the refusal: NodePool %s, want %s", next.after, d.Proposal.NodePool, next.pool)
		}
	}
	r.settle(5 * time.Minute)
	r.finish()
}

// TestCaseD9GivesUpANodeThatNeverJoins waits a quarter of an hour for it.
func TestCaseD9GivesUpANodeThatNeverJoins(t *testing.T) {
	r := newRig(t, map[string]string{poolsFile: plain(onDemand)}, sim.NewDeployment("default", "big", 1, cpu("3")))
	r.boot = sim.Boot{Never: true}
	r.start()
	r.until("an instance runs", time.Minute, func() bool { return len(r.ours()) == 1 })
	launched, first := r.world.Now(), r.ours()[0].ID
	r.boot = sim.Boot{}
	r.step = 5 * time.Second
	r.until("it is given up", 20*time.Minute, func() bool { return len(r.of(decision.Liveness)) > 0 })
	d := r.of(decision.Liveness)[0]
	if waited := d.Time.Sub(launched); waited < 15*time.Minute-10*time.Second || waited > 15*time.Minute+20*time.Second {
		t.Errorf("given up after %s", waited)
	}
	if len(r.of(decision.Provision)) != 1 {
		t.Errorf("something else was launched while it was waited for:\n%s", r.told())
	}
	r.until("the pod runs elsewhere", 5*time.Minute, func() bool { return r.settled() && r.running() == 1 })
	if in, _ := r.account.Instance(first); in.State == "running" {
		t.Error("the instance that never joined runs on")
	}
	r.finish()
}

// TestCaseD11ReplacesAnInterruptedSpotNodeAtOnce launches the replacement in the
// pass of the warning, elsewhere, and drains without waiting for it.
func TestCaseD11ReplacesAnInterruptedSpotNodeAtOnce(t *testing.T) {
	r := newRig(t, spotPool(), sim.NewDeployment("default", "small", 3, cpu("1"))).start()
	r.until("the pods run", 2*time.Minute, func() bool { return r.settled() && r.running() == 3 })
	old, n := r.ours()[0], len(r.decisions)
	r.must(r.account.SpotWarning(old.ID))
	r.until("the interruption is decided", 10*time.Second, func() bool { return len(r.since(n, decision.Interrupt)) > 0 })
	in, made := r.since(n, decision.Interrupt), r.since(n, decision.Provision)
	if len(in) != 1 || len(made) != 1 || !made[0].Time.Equal(in[0].Time) {
		t.Fatalf("want an interruption and a replacement in the same pass:\n%s", r.told())
	}
	for _, c := range made[0].Proposal.Claims {
		for _, o := range c.Cheapest {
			if o.InstanceType == old.Type && o.Zone == old.Zone && o.CapacityType == "spot" {
				t.Errorf("the offering that EC2 takes back is chosen again: %+v", o)
			}
		}
	}
	r.until("the node is drained", 20*time.Second, func() bool {
		return slices.ContainsFunc(r.steps[in[0].ID], func(s decision.Step) bool { return s.State == decision.Drained })
	})
	if slices.ContainsFunc(r.steps[made[0].ID], func(s decision.Step) bool { return s.State == decision.Registered }) {
		t.Error("the drain waited for the new node")
	}
	r.until("the pods run again", 3*time.Minute, func() bool { return r.settled() && r.running() == 3 })
	for _, now := range r.ours() {
		if now.Type == old.Type && now.Zone == old.Zone {
			t.Errorf("the replacement %s is of the offering that EC2 takes back", now.ID)
		}
	}
	r.finish()
}

// TestCaseD13ReclaimsOrphansOnly loses a NodeClaim right after its launch.
func TestCaseD13ReclaimsOrphansOnly(t *testing.T) {
	r := newRig(t, map[string]string{poolsFile: plain(onDemand)}, sim.NewDeployment("default", "big", 1, cpu("3")))
	foreign, err := r.account.AddManaged("others", "m5.large", region+"a")
	r.must(err)
	r.start()
	r.until("an instance is launched", time.Minute, func() bool { return len(r.ours()) == 1 })
	orphan, claim := r.ours()[0], r.nodeClaims()[0].Name
	r.must(sim.Update(r.world.API, "somebody", claim, "lose", func(nc *karpv1.NodeClaim) error { nc.Finalizers = nil; return nil }))
	r.must(sim.Delete[*karpv1.NodeClaim](r.world.API, "somebody", claim, nil))
	r.run(orphan.Launched.Add(20 * time.Second).Sub(r.world.Now()))
	if in, _ := r.account.Instance(orphan.ID); len(r.of(decision.Reclaim)) > 0 || in.State != "running" {
		t.Errorf("an orphan of 20s is %s", in.State)
	}
	r.until("it is reclaimed", 30*time.Second, func() bool { return len(r.of(decision.Reclaim)) > 0 })
	d := r.of(decision.Reclaim)[0]
	if age := d.Time.Sub(orphan.Launched); age <= 30*time.Second || len(d.Proposal.Instances) != 1 || d.Proposal.Instances[0].ID != orphan.ID {
		t.Errorf("%s reclaims %v at the age of %s", d.Summary, d.Proposal.Instances, age)
	}
	r.until("the pod runs elsewhere", 5*time.Minute, func() bool { return r.settled() && r.running() == 1 })
	if in, _ := r.account.Instance(orphan.ID); in.State == "running" {
		t.Error("the orphan runs on")
	}
	if i := slices.IndexFunc(r.account.Instances(), func(in awsapi.Instance) bool { return in.Node == foreign }); r.account.Instances()[i].State != "running" {
		t.Error("an instance that is not ours was touched")
	}
	r.finish()
}

// TestCaseD17NoticesInstancesThatWereEndedOutside lets go of the claim without
// a drain, with the queue and without one.
func TestCaseD17NoticesInstancesThatWereEndedOutside(t *testing.T) {
	for _, tt := range []struct {
		name   string
		queue  bool
		kind   decision.Kind
		within time.Duration
	}{
		{"with the queue", true, decision.Interrupt, 90 * time.Second},
		{"without a queue", false, decision.Liveness, 40*time.Second + 2*time.Minute + 30*time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := sim.NewDeployment("default", "big", 1, cpu("3"))
			d.Spec.Template.Spec.TerminationGracePeriodSeconds = new(int64(3600))
			r := newRig(t, map[string]string{poolsFile: plain(onDemand)}, d)
			if !tt.queue {
				r.files[clusterFile] = []byte(strings.Replace(string(r.files[clusterFile]), "\tinterruptionQueue: \"myeks\"\n", "", 1))
			}
			r.start()
			r.until("the pod runs", 2*time.Minute, func() bool { return r.settled() && r.running() == 1 })
			r.run(3 * time.Minute) // the first looks of a leader are more frequent
			old, claim, n := r.ours()[0], r.nodeClaims()[0].Name, len(r.decisions)
			r.account.Kill(old.ID)
			r.until("the claim is gone", tt.within, func() bool {
				return !slices.ContainsFunc(r.nodeClaims(), func(nc *karpv1.NodeClaim) bool { return nc.Name == claim })
			})
			if len(r.since(n, tt.kind)) != 1 {
				t.Errorf("want one decision of kind %s:\n%s", tt.kind, r.told())
			}
			r.until("the pod runs elsewhere", 5*time.Minute, func() bool { return r.settled() && r.running() == 1 })
			r.finish()
		})
	}
}

// TestEveryKindOfEvent sends each that EventBridge forwards.
func TestEveryKindOfEvent(t *testing.T) {
	for _, tt := range []struct {
		name   string
		send   func(*awsapi.Events, string)
		reason string
		event  string
	}{
		{"rebalance recommendation", func(e *awsapi.Events, id string) { e.Rebalance(id) }, "", "SpotRebalanceRecommendation"},
		{"running", func(e *awsapi.Events, id string) { e.StateChange(id, "running") }, "", ""},
		{"spot interruption", func(e *awsapi.Events, id string) { e.SpotWarning(id, "terminate") }, "spot_interrupted", "SpotInterrupted"},
		{"health", func(e *awsapi.Events, id string) {
			e.Health([]string{id}, "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED")
		}, "scheduled_change", "InstanceUnhealthy"},
		{"stopping", func(e *awsapi.Events, id string) { e.StateChange(id, "stopping") }, "instance_stopped", "InstanceStopping"},
		{"shutting down", func(e *awsapi.Events, id string) { e.StateChange(id, "shutting-down") }, "instance_terminated", "InstanceTerminating"},
		{"reservation", func(e *awsapi.Events, id string) { e.Reservation(id, "terminate") }, "capacity_reservation_interrupted", "CapacityReservationInstanceInterrupted"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := one(t, spotPool())
			old, n := r.ours()[0], len(r.decisions)
			tt.send(r.account.Events(), old.ID)
			r.run(20 * time.Second)
			in := r.since(n, decision.Interrupt)
			switch {
			case tt.reason == "" && len(r.decisions) > n:
				t.Errorf("it asks for nothing, but\n%s", r.told())
			case tt.reason != "" && (len(in) != 1 || in[0].Proposal.Reason != tt.reason || in[0].Proposal.Interruption.Instance != old.ID):
				t.Errorf("want one interruption %s:\n%s", tt.reason, r.told())
			}
			told := slices.ContainsFunc(r.world.API.Events(), func(e sim.Event) bool { return e.Reason == tt.event })
			if tt.event != "" && !told {
				t.Errorf("no event %s", tt.event)
			}
			r.until("the pod runs", 5*time.Minute, func() bool { return r.settled() && r.running() == 1 })
			if visible, hidden := r.account.Queue().Depth(); visible+hidden > 0 {
				t.Errorf("%d messages are left", visible+hidden)
			}
			r.finish()
		})
	}
}
