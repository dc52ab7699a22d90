package pipeline_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/resources"
	"github.com/reeve-project/reeve/reconciler/sim"
)

// price is what all instances of ours cost.
func (r *rig) price() resources.Price {
	r.t.Helper()
	var sum resources.Price
	for _, in := range r.instances() {
		sum += in.Price
	}
	return sum
}

// until runs until it is done, at most for the limit.
func (r *rig) until(limit time.Duration, done func() bool) {
	r.t.Helper()
	for end := r.world.Now().Add(limit); r.world.Now().Before(end); {
		if done() {
			return
		}
		r.run(time.Second)
	}
	r.t.Fatalf("not done after %s; errors: %v", limit, r.errs)
}

// made is how many decisions of the kind were made.
func (r *rig) made(k decision.Kind) int {
	n := 0
	for _, d := range r.decisions {
		if d.Kind == k {
			n++
		}
	}
	return n
}

// replaces is the last decision that replaces nodes.
func (r *rig) replacement() *decision.Decision {
	for i := len(r.decisions) - 1; i >= 0; i-- {
		if d := r.decisions[i]; d.Kind == decision.Consolidate && len(d.Proposal.Claims) > 0 {
			return d
		}
	}
	return nil
}

func TestThirtyPodsRestOnTheCheapestNodesAndAllGoWhenTheyGo(t *testing.T) {
	r := withReplicas(t, 5)
	r.must(r.world.Scale("default/inflate", 30))
	r.settle()
	if got, want := r.price(), resources.USD*1462/1000; got != want {
		t.Errorf("thirty pods cost %s at first, want %s", got, want)
	}
	r.until(5*time.Minute, func() bool { return r.replacement() != nil && !r.pipeline.Open() })
	if got, want := r.price(), resources.USD*1376/1000; got != want || r.running() != 30 {
		t.Errorf("%d pods cost %s at rest, want 30 for %s", r.running(), got, want)
	}
	d := r.replacement()
	if len(d.Proposal.Nodes) != 3 || d.Proposal.Cost != -resources.USD*86/1000 {
		t.Errorf("decision %s", d.Summary)
	}
	for _, n := range d.Proposal.Nodes {
		wantStates(t, r.states(d, n.Claim), decision.Tainted, decision.Drained, decision.Terminated)
	}
	if ev := r.steps[d.ID][0].Evaluation; ev == nil || ev.Path != "reeve/decision" {
		t.Errorf("the second judgement is not recorded: %+v", ev)
	}
	r.decisions = nil
	r.must(r.world.Scale("default/inflate", 0))
	r.until(5*time.Minute, func() bool { return len(r.claims()) == 0 && !r.pipeline.Open() })
	var saved resources.Price
	for _, d := range r.decisions {
		saved -= d.Proposal.Cost
	}
	if want := resources.USD * 1376 / 1000; saved != want || len(r.instances()) != 0 {
		t.Errorf("%s saved, want %s; %d instances are left", saved, want, len(r.instances()))
	}
	r.finish()
}

func TestARemovalThatIsDeniedTouchesNothing(t *testing.T) {
	r := withReplicas(t, 5)
	r.push("Freeze", map[string]string{"policies/freeze.rego": `package reeve.decision.quiet
deny contains {"msg": "not now"} if input.kind == "consolidate"
`})
	r.run(15 * time.Second)
	r.must(r.world.Scale("default/inflate", 0))
	r.until(3*time.Minute, func() bool { return r.made(decision.Consolidate) > 0 })
	r.run(2 * time.Minute)
	d := r.last(decision.Consolidate)
	if d.Verdict.Allowed || !strings.Contains(d.Summary, "denied by") || r.made(decision.Consolidate) != 1 {
		t.Errorf("%d decisions, the last %q", r.made(decision.Consolidate), d.Summary)
	}
	if len(r.steps[d.ID]) != 0 || len(r.instances()) != 1 {
		t.Errorf("something was done: %v", r.steps[d.ID])
	}
	r.finish()
}

