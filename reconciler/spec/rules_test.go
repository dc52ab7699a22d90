package spec

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reeve-project/reeve/reconciler/fleet"
)

// faults runs the rules over a document and lists what they find, in order.
func faults(t *testing.T, document string, check func(node, adder)) []string {
	t.Helper()
	root, err := parseNode([]byte(document))
	if err != nil {
		t.Fatalf("%s: %v", document, err)
	}
	var out []string
	check(root, func(at fleet.Path, message, _ string) { out = append(out, at.String()+": "+message) })
	return out
}

func TestRulesOfNodePools(t *testing.T) {
	requirement := func(r string) string { return `{"spec":{"template":{"spec":{"requirements":[` + r + `]}}}}` }
	tests := []struct {
		name, document string
		want           []string
	}{
		{"a static pool has no weight and no other limit than nodes", `{"spec":{"replicas":2,"weight":1,"limits":{"nodes":5,"cpu":1,"memory":"1Gi"}}}`, []string{
			"spec.limits.cpu: a pool with replicas can be limited by nodes only",
			"spec.limits.memory: a pool with replicas can be limited by nodes only",
			"spec.weight: a pool with replicas has no weight"}},
		{"a static pool may be limited by nodes", `{"spec":{"replicas":2,"limits":{"nodes":5}}}`, nil},
		{"limits are quantities", `{"spec":{"limits":{"cpu":"1x","memory":1.5,"nodes":"10"}}}`, []string{`spec.limits.cpu: "1x" is not a quantity`}},
		{"a schedule and a duration go together", `{"spec":{"disruption":{"budgets":[{"schedule":"@daily"},{"duration":"8h"},{"schedule":"@daily","duration":"8h"}]}}}`, []string{
			"spec.disruption.budgets.0.schedule: a schedule needs a duration",
			"spec.disruption.budgets.1.duration: a duration needs a schedule"}},
		{"a schedule is one for cron", `{"spec":{"disruption":{"budgets":[{"schedule":"61 * * * *","duration":"8h"}]}}}`, []string{
			`spec.disruption.budgets.0.schedule: "61 * * * *" is not a schedule: end of range (61) above maximum (59): 61`}},
		{"a budget names some reason", `{"spec":{"disruption":{"budgets":[{"nodes":"1","reasons":[]},{"nodes":"1"},{"nodes":"1","reasons":["Empty"]}]}}}`, []string{
			"spec.disruption.budgets.0.reasons: the list of reasons is empty, so this budget limits nothing"}},
		{"a schedule comes", `{"spec":{"disruption":{"budgets":[{"schedule":"0 0 31 2 *","duration":"8h"},{"schedule":"0 0 29 2 *","duration":"8h"},{"schedule":"0 0 31 2 mon","duration":"8h"}]}}}`, []string{
			`spec.disruption.budgets.0.schedule: "0 0 31 2 *" names a date that never comes`}},
		{"a schedule is in UTC", `{"spec":{"disruption":{"budgets":[{"schedule":"CRON_TZ=UTC 0 9 * * *","duration":"8h"}]}}}`, []string{
			`spec.disruption.budgets.0.schedule: "CRON_TZ=UTC 0 9 * * *" is not a schedule: budgets are in UTC and take no time zone`}},
		{"durations fit into 64 bits", `{"spec":{"disruption":{"consolidateAfter":"9999999999999h"},"template":{"spec":{"expireAfter":"Never","terminationGracePeriod":"9999999999999h"}}}}`, []string{
			`spec.disruption.consolidateAfter: "9999999999999h" is not a duration`,
			`spec.template.spec.terminationGracePeriod: "9999999999999h" is not a duration`}},
		{"reserved labels cannot be set", `{"spec":{"template":{"metadata":{"labels":{"karpenter.sh/nodepool":"x","a.karpenter.k8s.aws/x":"y","karpenter.sh/capacity-type":"spot","kubernetes.io/hostname":"h","mine":"1"}}}}}`, []string{
			"spec.template.metadata.labels[\"a.karpenter.k8s.aws/x\"]: the label a.karpenter.k8s.aws/x is in the reserved domain karpenter.k8s.aws and not one of its well-known labels",
			"spec.template.metadata.labels[\"karpenter.sh/nodepool\"]: the label karpenter.sh/nodepool is set by the provisioner",
			"spec.template.metadata.labels[\"kubernetes.io/hostname\"]: the label kubernetes.io/hostname is reserved"}},
		{"a taint is there once for each effect", `{"spec":{"template":{"spec":{"taints":[{"key":"a","effect":"NoSchedule"},{"key":"a","effect":"NoExecute"}],"startupTaints":[{"key":"a","effect":"NoSchedule","value":"a b"}]}}}}`, []string{
			"spec.template.spec.startupTaints.0: a second taint a with effect NoSchedule",
			`spec.template.spec.startupTaints.0.value: "a b" is not a qualified name: name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character`}},
		{"In needs values", requirement(`{"key":"a","operator":"In","values":[]}`), []string{"spec.template.spec.requirements.0: operator In needs at least one value"}},
		{"minValues needs as many values", requirement(`{"key":"a","operator":"In","values":["x"],"minValues":2}`), []string{
			"spec.template.spec.requirements.0.minValues: minValues is 2 but there are 1 values"}},
		{"minValues of Exists needs none", requirement(`{"key":"a","operator":"Exists","minValues":2}`), nil},
		{"a bound needs one number", requirement(`{"key":"a","operator":"Gt","values":["1","2"]},{"key":"b","operator":"Lte","values":["x"]},{"key":"c","operator":"Gte","values":["0"]},{"key":"d","operator":"Lt"}`), []string{
			"spec.template.spec.requirements.0: operator Gt needs exactly one value, not 2",
			`spec.template.spec.requirements.1.values.0: operator Lte needs a whole number that is not negative, not "x"`,
			"spec.template.spec.requirements.3: operator Lt needs exactly one value, not 0"}},
		{"a value is a label value", requirement(`{"key":"a","operator":"NotIn","values":["ok","-x"]}`), []string{
			`spec.template.spec.requirements.0.values.1: "-x" is not a label value: a valid label must be an empty string or consist of alphanumeric characters`}},
		{"old names of labels count as the new ones", requirement(`{"key":"beta.kubernetes.io/arch","operator":"In","values":["amd64"]}`), nil},
		{"some known value must be left", requirement(`{"key":"karpenter.sh/capacity-type","operator":"In","values":["spott"]},{"key":"karpenter.sh/capacity-type","operator":"In","values":["spot","x"]},{"key":"karpenter.sh/capacity-type","operator":"In","values":["spot","x"],"minValues":2}`), []string{
			"spec.template.spec.requirements.0.values: 0 of these values can ever match karpenter.sh/capacity-type, at least 1 must",
			"spec.template.spec.requirements.2.values: 1 of these values can ever match karpenter.sh/capacity-type, at least 2 must"}},
		{"reserved labels cannot be required", requirement(`{"key":"karpenter.sh/x","operator":"Exists"}`), []string{
			"spec.template.spec.requirements.0.key: the label karpenter.sh/x is in the reserved domain karpenter.sh and not one of its well-known labels"}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			compareStarts(t, tc.want, faults(t, tc.document, checkNodePool))
		})
	}
}

