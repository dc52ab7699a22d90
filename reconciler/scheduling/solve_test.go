package scheduling

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand"
	"os"
	"slices"
	"strings"
	"testing"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/requirements"
	"github.com/reeve-project/reeve/reconciler/resources"
)

func TestIncompleteInputIsRefused(t *testing.T) {
	whole := input(nil, commonTypes(), onDemandPool("default"))
	for name, in := range map[string]Input{
		"no snapshot":  {Fleet: whole.Fleet},
		"no fleet":     {Snapshot: whole.Snapshot},
		"fee no price": {Snapshot: whole.Snapshot, Fleet: &fleet.Fleet{Cluster: fleet.Cluster{Engine: fleet.EngineSettings{NodeFee: "1e-3"}}}},
		"fee negative": {Snapshot: whole.Snapshot, Fleet: &fleet.Fleet{Cluster: fleet.Cluster{Engine: fleet.EngineSettings{NodeFee: "-1"}}}},
	} {
		if plan, err := Solve(in); err == nil {
			t.Errorf("%s: got a plan: %+v", name, plan)
		}
	}
	plan, err := Solve(whole)
	if err != nil || len(plan.Claims)+len(plan.Placements)+len(plan.Unplaced) > 0 {
		t.Errorf("nothing is pending, but got %+v, %v", plan, err)
	}
}

func TestAFleetWithoutPoolsSaysSo(t *testing.T) {
	plan := solve(t, input(pods("web", 2, cores(1000)), commonTypes()))
	if len(plan.Unplaced) != 1 || plan.Unplaced[0].Reason != ReasonNoPool || len(plan.Unplaced[0].Pods) != 2 {
		t.Errorf("got %+v", plan.Unplaced)
	}
}

// A limit that the cheapest plan would break still lets all pods in where
// fewer or better filled nodes keep it.
func TestLimitsPressForOtherNodes(t *testing.T) {
	// s32 is dearer per pod than the rest, so only a limit makes it chosen.
	types := commonTypes()
	for i := range types[5].Offerings {
		types[5].Offerings[i].Price = types[5].Offerings[i].Price * 3 / 2
	}
	tests := []struct {
		name   string
		limits karpv1.Limits
		pods   int
		milli  int64
		nodes  int
		placed int
	}{
		{"no limit", nil, 64, 1000, 4, 64},
		{"two nodes", karpv1.Limits{"nodes": resource.MustParse("2")}, 64, 1000, 2, 64},
		{"two nodes for more than they hold", karpv1.Limits{"nodes": resource.MustParse("2")}, 70, 1000, 2, 64},
		{"as much CPU as the pods need", karpv1.Limits{"cpu": resource.MustParse("64")}, 64, 1000, 4, 64},
		{"CPU that only well filled nodes keep", karpv1.Limits{"cpu": resource.MustParse("33")}, 10, 3200, 2, 10},
		{"memory for half of the pods", karpv1.Limits{"memory": resource.MustParse("64Gi")}, 64, 1000, 2, 32},
	}
	for _, tc := range tests {
		np := onDemandPool("default")
		np.Spec.Limits = tc.limits
		plan := solve(t, input(pods("web", tc.pods, cores(tc.milli)), types, np))
		placed := 0
		for _, c := range plan.Claims {
			placed += len(c.Pods)
		}
		if len(plan.Claims) != tc.nodes || placed != tc.placed {
			t.Errorf("%s: %d pods on %d nodes, want %d on %d", tc.name, placed, len(plan.Claims), tc.placed, tc.nodes)
		}
	}
}

func TestDearSpotIsDroppedAndCheapOnDemandChosen(t *testing.T) {
	types := []*catalog.InstanceType{plainType("x4", 4, 8, 200_000_000), plainType("y4", 4, 8, 210_000_000)}
	price := func(it *catalog.InstanceType, spot resources.Price) {
		for i := range it.Offerings {
			if it.Offerings[i].CapacityType == "spot" {
				it.Offerings[i].Price = spot
			}
		}
	}
	price(types[0], 205_000_000)
	price(types[1], 230_000_000)
	plan := solve(t, input(pods("web", 1, cores(4000)), types, nodePool("default")))
	c := plan.Claims[0]
	if c.Offering.CapacityType != "on-demand" || c.InstanceType != "x4" || len(c.Types) != 2 {
		t.Errorf("got %s %+v of %d types", c.InstanceType, c.Offering, len(c.Types))
	}
	// One spot offering that is cheap enough makes spot the capacity type.
	price(types[1], 199_000_000)
	c = solve(t, input(pods("web", 1, cores(4000)), types, nodePool("default"))).Claims[0]
	if c.Offering.CapacityType != "spot" || c.InstanceType != "y4" {
		t.Errorf("got %s %+v", c.InstanceType, c.Offering)
	}
}

