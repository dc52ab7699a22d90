package scheduling

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/requirements"
	"github.com/reeve-project/reeve/reconciler/resources"
)

// A group is pending pods that are the same to the engine: equal requests and
// equal hard rules, whatever their labels and owners. The search works on
// groups and counts, so that its effort does not grow with the number of
// replicas.
type group struct {
	index int
	shape *cluster.Shape
	req   vector
	// classes are the alternatives of the pod's label requirements, in order.
	classes []int
	barred  []string // by pool index the rule that keeps the pods off, or ""
	// owns and matches are the hostname anti-affinity terms that the pods have
	// and those that select them.
	owns, matches bits
	// conflicts are the groups that cannot share a node with this one; alone
	// says that two pods of the group cannot.
	conflicts bits
	alone     bool
	// reason and message are set when no placement may be tried.
	reason, message string
	// pods are oldest first; the first placed of them have a place. Places on
	// new nodes are reserved by count until the plan is final.
	pods             []*cluster.Pod
	placed, reserved int
	// cursor counts the choices (alternative by alternative, pool by pool)
	// that were tried.
	cursor int
}

func (g *group) left() int64 { return int64(len(g.pods) - g.placed - g.reserved) }

// take hands out the next n pods.
func (g *group) take(n int64) []*cluster.Pod {
	from := g.placed
	g.placed += int(n)
	return g.pods[from:g.placed:g.placed]
}

// A class is a set of label requirements that groups share, with the host
// ports among them that some daemon's ports conflict with.
type class struct {
	reqs  requirements.Set
	ports []cluster.HostPort
}

// grouper sorts pods into groups.
type grouper struct {
	*problem
	byShape map[*cluster.Shape]*group
	bySig   map[string]*group
	classAt map[string]int
	buf     []byte
}

// newGrouper shares its classes with other groupers of the problem that are
// given the same map.
func (p *problem) newGrouper(classAt map[string]int) *grouper {
	gr := &grouper{problem: p, byShape: map[*cluster.Shape]*group{}, bySig: map[string]*group{}, classAt: classAt}
	gr.class(class{})
	return gr
}

func (p *problem) group(pods []*cluster.Pod) {
	gr := p.newGrouper(map[string]int{})
	nominated := p.nominations()
	var last *cluster.Shape
	var g *group
	for _, pod := range pods {
		if pod.Shape != last {
			last, g = pod.Shape, gr.of(pod.Shape)
		}
		to := g
		if len(p.in.Exclusions.Pods) > 0 {
			to = gr.barredFrom(g, pod.Key())
		}
		if len(nominated) > 0 {
			if r := nominated[pod.Key()]; r != nil && p.keep(r, to, pod) {
				continue
			}
		}
		to.pods = append(to.pods, pod)
	}
	p.orderGroups()
}

// orderGroups puts groups in the order in which Karpenter takes pods from its
// queue (CPU, then memory, descending), pods of a group oldest first.
func (p *problem) orderGroups() {
	cpu, memory := slices.Index(p.dims, corev1.ResourceCPU), slices.Index(p.dims, corev1.ResourceMemory)
	slices.SortStableFunc(p.groups, func(a, b *group) int {
		return cmp.Or(compareAt(b.req, a.req, cpu), compareAt(b.req, a.req, memory))
	})
	for i, g := range p.groups {
		g.index = i
		byAge := func(a, b *cluster.Pod) int { return a.Created.Compare(b.Created) }
		if !slices.IsSortedFunc(g.pods, byAge) {
			slices.SortStableFunc(g.pods, byAge)
		}
	}
}

func compareAt(a, b vector, i int) int {
	if i < 0 {
		return 0
	}
	return cmp.Compare(a[i], b[i])
}

// of is the group of the pods of a shape that no pool is barred to.
func (gr *grouper) of(sh *cluster.Shape) *group {
	if g, ok := gr.byShape[sh]; ok {
		return g
	}
	draft := gr.draft(sh)
	g := gr.intern(draft, nil)
	gr.byShape[sh] = g
	return g
}

func (gr *grouper) draft(sh *cluster.Shape) *group {
	g := &group{shape: sh, req: gr.vectorOf(sh)}
	if msg := gr.unhandled(sh); msg != "" {
		g.reason, g.message = ReasonUnhandled, msg
		return g
	}
	g.owns, g.matches = gr.anti.owned(sh), gr.anti.matching(sh)
	if msg := gr.anti.repelled(sh); msg != "" {
		g.reason, g.message = ReasonUnhandled, msg
		return g
	}
	terms, err := requirements.PodTerms(sh.NodeSelector, sh.Affinity)
	switch {
	case errors.Is(err, requirements.ErrMatchFields):
		g.reason, g.message = ReasonUnhandled, "required node affinity with matchFields is not handled yet"
	case err != nil:
		g.reason, g.message = ReasonInvalid, err.Error()
	case len(terms) == 0:
		g.reason, g.message = ReasonRequirements, "required node affinity has no term that could match a node"
	}
	for _, t := range terms {
		g.classes = append(g.classes, gr.class(class{reqs: t, ports: gr.daemonConflicts(sh.HostPorts)}))
	}
	return g
}

