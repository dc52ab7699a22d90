package sim

import (
	"cmp"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// Who writes, in the audit.
const (
	actorScript      = "script"
	actorDeployment  = "deployment-controller"
	actorDaemonSet   = "daemonset-controller"
	actorStatefulSet = "statefulset-controller"
	actorKubelet     = "kubelet"
	actorLifecycle   = "node-controller"
	actorGC          = "garbage-collector"
	actorScheduler   = "scheduler"
	actorPodEvents   = "pod-events"
	actorTaints      = "taint-eviction-controller"
	actorReeve       = "reeve"
)

// Timing is how long things take in virtual time. A zero field means the
// default, one below zero that it takes no time.
type Timing struct {
	// Boot is from the launch of an instance to its node object; 30 s.
	Boot time.Duration
	// Ready is from there to the node being ready; 10 s.
	Ready time.Duration
	// PodStart is from the binding of a pod to its running; 2 s.
	PodStart time.Duration
	// PodStop is how long a pod takes to end when it is told to, at most its
	// grace period; 1 s.
	PodStop time.Duration
	// Unreachable is from the last report of a kubelet to its node being not
	// ready; 40 s.
	Unreachable time.Duration
	// NodeLost is from there, if the instance has ended, to the deletion of the
	// node by the cloud's node controller; 10 s.
	NodeLost time.Duration
}

func (t Timing) withDefaults() Timing {
	return Timing{
		Boot:        cmp.Or(t.Boot, 30*time.Second),
		Ready:       cmp.Or(t.Ready, 10*time.Second),
		PodStart:    cmp.Or(t.PodStart, 2*time.Second),
		PodStop:     cmp.Or(t.PodStop, time.Second),
		Unreachable: cmp.Or(t.Unreachable, 40*time.Second),
		NodeLost:    cmp.Or(t.NodeLost, 10*time.Second),
	}
}

// Options are the settings of a World.
type Options struct {
	// Start is where virtual time begins.
	Start  time.Time
	Timing Timing
	// MostAllocated makes the scheduler prefer the fullest node; it prefers
	// the emptiest unless set.
	MostAllocated bool
}

// World is a cluster in virtual time. It is not safe for use by several
// goroutines at once.
type World struct {
	// Clock is the only time there is.
	Clock *Clock
	// API is the simulated API server.
	API *API

	timing        Timing
	mostAllocated bool
	machines      map[string]*machineState
	names         map[types.UID]int
	busy          map[types.UID]bool
	stopping      map[types.UID]stop
	tainted       map[taintKey]time.Time
	leaving       map[types.UID]time.Time
	dirty         map[Kind]bool
	settling      bool
	controllers   []controller
	faults        faults
}

// controller is a level-triggered loop: it runs when one of its kinds changed.
type controller struct {
	kinds []Kind
	run   func()
}

// NewWorld is a cluster without nodes, with the namespaces default and
// kube-system.
func NewWorld(o Options) *World {
	c := NewClock(o.Start)
	w := &World{
		Clock: c, API: newAPI(c), timing: o.Timing.withDefaults(), mostAllocated: o.MostAllocated,
		machines: map[string]*machineState{}, names: map[types.UID]int{}, busy: map[types.UID]bool{}, stopping: map[types.UID]stop{}, tainted: map[taintKey]time.Time{}, leaving: map[types.UID]time.Time{}, dirty: map[Kind]bool{},
		faults: faults{counts: map[string]int{}},
	}
	w.controllers = []controller{
		{[]Kind{KindDeployment, KindReplicaSet, KindPod}, w.reconcileDeployments},
		{[]Kind{KindReplicaSet, KindPod}, w.reconcileReplicaSets},
		{[]Kind{KindDaemonSet, KindNode, KindPod}, w.reconcileDaemonSets},
		{[]Kind{KindStatefulSet, KindPod}, w.reconcileStatefulSets},
		{[]Kind{KindPod, KindNode}, w.reconcilePodHealth},
		{[]Kind{KindPod, KindNode}, w.reconcileTaints},
		{[]Kind{KindPod, KindNode}, w.reconcileKubelets},
		{kinds, w.collectGarbage},
		{[]Kind{KindPod, KindNode, KindNamespace}, w.bindPods},
	}
	w.API.onChange = w.changed
	w.API.onUpdate = w.podEvent
	for _, ns := range []string{"default", "kube-system"} {
		w.must(w.API.Create(actorScript, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}))
	}
	return w
}

// must is for writes that only a mistake in this package can make fail: an
// object that the simulation itself names and has just looked up.
func (w *World) must(err error) {
	if err != nil {
		w.API.record("Simulation/world", true, "Bug", err.Error())
	}
}