func TestExoticTypesAreForThoseWhoNeedThem(t *testing.T) {
	metal, gpu := plainType("m8", 8, 16, 100_000_000), plainType("g8", 8, 16, 100_000_000)
	metal.Requirements = metal.Requirements.Without(awsv1.LabelInstanceSize).With(requirements.In(awsv1.LabelInstanceSize, "metal-8xl"))
	gpu.Capacity = gpu.Capacity.Plus(resources.List{"nvidia.com/gpu": 1})
	gpu.Allocatable = gpu.Capacity
	types := append(commonTypes(), metal, gpu)
	plan := solve(t, input(pods("web", 1, cores(8000)), types, onDemandPool("default")))
	got := sortedNames(plan.Claims[0].Types, func(it *catalog.InstanceType) string { return it.Name })
	if want := []string{"s16", "s32", "s8"}; !slices.Equal(got, want) {
		t.Errorf("launchable %v, want %v", got, want)
	}
	plan = solve(t, input(pods("web", 1, cores(1000).Plus(resources.List{"nvidia.com/gpu": 1})), types, onDemandPool("default")))
	if c := plan.Claims[0]; c.InstanceType != "g8" || len(c.Types) != 1 {
		t.Errorf("got %s of %d types", c.InstanceType, len(c.Types))
	}
	onMetal := pods("web", 1, cores(1000), func(sh *cluster.Shape) { sh.NodeSelector = map[string]string{awsv1.LabelInstanceSize: "metal-8xl"} })
	if c := solve(t, input(onMetal, types, onDemandPool("default"))).Claims[0]; c.InstanceType != "m8" {
		t.Errorf("got %s", c.InstanceType)
	}
}

// Of a hundred types sixty are launchable, and among them as many families as
// the pool asks for, though these are the dearest.
func TestVarietySurvivesTheCut(t *testing.T) {
	var types []*catalog.InstanceType
	for i := range 100 {
		it := plainType(fmt.Sprintf("t%02d", i), 4, 8, resources.Price(100_000_000+i*1_000_000))
		it.Requirements = it.Requirements.With(requirements.In(awsv1.LabelInstanceFamily, fmt.Sprintf("f%d", max(0, i-94))))
		types = append(types, it)
	}
	five := 5
	np := onDemandPool("default", karpv1.NodeSelectorRequirementWithMinValues{Key: awsv1.LabelInstanceFamily, Operator: corev1.NodeSelectorOpExists, MinValues: &five})
	c := solve(t, input(pods("web", 1, cores(3000)), types, np)).Claims[0]
	families := requirements.DistinctValues(awsv1.LabelInstanceFamily, func(yield func(requirements.Set) bool) {
		for _, it := range c.Types {
			if !yield(it.Requirements) {
				return
			}
		}
	})
	if len(c.Types) != 60 || families < five || c.InstanceType != "t00" {
		t.Errorf("%d types of %d families, %s", len(c.Types), families, c.InstanceType)
	}
}

func TestPodsThatAskForNothingRideAlong(t *testing.T) {
	pending := append(pods("web", 40, cores(1500)), pods("idle", 30, resources.List{})...)
	pending = append(pending, pods("api", 40, cores(700))...)
	plan := solve(t, input(pending, commonTypes(), onDemandPool("default")))
	if got, most := plan.Cost(), resources.Price(4_500_000_000); got > most {
		t.Errorf("the plan costs %s, more than %s", got, most)
	}
}

