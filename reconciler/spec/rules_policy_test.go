package spec

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRulesOfPolicyData(t *testing.T) {
	tests := []struct {
		name, document string
		want           []string
	}{
		{"nothing is set", `{}`, nil},
		{"all is well", `{"windows":{"timeZone":"Asia/Seoul"},"expireAfter":{"min":"24h","max":"720h"},"coolDown":{"consolidateAfter":"5m"},
			"priceCeilings":{"node":1.5,"nodePool":20,"fleet":1000,"nodePools":{"gpu":{"node":40}}},"minimumSaving":{"perHour":0.01}}`, nil},
		{"a time zone is in the database", `{"windows":{"timeZone":"Asia/Seol"}}`, []string{`windows.timeZone: there is no time zone "Asia/Seol"`}},
		{"a time zone is the same everywhere", `{"windows":{"timeZone":"Local"}}`, []string{`windows.timeZone: there is no time zone "Local"`}},
		{"durations fit into 64 bits", `{"expireAfter":{"max":"9999999999999h"},"coolDown":{"consolidateAfter":"9999999999999h"}}`, []string{
			`expireAfter.max: "9999999999999h" is not a duration`,
			`coolDown.consolidateAfter: "9999999999999h" is not a duration`}},
		{"money is exact", `{"priceCeilings":{"node":0.0000000001,"nodePools":{"gpu":{"nodePool":1e-3}}},"minimumSaving":{"perHour":0.0000000001}}`, []string{
			`priceCeilings.node: 0.0000000001 is not an amount of money: price "0.0000000001" has more than 9 decimals`,
			`minimumSaving.perHour: 0.0000000001 is not an amount of money: price "0.0000000001" has more than 9 decimals`,
			`priceCeilings.nodePools.gpu.nodePool: 1e-3 is not an amount of money: price "1e-3" is not a decimal number`}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, faults(t, tc.document, checkPolicy)); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}
