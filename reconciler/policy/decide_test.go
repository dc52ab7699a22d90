package policy

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/resources"
)

var controllerLabels = map[string]string{"app.kubernetes.io/name": "reeve"}

func judgeDecision(t *testing.T, e *Engine, c Case, p DecisionParts) Result {
	t.Helper()
	p.Fleet = c.Fleet
	if p.Snapshot == nil {
		p.Snapshot = (&cluster.Snapshot{Time: c.Now}).Seal()
	}
	q, err := NewDecisionQuery(p)
	if err != nil {
		t.Fatal(err)
	}
	r, err := e.Decision(context.Background(), c, q)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestNoNodeIsMadeForTheControllersOwnPods(t *testing.T) {
	e := engine(t, nil)
	f := newFleet(t, "al2023@v20260318")
	own := pendingPods("kube-system", controllerLabels, "reeve-1", "reeve-2")
	others := pendingPods("default", map[string]string{"app": "inflate"}, "inflate-1")
	p := provision(own, names(someTypes()))
	p.Claims[0].Pods = append(p.Claims[0].Pods, provision(others, names(someTypes())).Claims[0].Pods...)
	parts := DecisionParts{
		Kind: decision.Provision, Proposal: p, Types: newTypes(t, someTypes()),
		Snapshot: (&cluster.Snapshot{Time: noon, Pending: append(own, others...)}).Seal(),
	}
	r := judgeDecision(t, e, Case{Fleet: f, Now: noon}, parts)
	var got []string
	for _, v := range r.Violations {
		got = append(got, v.Rule+" "+v.Resource+" "+v.Position.String()+" "+v.Message)
	}
	want := []string{
		`REEVE-CTRL-001 Pod/kube-system/reeve-1 clusters/myeks/fleet.cue:30:3 NodePool "default" would make a node for the controller's own pod`,
		`REEVE-CTRL-001 Pod/kube-system/reeve-2 clusters/myeks/fleet.cue:30:3 NodePool "default" would make a node for the controller's own pod`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
	parts.Proposal = provision(others, names(someTypes()))
	if r := judgeDecision(t, e, Case{Fleet: f, Now: noon}, parts); !r.Verdict().Allowed {
		t.Errorf("for other pods: %+v", r.Violations)
	}
}

func TestTheNodeUnderTheControllerIsNotRemoved(t *testing.T) {
	e := engine(t, nil)
	f := newFleet(t, "al2023@v20260318")
	own := pendingPods("kube-system", controllerLabels, "reeve-1")
	s := (&cluster.Snapshot{Time: noon, Nodes: []*cluster.Node{{Name: "ip-1", Claim: &cluster.Claim{Name: "default-a"}, Pods: own}, {Name: "ip-2"}}}).Seal()
	p := decision.Proposal{NodePool: "default", Reason: "empty", Nodes: []decision.Node{
		{Name: "ip-1", Claim: "default-a", Pods: []decision.PodGroup{{Shape: own[0].Shape.ID, Namespace: "kube-system", Names: []string{"reeve-1"}}}},
		{Name: "ip-2"},
	}}
	for _, tc := range []struct {
		kind       decision.Kind
		controller cluster.Controller
		want       []string
	}{
		{decision.Consolidate, cluster.Controller{}, []string{"Node/ip-1"}},
		{decision.Drift, cluster.Controller{Node: "ip-2"}, []string{"Node/ip-1", "Node/ip-2"}},
		{decision.Interrupt, cluster.Controller{Node: "ip-2"}, nil},
	} {
		s.Controller = tc.controller
		r := judgeDecision(t, e, Case{Fleet: f, Now: noon}, DecisionParts{Kind: tc.kind, Proposal: p, Snapshot: s})
		var got []string
		for _, v := range r.Violations {
			if v.Rule != "REEVE-CTRL-002" {
				t.Errorf("%s: %+v", tc.kind, v)
			}
			got = append(got, v.Resource)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.kind, diff)
		}
	}
}

func TestPoliciesSeeTheWholeProposal(t *testing.T) {
	e := engine(t, map[string]string{"policies/a.rego": `# METADATA
# schemas:
#   - input: schema.decision
package reeve.decision.ceiling

# METADATA
# custom:
#   id: ORG-PRICE
exclude contains {"msg": "dearer than the ceiling", "instanceType": name} if {
	some claim in input.proposal.claims
	some name in claim.launchable.names
	input.prices[name][claim.zone]["on-demand"] > 0.35
}

exclude contains {"msg": "of another pool", "instanceType": "c5a.2xlarge", "nodePool": "gpu"}

deny contains {"msg": sprintf("%v in %s at %s", [count(input.recent), input.cluster.environment, input.now]), "resource": "NodeClaim/0"} if {
	time.now_ns() == time.parse_rfc3339_ns(input.now)
	some shape in input.shapes
	shape.owner.kind == "ReplicaSet"
	some node in input.nodes
	node.labels.team == "a"
}
`})
	f := newFleet(t, "al2023@v20260318")
	list := someTypes()
	list[1].Offerings[0].Price = 2_464_000_000
	pods := pendingPods("default", map[string]string{"app": "inflate"}, "inflate-1", "inflate-2")
	p := provision(pods, names(list))
	p.Placements = []decision.Placement{{Node: "default-a"}}
	s := &cluster.Snapshot{
		Time: noon, Pending: pods, Recent: []cluster.Recent{{ID: "x"}, {ID: "y"}},
		Nodes: []*cluster.Node{{Name: "ip-1", Claim: &cluster.Claim{Name: "default-a"}, Labels: map[string]string{"team": "a"}}, {Name: "ip-2", Labels: map[string]string{"team": "b"}}},
	}
	r := judgeDecision(t, e, Case{Fleet: f, Now: noon}, DecisionParts{Kind: decision.Provision, Proposal: p, Snapshot: s.Seal(), Types: newTypes(t, list)})
	want := []decision.Exclusion{{Rule: "ORG-PRICE", Message: "dearer than the ceiling", NodePool: "default", Types: set("m6g.16xlarge")}}
	if diff := cmp.Diff(want, r.Exclusions); diff != "" {
		t.Errorf("exclusions (-want +got):\n%s", diff)
	}
	if len(r.Violations) != 1 || r.Violations[0].Message != "2 in production at 2026-05-01T12:00:00Z" || r.Violations[0].Resource != "NodeClaim/0" {
		t.Errorf("violations %+v", r.Violations)
	}
}

func TestAnExceptionForTheNodePoolHoldsForItsDecisions(t *testing.T) {
	e := engine(t, map[string]string{"policies/a.rego": "package reeve.decision\n\ndeny contains {\"msg\": \"no\", \"resource\": \"NodeClaim/0\"}\n"})
	f := newFleet(t, "al2023@v20260318")
	p := provision(pendingPods("default", nil, "a"), []string{"c5a.2xlarge"})
	for resource, allowed := range map[string]bool{"NodePool/default": true, "NodeClaim/0": true, "NodePool/gpu": false} {
		f.Exceptions = []fleet.Exception{{Rule: "reeve.decision.deny", Resource: resource, Expires: noon.Add(time.Hour)}}
		if r := judgeDecision(t, e, Case{Fleet: f, Now: noon}, DecisionParts{Kind: decision.Provision, Proposal: p}); r.Verdict().Allowed != allowed {
			t.Errorf("%s: %+v", resource, r)
		}
	}
}

func TestTheInputIsWhatItsTypeSays(t *testing.T) {
	f := newFleet(t, "al2023@v20260318")
	list := manyTypes(40)
	pods := pendingPods("default", map[string]string{"app": "inflate"}, "inflate-1")
	p := provision(pods, names(list))
	if len(p.Claims[0].Launchable.Names) != 0 {
		t.Fatal("the list is short, so the test shows nothing")
	}
	p.Unplaced = []decision.Unplaced{{Reason: "x", Pods: p.Claims[0].Pods}}
	p.Nodes = []decision.Node{{Name: "ip-1"}}
	s := (&cluster.Snapshot{Time: noon, Pending: pods, Nodes: []*cluster.Node{{Name: "ip-1"}}}).Seal()
	q, err := NewDecisionQuery(DecisionParts{Kind: decision.Provision, Proposal: p, Fleet: f, Snapshot: s, Types: newTypes(t, list)})
	if err != nil {
		t.Fatal(err)
	}
	in := q.Input()
	if got := in.Proposal.Claims[0].Launchable.Names; len(got) != 40 || len(p.Claims[0].Launchable.Names) != 0 {
		t.Errorf("launchable types of the input: %v; of the proposal: %v", got, p.Claims[0].Launchable)
	}
	if len(in.Prices) != 40 || len(in.Shapes) != 1 || len(in.Nodes) != 1 {
		t.Errorf("%d prices, %d shapes, %d nodes", len(in.Prices), len(in.Shapes), len(in.Nodes))
	}
	b, err := canonical(in)
	if err != nil {
		t.Fatal(err)
	}
	want, err := toValue(b)
	if err != nil {
		t.Fatal(err)
	}
	got, digest, err := q.value()
	if err != nil || got.Compare(want) != 0 {
		t.Errorf("got  %s\nwant %s, %v", got, want, err)
	}
	if _, again, _ := q.value(); again != digest {
		t.Error("the digest changes")
	}
	list[0].Offerings[0].Price++
	q.types = newTypes(t, list)
	if _, other, _ := q.value(); other == digest {
		t.Error("the digest does not know the prices")
	}
}

func TestTheInputHasWhatTheNodesCost(t *testing.T) {
	node := func(name, pool string, price resources.Price, change func(*cluster.Node)) *cluster.Node {
		n := &cluster.Node{Name: name, Claim: &cluster.Claim{Name: pool + "-" + name, NodePool: pool, Price: price}}
		if change != nil {
			change(n)
		}
		return n
	}
	s := (&cluster.Snapshot{Time: noon, Nodes: []*cluster.Node{
		node("a", "default", 344_000_000, nil),
		node("b", "default", 86_000_000, nil),
		node("c", "gpu", 1_006_000_000, nil),
		node("going", "default", 344_000_000, func(n *cluster.Node) { n.Deleting = true }),
		node("chosen", "gpu", 344_000_000, func(n *cluster.Node) { n.Removing = "20260501T120000.000Z-x" }),
		node("new", "fresh", 0, nil),
		{Name: "not-ours"},
	}}).Seal()
	q, err := NewDecisionQuery(DecisionParts{Kind: decision.Interrupt, Fleet: newFleet(t, "x@v1"), Snapshot: s})
	if err != nil {
		t.Fatal(err)
	}
	want := Costs{Fleet: 1_436_000_000, NodePools: map[string]resources.Price{"default": 430_000_000, "gpu": 1_006_000_000}}
	if diff := cmp.Diff(want, q.Input().Costs); diff != "" {
		t.Errorf("costs (-want +got):\n%s", diff)
	}
	list := someTypes()
	for _, n := range s.Nodes[:2] {
		n.Claim.InstanceType, n.Claim.Zone, n.Claim.CapacityType = list[0].Name, list[0].Offerings[0].Zone, list[0].Offerings[0].CapacityType
	}
	list[0].Offerings[0].Price = 500_000_000
	if q, err = NewDecisionQuery(DecisionParts{Kind: decision.Interrupt, Fleet: newFleet(t, "x@v1"), Snapshot: s, Types: newTypes(t, list)}); err != nil {
		t.Fatal(err)
	}
	want = Costs{Fleet: 2_006_000_000, NodePools: map[string]resources.Price{"default": 1_000_000_000, "gpu": 1_006_000_000}}
	if diff := cmp.Diff(want, q.Input().Costs); diff != "" {
		t.Errorf("costs at the prices of today (-want +got):\n%s", diff)
	}
}

func TestAProposalWithoutItsListsIsAnError(t *testing.T) {
	p := provision(pendingPods("default", nil, "a"), names(manyTypes(40)))
	p.Lists = nil
	_, err := NewDecisionQuery(DecisionParts{Kind: decision.Provision, Proposal: p, Fleet: newFleet(t, "x@v1"), Snapshot: &cluster.Snapshot{}})
	if err == nil || !strings.Contains(err.Error(), "claim 0") {
		t.Errorf("got %v", err)
	}
}

func TestSchemasDescribeTheInputs(t *testing.T) {
	all, err := Schemas()
	if err != nil {
		t.Fatal(err)
	}
	for stage, fields := range map[Stage][]string{
		StageSpec:     {"fleet", "previous", "diff", "now"},
		StageOffering: {"nodePool", "nodeClass", "status", "instanceTypes"},
		StageDecision: {"kind", "now", "cluster", "proposal", "nodes", "shapes", "prices", "costs", "controller", "recent"},
	} {
		var s struct {
			Type       string
			Properties map[string]struct{ Type, AnyOf any }
		}
		if err := json.Unmarshal(all[stage], &s); err != nil {
			t.Fatal(err)
		}
		for _, f := range fields {
			if s.Properties[f].Type == nil && s.Properties[f].AnyOf == nil {
				t.Errorf("%s: field %s is not described", stage, f)
			}
		}
		if s.Type != "object" || len(s.Properties) != len(fields) {
			t.Errorf("%s: %+v", stage, s)
		}
	}
}
