package disruption

import (
	"cmp"
	"fmt"
	"math/rand"
	"slices"
	"testing"

	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/resources"
)

// prefixes looks for a command as Karpenter does: it halves the length of a
// prefix of the nodes by price per disruption, places their pods first on the
// nodes that stay and then on one new node. It is written from the description
// of that behaviour, for one NodePool without constraints.
type prefixes struct {
	in    Input
	nodes []*cluster.Node
}

func (p *prefixes) savings() resources.Price {
	p.nodes = slices.Clone(p.in.Snapshot.Nodes)
	cost := func(n *cluster.Node) int64 { return int64(1 + len(n.Pods)) }
	slices.SortStableFunc(p.nodes, func(a, b *cluster.Node) int {
		return cmp.Compare(int64(b.Claim.Price)*cost(a), int64(a.Claim.Price)*cost(b))
	})
	best, low, high := resources.Price(0), 1, min(len(p.nodes)-1, 99)
	for low <= high {
		mid := (low + high) / 2
		if saved, ok := p.remove(mid + 1); ok {
			best, low = saved, mid+1
			continue
		}
		high = mid - 1
	}
	return best
}

func (p *prefixes) remove(n int) (resources.Price, bool) {
	var old resources.Price
	var pods []*cluster.Pod
	left := map[string]resources.List{}
	var stay []string
	names := map[string]resources.Price{}
	for i, node := range p.nodes {
		if i < n {
			old += node.Claim.Price
			pods = append(pods, node.Pods...)
			names[node.Claim.InstanceType] = node.Claim.Price
			continue
		}
		free := node.Allocatable.Clone()
		for _, pod := range node.Pods {
			free = free.Minus(pod.Shape.Requests)
		}
		left[node.Name] = free
		stay = append(stay, node.Name)
	}
	slices.Sort(stay)
	slices.SortStableFunc(pods, func(a, b *cluster.Pod) int {
		return cmp.Or(cmp.Compare(b.Shape.Requests["cpu"], a.Shape.Requests["cpu"]), cmp.Compare(b.Shape.Requests["memory"], a.Shape.Requests["memory"]))
	})
	rest := resources.List{}
	for _, pod := range pods {
		at := slices.IndexFunc(stay, func(name string) bool { return pod.Shape.Requests.Fits(left[name]) })
		if at < 0 {
			rest = rest.Plus(pod.Shape.Requests)
			continue
		}
		left[stay[at]] = left[stay[at]].Minus(pod.Shape.Requests)
	}
	if rest.IsZero() {
		return old, true
	}
	limit := old
	for _, it := range p.in.Types["default"] {
		if same, ok := names[it.Name]; ok && rest.Fits(it.Allocatable) && same < old {
			limit = min(limit, same)
		}
	}
	price, ok := cheapestFor(p.in.Types["default"], rest)
	return old - price, ok && price < limit
}

func TestACommandSavesNoLessThanThePrefixSearch(t *testing.T) {
	more, equal := 0, 0
	for seed := range int64(300) {
		w := world{rand.New(rand.NewSource(seed))}
		np := nodePool("default", onDemand())
		types := commonTypes()
		var nodes []*cluster.Node
		for i := range 2 + w.Intn(pick(w, 8, 25, 40)) {
			it := pick(w, types...)
			n := nodeOf(fmt.Sprintf("n%02d", i), np, it, "a", "on-demand", nil)
			used := resources.List{}
			for k := range 1 + w.Intn(10) {
				size := resources.List{"cpu": pick(w, int64(200), 500, 1000, 3000), "memory": pick(w, gib/4, gib/2, gib), "pods": 1}
				if used.Plus(size).Fits(it.Allocatable) {
					used = used.Plus(size)
					pod := podsOf(fmt.Sprintf("app-%d-%d", size["cpu"], size["memory"]), 1, size.Minus(resources.List{"pods": 1}))[0]
					pod.Name = fmt.Sprintf("p-%02d-%02d", i, k)
					n.Pods = append(n.Pods, pod)
				}
			}
			if len(n.Pods) > 0 {
				nodes = append(nodes, n)
			}
		}
		in := input(types, nodes, np)
		in.Snapshot.DaemonSets = nil
		want := (&prefixes{in: in}).savings()
		cmd, _ := propose(t, in)
		var got resources.Price
		if cmd != nil {
			got = cmd.Savings
		}
		switch {
		case got < want:
			t.Errorf("seed %d: the command saves %s, the best prefix %s", seed, got, want)
		case got > want:
			more++
		default:
			equal++
		}
	}
	t.Logf("more is saved %d times, as much %d times", more, equal)
	if more < 150 {
		t.Errorf("more is saved only %d times", more)
	}
}

// With few nodes all sets are tried, so what is found is the best there is.
func TestFewNodesAreSearchedInFull(t *testing.T) {
	for seed := range int64(60) {
		w := world{rand.New(rand.NewSource(seed))}
		in := w.input()
		if len(in.Snapshot.Nodes) > exhaustive {
			continue
		}
		p, err := newPass(in)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.compile(); err != nil {
			t.Fatal(err)
		}
		all := &search{tries: p.tries}
		best := all.run()
		s := &search{tries: p.tries, until: 1 << 62}
		for i := range p.tries.nodes {
			s.all = append(s.all, i)
		}
		s.prefixes()
		s.deletions()
		s.packings()
		s.climb()
		if len(s.best) > 0 && s.best[0].better(best) {
			t.Errorf("seed %d: the heuristics find %v, all sets only %v", seed, s.best[0].names(), best.names())
		}
	}
}
