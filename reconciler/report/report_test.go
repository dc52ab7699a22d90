package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/requirements"
	"github.com/reeve-project/reeve/reconciler/resources"
)

var noon = time.Date(2026, 4, 6, 12, 0, 0, 0, time.UTC)

// golden compares with a file below testdata, or writes it with UPDATE=1 in
// the environment. No line may end with blanks.
func golden(t *testing.T, name, got string) {
	t.Helper()
	for i, line := range strings.Split(got, "\n") {
		if strings.TrimRight(line, " \t") != line {
			t.Errorf("line %d ends with blanks: %q", i+1, line)
		}
	}
	file := filepath.Join("testdata", name)
	if os.Getenv("UPDATE") == "1" {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got; UPDATE=1 writes it):\n%s", file, diff)
	}
}

func text(t *testing.T, write func(io.Writer) error) string {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func price(t testing.TB, s string) resources.Price {
	t.Helper()
	p, err := resources.ParsePrice(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func pods(n int) []decision.PodGroup {
	g := decision.PodGroup{Shape: "s1", Namespace: "default"}
	for i := range n {
		g.Names = append(g.Names, fmt.Sprintf("web-%d", i))
	}
	return []decision.PodGroup{g}
}

var exception = &fleet.Exception{Rule: "REEVE-AMI-001", Reason: "the new image is late", Owner: "platform", Expires: noon.AddDate(0, 1, 0)}

// head is what every decision of these tests has.
func head(kind decision.Kind, summary string) decision.Decision {
	return decision.Decision{
		ID: "20260406T120000.000Z-aaaaaaaaaaaaaaaa", Kind: kind, Cluster: "blue", Mode: fleet.Enforce, Time: noon, Summary: summary,
		Verdict: decision.Verdict{Allowed: true},
	}
}

// provision is a decision with all that a provision can have.
func provision(t *testing.T) *decision.Decision {
	d := head(decision.Provision, "provision(default): 1 × c5a.large zone-a for 7 pods, $0.086/h")
	d.Inputs = decision.Inputs{SpecCommit: "0123456789abcdef0123456789abcdef01234567", Policies: "sha256:00"}
	d.Repeats = 1
	d.Proposal = decision.Proposal{
		NodePool: "default", Reason: "9 pending pods", Cost: price(t, "0.186"),
		Claims: []decision.Claim{
			{
				Name: "default-aaaaaaaa", InstanceType: "c5a.large", Zone: "zone-a", CapacityType: "on-demand", Price: price(t, "0.086"),
				Requests: resources.List{"cpu": 1150, "pods": 9}, Pods: pods(7),
				Cheapest: []decision.Offering{
					{InstanceType: "c5a.large", Zone: "zone-a", CapacityType: "on-demand", Price: price(t, "0.086")},
					{InstanceType: "c5.large", Zone: "zone-b", CapacityType: "on-demand", Price: price(t, "0.096")},
					{InstanceType: "c6i.large", Zone: "zone-a", CapacityType: "on-demand", Price: price(t, "0.0961")},
				},
				Filters: []decision.Filter{{By: "catalog", Left: 1363}, {By: "policy", Left: 80}, {By: "cheapest 60", Left: 60}},
			},
			{
				Index: 1, InstanceType: "m5.large", Zone: "zone-b", CapacityType: "spot", Price: price(t, "0.1"),
				Requests: resources.List{"pods": 1}, Pods: pods(1),
				Cheapest: []decision.Offering{{InstanceType: "m5.large"}},
			},
		},
		Unplaced: []decision.Unplaced{
			{Reason: "policy", Rules: []string{"A-1", "B-2"}, Message: "policy still denies the node", Pods: pods(1)},
			{Reason: "constraint-unhandled", Message: "no NodePool has the label", Pods: pods(6)},
		},
	}
	d.Verdict.Warnings = []decision.Finding{
		{Rule: "A-1", Message: "close to the limit"},
		{
			Rule: "REEVE-AMI-001", Message: "the image changes by itself", Resource: "EC2NodeClass/default", Remediation: "Pin it.",
			Position: &fleet.Position{File: "clusters/blue/nodeclasses.cue", Line: 13, Column: 22}, Exception: exception,
		},
	}
	d.Verdict.Exclusions = []decision.Exclusion{
		{Rule: "T-1", Message: "too old", NodePool: "default", Types: decision.TypeSet{Count: 2, Names: []string{"c4.large", "c4.xlarge"}}},
		{Rule: "T-2", Message: "too large", Types: decision.TypeSet{Count: 1, List: "qqqq"}, CapacityType: "spot"},
	}
	d.Rounds = []decision.Round{{
		Summary:  "1 × m5.24xlarge for 9 pods",
		Denied:   []decision.Finding{{Rule: "A-1", Message: "dearer than allowed", Resource: "NodeClaim/0"}},
		Excluded: []decision.Exclusion{{Rule: "T-2", Message: "too large", Types: decision.TypeSet{Count: 31, List: "qqqq"}}},
	}}
	return &d
}

func provisionOutcome(t *testing.T) *decision.Outcome {
	p := price(t, "0.086")
	return &decision.Outcome{State: decision.Launched, Unpushed: true, Steps: []decision.Step{
		{Time: noon, State: decision.Claimed, Claim: "default-aaaaaaaa"},
		{
			Time: noon.Add(time.Second), State: decision.Launched, Claim: "default-aaaaaaaa", Instance: "i-0", InstanceType: "c5a.large",
			Zone: "zone-a", CapacityType: "on-demand", Price: &p,
		},
		{Time: noon.Add(time.Minute), State: decision.Registered, Claim: "default-aaaaaaaa", Node: "node-1"},
		{Time: noon.Add(time.Minute), State: decision.Failed, Claim: "default-bbbbbbbb", Message: "no capacity"},
	}}
}

func accept() *decision.Decision {
	d := head(decision.Accept, "accept(01234567): 1 NodePool")
	d.Inputs.SpecCommit = "01234567"
	d.Proposal = decision.Proposal{Reason: "new commit on main", Spec: &decision.SpecChange{
		Branch: "main", Commit: "01234567", Author: "You", Subject: "Add a pool", Forced: true,
		Changes:  []decision.Change{{Op: "add", Resource: "NodePool/gpu"}, {Op: "change", Resource: "NodePool/default", Fields: []string{"spec.limits.cpu", "spec.weight"}}},
		Policies: []decision.Change{{Op: "remove", Resource: "policies/own.rego"}},
	}}
	return &d
}

func reject() *decision.Decision {
	d := head(decision.Reject, "reject(01234567): REEVE-SPEC-001")
	d.Proposal = decision.Proposal{Reason: "new commit on main", Spec: &decision.SpecChange{Branch: "main", Commit: "01234567", Subject: "Break it"}}
	d.Verdict = decision.Verdict{Violations: []decision.Finding{{
		Rule: "REEVE-SPEC-001", Message: "conflicting values", Resource: "NodePool/default", Remediation: "Write a number.",
		Position: &fleet.Position{File: "a.cue", Line: 3, Column: 7},
	}}}
	return &d
}

func consolidate(t *testing.T) *decision.Decision {
	d := head(decision.Consolidate, "consolidate(default): 2 nodes")
	d.Mode, d.Repeats = fleet.Observe, 3
	d.Proposal = decision.Proposal{Reason: "2 empty nodes", Cost: -price(t, "0.2"), Nodes: []decision.Node{
		{Name: "node-1", Claim: "default-aaaaaaaa", InstanceType: "m5.large", Zone: "zone-a", CapacityType: "spot", Price: price(t, "0.1"), Detail: "empty"},
		{Name: "node-2", InstanceType: "m5.large", Zone: "zone-b", CapacityType: "on-demand", Price: price(t, "0.1"), Pods: pods(2)},
	}}
	return &d
}

func TestDecisionTellsAllOfIt(t *testing.T) {
	tests := []struct {
		file string
		d    *decision.Decision
		o    *decision.Outcome
	}{
		{"provision.txt", provision(t), provisionOutcome(t)},
		{"accept.txt", accept(), &decision.Outcome{State: decision.Applied, Final: true, Steps: []decision.Step{{Time: noon, State: decision.Applied}}}},
		{"reject.txt", reject(), nil},
		{"consolidate.txt", consolidate(t), decision.NewOutcome("x")},
	}
	for _, tc := range tests {
		t.Run(tc.file, func(t *testing.T) {
			golden(t, tc.file, text(t, func(w io.Writer) error { return Decision(w, tc.d, tc.o) }))
		})
	}
}

func TestStatusIsHowADecisionStands(t *testing.T) {
	allowed := func(mode fleet.Mode) *decision.Decision {
		return &decision.Decision{Kind: decision.Provision, Mode: mode, Verdict: decision.Verdict{Allowed: true}}
	}
	tests := []struct {
		name string
		d    *decision.Decision
		o    *decision.Outcome
		want string
	}{
		{"a reject is rejected", reject(), nil, "rejected"},
		{"what policy denies is denied", &decision.Decision{Kind: decision.Provision}, nil, "denied"},
		{"a denial in observe is denied too", &decision.Decision{Kind: decision.Provision, Mode: fleet.Observe}, nil, "denied"},
		{"what is allowed in observe is observed", allowed(fleet.Observe), nil, "observed"},
		{"without an outcome it is open", allowed(fleet.Enforce), nil, "open"},
		{"with an empty outcome it is open", allowed(fleet.Enforce), decision.NewOutcome("x"), "open"},
		{"else it is as far as its outcome", allowed(fleet.Enforce), &decision.Outcome{State: decision.Drained}, "drained"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if got := Status(tc.d, tc.o); got != tc.want {
				t.Errorf("status %q, want %q", got, tc.want)
			}
		})
	}
}

func TestLogIsOneLinePerDecision(t *testing.T) {
	got := text(t, func(w io.Writer) error {
		return errors.Join(Log(w, provision(t), &decision.Outcome{State: decision.Initialized}), Log(w, accept(), nil), Log(w, reject(), nil))
	})
	golden(t, "log.txt", got)
}

func TestJSONHoldsDecisionAndOutcomeAsTheyAre(t *testing.T) {
	d, o := provision(t), provisionOutcome(t)
	d.Verdict.Warnings[0].Message = "a < b & c"
	out := text(t, func(w io.Writer) error { return JSON(w, d, o) })
	if !strings.Contains(out, "a < b & c") {
		t.Errorf("HTML is escaped:\n%s", out)
	}
	var got struct {
		Decision *decision.Decision `json:"decision"`
		Outcome  *decision.Outcome  `json:"outcome"`
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(d, got.Decision, cmp.Comparer(requirements.Set.Equal)); diff != "" {
		t.Errorf("decision (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(o, got.Outcome); diff != "" {
		t.Errorf("outcome (-want +got):\n%s", diff)
	}
	if out := text(t, func(w io.Writer) error { return JSON(w, d, nil) }); strings.Contains(out, `"outcome"`) {
		t.Errorf("an outcome that is not there is written:\n%s", out)
	}
}

func newCheck() *Check {
	return &Check{Source: "fleet@0123456789ab", Commit: "0123456789abcdef", Clusters: []ClusterCheck{
		{
			Cluster: "blue", NodePools: 1, NodeClasses: 1, Policies: 1,
			Violations: []decision.Finding{
				{
					Rule: "REEVE-AMI-001", Message: "the image changes by itself", Resource: "EC2NodeClass/default", Remediation: "Pin it.",
					Position: &fleet.Position{File: "clusters/blue/nodeclasses.cue", Line: 13, Column: 22},
				},
				{Rule: "OWN-1", Message: "a < b"},
			},
			Warnings: []decision.Finding{{Rule: "REEVE-EXP-001", Message: "never expires", Resource: "NodePool/default", Exception: exception}},
			Exclusions: []decision.Exclusion{
				{Rule: "T-1", Message: "too old", NodePool: "default", Types: decision.TypeSet{Count: 7, Names: []string{"a", "b", "c", "d", "e", "f", "g"}}},
				{Rule: "T-2", Message: "too small", NodePool: "default", Types: decision.TypeSet{Count: 6, Names: []string{"a", "b", "c", "d", "e", "f"}}, CapacityType: "spot", Zone: "zone-a"},
			},
		},
		{Cluster: "red", NodePools: 2, Policies: 6, Violations: []decision.Finding{}, Warnings: []decision.Finding{}, Exclusions: []decision.Exclusion{}},
	}}
}

func TestCheckIsWrittenForPeopleAndMachines(t *testing.T) {
	golden(t, "check.txt", text(t, func(w io.Writer) error { return CheckText(w, newCheck()) }))
	golden(t, "check.json", text(t, func(w io.Writer) error { return CheckJSON(w, newCheck()) }))
}

func TestTheLastLineOfACheckCounts(t *testing.T) {
	finding := decision.Finding{Rule: "R", Message: "m"}
	many := func(n int) []decision.Finding {
		var out []decision.Finding
		for range n {
			out = append(out, finding)
		}
		return out
	}
	tests := []struct {
		violations, warnings int
		want                 string
		ok                   bool
	}{
		{0, 0, "dir: ok", true},
		{0, 1, "dir: ok, 1 warning", true},
		{0, 2, "dir: ok, 2 warnings", true},
		{1, 0, "dir: 1 error, 0 warnings", false},
		{2, 1, "dir: 2 errors, 1 warning", false},
	}
	for _, tc := range tests {
		t.Run(tc.want, func(t *testing.T) {
			c := &Check{Source: "dir", Clusters: []ClusterCheck{{Cluster: "red"}, {Cluster: "blue", Violations: many(tc.violations), Warnings: many(tc.warnings)}}}
			lines := strings.Split(strings.TrimSpace(text(t, func(w io.Writer) error { return CheckText(w, c) })), "\n")
			if got := lines[len(lines)-1]; got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
			if c.OK() != tc.ok {
				t.Errorf("OK is %v", c.OK())
			}
		})
	}
}

func instanceTypes(t testing.TB) []*catalog.InstanceType {
	large := &catalog.InstanceType{
		Name: "c5a.large", Capacity: resources.List{"cpu": 2000, "memory": 4 << 30, "pods": 29},
		Overhead: resources.List{"cpu": 70}, Allocatable: resources.List{"cpu": 1930, "memory": 3 << 30, "pods": 29},
		Requirements: requirements.NewSet(requirements.In(corev1.LabelArchStable, "amd64")),
		Offerings: []catalog.Offering{
			{Zone: "zone-a", ZoneID: "z-1", CapacityType: "spot", Price: price(t, "0.01"), Available: false},
			{Zone: "zone-a", ZoneID: "z-1", CapacityType: "spot", Price: price(t, "0.03"), Available: true},
			{Zone: "zone-b", ZoneID: "z-2", CapacityType: "spot", Price: price(t, "0.04"), Available: true},
			{Zone: "zone-b", ZoneID: "z-2", CapacityType: "on-demand", Price: price(t, "0.086"), Available: true},
		},
	}
	gone := &catalog.InstanceType{
		Name: "a1.large", Allocatable: resources.List{"cpu": 2000},
		Requirements: requirements.NewSet(requirements.In(corev1.LabelArchStable, "arm64")),
		Offerings:    []catalog.Offering{{Zone: "zone-a", CapacityType: "on-demand", Price: 1}},
	}
	return []*catalog.InstanceType{large, gone}
}

func TestCatalogShowsOnlyOfferingsThatAreAvailable(t *testing.T) {
	golden(t, "catalog.txt", text(t, func(w io.Writer) error { return CatalogText(w, instanceTypes(t)) }))
	golden(t, "catalog.json", text(t, func(w io.Writer) error { return CatalogJSON(w, instanceTypes(t)) }))
	if got := text(t, func(w io.Writer) error { return CatalogJSON(w, nil) }); got != "[]\n" {
		t.Errorf("no types are %q", got)
	}
}

// errWriter takes so many bytes and then fails.
type errWriter struct{ left int }

var errFull = errors.New("disk full")

func (w *errWriter) Write(p []byte) (int, error) {
	if len(p) > w.left {
		n := w.left
		w.left = 0
		return n, errFull
	}
	w.left -= len(p)
	return len(p), nil
}

func TestAWriteThatFailsIsReportedWhereverItFails(t *testing.T) {
	d, o := provision(t), provisionOutcome(t)
	tests := map[string]func(io.Writer) error{
		"Log":         func(w io.Writer) error { return Log(w, d, o) },
		"Decision":    func(w io.Writer) error { return Decision(w, d, o) },
		"JSON":        func(w io.Writer) error { return JSON(w, d, o) },
		"CheckText":   func(w io.Writer) error { return CheckText(w, newCheck()) },
		"CheckJSON":   func(w io.Writer) error { return CheckJSON(w, newCheck()) },
		"CatalogText": func(w io.Writer) error { return CatalogText(w, instanceTypes(t)) },
		"CatalogJSON": func(w io.Writer) error { return CatalogJSON(w, instanceTypes(t)) },
	}
	for name, write := range tests {
		t.Run(name, func(t *testing.T) {
			size := len(text(t, write))
			for left := range size {
				if err := write(&errWriter{left: left}); !errors.Is(err, errFull) {
					t.Fatalf("after %d of %d bytes: %v", left, size, err)
				}
			}
			if err := write(&errWriter{left: size}); err != nil {
				t.Errorf("with room for all: %v", err)
			}
		})
	}
}