// changed has the controllers run once everything due now has been done.
func (w *World) changed(k Kind) {
	w.dirty[k] = true
	if !w.settling {
		w.settling = true
		w.Clock.After(0, w.settle)
	}
}

func (w *World) settle() {
	dirty := w.dirty
	w.dirty, w.settling = map[Kind]bool{}, false
	for _, c := range w.controllers {
		for _, k := range c.kinds {
			// What an earlier controller of this round wrote counts too.
			if dirty[k] || w.dirty[k] {
				c.run()
				break
			}
		}
	}
}

// Now is the virtual time.
func (w *World) Now() time.Time { return w.Clock.Now() }

// Apply creates the object as a user would, or replaces spec, labels and
// annotations of the one that exists. It takes Namespaces, Nodes, Pods,
// Deployments, DaemonSets, StatefulSets and PodDisruptionBudgets.
func (w *World) Apply(o Object) error {
	if _, ok := w.API.tables[kindOf(o)].lookup(KeyOf(o)); !ok {
		return w.API.Create(actorScript, o)
	}
	switch o := o.(type) {
	case *appsv1.Deployment:
		return Update(w.API, actorScript, KeyOf(o), "apply", func(c *appsv1.Deployment) error { c.Spec = *o.Spec.DeepCopy(); applyMeta(c, o); return nil })
	case *appsv1.DaemonSet:
		return Update(w.API, actorScript, KeyOf(o), "apply", func(c *appsv1.DaemonSet) error { c.Spec = *o.Spec.DeepCopy(); applyMeta(c, o); return nil })
	case *appsv1.StatefulSet:
		return Update(w.API, actorScript, KeyOf(o), "apply", func(c *appsv1.StatefulSet) error { c.Spec = *o.Spec.DeepCopy(); applyMeta(c, o); return nil })
	case *policyv1.PodDisruptionBudget:
		return Update(w.API, actorScript, KeyOf(o), "apply", func(c *policyv1.PodDisruptionBudget) error {
			c.Spec = *o.Spec.DeepCopy()
			applyMeta(c, o)
			return nil
		})
	case *corev1.Namespace:
		return Update(w.API, actorScript, KeyOf(o), "apply", func(c *corev1.Namespace) error {
			applyMeta(c, o)
			setDefaults(c)
			return nil
		})
	default:
		return fmt.Errorf("apply %s %s: it exists already, and the simulation changes no spec of that kind", kindOf(o), KeyOf(o))
	}
}

func (t *table) lookup(key string) (Object, bool) {
	if t == nil {
		return nil, false
	}
	o, ok := t.objects[key]
	return o, ok
}

func applyMeta(to, from metav1.Object) {
	to.SetLabels(from.GetLabels())
	to.SetAnnotations(from.GetAnnotations())
}

// Scale sets the replicas of a Deployment.
func (w *World) Scale(key string, replicas int32) error {
	return Update(w.API, actorScript, key, fmt.Sprintf("scale to %d", replicas), func(d *appsv1.Deployment) error {
		d.Spec.Replicas = &replicas
		return nil
	})
}

// Delete deletes an object as a user would.
func (w *World) Delete(kind Kind, key string) error {
	switch kind {
	case KindPod:
		return Delete[*corev1.Pod](w.API, actorScript, key, nil)
	case KindNode:
		return Delete[*corev1.Node](w.API, actorScript, key, nil)
	case KindDeployment:
		return Delete[*appsv1.Deployment](w.API, actorScript, key, nil)
	case KindDaemonSet:
		return Delete[*appsv1.DaemonSet](w.API, actorScript, key, nil)
	case KindStatefulSet:
		return Delete[*appsv1.StatefulSet](w.API, actorScript, key, nil)
	case KindNodeClaim:
		return Delete[*karpv1.NodeClaim](w.API, actorScript, key, nil)
	case KindPDB:
		return Delete[*policyv1.PodDisruptionBudget](w.API, actorScript, key, nil)
	default:
		return fmt.Errorf("delete %s %s: users of the simulation do not delete that kind", kind, key)
	}
}

// Pods counts the pods of the namespace whose labels contain those given: how
// many run, how many are bound but do not run yet, and how many wait.
func (w *World) Pods(namespace string, labels map[string]string) (running, starting, pending int) {
	for _, p := range List[*corev1.Pod](w.API) {
		switch {
		case p.Namespace != namespace || !contains(p.Labels, labels) || p.DeletionTimestamp != nil:
		case p.Status.Phase == corev1.PodRunning:
			running++
		case p.Spec.NodeName != "":
			starting++
		default:
			pending++
		}
	}
	return running, starting, pending
}

// contains says whether the map has all entries of the other.
func contains(have, want map[string]string) bool {
	for k, v := range want {
		if have[k] != v {
			return false
		}
	}
	return true
}
