package sim

import (
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

// AnnotationRunFor on a pod whose containers are not restarted is how long they
// run before they end well, as a Go duration.
const AnnotationRunFor = "sim.reeve.dev/run-for"

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
	// up says that the machine runs, and silent that its kubelet tells the API
	// server nothing, since when in quiet.
	up     bool
	silent bool
	quiet  time.Time
}

// reports says whether the API server hears of the machine.
func (st *machineState) reports() bool { return st.up && !st.silent }

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
	if !st.reports() {
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
		w.reportReady(st)
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
	if !st.reports() || !devices {
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

// machineOf is the machine that runs the node, nil if there is none or nothing
// is heard of it.
func (w *World) machineOf(node string) *machineState {
	n, err := Get[*corev1.Node](w.API, node)
	if err != nil {
		return nil
	}
	if st := w.machines[n.Spec.ProviderID]; st != nil && st.reports() {
		return st
	}
	return nil
}
