package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reeve-project/reeve/reconciler/resources"
)

// AnnotationStopAfter on a pod is how long it takes to end when it is told to,
// as a Go duration. Its grace period cuts it short.
const AnnotationStopAfter = "sim.reeve.dev/stop-after"

// Machine is an instance as its kubelet registers it.
type Machine struct {
	// Name of the node.
	Name string
	// ProviderID is "aws:///<zone>/<instance id>".
	ProviderID string
	Labels     map[string]string
	// Taints that the kubelet registers with.
	Taints []corev1.Taint
	// StartupTaints are those of Taints that somebody else takes away later.
	StartupTaints []corev1.Taint
	Capacity      corev1.ResourceList
	Allocatable   corev1.ResourceList
}

// Boot is how a machine starts. Zero durations mean those of Timing.
type Boot struct {
	// Never: no node ever joins.
	Never bool
	// NeverReady: the node joins but stays not ready.
	NeverReady bool
	// Join is from the launch to the node object, Ready from there to
	// readiness.
	Join, Ready time.Duration
	// Devices is from readiness until extended resources are offered.
	Devices time.Duration
	// StartupTaints is from readiness until the startup taints are taken away;
	// below zero they stay.
	StartupTaints time.Duration
}

type machineState struct {
	Machine
	up bool
}

// Start boots a machine: its node joins, becomes ready, offers its devices and
// loses its startup taints as the boot says.
func (w *World) Start(m Machine, b Boot) {
	st := &machineState{Machine: m, up: true}
	w.machines[m.ProviderID] = st
	if b.Never {
		return
	}
	join, ready := b.Join, b.Ready
	if join == 0 {
		join = w.timing.Boot
	}
	if ready == 0 {
		ready = w.timing.Ready
	}
	w.Clock.After(join, func() { w.join(st, b, ready) })
}

func (w *World) join(st *machineState, b Boot, ready time.Duration) {
	if !st.up {
		return
	}
	node := st.node()
	node.Status.Conditions = []corev1.NodeCondition{w.readyCondition(corev1.ConditionFalse, "KubeletNotReady")}
	for _, l := range []corev1.ResourceList{node.Status.Capacity, node.Status.Allocatable} {
		for name := range l {
			if extended(name) {
				l[name] = resource.MustParse("0")
			}
		}
	}
	if err := w.API.Create(actorKubelet, node); err != nil {
		w.API.record("Node/"+st.Name, true, "RegistrationFailed", err.Error())
		return
	}
	if b.NeverReady {
		return
	}
	w.Clock.After(ready, func() {
		w.setReady(st, corev1.ConditionTrue, "KubeletReady")
		w.Clock.After(b.Devices, func() { w.offerDevices(st) })
		if len(st.StartupTaints) > 0 && b.StartupTaints >= 0 {
			w.Clock.After(b.StartupTaints, func() { w.RemoveStartupTaints(st.Name) })
		}
	})
}

func (st *machineState) node() *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: st.Name, Labels: st.Labels},
		Spec:       corev1.NodeSpec{ProviderID: st.ProviderID, Taints: slices.Clone(st.Taints)},
		Status:     corev1.NodeStatus{Capacity: st.Capacity.DeepCopy(), Allocatable: st.Allocatable.DeepCopy()},
	}
}

// AddNode adds a node that is ready at once, such as one of a managed node
// group.
func (w *World) AddNode(m Machine) error {
	st := &machineState{Machine: m, up: true}
	node := st.node()
	node.Status.Conditions = []corev1.NodeCondition{w.readyCondition(corev1.ConditionTrue, "KubeletReady")}
	if err := w.API.Create(actorKubelet, node); err != nil {
		return err
	}
	w.machines[m.ProviderID] = st
	return nil
}

// extended says whether a device plugin has to announce the resource.
func extended(name corev1.ResourceName) bool { return strings.Contains(string(name), "/") }

func (w *World) readyCondition(s corev1.ConditionStatus, reason string) corev1.NodeCondition {
	now := w.API.stamp()
	return corev1.NodeCondition{Type: corev1.NodeReady, Status: s, Reason: reason, LastHeartbeatTime: now, LastTransitionTime: now}
}

func (w *World) setReady(st *machineState, s corev1.ConditionStatus, reason string) {
	if !st.up && s == corev1.ConditionTrue {
		return
	}
	err := Update(w.API, actorKubelet, st.Name, reason, func(n *corev1.Node) error {
		n.Status.Conditions = []corev1.NodeCondition{w.readyCondition(s, reason)}
		for _, effect := range []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute} {
			taint := corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: effect}
			lost := corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: effect}
			removeTaint(n, taint)
			removeTaint(n, lost)
			switch {
			case s == corev1.ConditionUnknown:
				setTaint(n, lost)
			case s == corev1.ConditionFalse:
				setTaint(n, taint)
			}
		}
		return nil
	})
	w.ignoreGone(err)
}

