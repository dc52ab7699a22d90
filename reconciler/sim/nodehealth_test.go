package sim

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// history samples what the function says every second, and keeps what is new.
func history(t *testing.T, w *World, d time.Duration, say func() string) []string {
	t.Helper()
	from := w.Now()
	var out []string
	last := ""
	for {
		if s := say(); s != last {
			out, last = append(out, fmt.Sprintf("+%s %s", w.Now().Sub(from), s)), s
		}
		if w.Now().Sub(from) >= d {
			return out
		}
		pass(t, w, time.Second)
	}
}

func stateOf(w *World, node string) string {
	n, err := Get[*corev1.Node](w.API, node)
	if err != nil {
		return "gone"
	}
	var taints []string
	for _, t := range n.Spec.Taints {
		taints = append(taints, strings.TrimPrefix(t.Key, "node.kubernetes.io/")+":"+string(t.Effect))
	}
	s := fmt.Sprintf("ready=%v %s", nodeReady(n), strings.Join(taints, " "))
	if n.DeletionTimestamp != nil {
		s += " deleting"
	}
	return s
}

func TestANodeIsLostInSteps(t *testing.T) {
	const unreachable = "ready=false unreachable:NoSchedule unreachable:NoExecute"
	tests := []struct {
		name   string
		timing Timing
		do     func(*World)
		want   []string
	}{
		{"as a rule", Timing{}, func(w *World) { w.Stop("aws:///a/i-n1") },
			[]string{"+0s ready=true ", "+40s " + unreachable, "+50s gone"}},
		{"as slowly as told", Timing{Unreachable: time.Minute, NodeLost: time.Minute}, func(w *World) { w.Stop("aws:///a/i-n1") },
			[]string{"+0s ready=true ", "+1m0s " + unreachable, "+2m0s gone"}},
		{"at once", Timing{Unreachable: -1, NodeLost: -1}, func(w *World) { w.Stop("aws:///a/i-n1") },
			[]string{"+0s ready=true ", "+1s gone"}},
		{"a kubelet that is silent is not lost", Timing{}, func(w *World) { w.Silence("aws:///a/i-n1") },
			[]string{"+0s ready=true ", "+40s " + unreachable}},
		{"and can come back", Timing{}, func(w *World) {
			w.Silence("aws:///a/i-n1")
			w.Clock.After(time.Minute, func() { w.Resume("aws:///a/i-n1") })
		}, []string{"+0s ready=true ", "+40s " + unreachable, "+1m0s ready=true "}},
		{"before anybody saw", Timing{}, func(w *World) {
			w.Silence("aws:///a/i-n1")
			w.Clock.After(30*time.Second, func() { w.Resume("aws:///a/i-n1") })
			w.Clock.After(60*time.Second, func() { w.Silence("aws:///a/i-n1") })
		}, []string{"+0s ready=true ", "+1m40s " + unreachable}},
		{"not once it is stopped", Timing{}, func(w *World) {
			w.Silence("aws:///a/i-n1")
			w.Clock.After(30*time.Second, func() { w.Stop("aws:///a/i-n1") })
			w.Clock.After(35*time.Second, func() { w.Resume("aws:///a/i-n1") })
		}, []string{"+0s ready=true ", "+40s " + unreachable, "+50s gone"}},
		{"a machine that is not there is nothing", Timing{}, func(w *World) { w.Stop("x"); w.Silence("x"); w.Resume("x") },
			[]string{"+0s ready=true "}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			w := NewWorld(Options{Start: t0, Timing: tc.timing})
			check(t, w.AddNode(machine("n1", "cpu=4 memory=8Gi pods=10")))
			tc.do(w)
			if diff := cmp.Diff(tc.want, history(t, w, 3*time.Minute, func() string { return stateOf(w, "n1") })); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The stage of case D17: an instance that somebody ends in the console, whose
// node is held by its finalizer, with a pod that has an hour of grace.
func TestTheNodeOfAnEndedInstanceIsHeldByItsFinalizer(t *testing.T) {
	e := newEstate(t)
	e.provision(t, 60, "c")
	check(t, e.Apply(pod(func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = new(int64(3600)) })))
	pass(t, e.World, 10*time.Second)
	node := snapshot(t, e).Node("c").Name
	e.cloud.Kill(e.cloud.list()[0].ID)
	got := history(t, e.World, 20*time.Minute, func() string {
		states := []string{stateOf(e.World, node)}
		for _, p := range List[*corev1.Pod](e.API) {
			states = append(states, fmt.Sprintf("pod ready=%v ending=%v", podReady(p), p.DeletionTimestamp != nil))
		}
		states = append(states, fmt.Sprintf("%d instances", len(e.cloud.list())))
		return strings.Join(states, ", ")
	})
	const unreachable = "ready=false unreachable:NoSchedule unreachable:NoExecute"
	want := []string{
		"+0s ready=true , pod ready=true ending=false, 1 instances",
		"+20s ready=true , pod ready=true ending=false, 0 instances",
		"+40s " + unreachable + ", pod ready=false ending=false, 0 instances",
		"+50s " + unreachable + " deleting, pod ready=false ending=false, 0 instances",
		"+5m40s " + unreachable + " deleting, pod ready=false ending=true, 0 instances",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	check(t, e.Delete(KindNodeClaim, "c"))
	check(t, e.cluster.Finalize(ctx, "c"))
	pass(t, e.World, time.Second)
	if n := len(List[*corev1.Pod](e.API)) + len(List[*karpv1.NodeClaim](e.API)); n != 0 {
		t.Errorf("%d things outlive the node", n)
	}
}

func TestPodsOfANodeThatIsNotReadyAreNotHealthy(t *testing.T) {
	w := newTestWorld(t, "n1", "n2")
	check(t, w.Apply(NewDeployment("default", "web", 2, amounts("cpu=3"))))
	check(t, w.Apply(pdb("b", func(b *policyv1.PodDisruptionBudgetSpec) { b.MaxUnavailable = new(intstr.Parse("1")) })))
	allowed := func() string { return fmt.Sprint(w.budgets()[0].Allowed) }
	w.Clock.After(10*time.Second, func() { check(t, w.SetNodeReady("n1", false)) })
	w.Clock.After(20*time.Second, func() { check(t, w.SetNodeReady("n1", true)) })
	got := history(t, w, 30*time.Second, allowed)
	if diff := cmp.Diff([]string{"+0s 0", "+2s 1", "+10s 0", "+20s 1"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTaintsThatExecuteEndPods(t *testing.T) {
	stays := func(key string, seconds int64) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			t := corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}
			if seconds >= 0 {
				t.TolerationSeconds = &seconds
			}
			p.Spec.Tolerations = append(p.Spec.Tolerations, t)
		}
	}
	tests := []struct {
		name string
		pod  *corev1.Pod
		want string
	}{
		{"one that does not tolerate it ends at once", pod(), "+10s"},
		{"one that does stays", pod(stays("x", -1)), "never"},
		{"one that does for a while ends after it", pod(stays("x", 60)), "+1m10s"},
		{"the shortest while counts", pod(stays("x", 60), stays("x", 30), stays("", -1)), "+40s"},
		{"a while of nothing is at once", pod(stays("x", 0)), "+10s"},
		{"another taint's toleration does not help", pod(stays("y", -1)), "+10s"},
		{"one that ends already is left alone", pod(annotated(AnnotationRunFor, "1s"), func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyNever }), "never"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			w := newTestWorld(t, "n1")
			check(t, w.Apply(tc.pod))
			pass(t, w, 10*time.Second)
			check(t, Update(w.API, "test", "n1", "", func(n *corev1.Node) error { setTaint(n, taint("x:NoExecute")); return nil }))
			pass(t, w, 10*time.Minute)
			got := "never"
			for _, e := range w.API.Audit() {
				if e.Verb == "delete" && e.Actor == actorTaints {
					got = "+" + e.Time.Sub(t0).String()
				}
			}
			if got != tc.want {
				t.Errorf("it ends %s, want %s", got, tc.want)
			}
		})
	}
}

func TestATaintThatGoesInTimeEndsNobody(t *testing.T) {
	w := newTestWorld(t, "n1")
	check(t, w.Apply(pod()))
	pass(t, w, 10*time.Second)
	for range 3 {
		check(t, w.SetNodeReady("n1", false))
		pass(t, w, 200*time.Second)
		check(t, w.SetNodeReady("n1", true))
		pass(t, w, 10*time.Second)
	}
	check(t, w.SetNodeReady("n1", false))
	pass(t, w, 299*time.Second)
	p, err := Get[*corev1.Pod](w.API, "default/p")
	check(t, err)
	if p.DeletionTimestamp != nil {
		t.Error("the pod ends before five minutes of a node that is not ready")
	}
	pass(t, w, 2*time.Second)
	if p, err := Get[*corev1.Pod](w.API, "default/p"); err == nil && p.DeletionTimestamp == nil {
		t.Error("the pod does not end after five minutes")
	}
}

func TestAPodEndsWithinItsGrace(t *testing.T) {
	hour := func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = new(int64(3600)) }
	tests := []struct {
		name string
		pod  *corev1.Pod
		do   func(*estate, *testing.T)
		want []string
	}{
		{"an evicted pod has the grace of its spec", pod(hour, annotated(AnnotationStopAfter, "2h")), func(e *estate, t *testing.T) { evictAll(t, e) },
			[]string{"+0s ending holds 1", "+1h0m0s gone"}},
		{"and ends earlier if it stops by itself", pod(hour, annotated(AnnotationStopAfter, "20m")), func(e *estate, t *testing.T) { evictAll(t, e) },
			[]string{"+0s ending holds 1", "+20m0s gone"}},
		{"a deleted pod has the grace it was deleted with", pod(hour, annotated(AnnotationStopAfter, "2h")), func(e *estate, t *testing.T) { deleteAll(t, e, 90*time.Second) },
			[]string{"+0s ending holds 1", "+1m30s gone"}},
		{"a second deletion cuts it short", pod(hour, annotated(AnnotationStopAfter, "2h")), func(e *estate, t *testing.T) {
			evictAll(t, e)
			e.Clock.After(10*time.Minute, func() { deleteAll(t, e, time.Minute) })
		}, []string{"+0s ending holds 1", "+11m0s gone"}},
		{"but cannot prolong it", pod(annotated(AnnotationStopAfter, "2h")), func(e *estate, t *testing.T) {
			evictAll(t, e)
			e.Clock.After(10*time.Second, func() { deleteAll(t, e, time.Hour) })
		}, []string{"+0s ending holds 1", "+30s gone"}},
		{"a finalizer keeps the object and not the room", pod(func(p *corev1.Pod) { p.Finalizers = []string{"x/y"} }), func(e *estate, t *testing.T) { evictAll(t, e) },
			[]string{"+0s ending holds 1", "+1s ending holds 0"}},
		{"a silent kubelet ends nothing before it is back", pod(), func(e *estate, t *testing.T) {
			e.Silence("aws:///a/i-n1")
			evictAll(t, e)
			e.Clock.After(5*time.Minute, func() { e.Resume("aws:///a/i-n1") })
		}, []string{"+0s ending holds 1", "+5m0s gone"}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			e := newEstate(t)
			check(t, e.AddNode(machine("n1", "cpu=4 memory=8Gi pods=10")))
			check(t, e.Apply(tc.pod))
			pass(t, e.World, 10*time.Second)
			tc.do(e, t)
			got := history(t, e.World, 2*time.Hour, func() string {
				p, err := Get[*corev1.Pod](e.API, "default/p")
				switch {
				case err != nil:
					return "gone"
				case p.DeletionTimestamp == nil:
					return "runs"
				default:
					return fmt.Sprintf("ending holds %d", len(e.View().byName["n1"].pods))
				}
			})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func evictAll(t *testing.T, e *estate) {
	pods, err := e.cluster.Pods(ctx, "n1")
	check(t, err)
	for _, p := range pods {
		check(t, e.cluster.Evict(ctx, p))
	}
}

func deleteAll(t *testing.T, e *estate, grace time.Duration) {
	pods, err := e.cluster.Pods(ctx, "n1")
	check(t, err)
	for _, p := range pods {
		check(t, e.cluster.DeletePod(ctx, p, grace))
		check(t, e.cluster.DeletePod(ctx, p, grace))
	}
}
