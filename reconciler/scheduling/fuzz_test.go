package scheduling

import (
	"fmt"
	"math"
	"testing"

	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/resources"
)

// FuzzSolve plans for three shapes with requests, ports, selectors and bounds
// of any kind. Whatever they are there is a plan, and it breaks no rule.
func FuzzSolve(f *testing.F) {
	f.Add(int64(1000), int64(2)*gib, int64(0), "", "4", "app", uint8(3), int32(80), uint16(0))
	f.Add(int64(0), int64(0), int64(1), "Gt", "9223372036854775807", "", uint8(1), int32(0), uint16(3))
	f.Add(int64(math.MaxInt64), int64(math.MaxInt64), int64(math.MaxInt64), "Lt", "0", "\xff", uint8(9), int32(65535), uint16(200))
	f.Add(int64(1), int64(1), int64(-1), "In", "s1", "a b/c", uint8(200), int32(-1), uint16(1))
	f.Fuzz(func(t *testing.T, cpu, memory, limit int64, op, value, key string, n uint8, port int32, many uint16) {
		if cpu < 0 || memory < 0 {
			return // the API server takes no negative request
		}
		ports := func(sh *cluster.Shape) {
			for i := range int32(many % 256) {
				sh.HostPorts = append(sh.HostPorts, cluster.HostPort{Port: port + i, Protocol: corev1.ProtocolTCP})
				sh.Tolerations = append(sh.Tolerations, corev1.Toleration{Key: fmt.Sprint(key, i), Operator: corev1.TolerationOpExists})
			}
		}
		selects := func(sh *cluster.Shape) { sh.NodeSelector = map[string]string{key: value} }
		pending := pods("plain", int(n%32), resources.List{"cpu": cpu, "memory": memory})
		pending = append(pending, pods("ports", int(n%8), resources.List{"cpu": cpu / 2}, ports)...)
		pending = append(pending, pods("selects", int(n%4), resources.List{"memory": memory / 2, corev1.ResourceName(key): cpu}, selects)...)
		pool := nodePool("default")
		if op != "" {
			pool.Spec.Template.Spec.Requirements = []karpv1.NodeSelectorRequirementWithMinValues{requirement(key, corev1.NodeSelectorOperator(op), value)}
		}
		if limit != 0 {
			pool.Spec.Limits = karpv1.Limits{"cpu": resources.Quantity("cpu", limit), "nodes": resources.Quantity("nodes", limit%16)}
		}
		solve(t, input(pending, commonTypes(), pool))
	})
}
