package awse2e_test

import (
	"fmt"
	"strings"
)

// pool is a NodePool of the test's fleets.
type pool struct {
	name string
	// spec is CUE for the fields of the spec besides those that all have.
	spec string
	// requirements are "key operator value,value", one each.
	requirements []string
	// taint keeps everything else away: its key.
	taint  string
	weight int
}

// pools is the file of NodePools.
func pools(all ...pool) string {
	var b strings.Builder
	b.WriteString("package fleet\n\nimport \"reeve.dev/fleet\"\n\nnodePools: fleet.#NodePools\n")
	for _, p := range all {
		fmt.Fprintf(&b, "\nnodePools: %q: spec: {\n\ttemplate: spec: {\n\t\tnodeClassRef: {group: \"karpenter.k8s.aws\", kind: \"EC2NodeClass\", name: \"default\"}\n", p.name)
		if p.taint != "" {
			fmt.Fprintf(&b, "\t\ttaints: [{key: %q, effect: \"NoSchedule\"}]\n", p.taint)
		}
		b.WriteString("\t\trequirements: [\n\t\t\t{key: \"kubernetes.io/os\", operator: \"In\", values: [\"linux\"]},\n")
		for _, req := range p.requirements {
			f := strings.Fields(req)
			fmt.Fprintf(&b, "\t\t\t{key: %q, operator: %q, values: [\"%s\"]},\n", f[0], f[1], strings.ReplaceAll(f[2], ",", "\", \""))
		}
		b.WriteString("\t\t]\n\t\texpireAfter: \"720h\"\n\t}\n\tlimits: cpu: \"100000\"\n")
		if p.weight != 0 {
			fmt.Fprintf(&b, "\tweight: %d\n", p.weight)
		}
		b.WriteString("\tdisruption: {consolidationPolicy: \"WhenEmptyOrUnderutilized\", consolidateAfter: \"30s\", budgets: [{nodes: \"100%\"}]}\n")
		b.WriteString(p.spec + "}\n")
	}
	return b.String()
}

// types is the requirement of certain instance types, onDemand and spot that of
// the capacity type.
func types(names ...string) string {
	return "node.kubernetes.io/instance-type In " + strings.Join(names, ",")
}

const (
	onDemand = "karpenter.sh/capacity-type In on-demand"
	spot     = "karpenter.sh/capacity-type In spot"
)
