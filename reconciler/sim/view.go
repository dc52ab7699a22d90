package sim

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/reeve-project/reeve/reconciler/resources"
)

// View is nodes with the pods on them: what the binder decides on. It can hold
// the cluster as it is, or as a plan wants it to be.
type View struct {
	nodes      []*nodeView
	byName     map[string]*nodeView
	namespaces map[string]map[string]string
	// withAnti are the placed pods with required anti-affinity: they can keep
	// others away.
	withAnti []placed
	// only, when set, names the one node that the view is about: what depends
	// on the rest of the cluster is not judged.
	only string
	// requests remembers what each pod requests.
	requests map[*corev1.Pod]resources.List
}

type nodeView struct {
	node        *corev1.Node
	allocatable resources.List
	used        resources.List
	pods        []*corev1.Pod
	ports       []hostPort
	// reserved are pods that room is kept for.
	reserved []*corev1.Pod
}

type placed struct {
	pod *corev1.Pod
	on  *nodeView
}

// NewView is the nodes with those of the pods that are bound to them; pods that
// have ended hold nothing. Namespaces are needed for namespace selectors only.
func NewView(nodes []*corev1.Node, pods []*corev1.Pod, namespaces []*corev1.Namespace) *View {
	v := &View{byName: map[string]*nodeView{}, namespaces: map[string]map[string]string{}, requests: map[*corev1.Pod]resources.List{}}
	for _, ns := range namespaces {
		v.namespaces[ns.Name] = ns.Labels
	}
	for _, n := range nodes {
		v.AddNode(n)
	}
	for _, p := range pods {
		if n := v.byName[p.Spec.NodeName]; n != nil && !terminal(p) {
			v.put(p, n)
		}
	}
	return v
}

// View is the cluster as it is now.
func (w *World) View() *View {
	return NewView(List[*corev1.Node](w.API), List[*corev1.Pod](w.API), List[*corev1.Namespace](w.API))
}

// AddNode adds a node, for instance one that is only planned. A node of the
// same name is not replaced.
func (v *View) AddNode(n *corev1.Node) {
	if v.byName[n.Name] != nil {
		return
	}
	nv := newNodeView(n)
	v.byName[n.Name] = nv
	i, _ := slices.BinarySearchFunc(v.nodes, n.Name, func(o *nodeView, name string) int { return strings.Compare(o.node.Name, name) })
	v.nodes = slices.Insert(v.nodes, i, nv)
}

func newNodeView(n *corev1.Node) *nodeView {
	return &nodeView{node: n, allocatable: resources.From(n.Status.Allocatable), used: resources.List{}}
}

// Place puts the pod on the node of that name if it is feasible there. The
// error says why it is not.
func (v *View) Place(pod *corev1.Pod, node string) error {
	if ok, reason := v.Feasible(pod, node); !ok {
		return fmt.Errorf("pod %s on node %s: %s", KeyOf(pod), node, reason)
	}
	v.put(pod, v.byName[node])
	return nil
}

func (v *View) put(pod *corev1.Pod, n *nodeView) {
	n.pods = append(n.pods, pod)
	n.used = n.used.Plus(v.requestsOf(pod))
	n.ports = append(n.ports, hostPortsOf(pod)...)
	if len(requiredAnti(pod)) > 0 {
		v.withAnti = append(v.withAnti, placed{pod, n})
	}
}

// take takes off the node what put put on it.
func (v *View) take(pod *corev1.Pod, n *nodeView) {
	i := slices.Index(n.pods, pod)
	if i < 0 {
		return
	}
	n.pods = slices.Delete(n.pods, i, i+1)
	n.used = n.used.Minus(v.requestsOf(pod))
	n.ports = nil
	for _, p := range slices.Concat(n.pods, n.reserved) {
		n.ports = append(n.ports, hostPortsOf(p)...)
	}
	v.withAnti = slices.DeleteFunc(v.withAnti, func(o placed) bool { return o.pod == pod })
}

// reserve keeps room on the node for a pod that is not on it yet.
func (v *View) reserve(pod *corev1.Pod, n *nodeView) {
	n.reserved = append(n.reserved, pod)
	n.used = n.used.Plus(v.requestsOf(pod))
	n.ports = append(n.ports, hostPortsOf(pod)...)
	if len(requiredAnti(pod)) > 0 {
		v.withAnti = append(v.withAnti, placed{pod, n})
	}
}

func (v *View) requestsOf(pod *corev1.Pod) resources.List {
	r, ok := v.requests[pod]
	if !ok {
		r = requestsOf(pod)
		v.requests[pod] = r
	}
	return r
}

// selects says whether the selector, nil for none, picks the labels. A nil
// selector picks nothing; a malformed one too.
func selects(s *metav1.LabelSelector, have map[string]string) bool {
	sel, err := metav1.LabelSelectorAsSelector(s)
	return err == nil && sel.Matches(labels.Set(have))
}
