package scheduling

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/requirements"
	"github.com/reeve-project/reeve/reconciler/resources"
)

// daemon is a DaemonSet with its label requirements as alternatives.
type daemon struct {
	set   *cluster.DaemonSet
	terms []requirements.Set
	req   vector
}

func (p *problem) compileDaemons() {
	for _, d := range p.in.Snapshot.DaemonSets {
		terms, err := requirements.PodTerms(d.Shape.NodeSelector, d.Shape.Affinity)
		if err != nil {
			// Counting it everywhere can only make nodes larger than needed.
			terms = []requirements.Set{{}}
		}
		p.daemons = append(p.daemons, &daemon{set: d, terms: terms, req: p.vectorOf(d.Shape)})
	}
}

// daemonConflicts are those of the ports that some daemon's ports conflict
// with; only they make a difference between the instance types of a pool.
func (p *problem) daemonConflicts(ports []cluster.HostPort) []cluster.HostPort {
	var out []cluster.HostPort
	for _, h := range ports {
		for _, d := range p.daemons {
			if slices.ContainsFunc(d.set.Shape.HostPorts, h.Conflicts) {
				out = append(out, h)
				break
			}
		}
	}
	return out
}

// overhead is what the daemons of one group of instance types take.
type overhead struct {
	sum   vector
	list  resources.List
	ports []cluster.HostPort
}

// overheads gives each instance type of a pool its overhead; types with the
// same daemons share one (Karpenter: DaemonOverheadGroup).
type overheads struct {
	*problem
	// candidates are the daemons that may run on the pool's nodes, with those
	// alternatives that the template allows.
	candidates []daemon
	byMask     map[string]*overhead
	mask       []byte
}

func (p *problem) newOverheads(template requirements.Set, taints []corev1.Taint) *overheads {
	out := &overheads{problem: p, byMask: map[string]*overhead{}}
	for _, d := range p.daemons {
		if untolerated(taints, d.set.Shape.Tolerations) != nil {
			continue
		}
		var terms []requirements.Set
		for _, t := range d.terms {
			if template.IsCompatible(t, requirements.WellKnown) {
				terms = append(terms, t)
			}
		}
		if len(terms) > 0 {
			out.candidates = append(out.candidates, daemon{set: d.set, terms: terms, req: d.req})
		}
	}
	return out
}

func (o *overheads) of(it *catalog.InstanceType) *overhead {
	o.mask = o.mask[:0]
	for i := range o.candidates {
		runs := slices.ContainsFunc(o.candidates[i].terms, func(t requirements.Set) bool { return offers(it.Requirements, t) })
		o.mask = append(o.mask, b2i(runs))
	}
	if known, ok := o.byMask[string(o.mask)]; ok {
		return known
	}
	out := &overhead{sum: make(vector, len(o.dims)), list: resources.List{}}
	for i, runs := range o.mask {
		if runs == 1 {
			d := &o.candidates[i]
			out.sum.addTimes(d.req, 1)
			out.list = out.list.Plus(asked(d.set.Shape))
			out.ports = append(out.ports, d.set.Shape.HostPorts...)
		}
	}
	o.byMask[string(o.mask)] = out
	return out
}

func b2i(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// offers says whether what has labels can meet all that is asked for; labels
// it does not mention are no obstacle.
func offers(has, wanted requirements.Set) bool {
	for r := range wanted.All() {
		if h, ok := has.Lookup(r.Key()); ok && !h.Meets(r) {
			return false
		}
	}
	return true
}

// runsOn says whether the daemon has, or will get, a pod on a node. The
// DaemonSet controller adds tolerations for the node conditions, so those
// taints do not count.
func (d *daemon) runsOn(labels requirements.Set, taints []corev1.Taint, undefined func(string) bool) bool {
	for i := range taints {
		if strings.HasPrefix(taints[i].Key, "node.kubernetes.io/") {
			continue
		}
		if untolerated(taints[i:i+1], d.set.Shape.Tolerations) != nil {
			return false
		}
	}
	return slices.ContainsFunc(d.terms, func(t requirements.Set) bool { return labels.IsCompatible(t, undefined) })
}

// isOn says whether a pod of the daemon is bound to the node already.
func (d *daemon) isOn(n *cluster.Node) bool {
	return slices.ContainsFunc(n.Pods, func(pod *cluster.Pod) bool {
		return pod.Namespace == d.set.Namespace && pod.Shape.Owner.Kind == "DaemonSet" && pod.Shape.Owner.Name == d.set.Name
	})
}
