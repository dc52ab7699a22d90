package check

import (
	"encoding/json"
	"testing"

	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/policy"
	"github.com/reeve-project/reeve/reconciler/report"
)

// TestWhatAsksForLessReplacesNothing goes through the whole comparison: fields,
// hash and effect.
func TestWhatAsksForLessReplacesNothing(t *testing.T) {
	requirement := func(operator, values string) string {
		return `{"key":"k","operator":"` + operator + `","values":[` + values + `]}`
	}
	taint := func(key string) string { return `{"key":"` + key + `","effect":"NoSchedule"}` }
	tests := []struct {
		name, field, from, to string
		want                  report.Effect
	}{
		{"one more value", "requirements", requirement("In", `"a"`), requirement("In", `"a","b"`), report.NewNodesOnly},
		{"one value less", "requirements", requirement("In", `"a","b"`), requirement("In", `"a"`), report.ReplacesOutside},
		{"less is left out", "requirements", requirement("NotIn", `"a","b"`), requirement("NotIn", `"b"`), report.NewNodesOnly},
		{"more is left out", "requirements", requirement("NotIn", `"b"`), requirement("NotIn", `"a","b"`), report.ReplacesOutside},
		{"a lower bound below", "requirements", requirement("Gt", `"10"`), requirement("Gt", `"9"`), report.NewNodesOnly},
		{"a lower bound above", "requirements", requirement("Gt", `"9"`), requirement("Gt", `"10"`), report.ReplacesOutside},
		{"an upper bound above", "requirements", requirement("Lt", `"9"`), requirement("Lt", `"10"`), report.NewNodesOnly},
		{"a bound that is no number", "requirements", requirement("Lt", `"9"`), requirement("Lt", `"x"`), report.ReplacesOutside},
		{"one that goes", "requirements", requirement("In", `"a"`), ``, report.NewNodesOnly},
		{"one that comes", "requirements", ``, requirement("In", `"a"`), report.ReplacesOutside},
		{"a taint that goes", "taints", taint("a") + "," + taint("b"), taint("b"), report.Replaces},
		{"a taint that comes in front", "taints", taint("b"), taint("a") + "," + taint("b"), report.Replaces},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			of := func(list string) *fleet.Fleet {
				doc := `{"nodePools":{"p":{"metadata":{"name":"p"},"spec":{"template":{"spec":{"` + tc.field + `":[` + list + `]}}}}}}`
				f := &fleet.Fleet{Document: json.RawMessage(doc)}
				var read struct{ NodePools map[string]json.RawMessage }
				if err := json.Unmarshal(f.Document, &read); err != nil {
					t.Fatal(err)
				}
				np := &karpv1.NodePool{}
				if err := json.Unmarshal(read.NodePools["p"], np); err != nil {
					t.Fatal(err)
				}
				f.NodePools = append(f.NodePools, np)
				return f
			}
			base, head := of(tc.from), of(tc.to)
			fields, err := policy.NewFields(base, head)
			if err != nil {
				t.Fatal(err)
			}
			changes := fields.Changes(fleet.Path{"nodePools", "p"})
			h, err := newHasher(base, "NodePool", "p")
			if err != nil || len(changes) != 1 {
				t.Fatalf("%v, %d changes", err, len(changes))
			}
			got, err := fieldChange(head, "NodePool/p", "NodePool", 2, changes[0], h)
			if err != nil || got.Effect != tc.want || got.Why == "" {
				t.Errorf("%v, %+v, want %q", err, got, tc.want)
			}
		})
	}
}
