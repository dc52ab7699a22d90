package spec

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
)

// manyPools is a fleet with n NodePools that share a template.
func manyPools(n int) fstest.MapFS {
	var pools strings.Builder
	pools.WriteString("package fleet\n\nimport (\n\t\"reeve.dev/fleet\"\n\t\"example.com/fleet/shared\"\n)\n\nnodePools: fleet.#NodePools\n")
	for i := range n {
		fmt.Fprintf(&pools, `nodePools: "pool-%03d": spec: shared.general & {
	weight: %d
	limits: {cpu: "%d", memory: "1000Gi"}
	template: metadata: labels: team: "team-%d"
	template: spec: taints: [{key: "team", value: "team-%d", effect: "NoSchedule"}]
}
`, i, i%100+1, i+10, i, i)
	}
	fsys := fleetFS("blue", nil)
	fsys["clusters/blue/nodepools.cue"] = &fstest.MapFile{Data: []byte(pools.String())}
	fsys["shared/general.cue"] = &fstest.MapFile{Data: []byte(`package shared

general: {
	template: spec: {
		nodeClassRef: {group: "karpenter.k8s.aws", kind: "EC2NodeClass", name: "default"}
		requirements: [
			{key: "kubernetes.io/arch", operator: "In", values: ["amd64"]},
			{key: "karpenter.sh/capacity-type", operator: "In", values: ["spot", "on-demand"]},
			{key: "karpenter.k8s.aws/instance-category", operator: "In", values: ["c", "m", "r"]},
			{key: "karpenter.k8s.aws/instance-generation", operator: "Gt", values: ["4"]},
		]
		expireAfter: string | *"336h"
	}
	disruption: {
		consolidateAfter: *"1m" | string
		budgets: [{nodes: "20%"}, {nodes: "0", schedule: "0 9 * * mon-fri", duration: "8h"}]
	}
}
`)}
	return fsys
}

func BenchmarkLoad(b *testing.B) {
	for _, n := range []int{1, 100, 500} {
		b.Run(fmt.Sprintf("%d NodePools", n), func(b *testing.B) {
			fsys := manyPools(n)
			b.ReportAllocs()
			for b.Loop() {
				f, err := Load(context.Background(), fsys, Options{Cluster: "blue"})
				if err != nil {
					b.Fatal(err)
				}
				if len(f.NodePools) != n {
					b.Fatalf("%d NodePools, want %d", len(f.NodePools), n)
				}
			}
		})
	}
}