// intern is the group with the draft's signature; the first draft with it
// becomes the group.
func (gr *grouper) intern(draft *group, barred []string) *group {
	gr.buf = signature(gr.buf[:0], draft, barred)
	if g, ok := gr.bySig[string(gr.buf)]; ok {
		return g
	}
	draft.barred = barred
	gr.bySig[string(gr.buf)] = draft
	gr.groups = append(gr.groups, draft)
	return draft
}

// barredFrom is the group of those pods of g that the same rules keep off the
// same pools.
func (gr *grouper) barredFrom(g *group, key string) *group {
	var barred []string
	for i, pl := range gr.pools {
		if rule := gr.in.Exclusions.Pods[pl.name][key]; rule != "" {
			if barred == nil {
				barred = make([]string, len(gr.pools))
			}
			barred[i] = rule
		}
	}
	if barred == nil {
		return g
	}
	split := *g
	split.pods = nil
	return gr.intern(&split, barred)
}

func (gr *grouper) class(c class) int {
	gr.buf = appendPorts(appendSet(gr.buf[:0], c.reqs), c.ports)
	if i, ok := gr.classAt[string(gr.buf)]; ok {
		return i
	}
	gr.classAt[string(gr.buf)] = len(gr.classes)
	gr.classes = append(gr.classes, c)
	return len(gr.classes) - 1
}

// signature is equal for groups whose pods are the same to the engine.
func signature(b []byte, g *group, barred []string) []byte {
	for _, x := range g.req {
		b = binary.AppendVarint(b, x)
	}
	b = binary.AppendVarint(b, int64(len(g.classes)))
	for _, c := range g.classes {
		b = binary.AppendVarint(b, int64(c))
	}
	for _, t := range g.shape.Tolerations {
		b = fmt.Appendf(b, "t%q%q%q%q", t.Key, t.Operator, t.Value, t.Effect)
	}
	b = appendPorts(b, g.shape.HostPorts)
	for _, set := range []bits{g.owns, g.matches} {
		b = append(b, 'b')
		for _, w := range set {
			b = binary.AppendUvarint(b, w)
		}
	}
	b = fmt.Appendf(b, "%q%q", g.reason, g.message)
	for _, rule := range barred {
		b = fmt.Appendf(b, "%q", rule)
	}
	return b
}

func appendPorts(b []byte, ports []cluster.HostPort) []byte {
	for _, h := range ports {
		b = fmt.Appendf(b, "p%q%d%q", h.IP, h.Port, h.Protocol)
	}
	return b
}

func appendSet(b []byte, s requirements.Set) []byte {
	for r := range s.All() {
		b = fmt.Appendf(b, "k%q%t%t", r.Key(), r.Complement(), r.AllowsAbsent())
		for _, v := range r.Values() {
			b = fmt.Appendf(b, "v%q", v)
		}
		lower, upper := r.Bounds()
		if lower != nil {
			b = fmt.Appendf(b, "l%d", *lower)
		}
		if upper != nil {
			b = fmt.Appendf(b, "u%d", *upper)
		}
	}
	return b
}

// dimensions are the resources that pods and daemons ask for.
func dimensions(s *cluster.Snapshot) []corev1.ResourceName {
	seen := map[corev1.ResourceName]bool{corev1.ResourcePods: true}
	visited := map[*cluster.Shape]bool{}
	add := func(sh *cluster.Shape) {
		if visited[sh] {
			return
		}
		visited[sh] = true
		for name, amount := range sh.Requests {
			if amount > 0 {
				seen[name] = true
			}
		}
	}
	var last *cluster.Shape
	for _, pod := range s.Pending {
		if pod.Shape != last {
			last = pod.Shape
			add(last)
		}
	}
	for _, d := range s.DaemonSets {
		add(d.Shape)
	}
	return slices.Sorted(maps.Keys(seen))
}

// vectorOf is what a pod of the shape asks for. Every pod takes one of
// "pods", whether or not its shape says so.
func (p *problem) vectorOf(sh *cluster.Shape) vector {
	if v, ok := p.vectors[sh]; ok {
		return v
	}
	v := toVector(p.dims, sh.Requests)
	i := slices.Index(p.dims, corev1.ResourcePods)
	v[i] = max(v[i], 1)
	p.vectors[sh] = v
	return v
}

// asked is what pods of the shape ask for as a list.
func asked(sh *cluster.Shape) resources.List {
	return sh.Requests.Max(resources.List{corev1.ResourcePods: 1})
}
