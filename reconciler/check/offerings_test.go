package check

import (
	"slices"
	"strings"
	"testing"

	"github.com/reeve-project/reeve/reconciler/decision"
)

// requirement adds a requirement to the NodePool of a new fleet.
func requirement(t *testing.T, dir, text string) {
	t.Helper()
	change(t, dir, pools, "requirements: [", "requirements: [\n\t\t"+text+",")
}

func TestANodePoolWithoutATypeIsAnError(t *testing.T) {
	tests := []struct {
		name, requirement, policy, message, remediation string
	}{
		{
			"because its requirements meet nothing", `{key: "karpenter.k8s.aws/instance-family", operator: "In", values: ["c99"]}`, "",
			"NodePool requirements: 0", "Widen the requirements of the NodePool.",
		},
		{
			"because policy leaves nothing of them", `{key: "karpenter.k8s.aws/instance-family", operator: "In", values: ["c5a"]}`,
			`policy: instanceTypes: exclude: ["c5a.*"]`,
			"policy: 0", "Widen the requirements of the NodePool, or loosen what excludes types: REEVE-TYPE-001.",
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			dir := newFleet(t)
			requirement(t, dir, tc.requirement)
			write(t, dir, policyFile, "package fleet\n\n"+tc.policy+"\n")
			got := checkOne(t, dir)
			wantSeen(t, "violations", got.Violations, seen{RuleNoType, "NodePool/default", pools, line(t, dir, pools, "requirements: [")})
			wantSeen(t, "warnings", got.Warnings)
			f := got.Violations[0]
			if !strings.Contains(f.Message, tc.message) || f.Remediation != tc.remediation {
				t.Errorf("it says %q and %q", f.Message, f.Remediation)
			}
		})
	}
}

func TestWhatDependsOnTheAccountIsNotCalledMissing(t *testing.T) {
	tests := []struct{ name, from, to, message string }{
		{"reserved capacity", `values: ["on-demand"]`, `values: ["reserved"]`, "the NodePool asks for reserved capacity only"},
		{"a zone that is not built in", `values: ["linux"]},`, `values: ["linux"]},
		{key: "topology.kubernetes.io/zone", operator: "In", values: ["ap-northeast-2-wl1-sel-wlz-1"]},`, "the NodePool asks for no zone that is built in"},
		{"a capacity reservation", `values: ["linux"]},`, `values: ["linux"]},
		{key: "karpenter.k8s.aws/capacity-reservation-id", operator: "In", values: ["cr-0123456789abcdef0"]},`, "the NodePool asks for karpenter.k8s.aws/capacity-reservation-id"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			dir := newFleet(t)
			change(t, dir, pools, tc.from, tc.to)
			got := checkOne(t, dir)
			wantSeen(t, "violations", got.Violations)
			wantSeen(t, "warnings", got.Warnings, seen{RuleNotChecked, "NodePool/default", pools, line(t, dir, pools, "requirements: [")})
			if want := "instance types were not checked: " + tc.message; got.Warnings[0].Message != want {
				t.Errorf("message %q, want %q", got.Warnings[0].Message, want)
			}
		})
	}
}

func TestTooFewValuesForMinValuesIsAWarning(t *testing.T) {
	const families = `{key: "karpenter.k8s.aws/instance-family", operator: "In", values: ["c5a", "c6i", "c7i"], minValues: MIN}`
	tests := []struct {
		name, min, policy, message string
	}{
		{"enough of them is none", "2", `["c5a.*"]`, ""},
		{"policy breaks it", "3", `["c5a.*"]`, "minValues asks for 3 values of karpenter.k8s.aws/instance-family, and the instance types that are left have 2; without policy they would be enough"},
		{"policy takes from what is too little", "4", `["c5a.*"]`, "minValues asks for 4 values of karpenter.k8s.aws/instance-family, and the instance types that are left have 2; without policy they would have 3"},
		{"without any policy", "4", `[]`, "minValues asks for 4 values of karpenter.k8s.aws/instance-family, and the instance types that are left have 3"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			dir := newFleet(t)
			// In with fewer values than minValues is refused by the schema, as
			// Karpenter's CRD does.
			text := strings.Replace(families, "MIN", tc.min, 1)
			if tc.min == "4" {
				text = strings.Replace(text, `"c7i"]`, `"c7i", "c99"]`, 1)
			}
			requirement(t, dir, text)
			write(t, dir, policyFile, "package fleet\n\npolicy: instanceTypes: exclude: "+tc.policy+"\n")
			got := checkOne(t, dir)
			wantSeen(t, "violations", got.Violations)
			if tc.message == "" {
				wantSeen(t, "warnings", got.Warnings)
				return
			}
			wantSeen(t, "warnings", got.Warnings, seen{RuleMinValues, "NodePool/default", pools, line(t, dir, pools, "minValues:")})
			if got.Warnings[0].Message != tc.message {
				t.Errorf("message %q, want %q", got.Warnings[0].Message, tc.message)
			}
		})
	}
}

func TestTooFewSpotTypesIsAWarning(t *testing.T) {
	dir := newFleet(t)
	change(t, dir, pools, `values: ["on-demand"]`, `values: ["spot"]`)
	requirement(t, dir, `{key: "karpenter.k8s.aws/instance-family", operator: "In", values: ["c6i", "c7i"]}`)
	write(t, dir, policyFile, `package fleet

policy: instanceTypes: exclude: ["c7i.*"]
`)
	got := checkOne(t, dir)
	wantSeen(t, "warnings", slices.DeleteFunc(got.Warnings, func(f decision.Finding) bool { return f.Rule != RuleSpotTypes }),
		seen{RuleSpotTypes, "NodePool/default", pools, line(t, dir, pools, "requirements: [")})
}
