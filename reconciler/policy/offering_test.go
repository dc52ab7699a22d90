package policy

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/resources"
)

// someTypes are a few types of each sort.
func someTypes() []InstanceType {
	var out []InstanceType
	for _, name := range []string{"c5a.2xlarge", "m6g.16xlarge", "m6gd.16xlarge", "m6g.large", "m6g.metal", "g5.xlarge"} {
		family, size, _ := strings.Cut(name, ".")
		it := InstanceType{
			Name: name,
			Labels: map[string]string{
				"karpenter.k8s.aws/instance-family": family, "karpenter.k8s.aws/instance-size": size, "node.kubernetes.io/instance-type": name,
			},
			Capacity: resources.List{"cpu": 8000, "memory": 16 << 30}, Allocatable: resources.List{"cpu": 7910, "memory": 14 << 30},
			Offerings: []Offering{
				{Zone: "ap-northeast-2a", CapacityType: "on-demand", Price: 344_000_000},
				{Zone: "ap-northeast-2b", CapacityType: "on-demand", Price: 344_000_000},
			},
		}
		if size == "large" {
			it.Offerings = append(it.Offerings, Offering{Zone: "ap-northeast-2a", CapacityType: "spot", Price: 100_000_000})
		}
		if family == "g5" {
			it.Labels["karpenter.k8s.aws/instance-gpu-count"] = "1"
		}
		out = append(out, it)
	}
	return out
}

