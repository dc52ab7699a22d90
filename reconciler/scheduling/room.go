package scheduling

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/requirements"
	"github.com/reeve-project/reeve/reconciler/resources"
)

// room is a node that exists or is on its way, with what is free on it.
type room struct {
	node   *cluster.Node
	labels requirements.Set
	taints []corev1.Taint
	left   vector
	ports  []cluster.HostPort
	// owned and matched are the anti-affinity terms that pods on the node have
	// and those that select pods on it.
	owned, matched bits
	// undefined accepts labels that a claim will get only with its launch; it
	// is nil for a node, which has all its labels.
	undefined func(string) bool
	admits    map[int]bool // by class
	pods      []*cluster.Pod
}

// compileRooms lists the nodes that may take pods, initialized ones first, then
// by name (Karpenter: scheduler.go, calculateExistingNodeClaims).
func (p *problem) compileRooms() {
	for _, n := range p.in.Snapshot.Nodes {
		if n.Deleting || n.Removing != "" {
			continue
		}
		if r := p.newRoom(n); r != nil {
			p.rooms = append(p.rooms, r)
		}
	}
	slices.SortStableFunc(p.rooms, func(a, b *room) int {
		return cmp.Or(-cmp.Compare(b2i(a.node.Initialized()), b2i(b.node.Initialized())), cmp.Compare(a.node.Key(), b.node.Key()))
	})
}

func (p *problem) newRoom(n *cluster.Node) *room {
	allocatable := p.allocatable(n)
	if allocatable.IsZero() {
		return nil
	}
	r := &room{node: n, taints: schedulingTaints(n), left: toVector(p.dims, allocatable), admits: map[int]bool{}}
	r.labels, r.undefined = nodeLabels(n)
	for _, pod := range n.Pods {
		r.left.addTimes(p.vectorOf(pod.Shape), -1)
		r.ports = append(r.ports, pod.Shape.HostPorts...)
		r.hold(p.anti.owned(pod.Shape), p.matching(pod.Shape))
	}
	for _, d := range p.daemons {
		if !d.isOn(n) && d.runsOn(r.labels, r.taints, r.undefined) {
			r.left.addTimes(d.req, -1)
			r.ports = append(r.ports, d.set.Shape.HostPorts...)
		}
	}
	return r
}

// matching remembers the terms that select pods of a shape.
func (p *problem) matching(sh *cluster.Shape) bits {
	if len(p.anti.terms) == 0 {
		return nil
	}
	if m, ok := p.matched[sh]; ok {
		return m
	}
	m := p.anti.matching(sh)
	p.matched[sh] = m
	return m
}

func (r *room) hold(owned, matched bits) {
	r.owned, r.matched = or(r.owned, owned), or(r.matched, matched)
}

func or(a, b bits) bits {
	if b == nil {
		return a
	}
	out := slices.Clone(b)
	for i, w := range a {
		out[i] |= w
	}
	return out
}

// allocatable is what pods may use. While a node starts, the claim's word fills
// in what the node does not report yet; a claim that was not launched yet has
// room for what it was made for only.
func (p *problem) allocatable(n *cluster.Node) resources.List {
	out := n.Allocatable
	if n.Claim == nil || n.Initialized() {
		return out
	}
	expected := n.Claim.Allocatable
	if len(expected) == 0 {
		expected = n.Claim.Requests
		if it := p.typeOf(n.Claim); it != nil {
			expected = it.Allocatable
		}
	}
	out = out.Clone()
	for name, amount := range expected {
		if out[name] == 0 {
			out[name] = amount
		}
	}
	return out
}

// typeOf is the instance type of a claim, or nil while it is not known.
func (p *problem) typeOf(c *cluster.Claim) *catalog.InstanceType {
	if c.InstanceType == "" {
		return nil
	}
	for _, it := range p.in.Types[c.NodeClass] {
		if it.Name == c.InstanceType {
			return it
		}
	}
	return nil
}

