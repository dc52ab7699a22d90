package main

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/reeve-project/reeve/reconciler/spec"
)

//go:embed testdata/team.rego
var teamRules []byte

// breachEvery is how many NodePools share one that breaks a rule.
const breachEvery = 10

// cluster is the name of the generated cluster.
const cluster = "blue"

// shared is what all NodePools have in common, and the EC2NodeClass.
const shared = `package fleet

import "reeve.dev/fleet"

nodePools:   fleet.#NodePools
nodeClasses: fleet.#NodeClasses

nodeClasses: default: spec: {
	role: "KarpenterNodeRole-blue"
	amiSelectorTerms: [{alias: "al2023@latest"}]
	subnetSelectorTerms: [{tags: "karpenter.sh/discovery": "blue"}]
	securityGroupSelectorTerms: [{tags: "karpenter.sh/discovery": "blue"}]
}

_general: {
	template: spec: {
		nodeClassRef: {group: "karpenter.k8s.aws", kind: "EC2NodeClass", name: "default"}
		requirements: [
			{key: "kubernetes.io/arch", operator: "In", values: ["amd64"]},
			{key: "karpenter.sh/capacity-type", operator: "In", values: ["spot", "on-demand"]},
			{key: "karpenter.k8s.aws/instance-category", operator: "In", values: ["c", "m", "r"]},
			{key: "karpenter.k8s.aws/instance-generation", operator: "Gt", values: ["4"]},
		]
		expireAfter: string | *"336h"
	}
	disruption: {
		consolidateAfter: *"1m" | string
		budgets: [{nodes: "20%"}, {nodes: "0", schedule: "0 9 * * mon-fri", duration: "8h"}]
	}
}
`

// policy switches every shipped policy on that specs are judged by.
const policy = `package fleet

import "reeve.dev/fleet"

policy: fleet.#Policy & {
	amiPinning: environments: ["production"]
	nodePoolLimits: enabled: true
	expireAfter: {enabled: true, max: "720h"}
	instanceTypes: {
		exclude: ["m6g.16xlarge", "t*"]
		excludeSizes: ["metal"]
	}
}
`

// noPolicy leaves every shipped policy off.
const noPolicy = "package fleet\n"

// writeFleet makes a fleet repository with n NodePools below dir, and with the
// settings of shipped policies beside the team's rules.
func writeFleet(dir string, n int, settings string) error {
	if _, err := spec.Init(dir, spec.InitOptions{Cluster: cluster}); err != nil {
		return err
	}
	var pools strings.Builder
	pools.WriteString(shared)
	for i := range n {
		limits, expire := fmt.Sprintf("limits: {cpu: \"%d\", memory: \"1000Gi\"}", i+10), ""
		switch i % breachEvery {
		case 3:
			limits = `limits: memory: "1000Gi"`
		case 7:
			expire = "\ttemplate: spec: expireAfter: \"Never\"\n"
		}
		fmt.Fprintf(&pools, `
nodePools: "pool-%03d": spec: _general & {
	weight: %d
	%s
%s	template: metadata: labels: team: "team-%d"
	template: spec: taints: [{key: "team", value: "team-%d", effect: "NoSchedule"}]
}
`, i, i%100+1, limits, expire, i, i)
	}
	at := filepath.Join(dir, "clusters", cluster)
	for name, text := range map[string][]byte{
		filepath.Join(at, "nodepools.cue"):          []byte(pools.String()),
		filepath.Join(at, "nodeclasses.cue"):        []byte("package fleet\n"),
		filepath.Join(at, "policy.cue"):             []byte(settings),
		filepath.Join(dir, "policies", "main.rego"): teamRules,
	} {
		if err := os.WriteFile(name, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// writeDocuments writes the NodePools and EC2NodeClasses of the repository as
// the YAML that conftest reads.
func writeDocuments(ctx context.Context, repository, name string) error {
	f, err := spec.Load(ctx, os.DirFS(repository), spec.Options{Cluster: cluster})
	if err != nil {
		return err
	}
	var out bytes.Buffer
	add := func(object any) error {
		doc, err := yaml.Marshal(object)
		out.WriteString("---\n")
		out.Write(doc)
		return err
	}
	for _, p := range f.NodePools {
		if err := add(p); err != nil {
			return err
		}
	}
	for _, c := range f.NodeClasses {
		if err := add(c); err != nil {
			return err
		}
	}
	return os.WriteFile(name, out.Bytes(), 0o644)
}
