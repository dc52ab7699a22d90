package report

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/resources"
)

func anAct(kind decision.Kind, status string) Act {
	return Act{
		Decision: "20260406T120000.000Z-abcdefghijklmnop", Kind: kind, Time: noon, Status: status, Summary: string(kind), Reason: "a reason",
		SpecCommit: "30a4866fbbfd635253ee758fc89a0882d1e614e9", SpecSubject: "Change", SpecAuthor: "A", Policies: "sha256:" + strings.Repeat("a", 64),
	}
}

func step(minutes int, state decision.State, message string) decision.Step {
	return decision.Step{Time: noon.Add(time.Duration(minutes) * time.Minute), State: state, Claim: "default-a", Message: message}
}

// anArrival is a claim of which EC2 launched another type, and of whose choice
// not all is known.
func anArrival(t *testing.T) Arrival {
	launched := step(0, decision.Launched, "")
	dear := price(t, "0.4")
	launched.Instance, launched.InstanceType, launched.Zone, launched.CapacityType, launched.Price = "i-1", "c6i.2xlarge", "b", "on-demand", &dear
	return Arrival{
		Act: anAct(decision.Provision, "launched"),
		Claim: decision.Claim{Name: "default-a", InstanceType: "c5a.2xlarge", Zone: "a", CapacityType: "on-demand", Price: price(t, "0.344"),
			Requests: resources.List{"cpu": 5150}, Pods: pods(7)},
		Choice: Choice{
			Steps: []ChoiceStep{
				{By: "catalog", Left: 10, Known: true},
				{By: "policy", Left: 8, Removed: 2, Known: true, Cheaper: 2, Rules: []string{"X-1"}, Examples: []Removed{{"a.large", price(t, "0.1"), "excluded by X-1"}, {"b.large", price(t, "0.2"), "excluded by X-1"}}},
				{By: "resources", Left: 4, Removed: 4, Known: true, Cheaper: 3, Examples: []Removed{{"c.large", price(t, "0.1"), "cpu 1, wanted 5"}}},
				{By: "exotic", Left: 3, Removed: 1, Known: true},
				{By: "cheapest 60", Left: 2, Removed: 1},
			},
			Note: "the step differs",
			Alternatives: []Alternative{
				{decision.Offering{InstanceType: "c5.2xlarge", Zone: "a", CapacityType: "on-demand", Price: price(t, "0.384")}, price(t, "0.04")},
				{decision.Offering{InstanceType: "c4.2xlarge", Zone: "a", CapacityType: "spot", Price: price(t, "0.344")}, 0},
				{decision.Offering{InstanceType: "c3.2xlarge", Zone: "a", CapacityType: "spot", Price: price(t, "0.3")}, -price(t, "0.044")},
			},
		},
		Replaces: []string{"default-old"},
		Warnings: []decision.Finding{{Rule: "X-2", Message: "dear", Exception: exception}},
		Steps:    []decision.Step{step(0, decision.Claimed, ""), launched},
	}
}

func aDeparture(t *testing.T) Departure {
	return Departure{
		Act:     anAct(decision.Consolidate, "dropped"),
		Node:    decision.Node{Claim: "default-a", InstanceType: "c5a.2xlarge", Price: price(t, "0.344"), Pods: pods(2), Detail: "wasteful", DisruptionCostMilli: 2050},
		Budgets: []decision.Budget{{NodePool: "default", Reason: "Empty", Allowed: 1}, {NodePool: "default", Reason: "Drifted", Unlimited: true}},
		Saving:  price(t, "0.1"), Together: []string{"default-b"},
		Replacements: []Replacement{{"default-c", decision.Offering{InstanceType: "c5.large", Zone: "a", CapacityType: "spot", Price: price(t, "0.05")}}},
		Moves:        []decision.Placement{{Node: "default-d", Pods: pods(1)}},
		Interruption: &decision.Interruption{Kind: "EC2 Spot Instance Interruption Warning", Message: "m", Instance: "i-1", Action: "terminate", Time: noon},
		Verdict:      decision.Verdict{Allowed: true, Exclusions: []decision.Exclusion{{Rule: "X-3", NodePool: "default", Types: decision.TypeSet{Count: 1, Names: []string{"t"}}, Message: "no"}}},
		Second: &Judgement{Time: noon, Violations: []decision.Finding{{
			Rule: "X-4", Message: "frozen", Remediation: "Wait for the end.", Position: &fleet.Position{File: "a.cue", Line: 3, Column: 4},
		}}},
		Steps: []decision.Step{step(1, decision.Dropped, "denied")},
	}
}

