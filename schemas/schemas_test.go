package schemas_test

import (
	"io/fs"
	"strings"
	"testing"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/load"
	"github.com/google/go-cmp/cmp"

	"github.com/reeve-project/reeve/schemas"
)

// definition compiles the schemas and looks up a definition.
func definition(t *testing.T, name string) cue.Value {
	t.Helper()
	insts := load.Instances([]string{"."}, &load.Config{FS: schemas.FS(), Dir: "/"})
	if err := insts[0].Err; err != nil {
		t.Fatalf("load: %v", err)
	}
	v := cuecontext.New().BuildInstance(insts[0]).LookupPath(cue.ParsePath(name))
	if err := v.Err(); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return v
}

const (
	poolSpec  = `template: spec: {nodeClassRef: {group: "karpenter.k8s.aws", kind: "EC2NodeClass", name: "default"}, requirements: []}`
	classSpec = `role: "nodes", amiSelectorTerms: [{alias: "al2023@v20260318"}], subnetSelectorTerms: [{id: "subnet-1"}], securityGroupSelectorTerms: [{id: "sg-1"}]`
)

func TestTheSchemasRefuseWhatTheCRDsRefuse(t *testing.T) {
	pool := "default: spec: {" + poolSpec + "}\n"
	class := "default: spec: {" + classSpec + "}\n"
	cluster := `name: "blue", region: "eu-central-1", kubernetesVersion: "1.34", environment: "production"` + "\n"
	tests := []struct {
		name, definition, cue string
		want                  string // part of the message; empty: accepted
	}{
		{"a small NodePool is accepted", "#NodePools", pool, ""},
		{"a misspelled field is refused", "#NodePools", pool + "default: spec: weigth: 1", "spec.weigth: field not allowed"},
		{"a misspelled field in a list is refused", "#NodePools", pool + `default: spec: template: spec: taints: [{key: "a", efect: "NoSchedule"}]`, "field not allowed"},
		{"a misspelled field in a bounded list is refused", "#NodePools", strings.ReplaceAll(pool, "[]", `[{key: "a", operator: "Exists", vales: []}]`), "requirements.0.vales: field not allowed"},
		{"a misspelled field below a bounded list is refused", "#NodeClasses", class + `default: spec: blockDeviceMappings: [{ebs: {volumeSize: "1Gi", size: 1}}]`, "ebs.size: field not allowed"},
		{"a misspelled field of a class is refused", "#NodeClasses", class + `default: spec: rolle: "a"`, "spec.rolle: field not allowed"},
		{"a misspelled setting of kubelet is refused", "#NodeClasses", class + `default: spec: kubelet: maxpods: 1`, "kubelet.maxpods: field not allowed"},
		{"a reason of a budget is named once", "#NodePools", pool + `default: spec: disruption: {consolidateAfter: "1m", budgets: [{reasons: ["Empty", "Empty"]}]}`, "UniqueItems"},
		{"an upper-case name is refused", "#NodePools", "Default: spec: {" + poolSpec + "}", "Default: field not allowed"},
		{"a NodePool's name has at most 63 characters", "#NodePools", strings.Repeat("a", 64) + ": spec: {" + poolSpec + "}", "field not allowed"},
		{"another name than the key is refused", "#NodePools", pool + `default: metadata: name: "other"`, "conflicting values"},
		{"a NodePool without spec is refused", "#NodePools", "default: {}", "spec: field is required"},
		{"status is refused", "#NodePools", pool + "default: status: {}", "status: field not allowed"},
		{"a group of another provider is left to the checks in Go", "#NodePools", strings.ReplaceAll(pool, "karpenter.k8s.aws", "eks.amazonaws.com"), ""},
		{"an empty name of a class is refused", "#NodePools", strings.ReplaceAll(pool, `name: "default"`, `name: ""`), "nodeClassRef.name"},
		{"hostname is refused as a label", "#NodePools", pool + `default: spec: template: metadata: labels: "kubernetes.io/hostname": "x"`, "set by the provisioner"},
		{"a bad label key is refused", "#NodePools", pool + `default: spec: template: metadata: labels: "/x": "x"`, "not a label key"},
		{"hostname is refused as a requirement", "#NodePools", strings.ReplaceAll(pool, "[]", `[{key: "kubernetes.io/hostname", operator: "Exists"}]`), "key"},
		{"a bad resource name is refused", "#NodePools", pool + `default: spec: limits: "c p u": 1`, "not a resource name"},
		{"an amount without a unit is accepted", "#NodePools", pool + `default: spec: limits: {cpu: 1000, memory: "10Gi"}`, ""},
		{"an empty list of budgets is accepted", "#NodePools", pool + `default: spec: disruption: {consolidateAfter: "1m", budgets: []}`, ""},
		{"a budget without nodes is accepted", "#NodePools", pool + `default: spec: disruption: {consolidateAfter: "1m", budgets: [{reasons: ["Empty"]}]}`, ""},
		{"disruption without consolidateAfter is refused", "#NodePools", pool + `default: spec: disruption: budgets: []`, "consolidateAfter: field is required"},
		{"users may have defaults of their own", "#NodePools", pool + `default: spec: disruption: consolidateAfter: *"1m" | string`, ""},
		{"a wrong policy is refused", "#NodePools", pool + `default: spec: disruption: consolidationPolicy: "WhenUnderutilized"`, "consolidationPolicy"},

		{"a small EC2NodeClass is accepted", "#NodeClasses", class, ""},
		{"an empty role is refused", "#NodeClasses", strings.ReplaceAll(class, `"nodes"`, `""`), "role"},
		{"an alias without version is refused", "#NodeClasses", strings.ReplaceAll(class, "al2023@v20260318", "al2023@"), "alias"},
		{"an alias of an unknown family is refused", "#NodeClasses", strings.ReplaceAll(class, "al2023@v20260318", "ubuntu@latest"), "alias"},
		{"Windows cannot be pinned", "#NodeClasses", strings.ReplaceAll(class, "al2023@v20260318", "windows2022@v1"), "alias"},
		{"an empty list of subnets is refused", "#NodeClasses", strings.ReplaceAll(class, `[{id: "subnet-1"}]`, "[]"), "subnetSelectorTerms"},
		{"an empty tag value is refused", "#NodeClasses", strings.ReplaceAll(class, `id: "subnet-1"`, `tags: a: ""`), "tags.a"},
		{"an empty tag key is refused", "#NodeClasses", strings.ReplaceAll(class, `id: "subnet-1"`, `tags: "": "a"`), "a tag needs a key"},
		{"the cluster's own tag is refused", "#NodeClasses", class + `default: spec: tags: "kubernetes.io/cluster/blue": "owned"`, "set by the provisioner"},
		{"other tags of kubernetes.io are accepted", "#NodeClasses", class + `default: spec: tags: "kubernetes.io/role/x": "y"`, ""},
		{"kubelet reserves known resources only", "#NodeClasses", class + `default: spec: kubelet: kubeReserved: gpu: "1"`, "kubelet can set aside"},
		{"kubelet reserves nothing negative", "#NodeClasses", class + `default: spec: kubelet: systemReserved: cpu: "-1"`, "systemReserved.cpu"},
		{"kubelet evicts on known signals only", "#NodeClasses", class + `default: spec: kubelet: evictionHard: memory: "10%"`, "not a signal"},

		{"the smallest cluster is accepted", "#Cluster", cluster, ""},
		{"a cluster says its environment", "#Cluster", strings.ReplaceAll(cluster, `"production"`, `""`), "environment"},
		{"a day is no unit", "#Cluster", cluster + `ledger: window: "7d"`, "ledger.window"},
		{"an unknown kind cannot fail open", "#Cluster", cluster + `judge: failOpen: ["everything"]`, "failOpen"},
		{"a misspelled setting is refused", "#Cluster", cluster + `engine: nodefee: 1`, "field not allowed"},

		{"own policy data is accepted", "#Policy", `mine: {a: 1}`, ""},
		{"a misspelled setting of a shipped policy is refused", "#Policy", `instanceTypes: exlude: []`, "field not allowed"},
		{"the label of the controller can be replaced", "#Policy", `controllerPlacement: labels: app: "reeve"`, ""},

		{"an exception names who and why", "#Exceptions", `[{rule: "X-1", resource: "NodePool/a"}]`, "reason"},
		{"an exception ends on a date", "#Exceptions", `[{rule: "X-1", resource: "NodePool/a", reason: "r", owner: "o", expires: "2026-05-01"}]`, ""},
		{"an exception ends at an instant", "#Exceptions", `[{rule: "X-1", resource: "NodePool/a", reason: "r", owner: "o", expires: "2026-05-01T10:00:00+02:00"}]`, ""},
		{"an exception does not last for ever", "#Exceptions", `[{rule: "X-1", resource: "NodePool/a", reason: "r", owner: "o", expires: "never"}]`, "expires"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			def := definition(t, tc.definition)
			v := def.Unify(cuecontext.New().CompileString(tc.cue))
			err := v.Validate(cue.Concrete(true))
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tc.want != "" && err == nil:
				t.Errorf("accepted, want an error with %q", tc.want)
			case tc.want != "" && !strings.Contains(err.Error(), tc.want):
				t.Errorf("error %q, want %q in it", err, tc.want)
			}
		})
	}
}

