package sim

import (
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/reeve-project/reeve/reconciler/port"
)

func pdb(name string, edit func(*policyv1.PodDisruptionBudgetSpec)) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	b.Spec.Selector = selectorOf("app=web")
	edit(&b.Spec)
	return b
}

func TestEvictionRespectsBudgets(t *testing.T) {
	amount := func(s string) *intstr.IntOrString { v := intstr.Parse(s); return &v }
	minAvailable := func(s string) *policyv1.PodDisruptionBudget {
		return pdb("b", func(b *policyv1.PodDisruptionBudgetSpec) { b.MinAvailable = amount(s) })
	}
	maxUnavailable := func(s string) *policyv1.PodDisruptionBudget {
		return pdb("b", func(b *policyv1.PodDisruptionBudgetSpec) { b.MaxUnavailable = amount(s) })
	}
	always := policyv1.AlwaysAllow
	tests := []struct {
		name    string
		budgets []*policyv1.PodDisruptionBudget
		unready int
		// want is how many of four evictions at once succeed.
		want int
	}{
		{"without budget", nil, 0, 4},
		{"three have to stay", []*policyv1.PodDisruptionBudget{minAvailable("3")}, 0, 1},
		{"all have to stay", []*policyv1.PodDisruptionBudget{minAvailable("4")}, 0, 0},
		{"half rounded up has to stay", []*policyv1.PodDisruptionBudget{minAvailable("60%")}, 0, 1},
		{"two may be away", []*policyv1.PodDisruptionBudget{maxUnavailable("2")}, 0, 2},
		{"a quarter may be away", []*policyv1.PodDisruptionBudget{maxUnavailable("25%")}, 0, 1},
		{"one has to stay unless said otherwise", []*policyv1.PodDisruptionBudget{pdb("b", func(*policyv1.PodDisruptionBudgetSpec) {})}, 0, 3},
		{"pods that are away already count", []*policyv1.PodDisruptionBudget{maxUnavailable("2")}, 1, 2},
		{"a pod that is not ready stays while the budget is broken", []*policyv1.PodDisruptionBudget{minAvailable("4")}, 2, 0},
		{"unless it may always go", []*policyv1.PodDisruptionBudget{pdb("b", func(b *policyv1.PodDisruptionBudgetSpec) {
			b.MinAvailable, b.UnhealthyPodEvictionPolicy = amount("4"), &always
		})}, 2, 2},
		{"two budgets over one pod block it", []*policyv1.PodDisruptionBudget{minAvailable("1"), pdb("c", func(b *policyv1.PodDisruptionBudgetSpec) { b.MinAvailable = amount("1") })}, 0, 0},
		{"a malformed budget blocks", []*policyv1.PodDisruptionBudget{minAvailable("x")}, 0, 0},
		{"in either field", []*policyv1.PodDisruptionBudget{maxUnavailable("x")}, 0, 0},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			e := newEstate(t)
			for i := range 2 {
				check(t, e.AddNode(machine(fmt.Sprint("n", i), "cpu=4 memory=8Gi pods=10")))
			}
			check(t, e.Apply(NewDeployment("default", "web", 4, amounts("cpu=1"))))
			for _, b := range tc.budgets {
				check(t, e.Apply(b))
				check(t, e.Apply(b))
			}
			pass(t, e.World, 10*time.Second)
			for i, p := range List[*corev1.Pod](e.API) {
				if i < tc.unready {
					check(t, Update(e.API, "test", KeyOf(p), "", func(p *corev1.Pod) error {
						setPodCondition(p, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse})
						return nil
					}))
				}
			}
			s, err := e.cluster.Snapshot(ctx)
			check(t, err)
			got := 0
			for _, n := range s.Nodes {
				for _, p := range n.Pods {
					switch err := e.cluster.Evict(ctx, p); {
					case err == nil:
						got++
					case !errors.Is(err, port.ErrBlocked):
						t.Errorf("evict %s: %v", p.Key(), err)
					}
				}
			}
			if got != tc.want {
				t.Errorf("%d evictions succeed, want %d", got, tc.want)
			}
		})
	}
}

func TestPodsThatServeNobodyNeedNoBudget(t *testing.T) {
	e := newEstate(t)
	check(t, e.AddNode(machine("n", "cpu=1 pods=3")))
	check(t, e.Apply(pdb("b", func(b *policyv1.PodDisruptionBudgetSpec) { b.MinAvailable = &intstr.IntOrString{IntVal: 2} })))
	check(t, e.Apply(NewDeployment("default", "web", 2, amounts("cpu=1"))))
	pass(t, e.World, 10*time.Second)
	s, err := e.cluster.Snapshot(ctx)
	check(t, err)
	if err := e.cluster.Evict(ctx, s.Pending[0]); err != nil {
		t.Errorf("a pod that waits: %v", err)
	}
	running := s.Nodes[0].Pods[0]
	if err := e.cluster.Evict(ctx, running); !errors.Is(err, port.ErrBlocked) {
		t.Errorf("a pod that runs: %v", err)
	}
	running.UID = "of an earlier pod"
	if err := e.cluster.Evict(ctx, running); err != nil {
		t.Errorf("a pod that is gone: %v", err)
	}
	// A bare pod counts for itself.
	check(t, e.Delete(KindPDB, "default/b"))
	check(t, e.Delete(KindDeployment, "default/web"))
	check(t, e.Apply(pdb("b", func(b *policyv1.PodDisruptionBudgetSpec) { b.MaxUnavailable = &intstr.IntOrString{IntVal: 0} })))
	pass(t, e.World, 10*time.Second)
	check(t, e.Apply(pod(labelled("app=web"))))
	pass(t, e.World, 10*time.Second)
	s, err = e.cluster.Snapshot(ctx)
	check(t, err)
	if err := e.cluster.Evict(ctx, s.Nodes[0].Pods[0]); !errors.Is(err, port.ErrBlocked) {
		t.Errorf("a bare pod: %v", err)
	}
}