func judgeOffering(t *testing.T, e *Engine, c Case, types *Types, status *cluster.NodeClassStatus) Result {
	t.Helper()
	specs, err := NewSpecs(c.Fleet)
	if err != nil {
		t.Fatal(err)
	}
	q, err := specs.Query("default", status, types)
	if err != nil {
		t.Fatal(err)
	}
	r, err := e.Offering(context.Background(), c, q)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func set(names ...string) decision.TypeSet { return decision.TypeSet{Count: len(names), Names: names} }

func TestExcludedTypesAreNamedWithTheRuleAndTheSetting(t *testing.T) {
	e := engine(t, nil)
	f := newFleet(t, "al2023@v20260318")
	r := judgeOffering(t, e, Case{Fleet: f, Now: noon}, newTypes(t, someTypes()), classStatusFixture())
	policy := &fleet.Position{File: "clusters/myeks/fleet.cue", Line: 30, Column: 3}
	want := []decision.Exclusion{
		{Rule: "REEVE-TYPE-001", Message: `excluded by "m6g*.16xlarge"`, NodePool: "default", Types: set("m6g.16xlarge", "m6gd.16xlarge"), Position: &fleet.Position{File: "clusters/myeks/fleet.cue", Line: 31, Column: 3}},
		{Rule: "REEVE-TYPE-002", Message: `the size "metal" is excluded`, NodePool: "default", Types: set("m6g.metal"), Position: policy},
		{Rule: "REEVE-TYPE-004", Message: "types with GPUs or other accelerators are used only when the NodePool asks for them", NodePool: "default", Types: set("g5.xlarge"), Position: policy},
	}
	if diff := cmp.Diff(want, r.Exclusions); diff != "" {
		t.Errorf("exclusions (-want +got):\n%s", diff)
	}
	if len(r.Violations)+len(r.Warnings) > 0 || r.Evaluation.Custom.NodePool != "default" || r.Evaluation.Path != "reeve/offering" {
		t.Errorf("result %+v", r)
	}
	wantRecord := `{"deny":[],"warn":[],"exclude":[` +
		`{"rule":"REEVE-TYPE-001","msg":"excluded by \"m6g*.16xlarge\"","types":{"count":2,"names":["m6g.16xlarge","m6gd.16xlarge"]}},` +
		`{"rule":"REEVE-TYPE-002","msg":"the size \"metal\" is excluded","types":{"count":1,"names":["m6g.metal"]}},` +
		`{"rule":"REEVE-TYPE-004","msg":"types with GPUs or other accelerators are used only when the NodePool asks for them","types":{"count":1,"names":["g5.xlarge"]}}]}`
	if got := string(r.Evaluation.Result); got != wantRecord {
		t.Errorf("record\n got %s\nwant %s", got, wantRecord)
	}
}

func TestAnExceptionKeepsTypesForOneNodePool(t *testing.T) {
	e := engine(t, nil)
	types := newTypes(t, someTypes())
	for _, resource := range []string{"NodePool/default", "EC2NodeClass/default"} {
		f := newFleet(t, "al2023@v20260318")
		f.Exceptions = []fleet.Exception{{Rule: "REEVE-TYPE-001", Resource: resource, Reason: "big jobs", Owner: "team-a", Expires: noon.Add(time.Hour)}}
		r := judgeOffering(t, e, Case{Fleet: f, Now: noon}, types, nil)
		if len(r.Exclusions) != 2 || len(r.Warnings) != 1 {
			t.Fatalf("%s: %+v", resource, r)
		}
		if w := r.Warnings[0]; w.Message != `excluded by "m6g*.16xlarge": 2 instance types stay` || w.Exception == nil || w.Exception.Reason != "big jobs" {
			t.Errorf("%s: warning %+v", resource, w)
		}
		// An hour later the answer that was kept is used again, without the
		// exception.
		if r := judgeOffering(t, e, Case{Fleet: f, Now: noon.Add(time.Hour)}, types, nil); len(r.Exclusions) != 3 || len(r.Warnings) != 0 {
			t.Errorf("%s: after it expired: %+v", resource, r)
		}
	}
}

func TestExclusionsCanBeAboutZonesAndCapacityTypes(t *testing.T) {
	e := engine(t, map[string]string{"policies/a.rego": `package reeve.offering

# One element for each type; they are joined.
exclude contains {"msg": "no metal", "instanceType": name} if {
	some name, _ in input.instanceTypes
	endswith(name, ".metal")
}

exclude contains {"msg": "no spot", "capacityType": "spot"}

exclude contains {"msg": "dear", "instanceType": name, "zone": o.zone, "capacityType": o.capacityType} if {
	some name, type in input.instanceTypes
	some o in type.offerings
	o.zone == "ap-northeast-2b"
	o.price >= 0.344
	startswith(name, "c")
}

exclude contains {"msg": "not here", "instanceTypes": ["c5a.2xlarge"], "zone": "eu-central-1a"}

exclude contains {"msg": "of another pool", "instanceTypes": ["c5a.2xlarge"], "nodePool": "gpu"}

exclude contains {"msg": "no such type", "instanceTypes": ["x9.huge"]}

deny contains "no subnets" if not input.status.subnets

warn contains {"msg": sprintf("%s %s", [input.nodePool.metadata.name, input.nodeClass.spec.role])}
`})
	f := newFleet(t, "al2023@v20260318")
	f.Policy = nil
	r := judgeOffering(t, e, Case{Fleet: f, Now: noon}, newTypes(t, someTypes()), nil)
	var got []string
	for _, x := range r.Exclusions {
		if x.Rule == "reeve.offering.exclude" {
			got = append(got, fmt.Sprint(x.Message, " ", x.Zone, x.CapacityType, x.Types.Names))
		}
	}
	want := []string{"dear ap-northeast-2bon-demand[c5a.2xlarge]", "no metal [m6g.metal]", "no spot spot[m6g.large]"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("exclusions (-want +got):\n%s", diff)
	}
	if len(r.Violations) != 1 || r.Violations[0].Resource != "NodePool/default" || r.Violations[0].Message != "no subnets" {
		t.Errorf("violations %+v", r.Violations)
	}
	if len(r.Warnings) != 1 || r.Warnings[0].Message != "default node" {
		t.Errorf("warnings %+v", r.Warnings)
	}
	if r := judgeOffering(t, e, Case{Fleet: f, Now: noon}, newTypes(t, someTypes()), classStatusFixture()); len(r.Violations) != 0 {
		t.Errorf("with a status: %+v", r.Violations)
	}
}

func TestAnAnswerIsKeptUntilAnInputChanges(t *testing.T) {
	e := engine(t, nil)
	f := newFleet(t, "al2023@v20260318")
	types := newTypes(t, someTypes())
	c := Case{Fleet: f, Now: noon}
	first := judgeOffering(t, e, c, types, classStatusFixture())
	kept := func() int { return len(e.cache.answers) }
	if kept() != 1 {
		t.Fatalf("%d answers are kept", kept())
	}
	// Everything is made anew with the same content.
	second := judgeOffering(t, e, Case{Fleet: newFleet(t, "al2023@v20260318"), Now: noon}, newTypes(t, someTypes()), classStatusFixture())
	if diff := cmp.Diff(first, second); diff != "" || kept() != 1 {
		t.Errorf("%d kept, differs:\n%s", kept(), diff)
	}
	later := judgeOffering(t, e, Case{Fleet: f, Now: noon.Add(time.Hour), Round: 2}, types, classStatusFixture())
	if later.Evaluation.Timestamp != noon.Add(time.Hour) || later.Evaluation.Custom.Round != 2 || kept() != 1 {
		t.Errorf("%d kept, evaluation %+v", kept(), later.Evaluation)
	}

	status := classStatusFixture()
	status.Status.Subnets[0].ID = "subnet-other"
	judgeOffering(t, e, c, types, status)
	dearer := someTypes()
	dearer[0].Offerings[0].Price++
	judgeOffering(t, e, c, newTypes(t, dearer), classStatusFixture())
	judgeOffering(t, e, Case{Fleet: newFleet(t, "al2023@v20260401"), Now: noon}, types, classStatusFixture())
	if kept() != 4 {
		t.Errorf("%d answers are kept, want one for each change", kept())
	}
}

func TestTheCacheIsBounded(t *testing.T) {
	var oc offeringCache
	for i := range maxCached + 10 {
		oc.put(offeringKey{nodePool: fmt.Sprint(i)}, &cached{})
	}
	if n := len(oc.answers); n != 10 {
		t.Errorf("%d answers are kept", n)
	}
	if oc.get(offeringKey{nodePool: fmt.Sprint(maxCached + 9)}) == nil || oc.get(offeringKey{nodePool: "0"}) != nil {
		t.Error("the wrong ones are kept")
	}
}

func TestAMissedDeadlineIsNotKept(t *testing.T) {
	f := newFleet(t, "al2023@v20260318")
	f.Cluster.Judge.Deadline = fleet.Duration(20 * time.Millisecond)
	e := engine(t, map[string]string{"policies/a.rego": strings.ReplaceAll(strings.ReplaceAll(endless, "decision", "offering"), "deny", "exclude")})
	r := judgeOffering(t, e, Case{Fleet: f, Now: noon}, newTypes(t, someTypes()), nil)
	if len(r.Violations) != 1 || r.Violations[0].Cause != decision.CauseDeadline || len(e.cache.answers) != 0 {
		t.Errorf("%+v", r)
	}
	failing := engine(t, map[string]string{"policies/a.rego": "package reeve.offering\n\nexclude contains \"x\" if to_number(input.nodePool.kind) == 1\n"})
	r = judgeOffering(t, failing, Case{Fleet: f, Now: noon}, newTypes(t, someTypes()), nil)
	if len(r.Violations) != 1 || r.Violations[0].Cause != decision.CauseError || len(failing.cache.answers) != 1 {
		t.Errorf("%+v", r)
	}
}

func TestLongExclusionsAreReferredTo(t *testing.T) {
	e := engine(t, map[string]string{"policies/a.rego": `package reeve.offering

exclude contains {"msg": sprintf("%s in %s is excluded for a reason that takes a whole line to tell", [name, o.zone]), "instanceType": name, "zone": o.zone} if {
	some name, type in input.instanceTypes
	some o in type.offerings
}

exclude contains {"msg": "all"}
`})
	f := newFleet(t, "al2023@v20260318")
	list := manyTypes(700)
	r := judgeOffering(t, e, Case{Fleet: f, Now: noon}, newTypes(t, list), nil)
	if len(r.Violations) > 0 {
		t.Fatal(r.Violations)
	}
	if diff := cmp.Diff([]string{"/input", "/result/exclude"}, r.Evaluation.Erased); diff != "" || len(r.Evaluation.Result) > 2000 {
		t.Errorf("erased (-want +got):\n%s\n%d bytes", diff, len(r.Evaluation.Result))
	}
	x := r.Exclusions[slices.IndexFunc(r.Exclusions, func(x decision.Exclusion) bool { return x.Message == "all" })]
	got, err := x.Types.Resolve(r.Lists)
	if x.Types.Count != 700 || err != nil || len(got) != 700 {
		t.Errorf("exclusion %+v, %v", x, err)
	}
	if !strings.Contains(string(r.Evaluation.Result), `{"rule":"reeve.offering.exclude","types":{"count":2800}}`) {
		t.Errorf("record %s", r.Evaluation.Result)
	}
}

func TestTypesAreConvertedAsTheirJSONWouldBe(t *testing.T) {
	list := manyTypes(30)
	types := newTypes(t, list)
	b, err := canonical(OfferingInput{InstanceTypes: types.list})
	if err != nil {
		t.Fatal(err)
	}
	want, err := toValue(b)
	if err != nil {
		t.Fatal(err)
	}
	got := want.(ast.Object).Get(ast.StringTerm("instanceTypes"))
	if got.Value.Compare(types.term.Value) != 0 {
		t.Errorf("got  %s\nwant %s", types.term, got)
	}
	b, err = canonical(types.Prices(names(list)))
	if err != nil {
		t.Fatal(err)
	}
	if want, err = toValue(b); err != nil || want.Compare(types.priceTerms(names(list)).Value) != 0 {
		t.Errorf("prices: got %s\nwant %s, %v", types.priceTerms(names(list)), want, err)
	}
	if _, err := NewTypes(append(list, list[0])); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("a type that is there twice: %v", err)
	}
}

func TestANodePoolThatIsNotThereIsAnError(t *testing.T) {
	specs, err := NewSpecs(newFleet(t, "al2023@v20260318"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := specs.Query("gpu", nil, newTypes(t, nil)); err == nil || !strings.Contains(err.Error(), "NodePool/gpu is not in the fleet") {
		t.Errorf("got %v", err)
	}
	bad := newFleet(t, "al2023@v20260318")
	bad.Document = json.RawMessage("{")
	if _, err := NewSpecs(bad); err == nil {
		t.Error("a document that is no JSON")
	}
}

func TestAnEngineIsUsedByManyAtOnce(t *testing.T) {
	e := engine(t, nil)
	f := newFleet(t, "al2023@latest")
	types := newTypes(t, someTypes())
	specs, err := NewSpecs(f)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	const n = 8
	for range n {
		go func() {
			c := Case{Fleet: f, Now: noon}
			q, err := specs.Query("default", classStatusFixture(), types)
			if err == nil {
				_, err = e.Offering(context.Background(), c, q)
			}
			if err == nil {
				_, err = e.Spec(context.Background(), c, NewSpecInput(f, nil, Diff{}, noon))
			}
			done <- err
		}()
	}
	for range n {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
