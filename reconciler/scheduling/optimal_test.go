package scheduling

import (
	"container/heap"
	"encoding/json"
	"fmt"
	"math"
	"math/rand"
	"testing"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/resources"
)

// The covering problem as a shortest path: from no pod placed to all placed,
// each edge one more node. It shares nothing with the engine's table.

type reached struct {
	pods, nodes int64
	price       resources.Price
}

type frontier []reached

func (f frontier) Len() int { return len(f) }
func (f frontier) Less(i, j int) bool {
	if f[i].price != f[j].price {
		return f[i].price < f[j].price
	}
	return f[i].nodes < f[j].nodes
}
func (f frontier) Swap(i, j int) { f[i], f[j] = f[j], f[i] }
func (f *frontier) Push(x any)   { *f = append(*f, x.(reached)) }
func (f *frontier) Pop() any {
	old := *f
	x := old[len(old)-1]
	*f = old[:len(old)-1]
	return x
}

// cheapestCover is the least price, and with it the fewest nodes, at which n
// pods fit on nodes of the types.
func cheapestCover(n int64, request resources.List, types []*catalog.InstanceType, fee resources.Price) (resources.Price, int64) {
	done := make([]bool, n+1)
	f := &frontier{{}}
	for f.Len() > 0 {
		at := heap.Pop(f).(reached)
		if done[at.pods] {
			continue
		}
		done[at.pods] = true
		if at.pods == n {
			return at.price, at.nodes
		}
		for _, it := range types {
			price, ok := onDemandPrice(it)
			holds := int64(math.MaxInt64)
			for name, x := range request {
				holds = min(holds, it.Allocatable[name]/x)
			}
			if ok && holds > 0 {
				heap.Push(f, reached{pods: min(at.pods+holds, n), nodes: at.nodes + 1, price: at.price + price + fee})
			}
		}
	}
	return -1, 0
}

func randomTypes(w world) []*catalog.InstanceType {
	var out []*catalog.InstanceType
	for i := range 2 + w.Intn(12) {
		cpu := 1 + w.Int63n(48)
		out = append(out, plainType(fmt.Sprintf("t%02d", i), cpu, 1+w.Int63n(4*cpu), resources.Price(cpu*(30+w.Int63n(30)))*1_000_000))
	}
	return out
}

func TestPodsOfOneShapeAreCoveredAtLeastCost(t *testing.T) {
	for seed := range int64(250) {
		w := world{rand.New(rand.NewSource(seed))}
		types := randomTypes(w)
		request := resources.List{"cpu": 100 * (1 + w.Int63n(40)), "memory": gib / 4 * (1 + w.Int63n(12))}
		n := 1 + w.Int63n(pickOne(w, int64(10), 100, 1500))
		in := input(pods("app", int(n), request), types, onDemandPool("default"))
		fee := pickOne(w, json.Number("0"), "0.02")
		in.Fleet.Cluster.Engine.NodeFee = fee
		perNode, err := resources.ParsePrice(fee.String())
		if err != nil {
			t.Fatal(err)
		}
		plan := solve(t, in)
		want, nodes := cheapestCover(n, request.Plus(resources.List{"pods": 1}), types, perNode)
		if want < 0 {
			if len(plan.Unplaced) != 1 || plan.Unplaced[0].Reason != ReasonResources {
				t.Fatalf("seed %d: nothing fits, but got %+v", seed, plan.Unplaced)
			}
			continue
		}
		got := plan.Cost() + resources.Price(len(plan.Claims))*perNode
		if got != want || int64(len(plan.Claims)) != nodes {
			t.Fatalf("seed %d: %d pods cost %s on %d nodes, the least is %s on %d", seed, n, got, len(plan.Claims), want, nodes)
		}
	}
}

// cheapestPartition tries every way to part pods into nodes.
func cheapestPartition(list []*cluster.Pod, types []*catalog.InstanceType, blocks []resources.List) resources.Price {
	if len(list) == 0 {
		var sum resources.Price
		for _, b := range blocks {
			least := resources.Price(-1)
			for _, it := range types {
				if price, ok := onDemandPrice(it); ok && b.Fits(it.Allocatable) && (least < 0 || price < least) {
					least = price
				}
			}
			if least < 0 {
				return -1
			}
			sum += least
		}
		return sum
	}
	best := resources.Price(-1)
	for i := 0; i <= len(blocks); i++ {
		next := append([]resources.List(nil), blocks...)
		if i == len(blocks) {
			next = append(next, resources.List{})
		}
		next[i] = next[i].Plus(list[0].Shape.Requests)
		if c := cheapestPartition(list[1:], types, next); c >= 0 && (best < 0 || c < best) {
			best = c
		}
	}
	return best
}

func TestSmallBatchesArePackedAtLeastCost(t *testing.T) {
	for seed := range int64(150) {
		w := world{rand.New(rand.NewSource(seed))}
		types := randomTypes(w)
		var pending []*cluster.Pod
		for i := range 2 + w.Intn(3) {
			pending = append(pending, pods(fmt.Sprintf("app%d", i), 1+w.Intn(2), resources.List{"cpu": 500 * (1 + w.Int63n(12)), "memory": gib * (1 + w.Int63n(8))})...)
		}
		in := input(pending, types, onDemandPool("default"))
		plan := solve(t, in)
		want := cheapestPartition(pending, types, nil)
		if want < 0 {
			continue
		}
		if got := plan.Cost(); got != want {
			t.Fatalf("seed %d: %d pods cost %s, the least is %s", seed, len(pending), got, want)
		}
	}
}

// The heuristics are held against the exact search where that still is
// possible.
func TestTheGreedySearchIsNearTheOptimum(t *testing.T) {
	var exact, greedy resources.Price
	for seed := range int64(150) {
		w := world{rand.New(rand.NewSource(seed))}
		var pending []*cluster.Pod
		for i := range 3 {
			pending = append(pending, pods(fmt.Sprintf("app%d", i), 4+w.Intn(5), resources.List{"cpu": 250 * (1 + w.Int63n(20)), "memory": gib / 2 * (1 + w.Int63n(16))})...)
		}
		in := input(pending, append(randomTypes(w), commonTypes()...), onDemandPool("default"))
		s := searchOf(t, in)
		best, found := s.exact(), s.improve(s.greedyBest())
		if found.cost < best.cost {
			t.Fatalf("seed %d: the exact search found %s, the greedy one %s", seed, best.cost, found.cost)
		}
		exact, greedy = exact+best.cost, greedy+found.cost
	}
	over := int64(greedy-exact) * 10_000 / int64(exact)
	t.Logf("the greedy search is %d.%02d %% above the optimum", over/100, over%100)
	if over > 150 {
		t.Errorf("the greedy search is %d.%02d %% above the optimum, more than 1.5 %%", over/100, over%100)
	}
}

// searchOf is the search for all pods of the input in its first pool.
func searchOf(t *testing.T, in Input) *search {
	t.Helper()
	p, err := newProblem(in)
	if err != nil {
		t.Fatal(err)
	}
	p.compile()
	return &search{problem: p, pl: p.pools[0], items: p.itemsFor(p.pools[0])}
}