func TestWarningsAboutNodePools(t *testing.T) {
	budgets := func(b string) string { return `{"spec":{"disruption":{"budgets":[` + b + `]}}}` }
	requirement := func(r string) string { return `{"spec":{"template":{"spec":{"requirements":[` + r + `]}}}}` }
	const night = `"schedule":"0 22 * * *","duration":"8h"`
	tests := []struct {
		name, document string
		want           []string
	}{
		{"no budget at all is meant", budgets(""), nil},
		{"a budget for all reasons", budgets(`{"nodes":"10%"}`), nil},
		{"all reasons at night only", budgets(`{"nodes":"0",` + night + `}`), nil},
		{"each reason by itself", budgets(`{"nodes":"1","reasons":["Empty"]},{"nodes":"1","reasons":["Drifted"]},{"nodes":"1","reasons":["Underutilized"]}`), nil},
		{"one reason only", budgets(`{"nodes":"1","reasons":["Empty"]}`), []string{
			"spec.disruption.budgets: no budget limits Drifted or Underutilized"}},
		{"one reason at night, another never", budgets(`{"nodes":"1","reasons":["Empty"]},{"nodes":"1","reasons":["Drifted"],` + night + `}`), []string{
			"spec.disruption.budgets: no budget limits Underutilized",
			"spec.disruption.budgets: outside of the schedules no budget limits Drifted"}},
		{"each reason at some time", budgets(`{"nodes":"1","reasons":["Empty"],` + night + `},{"nodes":"1","reasons":["Drifted","Underutilized"],"schedule":"@daily","duration":"1h"}`), nil},
		{"windows that meet", budgets(`{"nodes":"1","reasons":["Empty","Underutilized"]},{"nodes":"1","reasons":["Drifted"],"schedule":"@daily","duration":"24h"}`), nil},
		{"windows that do not meet", budgets(`{"nodes":"1","reasons":["Empty","Underutilized"]},{"nodes":"1","reasons":["Drifted"],"schedule":"0 0 * * mon-fri","duration":"24h"}`), []string{
			"spec.disruption.budgets: outside of the schedules no budget limits Drifted"}},
		{"more nodes than a number holds", budgets(`{"nodes":"2147483647"},{"nodes":"2147483648"},{"nodes":"00000000000000000001"},{"nodes":"100%"},{"nodes":"99999999999999999999"}`), []string{
			`spec.disruption.budgets.1.nodes: "2147483648" is more than a number of nodes can be`,
			`spec.disruption.budgets.4.nodes: "99999999999999999999" is more than a number of nodes can be`}},
		{"minValues counts different values", requirement(`{"key":"a","operator":"In","values":["x","x","y"],"minValues":3},{"key":"a","operator":"Exists","minValues":3}`), []string{
			"spec.template.spec.requirements.0.minValues: minValues is 3 but only 2 of the values are different"}},
		{"a value that no node can have", requirement(`{"key":"beta.kubernetes.io/arch","operator":"In","values":["amd64"]},{"key":"karpenter.sh/capacity-type","operator":"In","values":["spot","Spot"]}`), []string{
			`spec.template.spec.requirements.1.values.1: "Spot" is no value of karpenter.sh/capacity-type and is left out`}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			compareStarts(t, tc.want, faults(t, tc.document, warnNodePool))
		})
	}
}