func narrow(t *testing.T, got string) {
	t.Helper()
	for line := range strings.Lines(got) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > lineWidth {
			t.Errorf("%d runes: %s", n, line)
		}
	}
}

func TestStoriesForPeople(t *testing.T) {
	a, d := anArrival(t), aDeparture(t)
	gone := aDeparture(t)
	gone.Act.Status, gone.Act.Method, gone.Second, gone.Saving, gone.Interruption = "terminated", "single", nil, -1, nil
	would, denied, adopted := gone, gone, gone
	would.Act.Status, denied.Act.Status, adopted.Act.Kind = "observed", "denied", decision.Adopt
	searched := Searched{Branch: "reeve/x", Decisions: 3, Missing: []string{"2026-04-01"}, State: noon}
	offer := a.Choice.Alternatives[0].Offering
	pod := &PodStory{
		Searched: searched, Pod: "web/a", State: "pending", Node: "default-a", Created: noon,
		Events: []PodEvent{
			{Act: anAct(decision.Provision, "denied"), What: PodPending, Unplaced: &decision.Unplaced{Reason: "policy", Rules: []string{"X-1"}, Message: "closed"}, Repeats: 3},
			{Act: anAct(decision.Provision, "open"), What: PodClaim, Node: "default-a", Offering: &offer, Siblings: pods(9)},
			{Act: anAct(decision.Provision, "open"), What: PodNode, Node: "default-d"},
			{Act: gone.Act, What: PodRemoved, Node: "default-a", Offering: &offer, Detail: "wasteful"},
		},
		Nodes: []Fate{{Node: "default-a", Steps: a.Steps, Removals: []Act{gone.Act}}, {Node: "default-d"}},
		Needs: []Need{{NodePool: "default", Obstacle: "is closed", Remedy: "Open it."}, {Obstacle: "no NodePool", Remedy: "Make one."}},
	}
	record := head(decision.Provision, "provision(default): 1 × c5a.2xlarge")
	record.Repeats, record.Verdict = 2, decision.Verdict{Violations: d.Second.Violations, Warnings: a.Warnings}
	record.Proposal.Unplaced = []decision.Unplaced{{Reason: "limits", Message: "full", Pods: pods(1)}}
	for name, write := range map[string]func(io.Writer) error{
		"explain_node.txt": func(w io.Writer) error {
			return ExplainNode(w, &NodeStory{
				Searched: searched, Claim: "default-a", Name: "ip-1", Instance: "i-1", NodePool: "default", Offering: offer, State: "removed", Came: &a,
				Joined: []Joined{{anAct(decision.Provision, "open"), pods(2)}}, Decisions: []Departure{adopted, denied, would, d, gone}, Others: []string{"default-z"},
			})
		},
		"explain_pod.txt": func(w io.Writer) error { return ExplainPod(w, pod) },
		"explain_decision.txt": func(w io.Writer) error {
			return ExplainDecision(w, &DecisionStory{Act: anAct(decision.Provision, "denied"), Decision: &record, Arrivals: []Arrival{a}, Departures: []Departure{d}, Needs: pod.Needs})
		},
	} {
		got := text(t, write)
		golden(t, name, got)
		narrow(t, got)
	}
}

func TestWhereNodesAndPodsStand(t *testing.T) {
	at := Searched{State: noon}
	for state, want := range map[string]string{
		"running": "there in the last recorded state, 2026-04-06 12:00:00, with 1 pod", "removing": "being removed in the", "removed": "removed\n",
		"not launched": "never launched", "unknown": "not there in the",
	} {
		got := text(t, func(w io.Writer) error {
			return ExplainNode(w, &NodeStory{Searched: at, Claim: "c", State: state, Pods: []string{"a/b"}})
		})
		if !strings.Contains(got, want) {
			t.Errorf("%s: %q is not in:\n%s", state, want, got)
		}
	}
	for want, s := range map[string]PodStory{
		"on node n in":           {State: "running", Node: "n"},
		"pending in the last":    {State: "pending"},
		"it ended, was moved":    {State: "gone"},
		"no state is recorded":   {State: "unknown"},
		"and planned for node n": {State: "pending", Node: "n"},
	} {
		s.Searched = at
		if got := standing(&s); !strings.Contains(got, want) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
}

func TestAStoryAsJSONReadsBack(t *testing.T) {
	d := aDeparture(t)
	got := text(t, func(w io.Writer) error { return ExplainJSON(w, &d) })
	var back Departure
	if err := json.Unmarshal([]byte(got), &back); err != nil || back.Replacements[0].InstanceType != "c5.large" || back.Saving != d.Saving {
		t.Errorf("%v: %+v", err, back)
	}
}
