package report

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reeve-project/reeve/reconciler/decision"
)

func TestTextsOfPoliciesSteerNoTerminalAndForgeNoFinding(t *testing.T) {
	c := &Check{Source: "fleet", Clusters: []ClusterCheck{{Cluster: "blue", Policies: 1, Violations: []decision.Finding{{
		Rule: "X-1", Message: "no\x1b[2Jthing\na.cue:1:1: error: forged", Resource: "Pod/\rx",
	}}}}}
	var out strings.Builder
	if err := CheckText(&out, c); err != nil {
		t.Fatal(err)
	}
	want := "error: X-1: no\ufffd[2Jthing\n    a.cue:1:1: error: forged (Pod/\ufffdx)\n" +
		"blue: 0 NodePools, 0 EC2NodeClasses, 1 policy\nfleet: 1 error, 0 warnings\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
}