func TestDefaultsOfAllKindsAreInOneTree(t *testing.T) {
	d, err := schemas.FleetDefaults()
	if err != nil {
		t.Fatal(err)
	}
	pool := d.Properties["nodePools"].AdditionalProperties.Properties["spec"].Properties
	class := d.Properties["nodeClasses"].AdditionalProperties.Properties["spec"].Properties
	got := map[string]string{
		"disruption":       string(pool["disruption"].Default),
		"budgets":          string(pool["disruption"].Properties["budgets"].Items.Properties["nodes"].Default),
		"policy":           string(pool["disruption"].Properties["consolidationPolicy"].Default),
		"expireAfter":      string(pool["template"].Properties["spec"].Properties["expireAfter"].Default),
		"metadata options": string(class["metadataOptions"].Properties["httpTokens"].Default),
		"mode":             string(d.Properties["cluster"].Properties["mode"].Default),
	}
	for k, v := range got {
		got[k] = strings.Join(strings.Fields(v), "")
	}
	want := map[string]string{
		"disruption":       `{"consolidateAfter":"0s"}`,
		"budgets":          `"10%"`,
		"policy":           `"WhenEmptyOrUnderutilized"`,
		"expireAfter":      `"720h"`,
		"metadata options": `"required"`,
		"mode":             `"enforce"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
}

func TestTheEmbeddedModuleIsComplete(t *testing.T) {
	var got []string
	err := fs.WalkDir(schemas.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			got = append(got, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"cluster.cue", "cue.mod/module.cue", "fleet.cue", "nodeclass.cue", "nodeclass_gen.cue", "nodepool.cue", "nodepool_gen.cue", "policy.cue"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}
