package scheduling

import (
	"fmt"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/resources"
)

// limits is what a NodePool may still grow by.
type limits struct {
	names []corev1.ResourceName
	limit vector
	left  vector // limit less capacity of all nodes and of planned claims
}

// newLimits reads a pool's limits and takes off all its nodes: those on their
// way and those being deleted count as well, since they exist.
func (p *problem) newLimits(np *karpv1.NodePool) *limits {
	l := &limits{}
	list := resources.From(corev1.ResourceList(np.Spec.Limits))
	l.names = list.Names()
	l.limit = toVector(l.names, list)
	l.left = slices.Clone(l.limit)
	if len(l.names) == 0 {
		return l
	}
	for _, n := range p.in.Snapshot.Nodes {
		if poolOf(n) == np.Name {
			l.left.addTimes(l.of(p.capacity(n)), -1)
		}
	}
	return l
}

func poolOf(n *cluster.Node) string {
	if n.Claim != nil {
		return n.Claim.NodePool
	}
	return n.Labels[nodePoolLabel]
}

// capacity of a node; of a claim that was not launched yet it is that of its
// type, or at the least what it was made for.
func (p *problem) capacity(n *cluster.Node) resources.List {
	if n.Claim == nil {
		return n.Capacity
	}
	claimed := n.Claim.Capacity
	if len(claimed) == 0 {
		claimed = n.Claim.Requests
		if it := p.typeOf(n.Claim); it != nil {
			claimed = it.Capacity
		}
	}
	if len(n.Capacity) == 0 {
		return claimed
	}
	out := n.Capacity.Clone()
	for name, amount := range claimed {
		if out[name] == 0 {
			out[name] = amount
		}
	}
	return out
}

// resourceNodes is the limit on the number of nodes.
const resourceNodes corev1.ResourceName = "nodes"

// of is what a node of the capacity uses of the limits.
func (l *limits) of(capacity resources.List) vector {
	if len(l.names) == 0 {
		return nil
	}
	out := toVector(l.names, capacity)
	if i := slices.Index(l.names, resourceNodes); i >= 0 {
		out[i] = 1
	}
	return out
}

// message says which limits leave no room for a node that uses as much.
func (l *limits) message(use vector) string {
	var parts []string
	for i, name := range l.names {
		if use[i] <= l.left[i] {
			continue
		}
		if name == resourceNodes {
			parts = append(parts, fmt.Sprintf("node limits have been exhausted (limit %d)", l.limit[i]))
			continue
		}
		limit, left, needs := resources.Quantity(name, l.limit[i]), resources.Quantity(name, max(l.left[i], 0)), resources.Quantity(name, use[i])
		parts = append(parts, fmt.Sprintf("limit of %s %s leaves %s, the smallest type that fits has %s", limit.String(), name, left.String(), needs.String()))
	}
	return strings.Join(parts, "; ")
}

// penalty makes the search spare what the limits are short of. A nil penalty
// costs nothing.
type penalty struct {
	limit vector
	// whole is the nano-USD/h that using a limit up would cost.
	whole vector
}

// Bits of a share of a whole.
const shareBits = 16

// shareOf is x as a share of a whole, in units of 1/2^shareBits.
func shareOf(x, whole int64) int64 {
	for x >= 1<<(62-shareBits) {
		x, whole = x>>shareBits, whole>>shareBits
	}
	return x << shareBits / max(whole, 1)
}

func (q *penalty) of(use vector) resources.Price {
	if q == nil {
		return 0
	}
	var sum int64
	for i, x := range use {
		sum += shareOf(min(x, q.limit[i]), q.limit[i]) * q.whole[i] >> shareBits
	}
	return resources.Price(sum)
}

// mostWhole keeps the product of a share and a penalty within an int64.
const mostWhole = math.MaxInt64 >> (shareBits + 4)

// raise makes what the solution needs too much of dearer: at first by as much
// as the solution costs, then four times as much each time.
func (q *penalty) raise(l *limits, s *solution) {
	for i, n := range l.need(s) {
		if n <= l.left[i] {
			continue
		}
		start := min(int64(s.cost)/max(shareOf(n, l.limit[i]), 1), mostWhole>>shareBits)<<shareBits + 1
		q.whole[i] = min(max(q.whole[i]*4, start), mostWhole)
	}
}
