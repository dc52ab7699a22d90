package scheduling

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/reeve-project/reeve/reconciler/cluster"
)

// unhandled names the first hard rule of the shape that the engine does not
// handle, or is empty.
func (p *problem) unhandled(sh *cluster.Shape) string {
	for _, c := range sh.Spread {
		if c.WhenUnsatisfiable == corev1.DoNotSchedule {
			return fmt.Sprintf("topology spread over %s with DoNotSchedule is not handled yet", c.TopologyKey)
		}
	}
	switch {
	case len(sh.Claims) > 0:
		return fmt.Sprintf("persistent volume claim %s: volumes are not handled yet", sh.Claims[0])
	case len(sh.Ephemeral) > 0:
		return "generic ephemeral volumes are not handled yet"
	case len(sh.Resources) > 0:
		return fmt.Sprintf("resource claim %s: dynamic resource allocation is not handled yet", sh.Resources[0])
	case sh.Affinity == nil:
		return ""
	}
	if a := sh.Affinity.PodAffinity; a != nil && len(a.RequiredDuringSchedulingIgnoredDuringExecution) > 0 {
		return fmt.Sprintf("required pod affinity over %s is not handled yet", a.RequiredDuringSchedulingIgnoredDuringExecution[0].TopologyKey)
	}
	for _, t := range requiredAnti(sh) {
		if why := unhandledTerm(t); why != "" {
			return "required pod anti-affinity " + why + " is not handled yet"
		}
	}
	return ""
}

func unhandledTerm(t corev1.PodAffinityTerm) string {
	switch {
	case t.TopologyKey != corev1.LabelHostname:
		return "over " + t.TopologyKey
	case t.NamespaceSelector != nil && !isEmpty(t.NamespaceSelector):
		return "with a namespace selector"
	case len(t.MatchLabelKeys)+len(t.MismatchLabelKeys) > 0:
		return "with label keys to match"
	default:
		return ""
	}
}

func isEmpty(s *metav1.LabelSelector) bool {
	return len(s.MatchLabels)+len(s.MatchExpressions) == 0
}

