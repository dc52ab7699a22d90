package sim

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// podWrites are the creations and removals of pods after the offset.
func podWrites(w *World, from int) []string {
	all := lines(w, func(e Write) bool { return e.Kind == KindPod && (e.Verb == "create" || e.Verb == "remove") })
	for i := range all {
		words := strings.Fields(all[i])
		all[i] = words[0] + " " + words[2] + " " + strings.TrimPrefix(words[4], "default/")
	}
	return all[from:]
}

func TestAStatefulSetGrowsAndShrinksInOrder(t *testing.T) {
	tests := []struct {
		name   string
		policy appsv1.PodManagementPolicyType
		want   []string
	}{
		{"one after the other", "", []string{
			"0s create db-0", "2s create db-1", "4s create db-2", "1m1s remove db-2", "1m2s remove db-1"}},
		{"all at once", appsv1.ParallelPodManagement, []string{
			"0s create db-0", "0s create db-1", "0s create db-2", "1m1s remove db-1", "1m1s remove db-2"}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			w := newTestWorld(t, "n1")
			set := NewStatefulSet("default", "db", 3, amounts("cpu=1"))
			set.Spec.PodManagementPolicy = tc.policy
			check(t, w.Apply(set))
			pass(t, w, time.Minute)
			set.Spec.Replicas = new(int32(1))
			check(t, w.Apply(set))
			pass(t, w, time.Minute)
			if diff := cmp.Diff(tc.want, podWrites(w, 0)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			check(t, w.Delete(KindStatefulSet, "default/db"))
			pass(t, w, time.Minute)
			if n := len(List[*corev1.Pod](w.API)); n != 0 {
				t.Errorf("%d pods outlive the set", n)
			}
		})
	}
}

func TestTheSuccessorOfAStatefulPodWaitsUntilItIsGone(t *testing.T) {
	w := newTestWorld(t, "n1")
	set := NewStatefulSet("default", "db", 2, amounts("cpu=1"))
	set.Spec.Template.Annotations = map[string]string{AnnotationStopAfter: "20s"}
	check(t, w.Apply(set))
	pass(t, w, 10*time.Second)
	from := len(podWrites(w, 0))
	check(t, w.evict(actorReeve, "default/db-0"))
	pass(t, w, time.Minute)
	want := []string{"30s remove db-0", "30s create db-0"}
	if diff := cmp.Diff(want, podWrites(w, from)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	p, err := Get[*corev1.Pod](w.API, "default/db-0")
	check(t, err)
	labels := labelsOf("app=db statefulset.kubernetes.io/pod-name=db-0 apps.kubernetes.io/pod-index=0")
	if diff := cmp.Diff(labels, p.Labels); diff != "" || p.Spec.NodeName != "n1" || !podReady(p) {
		t.Errorf("pod %+v\n%s", p.Status, diff)
	}
}

func TestAPodThatEndedIsReplacedUnderItsName(t *testing.T) {
	w := newTestWorld(t, "n1")
	check(t, w.Apply(NewStatefulSet("default", "db", 1, amounts("cpu=1"))))
	pass(t, w, 10*time.Second)
	from := len(podWrites(w, 0))
	check(t, Update(w.API, "test", "default/db-0", "", func(p *corev1.Pod) error { p.Status.Phase = corev1.PodFailed; return nil }))
	pass(t, w, 10*time.Second)
	if diff := cmp.Diff([]string{"10s remove db-0", "10s create db-0"}, podWrites(w, from)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestBudgetsCountTheReplicasOfAStatefulSet(t *testing.T) {
	w := newTestWorld(t, "n1")
	check(t, w.Apply(NewStatefulSet("default", "web", 3, amounts("cpu=1"))))
	check(t, w.Apply(pdb("b", func(b *policyv1.PodDisruptionBudgetSpec) { b.MaxUnavailable = new(intstr.Parse("1")) })))
	pass(t, w, 3*time.Second)
	// One of three is ready: two are away already.
	if got := w.budgets()[0].Allowed; got != 0 {
		t.Errorf("%d may be away while two are", got)
	}
	pass(t, w, 10*time.Second)
	if got := w.budgets()[0].Allowed; got != 1 {
		t.Errorf("%d may be away", got)
	}
}
