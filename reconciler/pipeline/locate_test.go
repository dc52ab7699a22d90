package pipeline

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reeve-project/reeve/reconciler/cluster"
)

func TestTheControllerIsWhereItsPodRuns(t *testing.T) {
	own, other := &cluster.Pod{Namespace: "kube-system", Name: "reeve-0"}, &cluster.Pod{Namespace: "default", Name: "reeve-0"}
	snap := &cluster.Snapshot{Nodes: []*cluster.Node{{Name: "ip-1", Pods: []*cluster.Pod{other}}, {Name: "ip-2", Pods: []*cluster.Pod{own}}}}
	for key, want := range map[string]cluster.Controller{
		"":                    {},
		"kube-system/reeve-0": {Namespace: "kube-system", Pod: "reeve-0", Node: "ip-2"},
		"kube-system/reeve-1": {Namespace: "kube-system", Pod: "reeve-1"},
	} {
		if diff := cmp.Diff(want, locate(snap, key)); diff != "" {
			t.Errorf("pod %q (-want +got):\n%s", key, diff)
		}
	}
}
