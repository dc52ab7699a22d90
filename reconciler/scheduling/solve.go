package scheduling

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/resources"
)

// problem is one call of Solve with everything compiled once for it.
type problem struct {
	in          Input
	fee         resources.Price
	dims        []corev1.ResourceName
	vectors     map[*cluster.Shape]vector
	anti        *antiAffinity
	matched     map[*cluster.Shape]bits
	unavailable map[string][]cluster.Unavailable
	daemons     []*daemon
	rooms       []*room
	pools       []*pool
	classes     []class
	groups      []*group
	nodes       []*node
	solvers     []string
	steps       int64
}

// Solve plans places for the pending pods of a snapshot. It fails only when
// the input is incomplete or the fleet's node fee is no price; whatever keeps a
// pod from getting a place is in the plan.
func Solve(in Input) (*Plan, error) {
	p, err := newProblem(in)
	if err != nil {
		return nil, fmt.Errorf("scheduling: %w", err)
	}
	if len(in.Snapshot.Pending) == 0 {
		return &Plan{}, nil
	}
	p.compile()
	p.fillRooms()
	p.openNodes()
	p.useSpare()
	return p.plan(), nil
}

var errNoInput = errors.New("a snapshot and a fleet are needed")

func newProblem(in Input) (*problem, error) {
	if in.Snapshot == nil || in.Fleet == nil {
		return nil, errNoInput
	}
	fee, err := resources.ParsePrice(cmp.Or(in.Fleet.Cluster.Engine.NodeFee.String(), "0"))
	if err != nil {
		return nil, fmt.Errorf("cluster engine nodeFee: %w", err)
	}
	if fee < 0 {
		return nil, fmt.Errorf("cluster engine nodeFee: %s is below zero", fee)
	}
	return &problem{
		in: in, fee: fee,
		vectors:     map[*cluster.Shape]vector{},
		matched:     map[*cluster.Shape]bits{},
		unavailable: map[string][]cluster.Unavailable{},
	}, nil
}

func (p *problem) compile() {
	p.compileParts()
	p.group(p.in.Snapshot.Pending)
	p.findConflicts()
}

// compileParts compiles everything but the pods.
func (p *problem) compileParts() {
	p.dims = dimensions(p.in.Snapshot)
	p.anti = newAntiAffinity(p.in.Snapshot)
	p.compileUnavailable()
	p.compileDaemons()
	p.compileRooms()
	p.compilePools()
}

func (p *problem) plan() *Plan {
	out := &Plan{Placements: p.placements(), Claims: p.claims(), Shapes: len(p.groups)}
	out.Unplaced = p.unplaced()
	slices.Sort(p.solvers)
	out.Solver = strings.Join(p.solvers, ", ")
	out.Steps = p.steps
	return out
}
