package sim

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// removal removes the claim from now on, a pass each second, and gives what was
// written meanwhile about pods, claims and nodes' ends: when, by whom and what.
func (e *estate) removal(t *testing.T, claim string, d time.Duration) []string {
	t.Helper()
	inv := Watch(e.cluster, e.cloud, book{"d1": true})
	begin, from := e.Now(), len(e.API.Audit())
	check(t, e.cluster.Taint(ctx, snapshot(t, e).Node(claim).Name, disruptedTaint))
	check(t, e.cluster.DeleteClaim(ctx, claim))
	for e.Now().Before(begin.Add(d)) {
		e.remove(t, claim)
		inv.Check()
		pass(t, e.World, time.Second)
	}
	if got := inv.Found(); len(got) != 0 {
		t.Errorf("found %v", got)
	}
	var out []string
	for _, w := range e.API.Audit()[from:] {
		ends := w.Verb == "delete" || w.Verb == "remove"
		condition := w.Kind == KindNodeClaim && w.Verb == "update" && w.Actor == actorReeve && w.Note != "finalize"
		if !ends && !condition {
			continue
		}
		what := w.Verb
		if condition {
			what = w.Note
		}
		key := w.Key[strings.Index(w.Key, "/")+1:]
		if w.Kind == KindNode {
			key = "node"
		}
		out = append(out, "+"+w.Time.Sub(begin).String()+" "+w.Actor+" "+what+" "+key)
	}
	return out
}

// Case D10: the tiers of a drain.
func TestANodeIsDrainedInTiers(t *testing.T) {
	e := newEstate(t)
	logging := NewDaemonSet("logging", amounts("cpu=100m"))
	logging.Spec.Template.Spec.PriorityClassName = ""
	logging.Spec.Template.Spec.Tolerations = nil
	check(t, e.Apply(logging))
	network := NewDaemonSet("network", amounts("cpu=100m"))
	network.Spec.Template.Spec.Tolerations = nil
	check(t, e.Apply(network))
	check(t, e.Apply(NewDaemonSet("proxy", amounts("cpu=100m"))))
	check(t, e.Apply(pod(named("app"))))
	check(t, e.Apply(pod(named("dns"), requests("cpu=100m"), func(p *corev1.Pod) { p.Spec.PriorityClassName = "system-cluster-critical" })))
	check(t, e.Apply(pod(named("tolerates"), requests("cpu=100m"), tolerate(corev1.Toleration{Key: "karpenter.sh/disrupted", Operator: corev1.TolerationOpExists}))))
	e.provision(t, 60, "c")
	var got []string
	for _, line := range e.removal(t, "c", time.Minute) {
		// The names of daemons end in a hash.
		for _, name := range []string{"logging", "network", "proxy"} {
			if head, _, ok := strings.Cut(line, " "+name+"-"); ok {
				line = head + " " + name
			}
		}
		got = append(got, line)
	}
	want := []string{
		"+0s reeve delete c",
		"+0s reeve delete app", "+1s kubelet remove app",
		"+1s reeve delete logging", "+2s kubelet remove logging",
		"+2s reeve delete dns", "+3s kubelet remove dns",
		"+3s reeve delete network", "+4s kubelet remove network",
		"+5s reeve Drained c", "+6s reeve InstanceTerminating c",
		"+26s reeve delete node", "+26s reeve remove node", "+26s reeve remove c",
		"+26s garbage-collector remove tolerates", "+26s garbage-collector remove proxy",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Case D6: a budget that allows nothing holds up a drain until the pod's own
// grace period is all that is left of the node's.
func TestADrainThatABudgetHoldsUpEndsInTime(t *testing.T) {
	e := newEstate(t)
	e.tgp = time.Hour
	check(t, e.Apply(NewDeployment("default", "web", 1, amounts("cpu=1"))))
	check(t, e.Apply(pdb("b", func(b *policyv1.PodDisruptionBudgetSpec) { b.MinAvailable = new(intstr.Parse("100%")) })))
	e.provision(t, 60, "c")
	web := List[*corev1.Pod](e.API)[0].Name
	got := e.removal(t, "c", 61*time.Minute)
	want := []string{
		"+0s reeve delete c",
		"+59m30s reeve delete " + web, "+59m31s kubelet remove " + web,
		"+59m31s reeve Drained c", "+59m32s reeve InstanceTerminating c",
		"+59m52s reeve delete node", "+59m52s reeve remove node", "+59m52s reeve remove c",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Case D17: nobody waits for the pods of an instance that is gone.
func TestTheNodeOfAnEndedInstanceIsLetGoAtOnce(t *testing.T) {
	e := newEstate(t)
	check(t, e.Apply(pod(func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = new(int64(3600)) })))
	e.provision(t, 60, "c")
	e.cloud.Kill(e.cloud.list()[0].ID)
	pass(t, e.World, 41*time.Second)
	got := e.removal(t, "c", time.Minute)
	want := []string{
		"+0s reeve delete c", "+0s reeve delete node", "+0s reeve remove node", "+0s reeve remove c", "+0s garbage-collector remove p",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// While its kubelet is thought to live, the pods of an instance that is gone are
// asked to leave like others.
func TestAnEndedInstanceIsDrainedWhileItsKubeletIsThoughtToLive(t *testing.T) {
	e := newEstate(t)
	check(t, e.Apply(pod()))
	e.provision(t, 60, "c")
	e.cloud.Kill(e.cloud.list()[0].ID)
	pass(t, e.World, 30*time.Second)
	got := e.removal(t, "c", time.Minute)
	want := []string{
		"+0s reeve delete c", "+0s reeve delete p",
		"+10s reeve delete node", "+10s reeve remove node", "+10s reeve remove c", "+10s garbage-collector remove p",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if n := len(List[*karpv1.NodeClaim](e.API)); n != 0 {
		t.Errorf("%d claims", n)
	}
}
