package importer

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// section is the CUE of NodePools without the lines that are always there.
func section(t *testing.T, taken func(string) bool, docs ...string) string {
	t.Helper()
	res := Import([]Input{{Name: "in.yaml", Data: []byte(strings.Join(docs, "---\n"))}}, Options{Taken: taken})
	text, err := res.Single()
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := strings.Cut(text, "nodePools: fleet.#NodePools\n\n")
	return body
}

func TestSharedPartsAreWrittenOnce(t *testing.T) {
	disruption := "disruption: {consolidateAfter: 1m, consolidationPolicy: WhenEmpty}"
	tests := []struct {
		name  string
		docs  []string
		taken func(string) bool
		want  string
	}{
		{"one NodePool shares nothing", []string{pool("a", disruption)}, nil, `nodePools: a: spec: {
	template: spec: {
		nodeClassRef: {group: "karpenter.k8s.aws", kind: "EC2NodeClass", name: "default"}
		requirements: []
	}
	disruption: {
		consolidateAfter:    "1m"
		consolidationPolicy: "WhenEmpty"
	}
}
`},
		{"what is equal goes into a field of its own", []string{pool("a", disruption, "weight: 1"), pool("b", disruption)}, nil, `// What a and b have in common.
_general: {
	template: spec: {
		nodeClassRef: {group: "karpenter.k8s.aws", kind: "EC2NodeClass", name: "default"}
		requirements: []
	}
	disruption: {
		consolidateAfter:    "1m"
		consolidationPolicy: "WhenEmpty"
	}
}

nodePools: a: spec: _general & {
	weight: 1
}

nodePools: b: spec: _general
`},
		{"a name that is taken is not used", []string{pool("a"), pool("b")}, func(name string) bool { return name == "_general" }, `// What a and b have in common.
_general2: {
	template: spec: {
		nodeClassRef: {group: "karpenter.k8s.aws", kind: "EC2NodeClass", name: "default"}
		requirements: []
	}
}

nodePools: a: spec: _general2

nodePools: b: spec: _general2
`},
		{"a comment of one goes with what is shared", []string{pool("a", "weight: 7 # heavy"), pool("b", "weight: 7")}, nil, `// What a and b have in common.
_general: {
	template: spec: {
		nodeClassRef: {group: "karpenter.k8s.aws", kind: "EC2NodeClass", name: "default"}
		requirements: []
	}
	weight: 7 // heavy
}

nodePools: a: spec: _general

nodePools: b: spec: _general
`},
		{"comments that differ stay where they are", []string{pool("a", "weight: 7 # heavy"), pool("b", "weight: 7 # heavier")}, nil, `// What a and b have in common.
_general: {
	template: spec: {
		nodeClassRef: {group: "karpenter.k8s.aws", kind: "EC2NodeClass", name: "default"}
		requirements: []
	}
}

nodePools: a: spec: _general & {
	weight: 7 // heavy
}

nodePools: b: spec: _general & {
	weight: 7 // heavier
}
`},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			got := section(t, tc.taken, tc.docs...)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("CUE (-want +got):\n%s", diff)
			}
		})
	}
}

// TestManyNodePoolsAreFactoredInTime holds that groups are found among many
// NodePools, and that it does not take for ever.
func TestManyNodePoolsAreFactoredInTime(t *testing.T) {
	var docs []string
	for i := range 300 {
		docs = append(docs, pool("p"+strings.Repeat("x", i%60)+string(rune('a'+i/60)), "weight: 5"))
	}
	got := section(t, nil, docs...)
	if n := strings.Count(got, "spec: _general\n"); n != 300 {
		t.Errorf("%d of 300 NodePools are nothing but what they share:\n%.400s", n, got)
	}
}
