package scheduling

import (
	"fmt"
	"math/rand"
	"testing"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/resources"
)

func benchInput(b testing.TB, pending []*cluster.Pod) Input {
	types := regionTypes(b, "us-east-1")
	return input(pending, types, onDemandPool("default"))
}

// shapedPods are pods of many shapes: web, batch and memory-heavy sizes.
func shapedPods(seed int64, n, shapes int) []*cluster.Pod {
	w := world{rand.New(rand.NewSource(seed))}
	var out []*cluster.Pod
	for i := range shapes {
		cpu := pickOne(w, int64(100), 250, 500, 1000, 2000, 4000) + w.Int63n(20)*10
		mem := cpu * pickOne(w, int64(1), 2, 4, 8) * gib / 1000
		out = append(out, pods(fmt.Sprintf("app%03d", i), n/shapes, resources.List{"cpu": cpu, "memory": mem})...)
	}
	return out
}

// fractionalBound is the least cost of any plan: the cheapest way to buy each
// resource by fractions of nodes, for the best of a grid of weights between
// the resources (any weights give a valid bound).
func fractionalBound(in Input) resources.Price {
	total := resources.List{}
	for _, p := range in.Snapshot.Pending {
		for name, x := range p.Shape.Requests {
			total[name] += x
		}
	}
	best := 0.0
	const grid = 200
	for i := 0; i <= grid; i++ {
		w := float64(i) / grid
		least := -1.0
		for _, it := range in.Types["default"] {
			price, ok := onDemandPrice(it)
			if !ok || isMetalOrGPU(it) {
				continue
			}
			share := w*float64(it.Allocatable["cpu"])/float64(total["cpu"]) + (1-w)*float64(it.Allocatable["memory"])/float64(total["memory"])
			if c := float64(price) / share; least < 0 || c < least {
				least = c
			}
		}
		best = max(best, least)
	}
	return resources.Price(best)
}

func onDemandPrice(it *catalog.InstanceType) (resources.Price, bool) {
	for _, o := range it.Offerings {
		if o.CapacityType == "on-demand" && o.Available {
			return o.Price, true
		}
	}
	return 0, false
}

func isMetalOrGPU(it *catalog.InstanceType) bool { return isExotic(it) }

func benchmark(b *testing.B, pending []*cluster.Pod) {
	in := benchInput(b, pending)
	b.ReportAllocs()
	var plan *Plan
	for b.Loop() {
		var err error
		if plan, err = Solve(in); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	if len(plan.Unplaced) > 0 {
		b.Fatal(plan.Unplaced[0].Message)
	}
	bound := fractionalBound(in)
	b.ReportMetric(float64(len(pending))*float64(b.N)/b.Elapsed().Seconds(), "pods/s")
	b.ReportMetric(float64(plan.Cost())/float64(resources.USD), "$/h")
	b.ReportMetric(float64(bound)/float64(resources.USD), "bound$/h")
	b.ReportMetric(float64(plan.Cost()-bound)*100/float64(bound), "%over")
	b.ReportMetric(float64(len(plan.Claims)), "nodes")
	b.ReportMetric(float64(plan.Steps), "steps")
}

func BenchmarkHomogeneous10000(b *testing.B) {
	benchmark(b, pods("web", 10000, resources.List{"cpu": 500, "memory": gib}))
}

func BenchmarkShapes5000(b *testing.B)    { benchmark(b, shapedPods(42, 5000, 200)) }
func BenchmarkShapes2000x30(b *testing.B) { benchmark(b, shapedPods(42, 2010, 30)) }
func BenchmarkShapes500x10(b *testing.B)  { benchmark(b, shapedPods(42, 500, 10)) }
