package spec

import (
	"maps"
	"testing/fstest"
)

const (
	testModule = `module: "example.com/fleet@v0"
language: version: "v0.17.0"
deps: "reeve.dev/fleet@v1": {v: "v1.0.0", default: true}
`
	testCluster = `package fleet

import "reeve.dev/fleet"

cluster: fleet.#Cluster & {
	name:              "blue"
	region:            "eu-central-1"
	kubernetesVersion: "1.34"
	environment:       "production"
}
`
	testClasses = `package fleet

import "reeve.dev/fleet"

nodeClasses: fleet.#NodeClasses
nodeClasses: default: spec: {
	role: "nodes"
	amiSelectorTerms: [{alias: "al2023@v20260318"}]
	subnetSelectorTerms: [{tags: "karpenter.sh/discovery": "blue"}]
	securityGroupSelectorTerms: [{tags: "karpenter.sh/discovery": "blue"}]
}
`
	testPools = `package fleet

import "reeve.dev/fleet"

nodePools: fleet.#NodePools
nodePools: default: spec: template: spec: {
	nodeClassRef: {group: "karpenter.k8s.aws", kind: "EC2NodeClass", name: "default"}
	requirements: [{key: "kubernetes.io/arch", operator: "In", values: ["amd64"]}]
}
`
)

// fleetFS is a valid fleet repository with one cluster, plus or instead of its
// files the given ones; an empty text removes a file. The vendored schemas are
// not in it: they come from the binary.
func fleetFS(cluster string, files map[string]string) fstest.MapFS {
	all := map[string]string{
		"cue.mod/module.cue":                       testModule,
		"cue.mod/local-module.cue":                 localModule,
		"clusters/" + cluster + "/cluster.cue":     testCluster,
		"clusters/" + cluster + "/nodeclasses.cue": testClasses,
		"clusters/" + cluster + "/nodepools.cue":   testPools,
		"README.md":                                "# fleet\n",
		"policies/own.rego":                        "package reeve.spec\n",
	}
	maps.Copy(all, files)
	fsys := fstest.MapFS{}
	for name, text := range all {
		if text != "" {
			fsys[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
		}
	}
	return fsys
}