// schedulingTaints are the taints that count for pods. Until a node of ours is
// initialized, its startup taints and those of a starting node are left out:
// they are expected to go (Karpenter: state/statenode.go, Taints).
func schedulingTaints(n *cluster.Node) []corev1.Taint {
	if n.Claim == nil {
		return n.Taints
	}
	taints := n.Taints
	if !n.Claim.Conditions.Registered {
		taints = n.Claim.Taints
	}
	if n.Initialized() {
		return taints
	}
	var out []corev1.Taint
	for i := range taints {
		t := &taints[i]
		startup := slices.ContainsFunc(n.Claim.StartupTaints, func(s corev1.Taint) bool { return s.MatchTaint(t) })
		if !startup && !isEphemeral(t) {
			out = append(out, *t)
		}
	}
	return out
}

// nodeLabels are the labels of a node. A claim that has not registered lends
// its own, with what its launch fixed; before the launch well-known labels may
// still be open.
func nodeLabels(n *cluster.Node) (requirements.Set, func(string) bool) {
	c := n.Claim
	if c == nil || c.Conditions.Registered {
		return requirements.FromLabels(n.Labels), nil
	}
	labels := make(map[string]string, len(c.Labels)+4)
	for key, v := range map[string]string{
		corev1.LabelInstanceTypeStable: c.InstanceType,
		corev1.LabelTopologyZone:       c.Zone,
		capacityTypeLabel:              c.CapacityType,
		nodePoolLabel:                  c.NodePool,
	} {
		if v != "" {
			labels[key] = v
		}
	}
	for key, v := range c.Labels {
		labels[key] = v
	}
	if c.Conditions.Launched {
		return requirements.FromLabels(labels), nil
	}
	return requirements.FromLabels(labels), requirements.WellKnown
}

// nominations are the rooms by the keys of the pods that are meant for them.
func (p *problem) nominations() map[string]*room {
	var out map[string]*room
	for _, r := range p.rooms {
		for _, key := range r.node.Nominated {
			if out == nil {
				out = map[string]*room{}
			}
			if _, twice := out[key]; !twice {
				out[key] = r
			}
		}
	}
	return out
}

// keep leaves a pod on the node it is nominated to, if it still fits there.
func (p *problem) keep(r *room, g *group, pod *cluster.Pod) bool {
	if g.reason != "" || !p.roomAdmits(r, g, r.undefined) || r.times(g) == 0 {
		return false
	}
	r.place(g, 1, []*cluster.Pod{pod})
	return true
}

// fillRooms puts as many pods as fit onto the nodes there are.
func (p *problem) fillRooms() {
	for _, g := range p.groups {
		if g.reason != "" {
			continue
		}
		for _, r := range p.rooms {
			if g.left() == 0 {
				break
			}
			p.steps++
			if n := min(r.times(g), g.left()); n > 0 && p.roomAdmits(r, g, nil) {
				r.place(g, n, g.take(n))
			}
		}
	}
}

// times is how many pods of the group the node has room for, rules about other
// pods on the node included.
func (r *room) times(g *group) int64 {
	n := g.req.timesIn(r.left)
	if n == 0 || g.owns.meets(r.matched) || g.matches.meets(r.owned) || portsConflict(g.shape.HostPorts, r.ports) {
		return 0
	}
	if g.owns.meets(g.matches) || portsConflict(g.shape.HostPorts, g.shape.HostPorts) {
		return 1
	}
	return n
}

// roomAdmits says whether taints and labels of the node let the group in.
func (p *problem) roomAdmits(r *room, g *group, undefined func(string) bool) bool {
	if untolerated(r.taints, g.shape.Tolerations) != nil {
		return false
	}
	return slices.ContainsFunc(g.classes, func(c int) bool {
		if undefined != nil {
			return r.labels.IsCompatible(p.classes[c].reqs, undefined)
		}
		ok, known := r.admits[c]
		if !known {
			ok = r.labels.IsCompatible(p.classes[c].reqs, nil)
			r.admits[c] = ok
		}
		return ok
	})
}

func (r *room) place(g *group, n int64, pods []*cluster.Pod) {
	r.left.addTimes(g.req, -n)
	r.ports = append(r.ports, g.shape.HostPorts...)
	r.hold(g.owns, g.matches)
	r.pods = append(r.pods, pods...)
}

// placements are the pods that found room, by node.
func (p *problem) placements() []Placement {
	var out []Placement
	for _, r := range p.rooms {
		if len(r.pods) > 0 {
			out = append(out, Placement{Node: r.node.Key(), Pods: r.pods})
		}
	}
	slices.SortFunc(out, func(a, b Placement) int { return cmp.Compare(a.Node, b.Node) })
	return out
}
