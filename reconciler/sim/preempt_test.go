package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func priority(n int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Priority = &n }
}

func critical(p *corev1.Pod) { p.Spec.PriorityClassName = "system-node-critical" }

func annotated(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations = with(p.Annotations, key, value) }
}

// whereabouts are the pods, each with its node, or with the one it is nominated
// to.
func whereabouts(w *World) []string {
	var out []string
	for _, p := range List[*corev1.Pod](w.API) {
		s := p.Name + " waits"
		switch {
		case p.Spec.NodeName != "":
			s = p.Name + " on " + p.Spec.NodeName
		case p.Status.NominatedNodeName != "":
			s = p.Name + " nominated to " + p.Status.NominatedNodeName
		}
		if p.DeletionTimestamp != nil {
			s += ", ending"
		}
		out = append(out, s)
	}
	return out
}

func TestRoomIsMadeWithTheLeastHarm(t *testing.T) {
	vip := func(edit ...func(*corev1.Pod)) *corev1.Pod {
		return pod(append([]func(*corev1.Pod){named("vip"), requests("cpu=3"), priority(100)}, edit...)...)
	}
	low := func(name, node, cpu string, prio int32, edit ...func(*corev1.Pod)) *corev1.Pod {
		return pod(append([]func(*corev1.Pod){named(name), on(node), requests("cpu=" + cpu), priority(prio), annotated(AnnotationStopAfter, "30s")}, edit...)...)
	}
	never := corev1.PreemptNever
	guard := pdb("b", func(b *policyv1.PodDisruptionBudgetSpec) { b.MinAvailable = new(intstr.Parse("100%")) })
	tests := []struct {
		name string
		pods []*corev1.Pod
		pdbs []*policyv1.PodDisruptionBudget
		want []string
	}{
		{"the pod of the lowest priority goes", []*corev1.Pod{low("a", "n1", "3", 5), low("b", "n2", "3", 4), vip()}, nil,
			[]string{"a on n1", "b on n2, ending", "vip nominated to n2"}},
		{"no more pods than needed", []*corev1.Pod{low("a", "n1", "2", 5), low("b", "n1", "1", 5), low("c", "n1", "1", 6), low("d", "n2", "4", 7), vip()}, nil,
			[]string{"a on n1, ending", "b on n1, ending", "c on n1", "d on n2", "vip nominated to n1"}},
		{"the fewer of equals", []*corev1.Pod{low("a", "n1", "2", 5), low("b", "n1", "2", 5), low("c", "n2", "3", 5), vip()}, nil,
			[]string{"a on n1", "b on n1", "c on n2, ending", "vip nominated to n2"}},
		{"the important of a node stay", []*corev1.Pod{low("a", "n1", "3", 50), low("b", "n1", "1", 1), low("c", "n2", "3", 40), low("d", "n2", "1", 60), vip()}, nil,
			[]string{"a on n1", "b on n1", "c on n2, ending", "d on n2", "vip nominated to n2"}},
		{"equal priority is no reason", []*corev1.Pod{low("a", "n1", "3", 100), low("b", "n2", "3", 100), vip()}, nil,
			[]string{"a on n1", "b on n2", "vip waits"}},
		{"some pods never make room", []*corev1.Pod{low("a", "n1", "3", 5), low("b", "n2", "3", 5), vip(func(p *corev1.Pod) { p.Spec.PreemptionPolicy = &never })}, nil,
			[]string{"a on n1", "b on n2", "vip waits"}},
		{"nobody goes if that does not help", []*corev1.Pod{low("a", "n1", "3", 5), low("b", "n2", "3", 5), vip(requests("cpu=5"))}, nil,
			[]string{"a on n1", "b on n2", "vip waits"}},
		{"nor on a node that the pod may not run on", []*corev1.Pod{low("a", "n1", "3", 5), low("b", "n2", "3", 1), vip(func(p *corev1.Pod) { p.Spec.NodeSelector = labelsOf("kubernetes.io/hostname=n1") })}, nil,
			[]string{"a on n1, ending", "b on n2", "vip nominated to n1"}},
		{"a budget protects", []*corev1.Pod{low("a", "n1", "3", 5), low("b", "n2", "3", 1, labelled("app=web")), vip()}, []*policyv1.PodDisruptionBudget{guard},
			[]string{"a on n1, ending", "b on n2", "vip nominated to n1"}},
		{"as long as there is another way", []*corev1.Pod{low("a", "n1", "3", 100), low("b", "n2", "3", 1, labelled("app=web")), vip()}, []*policyv1.PodDisruptionBudget{guard},
			[]string{"a on n1", "b on n2, ending", "vip nominated to n2"}},
		{"a host port is room too", []*corev1.Pod{low("a", "n1", "1", 5, port80("", "")), low("b", "n2", "1", 100, port80("", "")), vip(port80("", ""))}, nil,
			[]string{"a on n1, ending", "b on n2", "vip nominated to n1"}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			w := newTestWorld(t, "n1", "n2")
			for _, b := range tc.pdbs {
				check(t, w.Apply(b))
			}
			for _, p := range tc.pods {
				check(t, w.Apply(p))
				pass(t, w, 3*time.Second)
			}
			if diff := cmp.Diff(tc.want, whereabouts(w)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			// What was nominated is bound once the room is there.
			pass(t, w, time.Minute)
			for _, s := range whereabouts(w) {
				if strings.Contains(s, "nominated") || strings.Contains(s, "ending") {
					t.Errorf("a minute later: %s", s)
				}
			}
		})
	}
}

