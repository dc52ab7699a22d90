package pipeline_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/sim"
)

// Nodes that wait for their replacement when the fleet is switched to observe
// take pods again: nobody else would take our taint off.
func TestSwitchingToObserveTakesOurTaintsOff(t *testing.T) {
	r := withReplicas(t, 5)
	r.must(r.world.Scale("default/inflate", 30))
	r.settle()
	r.until(3*time.Minute, func() bool { return r.replacement() != nil && len(r.steps[r.replacement().ID]) > 0 })
	d := r.replacement()
	r.push("Only observe", r.edit(clusterFile, `environment:       "production"`, "environment: \"production\"\n\tmode: \"observe\""))
	r.run(20 * time.Second)
	for _, n := range d.Proposal.Nodes {
		states := r.states(d, n.Claim)
		if len(states) == 0 || states[len(states)-1] != decision.Dropped {
			t.Errorf("NodeClaim %s: states %v", n.Claim, states)
		}
		snap, err := r.api.Snapshot(r.ctx)
		r.must(err)
		if node := snap.NodeOf(n.Claim); len(node.Taints) > 0 || node.Deleting {
			t.Errorf("node %s: taints %v", node.Name, node.Taints)
		}
	}
	told := false
	for _, s := range r.steps[d.ID] {
		told = told || strings.Contains(s.Message, "its taint was taken off")
	}
	if !told || r.pipeline.Open() {
		t.Errorf("the record does not say that taints were taken off: %+v", r.steps[d.ID])
	}
	r.finish()
}

// What no decision of ours made is left to whoever made it.
func TestClaimsOfOthersAreLeftToThem(t *testing.T) {
	disowned := func(t *testing.T) (*rig, string) {
		r := withReplicas(t, 5)
		claim := r.claims()[0]
		r.must(sim.Update(r.world.API, "user", claim, "disown", func(nc *karpv1.NodeClaim) error {
			delete(nc.Annotations, cluster.DecisionAnnotation)
			return nil
		}))
		return r, claim
	}
	t.Run("a taint of theirs stays", func(t *testing.T) {
		r, claim := disowned(t)
		r.must(r.api.Taint(r.ctx, r.nodeOf(claim), karpv1.DisruptedNoScheduleTaint))
		r.run(30 * time.Second)
		snap, err := r.api.Snapshot(r.ctx)
		r.must(err)
		if len(snap.NodeOf(claim).Taints) != 1 {
			t.Errorf("the taint is gone")
		}
	})
	t.Run("a deletion of theirs is not finished", func(t *testing.T) {
		r, claim := disowned(t)
		r.must(r.world.Delete(sim.KindNodeClaim, claim))
		r.run(30 * time.Second)
		if r.made(decision.Delete) != 0 || len(r.claims()) == 0 {
			t.Errorf("%d decisions to delete", r.made(decision.Delete))
		}
	})
	t.Run("a node of theirs that is lost is not given up", func(t *testing.T) {
		r, _ := disowned(t)
		r.cloud.Attach(nil)
		r.cloud.Kill(r.instances()[0].ID)
		r.run(4 * time.Minute)
		if n := r.made(decision.Liveness); n != 0 {
			t.Errorf("%d decisions", n)
		}
	})
}

// The node that the controller runs on is not removed, also where its pod has
// labels that nobody has told the policy of; a replay knows where it ran.
func TestTheNodeOfTheControllerStays(t *testing.T) {
	r := withReplicas(t, 5)
	node := r.nodeOf(r.claims()[0])
	pod := busyPod(node)
	pod.Namespace, pod.Name, pod.Annotations = "kube-system", "our-own-reeve", nil
	host, err := sim.Get[*corev1.Node](r.world.API, node)
	r.must(err)
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node, UID: host.UID, Controller: new(true)}}
	r.must(r.world.Apply(pod))
	r.pod = "kube-system/our-own-reeve"
	r.must(r.world.Clock.Advance(time.Second))
	r.lead()
	r.must(r.world.Scale("default/inflate", 0))
	r.until(3*time.Minute, func() bool { return r.made(decision.Consolidate) > 0 })
	d := r.last(decision.Consolidate)
	if d.Verdict.Allowed || !strings.Contains(d.Summary, "REEVE-CTRL-002") {
		t.Errorf("decision %s", d.Summary)
	}
	r.run(time.Minute)
	r.finish()
}
