package main

// entry is the benchmarks of one package that are measured together.
type entry struct {
	// dir of the package below the root; entries whose package is not there
	// are left out.
	dir string
	// benchmarks are their names without "Benchmark"; those that begin with one
	// followed by more are measured too: "Append" finds BenchmarkAppendPasses.
	benchmarks []string
	// sub narrows it to sub-benchmarks whose names begin with it.
	sub string
	// benchtime is how long, or how often, each runs in one round.
	benchtime string
	goals     []goal
}

// goal is a bound on what a benchmark shows.
type goal struct {
	// benchmark by its name without "Benchmark".
	benchmark string
	unit      string
	// atLeast or atMost, the other is zero.
	atLeast, atMost float64
}

// table is what "make bench" measures. The goals are those of the project on
// two cores of a small virtual machine.
var table = []entry{
	{dir: "reconciler/scheduling", benchmarks: []string{"Homogeneous10000", "Shapes5000"}, benchtime: "500ms", goals: []goal{
		{benchmark: "Homogeneous10000", unit: "pods/s", atLeast: 20_000},
		{benchmark: "Shapes5000", unit: "pods/s", atLeast: 20_000},
	}},
	{dir: "reconciler/disruption", benchmarks: []string{"Propose500", "Rest500", "Distinct500"}, benchtime: "500ms", goals: []goal{
		{benchmark: "Propose500", unit: "ns/op", atMost: 1e9},
		{benchmark: "Rest500", unit: "ns/op", atMost: 500e6},
		{benchmark: "Distinct500", unit: "ns/op", atMost: 1e9},
	}},
	{dir: "reconciler/policy", benchmarks: []string{"Offering", "OfferingHit", "Decision"}, benchtime: "500ms", goals: []goal{
		{benchmark: "Offering", unit: "ns/op", atMost: 80e6},
		{benchmark: "OfferingHit", unit: "ns/op", atMost: 10e3},
		{benchmark: "Decision", unit: "ns/op", atMost: 1e6},
	}},
	{dir: "reconciler/ledger", benchmarks: []string{"Passes"}, benchtime: "500ms", goals: []goal{
		{benchmark: "Passes", unit: "decisions/s", atLeast: 200},
	}},
	{dir: "reconciler/spec", benchmarks: []string{"Load"}, sub: "100_NodePools", benchtime: "2x", goals: []goal{
		{benchmark: "Load/100_NodePools", unit: "ns/op", atMost: 1e9},
	}},
	{dir: "test/awse2e", benchmarks: []string{"Launch", "Interruptions"}, benchtime: "1x", goals: []goal{
		{benchmark: "Launch", unit: "ns/op", atMost: 300e6},
		{benchmark: "Interruptions", unit: "ns/op", atMost: 60e9},
	}},
	{dir: "reconciler/catalog", benchmarks: []string{"ResolveAllTypes"}, benchtime: "300ms"},
	{dir: "reconciler/gitrepo", benchmarks: []string{"Append"}, benchtime: "300ms"},
}
