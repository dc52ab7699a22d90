package scheduling

import (
	"fmt"
	"math/rand"
	"testing"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/requirements"
	"github.com/reeve-project/reeve/reconciler/resources"
)

func benchInput(b testing.TB, pending []*cluster.Pod, reqs ...karpv1.NodeSelectorRequirementWithMinValues) Input {
	return input(pending, regionTypes(b, "us-east-1"), onDemandPool("default", reqs...))
}

// general are the requirements of a NodePool for general use.
var general = []karpv1.NodeSelectorRequirementWithMinValues{
	requirement(awsv1.LabelInstanceCategory, corev1.NodeSelectorOpIn, "c", "m", "r"),
	requirement(awsv1.LabelInstanceGeneration, corev1.NodeSelectorOpGt, "2"),
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

// fractionalBound is below the cost of any plan: the cheapest way to buy CPU
// and memory by fractions of nodes, at the best of a grid of weights between
// the two (any weights give a valid bound). Where many small nodes are the
// cheapest it is far below what whole nodes can reach.
func fractionalBound(in Input) resources.Price {
	template, err := requirements.FromKarpenter(in.Fleet.NodePools[0].Spec.Template.Spec.Requirements)
	if err != nil {
		return 0
	}
	total := resources.List{}
	for _, p := range in.Snapshot.Pending {
		total = total.Plus(p.Shape.Requests)
	}
	best := 0.0
	const grid = 200
	for i := 0; i <= grid; i++ {
		w, least := float64(i)/grid, 0.0
		for _, it := range in.Types["default"] {
			price, ok := onDemandPrice(it)
			if !ok || it.Requirements.Intersects(template) != nil {
				continue
			}
			share := w*float64(it.Allocatable["cpu"])/float64(total["cpu"]) + (1-w)*float64(it.Allocatable["memory"])/float64(total["memory"])
			if c := float64(price) / share; least == 0 || c < least {
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

func benchmark(b *testing.B, in Input) {
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
	b.ReportMetric(float64(len(in.Snapshot.Pending))*float64(b.N)/b.Elapsed().Seconds(), "pods/s")
	b.ReportMetric(float64(plan.Cost())/float64(resources.USD), "$/h")
	b.ReportMetric(float64(bound)/float64(resources.USD), "bound$/h")
	b.ReportMetric(float64(len(plan.Claims)), "nodes")
	b.ReportMetric(float64(plan.Steps), "steps")
}

func homogeneousPods() []*cluster.Pod {
	return pods("web", 10000, resources.List{"cpu": 500, "memory": gib})
}

// All types of the region are allowed.
func BenchmarkHomogeneous10000(b *testing.B) { benchmark(b, benchInput(b, homogeneousPods())) }
func BenchmarkShapes5000(b *testing.B)       { benchmark(b, benchInput(b, shapedPods(42, 5000, 200))) }

// The same in a NodePool for general use.
func BenchmarkHomogeneous10000General(b *testing.B) {
	benchmark(b, benchInput(b, homogeneousPods(), general...))
}

func BenchmarkShapes5000General(b *testing.B) {
	benchmark(b, benchInput(b, shapedPods(42, 5000, 200), general...))
}

// Each pod is a shape of its own.
func BenchmarkDistinct2000(b *testing.B) {
	benchmark(b, benchInput(b, shapedPods(42, 2000, 2000), general...))
}

// What every pass costs however few pods there are: the catalogue is compiled.
func BenchmarkOnePod(b *testing.B) {
	benchmark(b, benchInput(b, pods("web", 1, cores(500)), general...))
}