func requiredAnti(sh *cluster.Shape) []corev1.PodAffinityTerm {
	if sh.Affinity == nil || sh.Affinity.PodAntiAffinity == nil {
		return nil
	}
	return sh.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

// antiTerm is one required anti-affinity term with the namespaces it looks at.
type antiTerm struct {
	key        string
	namespaces []string // nil means all
	selector   labels.Selector
	topology   string
	owner      string // a pod that has it, for messages
	existing   bool   // some pod on a node has it
	unhandled  string
}

// selects says whether pods of the shape are what the term keeps away from. A
// namespace selector is taken to match every namespace: the snapshot does not
// know their labels, and the error is towards leaving a pod pending.
func (t *antiTerm) selects(sh *cluster.Shape) bool {
	return (t.namespaces == nil || slices.Contains(t.namespaces, sh.Namespace)) && t.selector.Matches(labels.Set(sh.Labels))
}

// antiAffinity holds all required anti-affinity terms of the snapshot.
type antiAffinity struct {
	terms   []*antiTerm
	byKey   map[string]int
	byShape map[*cluster.Shape][]int
}

// newAntiAffinity collects the terms of pending and bound pods.
func newAntiAffinity(s *cluster.Snapshot) *antiAffinity {
	a := &antiAffinity{byKey: map[string]int{}, byShape: map[*cluster.Shape][]int{}}
	for _, n := range s.Nodes {
		for _, pod := range n.Pods {
			a.add(pod, true)
		}
	}
	for _, pod := range s.Pending {
		a.add(pod, false)
	}
	return a
}

func (a *antiAffinity) add(pod *cluster.Pod, existing bool) {
	required := requiredAnti(pod.Shape)
	if len(required) == 0 {
		return
	}
	ids, known := a.byShape[pod.Shape]
	if !known {
		for _, t := range required {
			ids = append(ids, a.intern(newAntiTerm(pod, t)))
		}
		a.byShape[pod.Shape] = ids
	}
	if existing {
		for _, id := range ids {
			a.terms[id].existing = true
		}
	}
}

func (a *antiAffinity) intern(t *antiTerm) int {
	if id, ok := a.byKey[t.key]; ok {
		return id
	}
	a.byKey[t.key] = len(a.terms)
	a.terms = append(a.terms, t)
	return len(a.terms) - 1
}

func newAntiTerm(pod *cluster.Pod, t corev1.PodAffinityTerm) *antiTerm {
	out := &antiTerm{topology: t.TopologyKey, owner: pod.Key(), unhandled: unhandledTerm(t)}
	switch {
	case t.NamespaceSelector != nil:
	case len(t.Namespaces) > 0:
		out.namespaces = slices.Sorted(slices.Values(t.Namespaces))
	default:
		out.namespaces = []string{pod.Namespace}
	}
	selector, err := metav1.LabelSelectorAsSelector(t.LabelSelector)
	if err != nil {
		// The API server refuses such a selector; matching everything can only
		// leave pods pending.
		selector = labels.Everything()
	}
	out.selector = selector
	out.key = fmt.Sprintf("%q %t %q %q %q", out.namespaces, out.namespaces == nil, selector.String(), t.TopologyKey, out.unhandled)
	return out
}

// owned are the hostname terms of the shape; nil when there are none.
func (a *antiAffinity) owned(sh *cluster.Shape) bits {
	var out bits
	for _, id := range a.byShape[sh] {
		if out == nil {
			out = newBits(len(a.terms))
		}
		out.set(id)
	}
	return out
}

// matching are the hostname terms that select pods of the shape.
func (a *antiAffinity) matching(sh *cluster.Shape) bits {
	var out bits
	for id, t := range a.terms {
		if t.topology == corev1.LabelHostname && t.selects(sh) {
			if out == nil {
				out = newBits(len(a.terms))
			}
			out.set(id)
		}
	}
	return out
}

// repelled says which bound pod keeps pods of the shape away from more than
// its own node, which the engine cannot reckon with yet.
func (a *antiAffinity) repelled(sh *cluster.Shape) string {
	for _, t := range a.terms {
		if t.existing && t.topology != corev1.LabelHostname && t.selects(sh) {
			return fmt.Sprintf("required pod anti-affinity over %s of pod %s selects the pod, which is not handled yet", t.topology, t.owner)
		}
	}
	return ""
}

func (b bits) meets(o bits) bool {
	if b == nil || o == nil {
		return false
	}
	for i, w := range b {
		if w&o[i] != 0 {
			return true
		}
	}
	return false
}

// findConflicts works out which groups cannot share a node.
func (p *problem) findConflicts() {
	for _, a := range p.groups {
		if a.owns == nil && len(a.shape.HostPorts) == 0 {
			continue
		}
		for _, b := range p.groups {
			if inConflict(a, b) {
				a.conflictsWith(b, len(p.groups))
				b.conflictsWith(a, len(p.groups))
			}
		}
	}
}

func (g *group) conflictsWith(o *group, groups int) {
	if g.conflicts == nil {
		g.conflicts = newBits(groups)
	}
	g.conflicts.set(o.index)
	g.alone = g.alone || g == o
}

func inConflict(a, b *group) bool {
	return a.owns.meets(b.matches) || b.owns.meets(a.matches) || portsConflict(a.shape.HostPorts, b.shape.HostPorts)
}

func portsConflict(a, b []cluster.HostPort) bool {
	for _, x := range a {
		if slices.ContainsFunc(b, x.Conflicts) {
			return true
		}
	}
	return false
}

// ephemeral are the taints that a node carries only while it starts
// (Karpenter, pkg/scheduling/taints.go).
var ephemeral = []corev1.Taint{
	{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoExecute},
	{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoSchedule},
	{Key: "node.cloudprovider.kubernetes.io/uninitialized", Effect: corev1.TaintEffectNoSchedule},
	{Key: "karpenter.sh/unregistered", Effect: corev1.TaintEffectNoExecute},
}

// readinessPrefix is the family of taints that the node readiness controller
// puts on nodes that start.
const readinessPrefix = "readiness.k8s.io/"

func isEphemeral(t *corev1.Taint) bool {
	return strings.HasPrefix(t.Key, readinessPrefix) ||
		slices.ContainsFunc(ephemeral, func(e corev1.Taint) bool { return e.MatchTaint(t) })
}

// untolerated is the first taint that keeps a pod with the tolerations off, or
// nil. PreferNoSchedule is a wish and keeps nobody off.
func untolerated(taints []corev1.Taint, tolerations []corev1.Toleration) *corev1.Taint {
	for i := range taints {
		if t := &taints[i]; t.Effect != corev1.TaintEffectPreferNoSchedule && !tolerated(t, tolerations) {
			return t
		}
	}
	return nil
}

func tolerated(t *corev1.Taint, tolerations []corev1.Toleration) bool {
	return slices.ContainsFunc(tolerations, func(o corev1.Toleration) bool {
		if (o.Effect != "" && o.Effect != t.Effect) || (o.Key != "" && o.Key != t.Key) {
			return false
		}
		switch o.Operator {
		case corev1.TolerationOpExists:
			return true
		case corev1.TolerationOpEqual, "":
			return o.Value == t.Value
		default:
			return false
		}
	})
}