func TestTheRoomThatWasMadeIsKept(t *testing.T) {
	w := newTestWorld(t, "n1")
	check(t, w.Apply(pod(named("a"), requests("cpu=4"), priority(1), annotated(AnnotationStopAfter, "20s"))))
	pass(t, w, 10*time.Second)
	check(t, w.Apply(pod(named("vip"), requests("cpu=2"), priority(10))))
	pass(t, w, time.Second)
	// Neither a lower nor an equal one may take it, nor end somebody else for it.
	check(t, w.Apply(pod(named("low"), requests("cpu=3"), priority(5))))
	check(t, w.Apply(pod(named("peer"), requests("cpu=3"), priority(10))))
	pass(t, w, 25*time.Second)
	got := [][]string{whereabouts(w)}
	// A more important pod may; the other looks again.
	check(t, w.Apply(pod(named("top"), requests("cpu=3"), priority(20))))
	pass(t, w, 30*time.Second)
	got = append(got, whereabouts(w))
	want := [][]string{
		{"low waits", "peer waits", "vip on n1"},
		{"low waits", "peer waits", "top on n1"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	events := 0
	for _, e := range w.API.Events() {
		if e.Reason == "Preempted" {
			events++
		}
	}
	if events != 2 {
		t.Errorf("%d pods were preempted", events)
	}
}

func TestANominationIsGivenUpWhenItHelpsNoMore(t *testing.T) {
	w := newTestWorld(t, "n1")
	check(t, w.Apply(pod(named("a"), requests("cpu=4"), priority(1), annotated(AnnotationStopAfter, "20s"))))
	pass(t, w, 10*time.Second)
	check(t, w.Apply(pod(named("mid"), requests("cpu=3"), priority(10))))
	pass(t, w, time.Second)
	check(t, w.Apply(pod(named("top"), requests("cpu=3"), priority(20))))
	pass(t, w, time.Second)
	got := [][]string{whereabouts(w)}
	w.Stop("aws:///a/i-n1")
	pass(t, w, 3*time.Minute)
	got = append(got, whereabouts(w))
	want := [][]string{
		{"a on n1, ending", "mid waits", "top nominated to n1"},
		{"mid waits", "top waits"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Case B15 of the scheduling semantics: a pod that room is made for is not a
// reason for a node, the placeholders that leave are.
func TestPlaceholdersMakeRoomAndComeBack(t *testing.T) {
	e := newEstate(t)
	check(t, e.AddNode(machine("n1", "cpu=4 memory=8Gi pods=10")))
	pause := NewDeployment("default", "pause", 4, amounts("cpu=1"))
	pause.Spec.Template.Spec.Priority = new(int32(-10))
	check(t, e.Apply(pause))
	pass(t, e.World, 10*time.Second)
	check(t, e.Apply(NewDeployment("default", "web", 1, amounts("cpu=2"))))
	look := func() string {
		s := snapshot(t, e)
		var pending, preempting []string
		for _, p := range s.Pending {
			pending = append(pending, p.Shape.Labels["app"])
		}
		for _, p := range s.Node("n1").Pods {
			if p.Preempting {
				preempting = append(preempting, p.Shape.Labels["app"])
			}
		}
		running, starting, _ := e.Pods("default", nil)
		return fmt.Sprintf("pending %v, preempting %v, %d run, %d start", pending, preempting, running, starting)
	}
	pass(t, e.World, 0)
	got := []string{look()}
	pass(t, e.World, time.Second)
	got = append(got, look())
	pass(t, e.World, 10*time.Second)
	got = append(got, look())
	check(t, e.AddNode(machine("n2", "cpu=4 memory=8Gi pods=10")))
	pass(t, e.World, 10*time.Second)
	got = append(got, look())
	want := []string{
		"pending [pause pause], preempting [web], 2 run, 0 start",
		"pending [pause pause], preempting [], 2 run, 1 start",
		"pending [pause pause], preempting [], 3 run, 0 start",
		"pending [], preempting [], 5 run, 0 start",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestVictimsAreFewAndOfLowerPriority holds random preemptions against what the
// documentation promises.
func TestVictimsAreFewAndOfLowerPriority(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	made := 0
	for round := range 200 {
		w := newTestWorld(t, "n1", "n2", "n3")
		for i := range 12 {
			check(t, w.Apply(pod(named(fmt.Sprintf("p%d", i)), requests(fmt.Sprintf("cpu=%dm", 500*(1+r.IntN(4)))), priority(r.Int32N(4)), annotated(AnnotationStopAfter, "30s"))))
		}
		pass(t, w, 2*time.Minute)
		before := w.View()
		vip := pod(named("vip"), requests(fmt.Sprintf("cpu=%dm", 500*(1+r.IntN(8)))), priority(r.Int32N(5)))
		check(t, w.Apply(vip))
		pass(t, w, 0)
		vip, err := Get[*corev1.Pod](w.API, "default/vip")
		check(t, err)
		var victims []*corev1.Pod
		for _, p := range List[*corev1.Pod](w.API) {
			if p.DeletionTimestamp != nil {
				victims = append(victims, p)
			}
		}
		if vip.Status.NominatedNodeName == "" {
			if len(victims) != 0 {
				t.Fatalf("round %d: %d pods end for nobody", round, len(victims))
			}
			continue
		}
		made++
		n := before.byName[vip.Status.NominatedNodeName]
		names := map[string]bool{}
		for _, p := range victims {
			names[p.Name] = true
			if *p.Spec.Priority >= *vip.Spec.Priority || p.Spec.NodeName != n.node.Name {
				t.Fatalf("round %d: %s of priority %d on %s ends", round, p.Name, *p.Spec.Priority, p.Spec.NodeName)
			}
		}
		for _, p := range slices.Clone(n.pods) {
			if names[p.Name] {
				before.take(p, n)
			}
		}
		if reason := before.refusal(vip, n); reason != "" {
			t.Fatalf("round %d: there is no room without the victims: %s", round, reason)
		}
		for _, p := range victims {
			before.put(p, n)
			if before.refusal(vip, n) == "" {
				t.Fatalf("round %d: %s ends for nothing", round, p.Name)
			}
			before.take(p, n)
		}
	}
	if made < 50 {
		t.Errorf("room was made only %d times", made)
	}
}
