package awse2e_test

import (
	"strings"
	"testing"
	"time"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/sim"
)

// TestNothingOfFiveHundredNodesIsLeft has one pod on each of 500 nodes, takes
// away half of the pods and then the NodePool and the EC2NodeClass.
func TestNothingOfFiveHundredNodesIsLeft(t *testing.T) {
	const nodes = 500
	r := newRig(t, map[string]string{poolsFile: pools(pool{name: "default", requirements: []string{types("c5a.xlarge", "c5.xlarge", "m5.xlarge"), onDemand}})},
		sim.NewDeployment("default", "big", nodes, cpu("3"))).start()
	r.until("500 nodes run", 5*time.Minute, func() bool { return r.settled() && r.running() == nodes })
	if n := len(r.ours()); n != nodes {
		t.Fatalf("%d instances run for %d pods of a node each", n, nodes)
	}
	r.must(r.world.Scale("default/big", nodes/2))
	r.until("empty nodes are gone", 10*time.Minute, func() bool { return r.settled() && len(r.ours()) == nodes/2 })

	r.push("Give up the cluster", map[string]string{
		poolsFile:   "package fleet\n\nimport \"reeve.dev/fleet\"\n\nnodePools: fleet.#NodePools\n",
		classesFile: "package fleet\n\nimport \"reeve.dev/fleet\"\n\nnodeClasses: fleet.#NodeClasses\n",
	})
	r.until("all NodeClaims are gone", 10*time.Minute, func() bool { return len(r.nodeClaims()) == 0 && !r.pipeline.Open() })
	r.run(2 * time.Minute) // the sweep comes once a minute, for what is idle for a minute
	if left := r.account.Leftovers(); len(left) > 0 {
		t.Errorf("left in the account:\n%s", strings.Join(left, "\n"))
	}
	if got := len(r.of(decision.Delete)); got == 0 {
		t.Error("no decision says that the NodeClaims were deleted with their NodePool")
	}
	r.finish()
}
