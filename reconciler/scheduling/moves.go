package scheduling

import (
	"fmt"
	"math"
	"slices"

	"github.com/reeve-project/reeve/reconciler/cluster"
)

// Moves are the questions that a Rearranger can be asked: which nodes might be
// taken away, and what then has to move.
type Moves struct {
	// Sources are the nodes that might be taken away.
	Sources []Source
	// Leaving are pods on nodes that are being removed already. They need
	// another place whatever is decided, in addition to the pending ones.
	Leaving []*cluster.Pod
	// Closed are the keys of nodes that take none of the sources' pods.
	Closed map[string]bool
}

// Source is a node that might be taken away.
type Source struct {
	// Node is the key of the node.
	Node string
	// Pods are those that then need another place.
	Pods []*cluster.Pod
}

// Rearranger answers what would become of pods if nodes were taken away. It is
// compiled once and asked often: an answer costs a scan over the nodes with
// room, not a plan. It is not safe for concurrent use.
type Rearranger struct {
	p       *problem
	sources []source
	// moved says, by group, whether its pods are the sources'; the others wait
	// in any case: base are those pods.
	moved []bool
	base  [][]*cluster.Pod
	// closed and rooms that have room for something, by room.
	closed []bool
	open   []int
	// admits is by group and room whether the node lets the pods in: 0 is not
	// known yet, 1 yes, 2 no.
	admits [][]byte
	// stuck is by group how many base pods find no place when nothing is taken
	// away, for want of limits or because no NodePool can take them.
	stuck  []int64
	limits []vector // left by pool, with nothing taken away
	t      trial
}

// source is a Source compiled.
type source struct {
	node   *cluster.Node
	room   int // -1 when it takes no pods
	shares []sourceShare
}

type sourceShare struct {
	g    *group
	pods []*cluster.Pod
}

// NewRearranger compiles a snapshot for questions about taking nodes away. It
// fails as Solve does, and on a source that is no node of the snapshot.
func NewRearranger(in Input, m Moves) (*Rearranger, error) {
	if in.Snapshot == nil {
		return nil, fmt.Errorf("scheduling: %w", errNoInput)
	}
	waiting := slices.Concat(in.Snapshot.Pending, m.Leaving)
	s := *in.Snapshot
	s.Pending = slices.Clone(waiting)
	for _, src := range m.Sources {
		s.Pending = append(s.Pending, src.Pods...)
	}
	in.Snapshot = &s
	p, err := newProblem(in)
	if err != nil {
		return nil, fmt.Errorf("scheduling: %w", err)
	}
	r := &Rearranger{p: p}
	p.compileParts()
	if err := r.group(waiting, m.Sources); err != nil {
		return nil, fmt.Errorf("scheduling: %w", err)
	}
	r.compileRooms(m.Closed)
	r.t.init(r)
	r.findStuck()
	return r, nil
}

// group sorts the pods into groups, the sources' apart from those that wait.
// Pods that an open decision planned for a node stay there while they fit.
func (r *Rearranger) group(waiting []*cluster.Pod, sources []Source) error {
	p := r.p
	classAt := map[string]int{}
	gr, nominated := p.newGrouper(classAt), p.nominations()
	for _, pod := range waiting {
		g := gr.ofPod(pod)
		if at := nominated[pod.Key()]; at == nil || !p.keep(at, g, pod) {
			g.pods = append(g.pods, pod)
		}
	}
	count := len(p.groups)
	gr = p.newGrouper(classAt)
	for _, s := range sources {
		n := p.in.Snapshot.Node(s.Node)
		if n == nil {
			return fmt.Errorf("source %q is no node of the snapshot", s.Node)
		}
		r.sources = append(r.sources, newSource(gr, n, s.Pods))
	}
	own := slices.Clone(p.groups[count:])
	p.orderGroups()
	p.findConflicts()
	r.moved = make([]bool, len(p.groups))
	for _, g := range own {
		r.moved[g.index] = true
	}
	for _, g := range p.groups {
		r.base = append(r.base, g.pods)
		g.pods = nil
	}
	return nil
}

// ofPod is the group of one pod.
func (gr *grouper) ofPod(pod *cluster.Pod) *group {
	g := gr.of(pod.Shape)
	if len(gr.in.Exclusions.Pods) > 0 {
		g = gr.barredFrom(g, pod.Key())
	}
	return g
}

func newSource(gr *grouper, n *cluster.Node, pods []*cluster.Pod) source {
	out := source{node: n, room: -1}
	for _, pod := range pods {
		g := gr.ofPod(pod)
		at := slices.IndexFunc(out.shares, func(s sourceShare) bool { return s.g == g })
		if at < 0 {
			at = len(out.shares)
			out.shares = append(out.shares, sourceShare{g: g})
		}
		out.shares[at].pods = append(out.shares[at].pods, pod)
	}
	return out
}

// compileRooms finds the nodes that have room for a pod of some group.
func (r *Rearranger) compileRooms(closed map[string]bool) {
	p := r.p
	at := make(map[*cluster.Node]int, len(p.rooms))
	var least vector
	for _, g := range p.groups {
		if least == nil {
			least = slices.Clone(g.req)
		}
		for d, x := range g.req {
			least[d] = min(least[d], x)
		}
	}
	for i, room := range p.rooms {
		at[room.node] = i
		r.closed = append(r.closed, closed[room.node.Key()])
		if least != nil && least.timesIn(room.left) > 0 {
			r.open = append(r.open, i)
		}
	}
	for i := range r.sources {
		if k, ok := at[r.sources[i].node]; ok {
			r.sources[i].room = k
		}
	}
	r.admits = make([][]byte, len(p.groups))
	for i := range r.admits {
		r.admits[i] = make([]byte, len(p.rooms))
	}
	for _, pl := range p.pools {
		var left vector
		if pl.limits != nil {
			left = slices.Clone(pl.limits.left)
		}
		r.limits = append(r.limits, left)
	}
	r.liftLimits()
}

// liftLimits lets types be compiled as if there were no limits: taking a node
// away gives some of them back, so they are tested on each answer.
func (r *Rearranger) liftLimits() {
	for _, pl := range r.p.pools {
		if pl.limits == nil {
			continue
		}
		for d := range pl.limits.left {
			pl.limits.left[d] = math.MaxInt64
		}
	}
}

// Steps is the effort spent so far.
func (r *Rearranger) Steps() int64 { return r.p.steps }
