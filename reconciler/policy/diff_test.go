package policy

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/fleet"
)

func TestADiffNamesObjectsAndFields(t *testing.T) {
	a := newFleet(t, "al2023@v20260318")
	b := newFleet(t, "al2023@v20260401")
	b.Document = json.RawMessage(strings.NewReplacer(
		`"environment": "production"`, `"environment": "staging"`,
		`"nodePools": {`, `"nodePools": {"gpu": {"spec": {}}, `,
		`"values": ["amd64"]`, `"values": ["amd64", "arm64"]`,
	).Replace(string(b.Document)))
	d, err := NewDiff(a, b, bundle(nil), bundle(nil))
	if err != nil {
		t.Fatal(err)
	}
	want := Diff{Policies: []PolicyChange{}, Resources: []decision.Change{
		{Op: "change", Resource: "Cluster/myeks", Fields: []string{"environment"}},
		{Op: "change", Resource: "NodePool/default", Fields: []string{"spec.template.spec.requirements.0.values"}},
		{Op: "add", Resource: "NodePool/gpu"},
		{Op: "change", Resource: "EC2NodeClass/default", Fields: []string{"spec.amiSelectorTerms.0.alias"}},
	}}
	if diff := cmp.Diff(want, d); diff != "" {
		t.Errorf("diff (-want +got):\n%s", diff)
	}
	back, err := NewDiff(b, a, bundle(nil), bundle(nil))
	if err != nil || back.Resources[2].Op != "remove" || back.Resources[2].Resource != "NodePool/gpu" {
		t.Errorf("the other way: %+v, %v", back, err)
	}
	first, err := NewDiff(nil, a, Bundle{}, bundle(nil))
	if err != nil {
		t.Fatal(err)
	}
	want = Diff{Policies: []PolicyChange{}, Resources: []decision.Change{
		{Op: "add", Resource: "Cluster/myeks"}, {Op: "add", Resource: "NodePool/default"}, {Op: "add", Resource: "EC2NodeClass/default"},
	}}
	if diff := cmp.Diff(want, first); diff != "" {
		t.Errorf("the first fleet (-want +got):\n%s", diff)
	}
}

const orgRego = `package reeve.spec

import data.lib.teams

# METADATA
# custom:
#   id: ORG-1
deny contains "a" if teams.owners.a

# METADATA
# custom:
#   id: ORG-2
deny contains "b"
`

const orgLib = "package lib.teams\n\nowners := {\"a\"}\n"

func TestADiffOfRegoSaysWhatMayPassNow(t *testing.T) {
	tests := []struct {
		name string
		edit func(files map[string]string)
		want []PolicyChange
	}{
		{"nothing", func(map[string]string) {}, []PolicyChange{}},
		{"comments and layout", func(f map[string]string) { f["policies/a.rego"] += "\n# a comment\n" }, []PolicyChange{}},
		{"a file is moved", func(f map[string]string) {
			f["policies/z.rego"] = f["policies/a.rego"]
			delete(f, "policies/a.rego")
		}, []PolicyChange{}},
		{"a rule goes", func(f map[string]string) {
			f["policies/a.rego"] = orgRego[:strings.Index(orgRego, "# METADATA\n# custom:\n#   id: ORG-2")]
		}, []PolicyChange{{Op: "remove", Resource: "Rule/ORG-2", Loosened: true}}},
		{"a rule comes", func(f map[string]string) {
			f["policies/b.rego"] = "package reeve.decision\n\ndeny contains \"c\"\n"
		}, []PolicyChange{{Op: "add", Resource: "Rule/reeve.decision.deny"}}},
		{"a rule finds more", func(f map[string]string) {
			f["policies/a.rego"] += "\n# METADATA\n# custom:\n#   id: ORG-2\ndeny contains \"c\"\n"
		}, []PolicyChange{{Op: "change", Resource: "Rule/ORG-2", Fields: []string{"body", "kind", "annotations"}}}},
		{"a condition is added", func(f map[string]string) {
			f["policies/a.rego"] = strings.Replace(orgRego, `contains "b"`, `contains "b" if input.now`, 1)
		}, []PolicyChange{{Op: "change", Resource: "Rule/ORG-2", Fields: []string{"body"}, Loosened: true}}},
		{"a denial becomes a warning", func(f map[string]string) {
			f["policies/a.rego"] = strings.Replace(orgRego, `deny contains "b"`, `warn contains "b"`, 1)
		}, []PolicyChange{{Op: "change", Resource: "Rule/ORG-2", Fields: []string{"body", "kind", "annotations"}, Loosened: true}}},
		{"only the severity", func(f map[string]string) {
			f["policies/a.rego"] = strings.Replace(orgRego, "id: ORG-2", "id: ORG-2\n#   severity: warning", 1)
		}, []PolicyChange{{Op: "change", Resource: "Rule/ORG-2", Fields: []string{"annotations"}}}},
		{"a helper changes", func(f map[string]string) { f["policies/lib.rego"] = strings.Replace(orgLib, `"a"`, `"b"`, 1) },
			[]PolicyChange{{Op: "change", Resource: "Rego/lib.teams.owners", Fields: []string{"body"}, Loosened: true}}},
		{"a helper comes", func(f map[string]string) { f["policies/lib.rego"] += "\nmore := 1\n" },
			[]PolicyChange{{Op: "add", Resource: "Rego/lib.teams.more"}}},
		{"conftest's exceptions come", func(f map[string]string) {
			f["policies/main.rego"] = "package main\n\nexception contains [\"x\"]\n"
		}, []PolicyChange{{Op: "add", Resource: "Rule/main.exception", Loosened: true}}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			files := map[string]string{"policies/a.rego": orgRego, "policies/lib.rego": orgLib}
			before := bundle(files)
			tc.edit(files)
			f := newFleet(t, "al2023@v20260318")
			d, err := NewDiff(f, f, before, bundle(files))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, d.Policies); diff != "" {
				t.Errorf("policies (-want +got):\n%s", diff)
			}
		})
	}
}