// compareStarts compares texts of which the end may be somebody else's words.
func compareStarts(t *testing.T, want, got []string) {
	t.Helper()
	for i := range got {
		if i < len(want) && strings.HasPrefix(got[i], want[i]) {
			got[i] = want[i]
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}

func TestRulesOfClusters(t *testing.T) {
	tests := []struct {
		name, document string
		want           []string
	}{
		{"a branch is one that Git takes", `{"ledger":{"branch":"reeve/blue"}}`, nil},
		{"HEAD is no branch", `{"ledger":{"branch":"HEAD"}}`, []string{`ledger.branch: "HEAD" is not the name of a branch`}},
		{"a branch is named without its folder in Git", `{"ledger":{"branch":"refs/heads/main"}}`, []string{`ledger.branch: "refs/heads/main" is not the name of a branch`}},
		{"Git keeps some endings to itself", `{"ledger":{"branch":"a.lock/b"}}`, []string{`ledger.branch: "a.lock/b" is not the name of a branch`}},
		{"two dots are a range", `{"ledger":{"branch":"a..b"}}`, []string{`ledger.branch: "a..b" is not the name of a branch`}},
		{"money is exact", `{"engine":{"nodeFee":0.0000000001}}`, []string{`engine.nodeFee: 0.0000000001 is not an amount of money`}},
		{"a share is exact", `{"engine":{"vmMemoryOverheadPercent":0.99999999}}`, []string{`engine.vmMemoryOverheadPercent: 0.99999999 is not a share`}},
		{"usual numbers", `{"engine":{"nodeFee":0.01,"vmMemoryOverheadPercent":0.075}}`, nil},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			compareStarts(t, tc.want, faults(t, tc.document, func(n node, add adder) { checkCluster(n, "", add) }))
		})
	}
}

