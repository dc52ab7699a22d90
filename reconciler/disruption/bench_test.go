package disruption

import (
	"fmt"
	"math/rand"
	"testing"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/resources"
)

// wasteful is a cluster of so many nodes with pods of 30 shapes, each node
// about half full.
func wasteful(t testing.TB, nodes int) Input {
	types := regionTypes(t, "us-east-1")
	np := nodePool("default", onDemand(),
		requirement(corev1.LabelArchStable, corev1.NodeSelectorOpIn, "amd64"),
		requirement(awsv1.LabelInstanceCategory, corev1.NodeSelectorOpIn, "c", "m", "r"),
		requirement(awsv1.LabelInstanceGeneration, corev1.NodeSelectorOpGt, "2"))
	rnd := rand.New(rand.NewSource(42))
	var shapes []resources.List
	for range 30 {
		cpu := []int64{100, 250, 500, 1000, 2000}[rnd.Intn(5)]
		shapes = append(shapes, resources.List{"cpu": cpu, "memory": cpu * []int64{1, 2, 4, 8}[rnd.Intn(4)] * gib / 1000})
	}
	names := []string{"m5.large", "m5.xlarge", "m5.2xlarge", "c5.2xlarge", "r5.xlarge", "c6a.4xlarge", "m6i.4xlarge"}
	var list []*cluster.Node
	for i := range nodes {
		it := typeNamed(types, names[rnd.Intn(len(names))])
		free := it.Allocatable.Clone()
		free["cpu"], free["memory"] = free["cpu"]*55/100, free["memory"]*55/100
		var pods []*cluster.Pod
		for range 60 {
			k := rnd.Intn(len(shapes))
			if !shapes[k].Fits(free) {
				continue
			}
			free = free.Minus(shapes[k])
			p := podsOf(fmt.Sprintf("app%02d", k), 1, shapes[k])[0]
			p.Name = fmt.Sprintf("app%02d-%04d-%03d", k, i, len(pods))
			pods = append(pods, p)
		}
		list = append(list, nodeOf(fmt.Sprintf("node-%04d", i), np, it, "us-east-1a", "on-demand", pods))
	}
	return input(types, list, np)
}

func benchmark(b *testing.B, in Input) {
	b.ReportAllocs()
	var cmd *Command
	for b.Loop() {
		var err error
		if cmd, _, err = Propose(in); err != nil {
			b.Fatal(err)
		}
	}
	if cmd != nil {
		b.ReportMetric(float64(cmd.Steps), "steps")
		b.ReportMetric(float64(len(cmd.Nodes)), "nodes")
		b.ReportMetric(float64(cmd.Savings)/float64(resources.USD), "$/h")
	}
}

func BenchmarkPropose20(b *testing.B)  { benchmark(b, wasteful(b, 20)) }
func BenchmarkPropose100(b *testing.B) { benchmark(b, wasteful(b, 100)) }
func BenchmarkPropose500(b *testing.B) { benchmark(b, wasteful(b, 500)) }

// At rest every node is looked at, and none can go.
func BenchmarkRest500(b *testing.B) {
	types := regionTypes(b, "us-east-1")
	np := nodePool("default", onDemand(), requirement(corev1.LabelInstanceTypeStable, corev1.NodeSelectorOpIn, "m5.2xlarge", "m5.4xlarge"))
	var list []*cluster.Node
	for i := range 500 {
		pods := podsOf(fmt.Sprintf("app%02d", i%30), 15, resources.List{"cpu": 500 + int64(i%30), "memory": gib})
		for k, p := range pods {
			p.Name = fmt.Sprintf("app%02d-%04d-%02d", i%30, i, k)
		}
		list = append(list, nodeOf(fmt.Sprintf("node-%04d", i), np, typeNamed(types, "m5.2xlarge"), "us-east-1a", "on-demand", pods))
	}
	in := input(types, list, np)
	if cmd, blocked, err := Propose(in); err != nil || cmd != nil || len(blocked) != 500 {
		b.Fatalf("it is not at rest: %t, %d blocked, %v", cmd == nil, len(blocked), err)
	}
	benchmark(b, in)
}

// Each pod is a shape of its own.
func BenchmarkDistinct500(b *testing.B) {
	in := wasteful(b, 500)
	for i, n := range in.Snapshot.Nodes {
		for k, p := range n.Pods {
			sh := *p.Shape
			sh.Requests = sh.Requests.Plus(resources.List{"memory": -int64(i*61+k) << 10})
			p.Shape = sh.Sealed()
		}
	}
	in.Snapshot.Seal()
	benchmark(b, in)
}