func TestADiffOfSettingsSaysWhatMayPassNow(t *testing.T) {
	tests := []struct {
		name, before, after string
		fields              string
		loosened            bool
	}{
		{"switched off", `{"amiPinning":{"enabled":true}}`, `{"amiPinning":{"enabled":false}}`, "enabled", true},
		{"switched on", `{"amiPinning":{"enabled":false}}`, `{"amiPinning":{"enabled":true}}`, "enabled", false},
		{"fewer environments", `{"amiPinning":{"environments":["a","b"]}}`, `{"amiPinning":{"environments":["a"]}}`, "environments", true},
		{"more environments", `{"amiPinning":{"environments":["a"]}}`, `{"amiPinning":{"environments":["a","b"]}}`, "environments", false},
		{"a list of images comes", `{"amiPinning":{"allow":[]}}`, `{"amiPinning":{"allow":["x"]}}`, "allow", false},
		{"a list of images goes", `{"amiPinning":{"allow":["x"]}}`, `{"amiPinning":{"allow":[]}}`, "allow", true},
		{"another image", `{"amiPinning":{"allow":["x"]}}`, `{"amiPinning":{"allow":["x","y"]}}`, "allow", true},
		{"an image fewer", `{"amiPinning":{"allow":["x","y"]}}`, `{"amiPinning":{"allow":["x"]}}`, "allow", false},
		{"images may be older", `{"amiPinning":{"maxAgeDays":30}}`, `{"amiPinning":{"maxAgeDays":60}}`, "maxAgeDays", true},
		{"images may be of any age", `{"amiPinning":{"maxAgeDays":30}}`, `{"amiPinning":{}}`, "maxAgeDays", true},
		{"images must be younger", `{"amiPinning":{"maxAgeDays":30}}`, `{"amiPinning":{"maxAgeDays":7}}`, "maxAgeDays", false},
		{"images get an age", `{"amiPinning":{}}`, `{"amiPinning":{"maxAgeDays":7}}`, "maxAgeDays", false},
		{"fewer exclusions", `{"instanceTypes":{"exclude":["a","b"]}}`, `{"instanceTypes":{"exclude":["a"]}}`, "exclude", true},
		{"more exclusions", `{"instanceTypes":{"excludeSizes":["a"]}}`, `{"instanceTypes":{"excludeSizes":["a","b"]}}`, "excludeSizes", false},
		{"GPUs for all", `{"instanceTypes":{"gpu":"on-request"}}`, `{"instanceTypes":{"gpu":"allow"}}`, "gpu", true},
		{"GPUs for none", `{"instanceTypes":{"gpu":"on-request"}}`, `{"instanceTypes":{"gpu":"never"}}`, "gpu", false},
		{"other pods are the controller's", `{"controllerPlacement":{"namespace":"a"}}`, `{"controllerPlacement":{"namespace":"b"}}`, "namespace", true},
		{"limits of less", `{"nodePoolLimits":{"enabled":true}}`, `{"nodePoolLimits":{"enabled":true,"resources":["memory"]}}`, "resources", true},
		{"limits of more", `{"nodePoolLimits":{"enabled":true}}`, `{"nodePoolLimits":{"enabled":true,"resources":["memory","cpu"]}}`, "resources", false},
		{"nodes may get older", `{"expireAfter":{"max":"24h"}}`, `{"expireAfter":{"max":"720h"}}`, "max", true},
		{"nodes may get as old as they like", `{"expireAfter":{"max":"24h"}}`, `{"expireAfter":{}}`, "max", true},
		{"nodes may get less old", `{"expireAfter":{"max":"24h"}}`, `{"expireAfter":{"max":"90m"}}`, "max", false},
		{"nodes may go sooner", `{"expireAfter":{"min":"24h"}}`, `{"expireAfter":{"min":"1h"}}`, "min", true},
		{"nodes stay longer", `{"expireAfter":{"min":"24h"}}`, `{"expireAfter":{"min":"25h"}}`, "min", false},
		{"a freeze of less", `{"freeze":{"enabled":true}}`, `{"freeze":{"enabled":true,"kinds":["drift"]}}`, "kinds", true},
		{"a freeze of commits too", `{"freeze":{"enabled":true}}`, `{"freeze":{"enabled":true,"kinds":["drift","expire","consolidate","accept"]}}`, "kinds", false},
		{"a freeze ends at another time", `{"freeze":{"until":"2026-01-01"}}`, `{"freeze":{"until":"2026-01-02"}}`, "until", true},
		{"another window", `{"windows":{"allow":[{"start":"22:00"}]}}`, `{"windows":{"allow":[{"start":"22:00"},{"days":["Sun"]}]}}`, "allow", true},
		{"a window fewer", `{"windows":{"allow":[{"start":"22:00"},{"days":["Sun"]}]}}`, `{"windows":{"allow":[{"start":"22:00"}]}}`, "allow", false},
		{"empty nodes at any time", `{"windows":{}}`, `{"windows":{"emptyAnytime":true}}`, "emptyAnytime", true},
		{"empty nodes in the window", `{"windows":{"emptyAnytime":true}}`, `{"windows":{}}`, "emptyAnytime", false},
		{"nodes may cost more", `{"priceCeilings":{"node":0.5}}`, `{"priceCeilings":{"node":0.50000001}}`, "node", true},
		{"nodes may cost less", `{"priceCeilings":{"fleet":100}}`, `{"priceCeilings":{"fleet":99.5}}`, "fleet", false},
		{"a ceiling goes", `{"priceCeilings":{"fleet":100}}`, `{"priceCeilings":{}}`, "fleet", true},
		{"a ceiling comes", `{"priceCeilings":{}}`, `{"priceCeilings":{"fleet":100}}`, "fleet", false},
		{"a NodePool has a ceiling of its own", `{"priceCeilings":{"nodePools":{}}}`, `{"priceCeilings":{"nodePools":{"a":{"node":1}}}}`, "nodePools.a", true},
		{"less has to be saved", `{"minimumSaving":{"perHour":0.1}}`, `{"minimumSaving":{"perHour":0.05}}`, "perHour", true},
		{"more has to be saved", `{"minimumSaving":{"perHour":0.1}}`, `{"minimumSaving":{"perHour":0.2}}`, "perHour", false},
		{"a second bound is enough", `{"minimumSaving":{"perHour":0.1}}`, `{"minimumSaving":{"perHour":0.1,"percent":5}}`, "percent", true},
		{"a NodePool cools down faster", `{"coolDown":{"minutes":10}}`, `{"coolDown":{"minutes":5}}`, "minutes", true},
		{"a NodePool cools down longer", `{"coolDown":{"minutes":10}}`, `{"coolDown":{"minutes":15}}`, "minutes", false},
		{"more is right to be discovered", `{"coexistence":{"discovery":[]}}`, `{"coexistence":{"discovery":["a"]}}`, "discovery", true},
		{"more keys belong to others", `{"coexistence":{"keys":[]}}`, `{"coexistence":{"keys":["a"]}}`, "keys", false},
		{"metadata goes further", `{"instanceMetadata":{}}`, `{"instanceMetadata":{"maxHops":2}}`, "maxHops", true},
		{"metadata goes less far", `{"instanceMetadata":{"maxHops":3}}`, `{"instanceMetadata":{"maxHops":2}}`, "maxHops", false},
		{"fewer namespaces of conftest", `{"conftest":{"namespaces":["a"]}}`, `{"conftest":{"namespaces":[]}}`, "namespaces", true},
		{"a setting of one's own", `{"mine":{"x":1}}`, `{"mine":{"x":2}}`, "x", true},
		{"a setting of one's own that is no object", `{"mine":1}`, `{"mine":2}`, "", true},
	}
	f := newFleet(t, "al2023@v20260318")
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			d, err := NewDiff(f, f, NewBundle(nil, []byte(tc.before)), NewBundle(nil, []byte(tc.after)))
			if err != nil {
				t.Fatal(err)
			}
			if len(d.Policies) != 1 {
				t.Fatalf("got %+v", d.Policies)
			}
			got := d.Policies[0]
			if got.Op != "change" || !strings.HasPrefix(got.Resource, "Policy/") || strings.Join(got.Fields, ",") != tc.fields || got.Loosened != tc.loosened {
				t.Errorf("got %+v", got)
			}
		})
	}
	d, err := NewDiff(f, f, NewBundle(nil, []byte(`{"mine":{}}`)), NewBundle(nil, []byte(`{"yours":{}}`)))
	want := []PolicyChange{{Op: "remove", Resource: "Policy/mine", Loosened: true}, {Op: "add", Resource: "Policy/yours"}}
	if diff := cmp.Diff(want, d.Policies); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestADiffListsExceptionsAndWhatGoesAheadWithoutAVerdict(t *testing.T) {
	ex := func(rule string, expires time.Time) fleet.Exception {
		return fleet.Exception{Rule: rule, Resource: "NodePool/default", Reason: "r", Owner: "o", Expires: expires}
	}
	a, b := newFleet(t, "al2023@v20260318"), newFleet(t, "al2023@v20260318")
	a.Exceptions = []fleet.Exception{ex("A", noon), ex("B", noon), ex("C", noon), ex("D", noon)}
	b.Exceptions = []fleet.Exception{ex("A", noon), ex("B", noon.Add(time.Hour)), ex("C", noon.Add(-time.Hour)), ex("E", noon)}
	a.Cluster.Judge.FailOpen = []string{"interrupt", "reclaim"}
	b.Cluster.Judge.FailOpen = []string{"interrupt", "drift"}
	a.Cluster.Environment, b.Cluster.Environment = "production", "test"
	d, err := NewDiff(a, b, bundle(nil), bundle(nil))
	if err != nil {
		t.Fatal(err)
	}
	want := []PolicyChange{
		{Op: "change", Resource: "Exception/B/NodePool/default", Loosened: true},
		{Op: "change", Resource: "Exception/C/NodePool/default"},
		{Op: "remove", Resource: "Exception/D/NodePool/default"},
		{Op: "add", Resource: "Exception/E/NodePool/default", Loosened: true},
		{Op: "change", Resource: "Judge/environment", Loosened: true},
		{Op: "change", Resource: "Judge/failOpen", Loosened: true},
	}
	if diff := cmp.Diff(want, d.Policies); diff != "" {
		t.Errorf("policies (-want +got):\n%s", diff)
	}
	record := []decision.Change{
		{Op: "change", Resource: "Exception/B/NodePool/default"}, {Op: "change", Resource: "Exception/C/NodePool/default"},
		{Op: "remove", Resource: "Exception/D/NodePool/default"}, {Op: "add", Resource: "Exception/E/NodePool/default"},
		{Op: "change", Resource: "Judge/environment"}, {Op: "change", Resource: "Judge/failOpen"},
	}
	if diff := cmp.Diff(record, d.PolicyChanges()); diff != "" {
		t.Errorf("for the record (-want +got):\n%s", diff)
	}
}

func TestADiffOfWhatCannotBeReadFails(t *testing.T) {
	good := newFleet(t, "al2023@v20260318")
	bad := newFleet(t, "al2023@v20260318")
	bad.Document = json.RawMessage("{")
	if _, err := NewDiff(good, bad, bundle(nil), bundle(nil)); err == nil {
		t.Error("a document that is no JSON")
	}
	if _, err := NewDiff(bad, good, bundle(nil), bundle(nil)); err == nil {
		t.Error("a previous document that is no JSON")
	}
	broken := bundle(map[string]string{"policies/a.rego": "package"})
	if _, err := NewDiff(good, good, bundle(nil), broken); err == nil {
		t.Error("Rego that does not parse")
	}
	if _, err := NewDiff(good, good, broken, bundle(nil)); err == nil {
		t.Error("previous Rego that does not parse")
	}
	if _, err := NewDiff(good, good, bundle(nil), NewBundle(nil, []byte("5"))); err == nil {
		t.Error("data that is no object")
	}
}
