package sim

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var t0 = time.Date(2026, 4, 6, 12, 0, 0, 0, time.UTC)

// amounts reads "cpu=1 memory=1Gi".
func amounts(s string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for _, f := range strings.Fields(s) {
		name, q, _ := strings.Cut(f, "=")
		out[corev1.ResourceName(name)] = resource.MustParse(q)
	}
	return out
}

// taint reads "key[=value]:Effect".
func taint(s string) corev1.Taint {
	key, effect, _ := strings.Cut(s, ":")
	key, value, _ := strings.Cut(key, "=")
	return corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)}
}

// labelsOf reads "a=1 b=2".
func labelsOf(s string) map[string]string {
	out := map[string]string{}
	for _, f := range strings.Fields(s) {
		k, v, _ := strings.Cut(f, "=")
		out[k] = v
	}
	return out
}

func machine(name, size string) Machine {
	return Machine{Name: name, ProviderID: "aws:///a/i-" + name, Labels: map[string]string{corev1.LabelTopologyZone: "a"},
		Capacity: amounts(size), Allocatable: amounts(size)}
}

func newTestWorld(t *testing.T, nodes ...string) *World {
	t.Helper()
	w := NewWorld(Options{Start: t0})
	for _, n := range nodes {
		check(t, w.AddNode(machine(n, "cpu=4 memory=8Gi pods=10")))
	}
	return w
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func pass(t *testing.T, w *World, d time.Duration) {
	t.Helper()
	check(t, w.Clock.Advance(d))
	for _, e := range w.API.Events() {
		if e.Reason == "Bug" {
			t.Fatalf("the simulation contradicts itself: %s", e.Message)
		}
	}
}

func pod(edit ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", Labels: map[string]string{"app": "p"}}}
	p.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: amounts("cpu=1")}}}
	for _, e := range edit {
		e(p)
	}
	return p
}

func named(name string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Name = name } }
func on(node string) func(*corev1.Pod)    { return func(p *corev1.Pod) { p.Spec.NodeName = node } }
func labelled(s string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Labels = labelsOf(s) } }

// lines are the writes of the audit that the test picks.
func lines(w *World, pick func(Write) bool) []string {
	var out []string
	for _, e := range w.API.Audit() {
		if pick(e) {
			out = append(out, strings.TrimPrefix(e.Time.Sub(t0).String()+" "+strings.SplitN(e.String(), " ", 2)[1], " "))
		}
	}
	return out
}