func TestRulesOfNodeClasses(t *testing.T) {
	// ok has what other rules ask for.
	ok := func(more string) string {
		return `{"role":"r","amiSelectorTerms":[{"alias":"al2023@latest"}]` + more + `}`
	}
	tests := []struct {
		name, document string
		want           []string
	}{
		{"a role or a profile", `{"amiSelectorTerms":[{"alias":"al2023@latest"}]}`, []string{": neither role nor instanceProfile is set"}},
		{"not both", ok(`,"instanceProfile":"p"`), []string{"instanceProfile: role and instanceProfile cannot both be set"}},
		{"an image term says something", `{"role":"r","amiFamily":"Custom","amiSelectorTerms":[{},{"owner":"self"},{"ssmParameter":"/p"}]}`, []string{
			"amiSelectorTerms.0: this term selects nothing", "amiSelectorTerms.1: this term selects nothing"}},
		{"an alias stands alone", `{"role":"r","amiSelectorTerms":[{"alias":"al2@latest","owner":"self"},{"id":"ami-1"}]}`, []string{
			"amiSelectorTerms.0.alias: alias cannot be combined with other fields", "amiSelectorTerms.0.alias: an alias must be the only term"}},
		{"an alias has one family and one version", `{"role":"r","amiSelectorTerms":[{"alias":"al2023@v1@v2"}]}`, []string{`amiSelectorTerms.0.alias: "al2023@v1@v2" is not an alias`}},
		{"a moving alias cannot be dressed up as a pinned one", `{"role":"r","amiSelectorTerms":[{"alias":"al2023@latest@"}]}`, []string{`amiSelectorTerms.0.alias: "al2023@latest@" is not an alias`}},
		{"a version has no spaces", `{"role":"r","amiSelectorTerms":[{"alias":"al2023@latest "}]}`, []string{`amiSelectorTerms.0.alias: "al2023@latest " is not an alias`}},
		{"an id stands alone", `{"role":"r","amiFamily":"AL2","amiSelectorTerms":[{"id":"ami-1","name":"x"}]}`, []string{"amiSelectorTerms.0.id: id cannot be combined with other fields"}},
		{"a family fits its alias", ok(`,"amiFamily":"Bottlerocket"`), []string{"amiFamily: amiFamily Bottlerocket does not fit the alias al2023@latest"}},
		{"Custom fits every alias", ok(`,"amiFamily":"Custom"`), nil},
		{"without an alias the family is said", `{"role":"r","amiSelectorTerms":[{"id":"ami-1"}]}`, []string{": without an alias amiFamily is required"}},
		{"an empty list of reservations", ok(`,"capacityReservationSelectorTerms":[]`), []string{"capacityReservationSelectorTerms: this list is empty"}},
		{"a reservation says something", ok(`,"capacityReservationSelectorTerms":[{"ownerID":"123456789012"}]`), []string{"capacityReservationSelectorTerms.0: this term selects nothing"}},
		{"a subnet's id stands alone", ok(`,"subnetSelectorTerms":[{"id":"subnet-1","tags":{"a":"b"}}]`), []string{"subnetSelectorTerms.0.id: id cannot be combined with tags"}},
		{"unless another term is plain, as the CRD has it", ok(`,"subnetSelectorTerms":[{"id":"subnet-1","tags":{"a":"b"}},{"id":"subnet-2"}]`), nil},
		{"a security group's name stands alone", ok(`,"securityGroupSelectorTerms":[{"name":"n","tags":{}}]`), []string{"securityGroupSelectorTerms.0.name: name cannot be combined with tags, id"}},
		{"one root volume", ok(`,"blockDeviceMappings":[{"rootVolume":true},{"rootVolume":true},{"rootVolume":false}]`), []string{"blockDeviceMappings: more than one device has rootVolume"}},
		{"a volume has a size or a snapshot", ok(`,"blockDeviceMappings":[{"ebs":{"encrypted":true}},{"ebs":{"volumeSize":"Ti"}},{"ebs":{"volumeSize":"1 Gi"}},{"ebs":{"volumeSize":"1Gi","volumeInitializationRate":100}}]`), []string{
			"blockDeviceMappings.0.ebs: neither snapshotID nor volumeSize is set",
			`blockDeviceMappings.1.ebs.volumeSize: a volume of size "Ti" holds nothing`,
			`blockDeviceMappings.2.ebs.volumeSize: "1 Gi" is not a quantity`,
			"blockDeviceMappings.3.ebs.volumeInitializationRate: volumeInitializationRate needs a snapshotID"}},
		{"network interfaces", ok(`,"networkInterfaces":[{"networkCardIndex":1,"deviceIndex":0,"interfaceType":"efa-only"},{"networkCardIndex":1,"deviceIndex":0,"interfaceType":"efa-only"}]`), []string{
			"networkInterfaces: there is no primary interface",
			"networkInterfaces.1: a second interface with networkCardIndex 1 and deviceIndex 0",
			"networkInterfaces.1: a second efa-only interface on network card 1"}},
		{"an empty list of interfaces", ok(`,"networkInterfaces":[]`), nil},
		{"structs that set nothing", ok(`,"connectionTracking":{},"placementGroupSelector":{}`), []string{
			"connectionTracking: connectionTracking sets nothing", "placementGroupSelector: neither name nor id is set"}},
		{"a placement group has one name", ok(`,"placementGroupSelector":{"name":"n","id":"pg-1"},"connectionTracking":{"udpTimeout":30}`), []string{"placementGroupSelector: name and id cannot both be set"}},
		{"kubelet", ok(`,"kubelet":{"imageGCHighThresholdPercent":50,"imageGCLowThresholdPercent":50,"kubeReserved":{"cpu":"1z"},"systemReserved":{"memory":"1Gi"},` +
			`"evictionHard":{"memory.available":"5%","nodefs.available":"x"},"evictionSoft":{"memory.available":"10%"},"evictionSoftGracePeriod":{"pid.available":"1 min"}}`), []string{
			"kubelet.imageGCHighThresholdPercent: 50 is not above imageGCLowThresholdPercent, which is 50",
			`kubelet.kubeReserved.cpu: "1z" is not a quantity`,
			`kubelet.evictionHard["nodefs.available"]: "x" is not a quantity`,
			`kubelet.evictionSoft["memory.available"]: memory.available has no grace period`,
			`kubelet.evictionSoftGracePeriod["pid.available"]: "1 min" is not a duration`,
			`kubelet.evictionSoftGracePeriod["pid.available"]: pid.available has a grace period but no threshold`}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			compareStarts(t, tc.want, faults(t, tc.document, checkNodeClass))
		})
	}
}

