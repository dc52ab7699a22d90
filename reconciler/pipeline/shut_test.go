package pipeline

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/scheduling"
)

func TestEachShutNodePoolNamesItsOwnRule(t *testing.T) {
	n := newNegotiation(&World{}, &cluster.Snapshot{}, nil, nil)
	n.shut("b", []decision.Finding{{Rule: "R-B"}})
	n.shut("a", []decision.Finding{{Rule: "R-A"}, {Rule: "R-C"}})
	n.withholdShut()
	want := map[string][]scheduling.OfferingExclusion{"a": {{Rule: "R-A"}}, "b": {{Rule: "R-B"}}}
	if diff := cmp.Diff(want, n.excluded.Offerings); diff != "" {
		t.Errorf("exclusions (-want +got):\n%s", diff)
	}
}
