package report

import (
	"encoding/json"
	"fmt"
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

// Two lists of instance types that are cut off at the same place would look the
// same.
func TestOfLongListsTheWordsThatDifferAreShown(t *testing.T) {
	var many []string
	for i := range 40 {
		many = append(many, fmt.Sprintf("c%di.large", i))
	}
	list := func(words ...string) json.RawMessage {
		b, err := json.Marshal(words)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	tests := []struct {
		name     string
		from, to json.RawMessage
		want     string
	}{
		{"short lists are shown", list("a", "b"), list("a"), `["a","b"] → ["a"]`},
		{"one comes", list(many[1:]...), list(many...), `[39 words] → ["c0i.large" and 39 in both]`},
		{"one goes for another", list(append(many[1:], "x")...), list(many...), `["x" and 39 in both] → ["c0i.large" and 39 in both]`},
		{"many come", list("a"), list(many...), `["a" and 0 in both] → ["c0i.large","c1i.large","c2i.large","c3i.large","c4i.large","c5i.large","c6i.large","c7i.large",32 more and 0 in both]`},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			from, to := (&FieldChange{From: tc.from, To: tc.to}).values()
			if got := from + " → " + to; got != tc.want {
				t.Errorf("%s\nwant %s", got, tc.want)
			}
		})
	}
}