// ignoreGone: the node may have been deleted before its kubelet got round to
// the write.
func (w *World) ignoreGone(err error) {
	if err != nil && !isNotFound(err) {
		w.must(err)
	}
}

func (w *World) offerDevices(st *machineState) {
	devices := slices.ContainsFunc(resources.From(st.Capacity).Names(), func(name corev1.ResourceName) bool {
		q := st.Capacity[name]
		return extended(name) && !q.IsZero()
	})
	if !st.up || !devices {
		return
	}
	w.ignoreGone(Update(w.API, actorKubelet, st.Name, "devices", func(n *corev1.Node) error {
		n.Status.Capacity, n.Status.Allocatable = st.Capacity.DeepCopy(), st.Allocatable.DeepCopy()
		return nil
	}))
}

// RemoveStartupTaints takes the startup taints off the node, as the daemon that
// they wait for does.
func (w *World) RemoveStartupTaints(node string) {
	st := w.machineOf(node)
	if st == nil {
		return
	}
	w.must(Update(w.API, actorScript, node, "startup taints removed", func(n *corev1.Node) error {
		for _, t := range st.StartupTaints {
			removeTaint(n, t)
		}
		return nil
	}))
}

// SetNodeReady makes the node ready or not ready, as its kubelet reports.
func (w *World) SetNodeReady(node string, ready bool) error {
	st := w.machineOf(node)
	if st == nil {
		return fmt.Errorf("set node ready: no machine that is up runs node %q", node)
	}
	if ready {
		w.setReady(st, corev1.ConditionTrue, "KubeletReady")
	} else {
		w.setReady(st, corev1.ConditionFalse, "KubeletNotReady")
	}
	return nil
}

// machineOf is the machine that runs the node, nil if there is none or it is
// not up.
func (w *World) machineOf(node string) *machineState {
	n, err := Get[*corev1.Node](w.API, node)
	if err != nil {
		return nil
	}
	if st := w.machines[n.Spec.ProviderID]; st != nil && st.up {
		return st
	}
	return nil
}

// Stop ends the machine: its kubelet reports no more, and the cloud's node
// controller deletes the node a while later.
func (w *World) Stop(providerID string) {
	st, ok := w.machines[providerID]
	if !ok || !st.up {
		return
	}
	st.up = false
	w.setReady(st, corev1.ConditionUnknown, "NodeStatusUnknown")
	w.Clock.After(w.timing.NodeLost, func() {
		n, err := Get[*corev1.Node](w.API, st.Name)
		if err == nil && n.Spec.ProviderID == providerID {
			w.ignoreGone(Delete[*corev1.Node](w.API, actorLifecycle, st.Name, nil))
		}
	})
}

// reconcileKubelets starts bound pods and ends deleted ones.
func (w *World) reconcileKubelets() {
	up := map[string]bool{}
	for _, n := range List[*corev1.Node](w.API) {
		st := w.machines[n.Spec.ProviderID]
		up[n.Name] = st != nil && st.up && nodeReady(n)
	}
	for _, p := range List[*corev1.Pod](w.API) {
		if !up[p.Spec.NodeName] || w.busy[p.UID] {
			continue
		}
		pod := p
		switch {
		case p.DeletionTimestamp != nil:
			w.busy[p.UID] = true
			w.Clock.After(w.stopTime(p), func() { w.podStopped(pod) })
		case p.Status.Phase == corev1.PodPending:
			w.busy[p.UID] = true
			w.Clock.After(w.timing.PodStart, func() { w.podStarted(pod) })
		}
	}
}

func (w *World) stopTime(p *corev1.Pod) time.Duration {
	d := w.timing.PodStop
	if own, err := time.ParseDuration(p.Annotations[AnnotationStopAfter]); err == nil {
		d = own
	}
	return min(d, p.DeletionTimestamp.Sub(w.Now()))
}

func (w *World) podStopped(p *corev1.Pod) {
	delete(w.busy, p.UID)
	if n, err := Get[*corev1.Pod](w.API, KeyOf(p)); err != nil || n.UID != p.UID {
		return
	}
	if w.machineOf(p.Spec.NodeName) == nil {
		return
	}
	w.must(Delete[*corev1.Pod](w.API, actorKubelet, KeyOf(p), new(int64(0))))
}

func (w *World) podStarted(p *corev1.Pod) {
	delete(w.busy, p.UID)
	now, err := Get[*corev1.Pod](w.API, KeyOf(p))
	if err != nil || now.UID != p.UID || w.machineOf(p.Spec.NodeName) == nil {
		return
	}
	if now.DeletionTimestamp != nil {
		// The deletion came while it started.
		w.changed(KindPod)
		return
	}
	w.must(Update(w.API, actorKubelet, KeyOf(p), "running", func(c *corev1.Pod) error {
		at := w.API.stamp()
		c.Status.Phase = corev1.PodRunning
		c.Status.StartTime = &at
		setPodCondition(c, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: at})
		return nil
	}))
}
