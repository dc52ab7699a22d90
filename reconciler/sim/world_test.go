package sim

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

func TestTimePassesInOrderAndOnlyWhenTold(t *testing.T) {
	c := NewClock(t0)
	var got []string
	say := func(s string) func() {
		return func() { got = append(got, c.Since(t0).String()+" "+s) }
	}
	c.After(2*time.Second, say("late"))
	c.After(time.Second, say("first"))
	c.After(time.Second, func() { say("second")(); c.After(0, say("at once")) })
	c.After(time.Second, say("third"))
	check(t, c.Advance(time.Second))
	got = append(got, c.Now().Sub(t0).String())
	ok, err := c.RunUntil(time.Minute, func() bool { return strings.HasSuffix(got[len(got)-1], "late") })
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	ok, err = c.RunUntil(time.Minute, func() bool { return false })
	if ok || err != nil {
		t.Fatal(ok, err)
	}
	got = append(got, c.Now().Sub(t0).String())
	want := []string{"1s first", "1s second", "1s third", "1s at once", "1s", "2s late", "1m2s"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEventsThatNeverEndAreAnError(t *testing.T) {
	c := NewClock(t0)
	var again func()
	again = func() { c.After(0, again) }
	again()
	if err := c.Advance(time.Second); err == nil || !strings.Contains(err.Error(), "without time passing") {
		t.Errorf("got %v", err)
	}
}

func TestObjectsGoAwayAsInTheAPIServer(t *testing.T) {
	w := newTestWorld(t, "n1")
	a := w.API
	claim := &karpv1.NodeClaim{}
	claim.Name, claim.Finalizers = "c", []string{"f"}
	check(t, a.Create("test", claim))
	if err := a.Create("test", claim); err == nil || !strings.Contains(err.Error(), "already exists") {
		t.Errorf("a name is taken twice: %v", err)
	}
	check(t, Delete[*karpv1.NodeClaim](a, "test", "c", nil))
	got, err := Get[*karpv1.NodeClaim](a, "c")
	if err != nil || !got.DeletionTimestamp.Time.Equal(t0) {
		t.Fatalf("a finalizer does not hold the object: %v, %v", got, err)
	}
	err = Update(a, "test", "c", "", func(c *karpv1.NodeClaim) error { c.Finalizers = append(c.Finalizers, "g"); return nil })
	if err == nil {
		t.Error("a finalizer was added to an object that is being deleted")
	}
	check(t, Update(a, "test", "c", "", func(c *karpv1.NodeClaim) error { c.Finalizers = nil; return nil }))
	if _, err := Get[*karpv1.NodeClaim](a, "c"); !isNotFound(err) {
		t.Errorf("the object outlives its finalizers: %v", err)
	}
	if err := Update(a, "test", "c", "", func(*karpv1.NodeClaim) error { return nil }); !isNotFound(err) {
		t.Errorf("update of nothing: %v", err)
	}
	if err := Delete[*karpv1.NodeClaim](a, "test", "c", nil); !isNotFound(err) {
		t.Errorf("delete of nothing: %v", err)
	}
}

func TestDeletedPodsGetTheirGrace(t *testing.T) {
	w := newTestWorld(t, "n1")
	check(t, w.Apply(pod(named("waits"), func(p *corev1.Pod) { p.Spec.NodeSelector = labelsOf("no=where") })))
	check(t, w.Apply(pod(named("slow"), func(p *corev1.Pod) { p.Annotations = map[string]string{AnnotationStopAfter: "20s"} })))
	check(t, w.Apply(pod(named("stuck"), func(p *corev1.Pod) { p.Annotations = map[string]string{AnnotationStopAfter: "1h"} })))
	pass(t, w, 10*time.Second)
	for _, name := range []string{"waits", "slow", "stuck"} {
		check(t, w.Delete(KindPod, "default/"+name))
	}
	pass(t, w, time.Minute)
	got := lines(w, func(e Write) bool { return e.Verb == "remove" })
	want := []string{"10s script remove Pod default/waits", "30s kubelet remove Pod default/slow", "40s kubelet remove Pod default/stuck"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestReadObjectsDoNotChange(t *testing.T) {
	w := newTestWorld(t, "n1")
	before, err := Get[*corev1.Node](w.API, "n1")
	check(t, err)
	copied := before.DeepCopy()
	check(t, w.SetNodeReady("n1", false))
	if diff := cmp.Diff(copied, before); diff != "" {
		t.Errorf("a write changed what was read before:\n%s", diff)
	}
	if err := w.SetNodeReady("n2", false); err == nil {
		t.Error("a node that is not there became not ready")
	}
}

func TestDeploymentScalesUpAndDown(t *testing.T) {
	w := newTestWorld(t, "n1", "n2")
	check(t, w.Apply(NewDeployment("default", "inflate", 3, amounts("cpu=1"))))
	pass(t, w, 10*time.Second)
	running, starting, pending := w.Pods("default", labelsOf("app=inflate"))
	if running != 3 || starting+pending != 0 {
		t.Fatalf("%d run, %d start, %d wait", running, starting, pending)
	}
	var first []string
	for _, p := range List[*corev1.Pod](w.API) {
		first = append(first, p.Name+" on "+p.Spec.NodeName)
	}
	// Names follow from the template and the count; the emptiest node comes
	// first.
	want := []string{"inflate-8llhpbtrzc-7gtk8 on n2", "inflate-8llhpbtrzc-bm9cr on n1", "inflate-8llhpbtrzc-tqp4w on n1"}
	if diff := cmp.Diff(want, first); diff != "" {
		t.Errorf("pods (-want +got):\n%s", diff)
	}
	check(t, w.Scale("default/inflate", 9))
	pass(t, w, 10*time.Second)
	if running, starting, pending = w.Pods("default", nil); running != 8 || pending != 1 {
		t.Fatalf("%d run, %d start, %d wait", running, starting, pending)
	}
	check(t, w.Scale("default/inflate", 8))
	pass(t, w, time.Second)
	if running, starting, pending = w.Pods("default", nil); running != 8 || pending != 0 {
		t.Fatalf("the pod that waits goes first: %d run, %d start, %d wait", running, starting, pending)
	}
	check(t, w.Scale("default/inflate", 3))
	pass(t, w, 10*time.Second)
	var left []string
	for _, p := range List[*corev1.Pod](w.API) {
		left = append(left, p.Name)
	}
	for i := range first {
		first[i], _, _ = strings.Cut(first[i], " ")
	}
	if diff := cmp.Diff(first, left); diff != "" {
		t.Errorf("the oldest stay (-want +got):\n%s", diff)
	}
	check(t, w.Scale("default/inflate", 0))
	pass(t, w, 10*time.Second)
	check(t, w.Delete(KindDeployment, "default/inflate"))
	pass(t, w, 10*time.Second)
	if n := len(List[*appsv1.ReplicaSet](w.API)) + len(List[*corev1.Pod](w.API)); n != 0 {
		t.Errorf("%d objects outlive their owner", n)
	}
}

func TestANewTemplateReplacesThePods(t *testing.T) {
	w := newTestWorld(t, "n1", "n2")
	d := NewDeployment("default", "web", 2, amounts("cpu=1"))
	check(t, w.Apply(d))
	pass(t, w, 10*time.Second)
	d.Spec.Template.Spec.Containers[0].Image = "web:2"
	check(t, w.Apply(d))
	pass(t, w, time.Second)
	if n := len(List[*corev1.Pod](w.API)); n != 4 {
		t.Errorf("%d pods while the new ones start", n)
	}
	pass(t, w, 10*time.Second)
	for _, p := range List[*corev1.Pod](w.API) {
		if p.Spec.Containers[0].Image != "web:2" {
			t.Errorf("pod %s of the old template is still there", p.Name)
		}
	}
	if running, _, _ := w.Pods("default", nil); running != 2 {
		t.Errorf("%d run", running)
	}
}

func TestDaemonsRunOnEveryNodeTheyAreFor(t *testing.T) {
	w := newTestWorld(t, "n1")
	check(t, w.Apply(NewDaemonSet("proxy", amounts("cpu=100m"))))
	shy := NewDaemonSet("shy", amounts("cpu=50m"))
	shy.Spec.Template.Spec.Tolerations = nil
	shy.Spec.Template.Spec.NodeSelector = labelsOf("topology.kubernetes.io/zone=a")
	check(t, w.Apply(shy))
	tainted := machine("n2", "cpu=4 memory=8Gi pods=10")
	tainted.Taints = []corev1.Taint{taint("karpenter.sh/unregistered:NoExecute")}
	check(t, w.AddNode(tainted))
	elsewhere := machine("n3", "cpu=4 memory=8Gi pods=10")
	elsewhere.Labels = labelsOf("topology.kubernetes.io/zone=b")
	check(t, w.AddNode(elsewhere))
	pass(t, w, 10*time.Second)
	where := func() []string {
		var out []string
		for _, p := range List[*corev1.Pod](w.API) {
			out = append(out, p.OwnerReferences[0].Name+" "+p.Spec.NodeName+" "+string(p.Status.Phase))
		}
		slices.Sort(out)
		return out
	}
	want := []string{"proxy n1 Running", "proxy n2 Running", "proxy n3 Running", "shy n1 Running"}
	if diff := cmp.Diff(want, where()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	edit := func(node string, f func(*corev1.Node)) {
		check(t, Update(w.API, "test", node, "", func(n *corev1.Node) error { f(n); return nil }))
		pass(t, w, 10*time.Second)
	}
	edit("n2", func(n *corev1.Node) { n.Spec.Taints = nil })
	edit("n1", func(n *corev1.Node) { setTaint(n, taint("x:NoSchedule")) })
	edit("n3", func(n *corev1.Node) { setTaint(n, taint("x:NoExecute")) })
	want = []string{"proxy n1 Running", "proxy n2 Running", "proxy n3 Running", "shy n1 Running", "shy n2 Running"}
	if diff := cmp.Diff(want, where()); diff != "" {
		t.Errorf("after the taints (-want +got):\n%s", diff)
	}
	edit("n1", func(n *corev1.Node) { setTaint(n, taint("x:NoExecute")) })
	if got := where(); slices.Contains(got, "shy n1 Running") {
		t.Errorf("a daemon stays on a node it does not tolerate: %v", got)
	}
	check(t, w.Delete(KindDaemonSet, "kube-system/proxy"))
	pass(t, w, 10*time.Second)
	if diff := cmp.Diff([]string{"shy n2 Running"}, where()); diff != "" {
		t.Errorf("after the deletion (-want +got):\n%s", diff)
	}
}

func TestAMachineBecomesANodeStepByStep(t *testing.T) {
	m := machine("n1", "cpu=4 memory=8Gi pods=10 nvidia.com/gpu=1")
	m.StartupTaints = []corev1.Taint{taint("cni=pending:NoSchedule")}
	m.Taints = append([]corev1.Taint{taint("karpenter.sh/unregistered:NoExecute")}, m.StartupTaints...)
	tests := []struct {
		name string
		boot Boot
		want []string
	}{
		{"as a rule", Boot{}, []string{
			"30s ready=false gpu=0 taints=karpenter.sh/unregistered cni node.kubernetes.io/not-ready",
			"40s ready=true gpu=1 taints=karpenter.sh/unregistered",
		}},
		{"slowly", Boot{Join: time.Minute, Ready: time.Minute, Devices: time.Second, StartupTaints: 5 * time.Second}, []string{
			"1m0s ready=false gpu=0 taints=karpenter.sh/unregistered cni node.kubernetes.io/not-ready",
			"2m0s ready=true gpu=0 taints=karpenter.sh/unregistered cni",
			"2m1s ready=true gpu=1 taints=karpenter.sh/unregistered cni",
			"2m5s ready=true gpu=1 taints=karpenter.sh/unregistered",
		}},
		{"with startup taints that stay", Boot{StartupTaints: -1}, []string{
			"30s ready=false gpu=0 taints=karpenter.sh/unregistered cni node.kubernetes.io/not-ready",
			"40s ready=true gpu=1 taints=karpenter.sh/unregistered cni",
		}},
		{"never ready", Boot{NeverReady: true}, []string{
			"30s ready=false gpu=0 taints=karpenter.sh/unregistered cni node.kubernetes.io/not-ready",
		}},
		{"never", Boot{Never: true}, nil},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			w := NewWorld(Options{Start: t0})
			w.Start(m, tc.boot)
			var got []string
			last := ""
			for range 180 {
				pass(t, w, time.Second)
				n, err := Get[*corev1.Node](w.API, "n1")
				if err != nil {
					continue
				}
				keys := make([]string, len(n.Spec.Taints))
				for i, t := range n.Spec.Taints {
					keys[i] = t.Key
				}
				gpu := n.Status.Allocatable["nvidia.com/gpu"]
				s := fmt.Sprintf("ready=%v gpu=%s taints=%s", nodeReady(n), gpu.String(), strings.Join(keys, " "))
				if s != last {
					got, last = append(got, w.Now().Sub(t0).String()+" "+s), s
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhenAMachineStopsItsNodeAndPodsGo(t *testing.T) {
	w := newTestWorld(t, "n1", "n2")
	check(t, w.Apply(NewDeployment("default", "web", 2, amounts("cpu=3"))))
	pass(t, w, 10*time.Second)
	w.Stop("aws:///a/i-n1")
	w.Stop("aws:///a/i-n1")
	pass(t, w, 41*time.Second)
	n, err := Get[*corev1.Node](w.API, "n1")
	check(t, err)
	if nodeReady(n) || !hasTaint(n, taint("node.kubernetes.io/unreachable:NoSchedule")) {
		t.Errorf("the node of a stopped machine: %+v", n)
	}
	pass(t, w, time.Minute)
	if _, err := Get[*corev1.Node](w.API, "n1"); !isNotFound(err) {
		t.Error("the node is still there")
	}
	if running, _, pending := w.Pods("default", nil); running != 1 || pending != 1 {
		t.Errorf("%d run, %d wait", running, pending)
	}
	// A machine that stops while it boots never becomes a node.
	w.Start(machine("n3", "cpu=4"), Boot{})
	w.Stop("aws:///a/i-n3")
	pass(t, w, time.Minute)
	if _, err := Get[*corev1.Node](w.API, "n3"); !isNotFound(err) {
		t.Error("a stopped machine joined")
	}
}

func TestApplyRefusesWhatItDoesNotChange(t *testing.T) {
	w := newTestWorld(t, "n1")
	check(t, w.Apply(pod()))
	if err := w.Apply(pod()); err == nil {
		t.Error("a pod's spec was replaced")
	}
	if err := w.Apply(&corev1.Secret{}); err == nil {
		t.Error("a kind that is not simulated was created")
	}
	if err := w.Delete("Secret", "x"); err == nil {
		t.Error("a kind that is not simulated was deleted")
	}
	ns := &corev1.Namespace{}
	ns.Name, ns.Labels = "default", labelsOf("team=a")
	check(t, w.Apply(ns))
	got, err := Get[*corev1.Namespace](w.API, "default")
	check(t, err)
	if diff := cmp.Diff(labelsOf("team=a kubernetes.io/metadata.name=default"), got.Labels); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheSameScriptGivesTheSameWrites(t *testing.T) {
	run := func() string {
		w := newTestWorld(t, "n1", "n2", "n3")
		check(t, w.Apply(NewDaemonSet("proxy", amounts("cpu=100m"))))
		check(t, w.Apply(NewDeployment("default", "a", 7, amounts("cpu=1"))))
		check(t, w.Apply(NewDeployment("default", "b", 3, amounts("cpu=500m"))))
		w.Start(machine("n4", "cpu=8 memory=16Gi pods=20"), Boot{})
		pass(t, w, time.Minute)
		check(t, w.Scale("default/a", 2))
		w.Stop("aws:///a/i-n2")
		pass(t, w, time.Minute)
		return strings.Join(lines(w, func(Write) bool { return true }), "\n")
	}
	first := run()
	for range 5 {
		if diff := cmp.Diff(first, run()); diff != "" {
			t.Fatalf("two runs differ (-first +second):\n%s", diff)
		}
	}
	if strings.Count(first, "\n") < 50 {
		t.Errorf("too little happened:\n%s", first)
	}
}