func TestDecodingIsStrict(t *testing.T) {
	tests := []struct{ name, document, want string }{
		{"an unknown field", `{"spec":{"weight":1,"weigth":1}}`, `a:1:1: nodePools.p: unknown field "spec.weigth" (this version of Reeve does not know the field)`},
		{"a field in other letter case", `{"spec":{"Weight":1}}`, `a:1:1: nodePools.p: unknown field "spec.Weight" (this version of Reeve does not know the field)`},
		{"a wrong type", `{"spec":{"weight":"x"}}`, `a:1:1: nodePools.p.spec.weight: a string does not fit here, want int32`},
		{"a value that does not parse", `{"spec":{"limits":{"cpu":"x"}}}`, `a:1:1: nodePools.p: quantities must match the regular expression`},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			root, err := parseNode([]byte(`{"nodePools":{"p":` + tc.document + `}}`))
			if err != nil {
				t.Fatal(err)
			}
			d := &decoder{positions: fleet.Positions{}, opts: Options{Cluster: "blue"}}
			d.positions.Set(fleet.Path{}, fleet.Position{File: "a", Line: 1, Column: 1})
			d.fleet(root)
			if len(d.found) != 1 {
				t.Fatalf("found %v", d.found)
			}
			if got := d.found[0].String(); !strings.HasPrefix(got, tc.want) {
				t.Errorf("got %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestFindingsNameTheObject(t *testing.T) {
	err := newError([]Diagnostic{
		{Position: fleet.Position{File: "b.cue", Line: 1, Column: 1}, Path: fleet.Path{"cluster", "mode"}, Message: "m"},
		{Position: fleet.Position{File: "a.cue", Line: 2, Column: 3}, Path: fleet.Path{"nodePools", "p", "spec"}, Message: "n", Hint: "h"},
		{Position: fleet.Position{File: "a.cue", Line: 2, Column: 3}, Path: fleet.Path{"nodePools", "p", "spec"}, Message: "n", Hint: "h"},
	})
	var got []string
	for _, f := range err.Findings() {
		got = append(got, strings.Join([]string{f.Rule, f.Severity, f.Resource, f.Path.String(), f.Position.String(), f.Message, f.Remediation}, "|"))
	}
	want := []string{"REEVE-SPEC-001|error|NodePool/p|nodePools.p.spec|a.cue:2:3|n|h", "REEVE-SPEC-001|error||cluster.mode|b.cue:1:1|m|"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}
