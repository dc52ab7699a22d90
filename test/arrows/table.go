// Package arrows holds which packages of this module may import which, and
// checks it. The table is that of the architecture: the engine is a set of
// pure functions over values because nothing in it can reach a clock, a
// cluster or a cloud, and it stays so only as long as a test says so.
package arrows

import "slices"

// Module is the path of this module.
const Module = "github.com/reeve-project/reeve"

// Row is what one package may import.
type Row struct {
	// Package is the import path below the module: "reconciler/fleet".
	Package string
	// May are the packages of this module that it may import. What those may
	// import it may import too.
	May []string
	// SDKs are the client libraries that it may import directly.
	SDKs []SDK
}

// SDK is a family of client libraries.
type SDK string

// The families of client libraries. Whoever imports one can reach the world.
const (
	// Kubernetes is the clients of the Kubernetes API.
	Kubernetes SDK = "a client of the Kubernetes API"
	// AWS is the service clients of the AWS SDK; their types packages are not.
	AWS SDK = "a client of an AWS service"
	// KarpenterInternals is everything of Karpenter's but its API types.
	KarpenterInternals SDK = "Karpenter's implementation"
)

// leaf is what every package may import: see docs/adr/0001.
const leaf = "reconciler/resources"

// The groups that rows name.
var (
	core = []string{
		leaf, "reconciler/requirements", "reconciler/fleet", "reconciler/catalog",
		"reconciler/cluster", "reconciler/scheduling", "reconciler/disruption", "reconciler/lifecycle", "reconciler/decision",
	}
	// wiring is where everything is put together; only commands go beyond it.
	wiring = join(core, "reconciler/port", "reconciler/spec", "reconciler/spec/start", "reconciler/spec/eval", "reconciler/policy", "reconciler/gitrepo",
		"reconciler/ledger", "reconciler/pipeline", "reconciler/replay", "reconciler/plan", "reconciler/check", "reconciler/explain",
		"reconciler/authoring", "reconciler/importer", "reconciler/kube", "reconciler/kube/convert", "reconciler/kube/dump", "reconciler/aws", "reconciler/receiver", "reconciler/telemetry",
		"reconciler/report", "policies", "schemas", "examples")
)

// Table is the architecture: every package below reconciler/, the embedded
// trees and the commands.
func Table() []Row {
	return []Row{
		{Package: "policies"},
		{Package: "schemas"},
		{Package: "examples"},
		{Package: "examples/prs", May: []string{"examples"}},
		{Package: "deploy"},

		{Package: leaf},
		{Package: "reconciler/requirements"},
		{Package: "reconciler/fleet", May: []string{"reconciler/requirements"}},
		{Package: "reconciler/catalog", May: []string{"reconciler/requirements", "reconciler/fleet"}},
		{Package: "reconciler/cluster", May: []string{"reconciler/requirements", "reconciler/fleet", "reconciler/catalog"}},
		{Package: "reconciler/scheduling", May: []string{"reconciler/cluster"}},
		{Package: "reconciler/disruption", May: []string{"reconciler/scheduling"}},
		{Package: "reconciler/lifecycle", May: []string{"reconciler/cluster"}},
		{Package: "reconciler/decision", May: []string{"reconciler/cluster"}},

		{Package: "reconciler/port", May: []string{"reconciler/fleet", "reconciler/catalog", "reconciler/cluster", "reconciler/decision"}},
		{Package: "reconciler/gitrepo"},
		{Package: "reconciler/report", May: []string{"reconciler/decision"}},
		// The evaluator runs in a process of its own that starts fast and meets
		// hostile input, so it has next to nothing in it.
		{Package: "reconciler/spec/start"},
		{Package: "reconciler/spec/early", May: []string{"reconciler/spec/start"}},
		{Package: "reconciler/spec/eval", May: []string{"reconciler/spec/start", "schemas"}},
		{Package: "reconciler/spec", May: []string{"reconciler/spec/start", "reconciler/spec/eval", "schemas", "reconciler/fleet", "reconciler/gitrepo", "reconciler/port"}},
		{Package: "reconciler/policy", May: []string{"policies", "reconciler/fleet", "reconciler/catalog", "reconciler/cluster", "reconciler/decision"}},
		{Package: "reconciler/ledger", May: []string{"reconciler/port", "reconciler/decision", "reconciler/gitrepo", "reconciler/report"}},
		{Package: "reconciler/pipeline", May: join(core, "reconciler/policy", "reconciler/port")},
		{Package: "reconciler/replay", May: []string{"reconciler/pipeline", "reconciler/ledger", "reconciler/spec", "reconciler/policy"}},
		{Package: "reconciler/plan", May: []string{"reconciler/kube/convert", "reconciler/kube/dump", "reconciler/pipeline", "reconciler/spec", "reconciler/ledger", "reconciler/report"}},
		{Package: "reconciler/check", May: []string{"reconciler/plan", "reconciler/pipeline", "reconciler/replay", "reconciler/spec", "reconciler/ledger", "reconciler/report"}},
		{Package: "reconciler/explain", May: []string{"reconciler/pipeline", "reconciler/replay", "reconciler/spec", "reconciler/ledger", "reconciler/report"}},
		{Package: "reconciler/authoring", May: []string{"reconciler/pipeline", "reconciler/policy"}},
		{Package: "reconciler/importer", May: []string{"reconciler/fleet", "schemas"}},
		{Package: "reconciler/receiver", May: []string{"reconciler/port"}},
		{Package: "reconciler/telemetry", May: []string{"reconciler/port"}},
		{Package: "reconciler/kube", May: []string{"reconciler/kube/convert", "reconciler/lifecycle", "reconciler/port"}, SDKs: []SDK{Kubernetes}},
		// Objects of the API become values without a client, for informers and
		// for files alike.
		{Package: "reconciler/kube/convert", May: []string{"reconciler/lifecycle"}},
		{Package: "reconciler/kube/dump", May: []string{"reconciler/kube/convert"}},
		// What strangers write is read apart from the clients: a fuzz test
		// instruments all that it links, which for the SDK takes longer than
		// the test.
		{Package: "reconciler/aws/event", May: []string{"reconciler/cluster"}},
		{Package: "reconciler/aws/bootstrap", May: []string{"reconciler/port"}},
		{Package: "reconciler/aws", May: []string{"reconciler/aws/event", "reconciler/aws/bootstrap", "reconciler/port"}, SDKs: []SDK{AWS}},
		// The simulator's binder must be independent of the engine, or a
		// placement that the engine gets wrong would be bound all the same.
		{Package: "reconciler/sim", May: []string{"reconciler/lifecycle", "reconciler/port"}},
		{Package: "reconciler/sim/awsapi", May: []string{"reconciler/port", "reconciler/sim"}, SDKs: []SDK{AWS}},
		{Package: "reconciler/demo", May: join(wiring, "reconciler/sim", "reconciler/sim/awsapi")},

		{Package: "cmd/reeve", May: join(wiring, "reconciler/spec/early", "reconciler/sim", "reconciler/sim/awsapi", "reconciler/demo")},
		// What runs in a cluster carries neither the simulator nor the story.
		{Package: "cmd/reeve-controller", May: wiring, SDKs: []SDK{Kubernetes}},
	}
}

func join(list []string, more ...string) []string { return slices.Concat(list, more) }