// Pods that all differ are searched for in bundles; the plan has to be valid
// and no dearer than one of the same pods rounded up to few sizes.
func TestManyDistinctPodsArePlannedInBundles(t *testing.T) {
	w := world{rand.New(rand.NewSource(7))}
	types := append(w.types(), commonTypes()...)
	var distinct, rounded []*cluster.Pod
	for i := range 900 {
		cpu, mem := 100+w.Int63n(3900), 1+w.Int63n(8)
		change := func(sh *cluster.Shape) {
			if i%10 == 0 {
				sh.NodeSelector = map[string]string{corev1.LabelTopologyZone: pickOne(w, "a", "b")}
			}
			if i%50 == 0 {
				sh.HostPorts = []cluster.HostPort{{IP: "0.0.0.0", Port: 8080, Protocol: "TCP"}}
			}
		}
		distinct = append(distinct, pods(fmt.Sprintf("app%03d", i), 1, resources.List{"cpu": cpu, "memory": mem*gib + w.Int63n(gib)}, change)...)
		rounded = append(rounded, pods(fmt.Sprintf("app%03d", i), 1, resources.List{"cpu": (cpu + 499) / 500 * 500, "memory": (mem + 1) * gib}, change)...)
	}
	plan := solve(t, input(distinct, types, onDemandPool("default")))
	if !strings.Contains(plan.Solver, "bundles") || len(plan.Unplaced) > 0 {
		t.Fatalf("solver %s, unplaced %+v", plan.Solver, plan.Unplaced)
	}
	if bound := solve(t, input(rounded, types, onDemandPool("default"))).Cost(); plan.Cost() > bound {
		t.Errorf("distinct pods cost %s, rounded up they cost %s", plan.Cost(), bound)
	}
}

// The table of a large count is cut short; the answer must be that of the
// whole table.
func TestLargeCountsAreCoveredAsExactlyAsSmallOnes(t *testing.T) {
	for seed := range int64(50) {
		w := world{rand.New(rand.NewSource(seed))}
		var ladder []size
		for holds, cost := int64(1), resources.Price(50+w.Int63n(30)); holds < 30; holds += 1 + w.Int63n(8) {
			ladder = append(ladder, size{holds: holds, cost: cost})
			cost += resources.Price(1 + w.Int63n(400))
		}
		n := 3000 + w.Int63n(2000)
		p := &problem{}
		times, _ := p.cover(n, ladder)
		var got, want resources.Price
		for i, m := range times {
			got += resources.Price(m) * ladder[i].cost
		}
		choice := coverTable(n, ladder)
		for left := n; left > 0; left -= ladder[choice[left]].holds {
			want += ladder[choice[left]].cost
		}
		if got != want {
			t.Fatalf("seed %d: %d pods at %d, the whole table says %d", seed, n, got, want)
		}
	}
}

// Products of floats that are not rounded by a conversion may be fused with an
// addition on some processors, and plans would differ between machines.
func TestProductsOfFloatsAreRounded(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		src, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		if text := string(src); !strings.Contains(text, "float64(") && !strings.Contains(text, "mul(") {
			continue
		}
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, f.Name(), src, 0)
		if err != nil {
			t.Fatal(err)
		}
		rounded := map[ast.Node]bool{}
		ast.Inspect(tree, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && len(call.Args) == 1 {
				if fun, ok := call.Fun.(*ast.Ident); ok && (fun.Name == "float64" || fun.Name == "int64") {
					rounded[call.Args[0]] = true
				}
			}
			b, ok := n.(*ast.BinaryExpr)
			if !ok || b.Op != token.MUL {
				return true
			}
			found++
			whole := rounded[b] || isWhole(b.X) || isWhole(b.Y)
			if !whole {
				t.Errorf("%s: a product that may be fused: use mul, or make plain that it is of whole numbers", set.Position(b.Pos()))
			}
			return true
		})
	}
	if found == 0 {
		t.Error("no products were found: the test looks at the wrong files")
	}
}

// isWhole says whether an expression is plainly an integer.
func isWhole(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BasicLit:
		return e.Kind == token.INT
	case *ast.CallExpr:
		fun, ok := e.Fun.(*ast.Ident)
		return ok && (fun.Name == "len" || fun.Name == "int64")
	case *ast.SelectorExpr:
		return e.Sel.Name == "times"
	}
	return false
}