// The policy is asked again after the wait, and its word then counts.
func TestARemovalThatIsDeniedTheSecondTimeTouchesNothing(t *testing.T) {
	r := withReplicas(t, 5)
	r.push("No removals after a quarter past", map[string]string{"policies/quiet.rego": `package reeve.decision.quiet
deny contains {"msg": "too late"} if {
	input.kind == "consolidate"
	input.now >= "2026-04-06T12:03:10Z"
}
`})
	r.run(15 * time.Second)
	r.must(r.world.Clock.Advance(noon.Add(115 * time.Second).Sub(r.world.Now())))
	r.must(r.world.Scale("default/inflate", 0))
	r.until(3*time.Minute, func() bool { return r.made(decision.Consolidate) > 0 })
	d := r.last(decision.Consolidate)
	r.run(time.Minute)
	if !d.Verdict.Allowed {
		t.Fatalf("it was denied at once: %s", d.Summary)
	}
	steps := r.steps[d.ID]
	if len(steps) != 1 || steps[0].State != decision.Dropped || len(steps[0].Violations) != 1 || len(r.instances()) != 1 {
		t.Errorf("steps %+v", steps)
	}
	r.finish()
}

// CASES C10: the node gets a pod while it is looked at, and right before it is
// tainted.
func TestANodeThatBecomesBusyStays(t *testing.T) {
	tests := map[string]func(r *rig, node string){
		"while the removal waits": func(r *rig, node string) { r.must(r.world.Apply(busyPod(node))) },
		"right before the taint": func(r *rig, node string) {
			r.world.SetFaults(func(c sim.Call) *sim.Fault {
				if c.Op == "Taint" && c.Subject == node {
					r.world.SetFaults(nil)
					r.must(r.world.Apply(busyPod(node)))
				}
				return nil
			})
		},
	}
	for name, disturb := range tests {
		t.Run(name, func(t *testing.T) {
			r := withReplicas(t, 5)
			node := r.nodeOf(r.claims()[0])
			r.must(r.world.Scale("default/inflate", 0))
			r.until(3*time.Minute, func() bool { return r.made(decision.Consolidate) > 0 })
			d := r.last(decision.Consolidate)
			disturb(r, node)
			r.run(30 * time.Second)
			if steps := r.steps[d.ID]; len(steps) != 1 || steps[0].State != decision.Dropped {
				t.Errorf("steps %+v", steps)
			}
			snap, err := r.api.Snapshot(r.ctx)
			r.must(err)
			if n := snap.Node(r.claims()[0]); n.Deleting || len(n.Taints) > 0 {
				t.Errorf("the node is touched: %+v", n.Taints)
			}
			r.finish()
		})
	}
}

func busyPod(node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "busy", Annotations: map[string]string{"karpenter.sh/do-not-disrupt": "true"}},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{
			Name: "main", Image: "busy", Resources: corev1.ResourceRequirements{Requests: cpu("100m")},
		}}},
	}
}

// When EC2 has no capacity for the replacement, the nodes stay and take pods
// again.
func TestAReplacementThatFailsIsRolledBack(t *testing.T) {
	r := withReplicas(t, 5)
	r.must(r.world.Scale("default/inflate", 30))
	r.settle()
	data, err := r.cloud.Catalog(r.ctx)
	r.must(err)
	for _, it := range data.Types() {
		for _, z := range data.Zones() {
			r.cloud.SetCapacity(sim.Pool{InstanceType: it.Name, Zone: z.Name, CapacityType: "on-demand"}, 0)
		}
	}
	r.until(3*time.Minute, func() bool { return r.replacement() != nil && len(r.steps[r.replacement().ID]) > 0 })
	d := r.replacement()
	r.run(30 * time.Second)
	for _, n := range d.Proposal.Nodes {
		wantStates(t, r.states(d, n.Claim), decision.Tainted, decision.Failed)
	}
	snap, err := r.api.Snapshot(r.ctx)
	r.must(err)
	for _, n := range snap.Nodes {
		if len(n.Taints) > 0 || n.Deleting {
			t.Errorf("node %s: %v", n.Name, n.Taints)
		}
	}
	if r.running() != 30 || r.made(decision.Liveness) == 0 {
		t.Errorf("%d pods, %d liveness decisions", r.running(), r.made(decision.Liveness))
	}
	r.run(time.Minute)
	r.finish()
}

// CASES C1: people learn why a node stays, once and not every pass.
func TestANodeThatStaysSaysWhy(t *testing.T) {
	r := withReplicas(t, 7)
	r.run(3 * time.Minute)
	told := 0
	for _, e := range r.world.API.Events() {
		if e.Reason == "Unconsolidatable" && e.Resource == "Node/"+r.nodeOf(r.claims()[0]) && strings.Contains(e.Message, "replace with a cheaper node") {
			told++
		}
	}
	if told != 1 {
		t.Errorf("told %d times, want once: %+v", told, r.world.API.Events())
	}
	r.finish()
}
