package report

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/resources"
)

const cent = resources.USD / 100

// planned is a plan in which everything happens.
func planned() *Plan {
	web := decision.PodGroup{Namespace: "shop", Names: []string{"web-0", "web-1"}}
	finding := decision.Finding{
		Rule: "REEVE-X-001", Message: "not *now*", Resource: "Node/n1", Remediation: "Wait.",
		Position: &fleet.Position{File: "clusters/blue/policy.cue", Line: 3, Column: 5},
	}
	return &Plan{
		Source: "fleet", Cluster: "blue", Time: time.Date(2026, 4, 6, 12, 0, 0, 0, time.UTC),
		Seen:        PlanSeen{Nodes: 2, Others: 1, Bound: 7, Pending: 4, Waiting: []PlanUnused{{"held by a scheduling gate", 1}}},
		Assumptions: []string{"The sky is blue."}, Unused: []PlanUnused{{"Secret v1", 3}},
		Steps: []PlanStep{
			{Kind: decision.Provision, Summary: "provision(default): 1 × c5a.large a for 2 pods, $0.09/h", Allowed: true, Cost: 9 * cent, Launches: []PlanLaunch{{
				NodePool: "default", InstanceType: "c5a.large", Zone: "a", CapacityType: "spot", Price: 9 * cent, Choices: 1,
				NextBest: []decision.Offering{{InstanceType: "c5.large", Zone: "b", Price: 10 * cent}},
				Filters:  []decision.Filter{{By: "catalog", Left: 9}, {By: "policy", Left: 1}}, Requests: resources.List{"cpu": 1000}, Pods: []decision.PodGroup{web},
			}}, Warnings: []decision.Finding{{Rule: "W", Message: "hm"}}},
			{Kind: decision.Provision, Summary: "provision: 1 pod stays pending: REEVE-X-001", Pending: []decision.Unplaced{{
				Reason: "policy", Message: "kept off | by policy", Rules: []string{"REEVE-X-001"}, Pods: []decision.PodGroup{{Namespace: "shop", Names: []string{"db-0"}}},
			}}},
			{Kind: decision.Consolidate, Summary: "consolidate(default): remove 1 node, saves $0.2/h", Cost: -20 * cent, Later: true,
				Removals:   []decision.Node{{Name: "n1", Claim: "default-1", InstanceType: "m5.large", Zone: "a", CapacityType: "on-demand", Price: 20 * cent, Detail: "Underutilized"}},
				Placements: []decision.Placement{{Node: "n2", Pods: []decision.PodGroup{web}}},
				Violations: []decision.Finding{finding},
				Exclusions: []decision.Exclusion{{Rule: "X", NodePool: "default", Types: decision.TypeSet{Count: 1, Names: []string{"t3.large"}}, Message: "too small"}}},
		},
		Fitting: 1, Staying: []PlanStaying{{Message: "Pod is busy", Nodes: []string{"n2", "n3"}}},
		Before: 40 * cent, After: 29 * cent,
	}
}

func planText(t *testing.T, write func(*strings.Builder) error) string {
	t.Helper()
	var b strings.Builder
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestAPlanIsToldInFull(t *testing.T) {
	want := `blue at 2026-04-06T12:00:00Z, fleet fleet
2 nodes of the fleet, 1 other, 7 bound pods, 4 pending pods
1 pod is held by a scheduling gate

provision(default): 1 × c5a.large a for 2 pods, $0.09/h
  launch c5a.large a spot, $0.09/h, for 2 pods (cpu 1)
    shop: web-0, web-1
    the cheapest of 1 instance type that fits; next best c5.large b $0.1/h
    types left after catalog: 9, policy: 1
  warning W: hm

provision: 1 pod stays pending: REEVE-X-001
  pending, policy by REEVE-X-001: kept off | by policy
    shop: db-0

After that, if nothing else changes:

consolidate(default): remove 1 node, saves $0.2/h
  remove n1: m5.large a on-demand, $0.2/h: Underutilized
  onto n2
    shop: web-0, web-1
  denied by REEVE-X-001: not *now* (Node/n1)
    at clusters/blue/policy.cue:3:5
    Wait.
  excluded by X: t3.large in NodePool default: too small

1 pending pod finds room on nodes that exist.

Nodes that stay
  n2, n3: Pod is busy

Assumed
  The sky is blue.
  Not looked at, since no plan depends on it: 3 × Secret v1.

The nodes cost $0.4/h, and $0.29/h after this: $0.11/h less.
`
	got := planText(t, func(b *strings.Builder) error { return PlanText(b, planned()) })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAPlanInMarkdownEscapesWhatOthersWrote(t *testing.T) {
	want := "### Plan for `blue`\n" + `
At 2026-04-06T12:00:00Z: 2 nodes of the fleet, 1 other, 7 bound pods, 4 pending pods. The nodes cost $0.4/h, and $0.29/h after this: $0.11/h less.

| When | Decision | Cost | Policy |
| --- | --- | ---: | --- |
| now | provision(default): 1 × c5a.large a for 2 pods, $0.09/h | $0.09/h | allowed |
| now | provision: 1 pod stays pending: REEVE-X-001 | $0/h | pods stay pending |
| then | consolidate(default): remove 1 node, saves $0.2/h | -$0.2/h | denied by REEVE-X-001 |

- W warns: hm
` + "- pending: `shop: db-0`: kept off \\| by policy\n" +
		"- **REEVE-X-001** denies: not \\*now\\* at `clusters/blue/policy.cue:3:5`\n" + `
Nodes that stay:

` + "- `n2, n3`: Pod is busy\n" + `
<details><summary>Assumed</summary>

- The sky is blue.

</details>
`
	got := planText(t, func(b *strings.Builder) error { return PlanMarkdown(b, planned()) })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAPlanIsWellWhenNothingIsDeniedOrPending(t *testing.T) {
	p := planned()
	if p.OK() {
		t.Error("a denied removal and a pending pod are well")
	}
	p.Steps = p.Steps[:2]
	if p.OK() {
		t.Error("a pending pod is well")
	}
	p.Steps = p.Steps[:1]
	if !p.OK() {
		t.Error("a launch is not well")
	}
	p.Steps, p.After = nil, p.Before
	got := planText(t, func(b *strings.Builder) error { return PlanText(b, p) })
	if !strings.Contains(got, "\nNothing to launch and nothing to remove.\n") || !strings.HasSuffix(got, "\nThe nodes cost $0.4/h, before and after.\n") {
		t.Errorf("got\n%s", got)
	}
	md := planText(t, func(b *strings.Builder) error { return PlanMarkdown(b, p) })
	if !strings.Contains(md, "\nNothing to launch and nothing to remove.\n") {
		t.Errorf("got\n%s", md)
	}
}

func impact() *Impact {
	return &Impact{
		Branch: "origin/reeve/blue", Commit: "0123456789abcdef0123", Time: time.Date(2026, 4, 6, 12, 0, 0, 0, time.UTC), Nodes: 3,
		Assumptions: []string{"Images are as they were."},
		Drift: []PlanDrift{
			{Node: "default-1", NodePool: "default", Cause: "AMIDrift", Detail: "another image"},
			{Node: "default-2", NodePool: "default", Cause: "NodePoolDrifted", Detail: "another template", New: true},
			{Node: "default-3", NodePool: "default", Cause: "NodePoolDrifted", Detail: "another template", New: true},
		},
		Steps: planned().Steps[:1], Now: 40 * cent, Base: 40 * cent, Head: 45 * cent,
	}
}

func TestAnImpactIsToldInFull(t *testing.T) {
	want := `On the cluster as origin/reeve/blue recorded it at 2026-04-06T12:00:00Z (0123456789ab), 3 nodes:
  NodePoolDrifted, NodePool default: default-2, default-3
    another template
  AMIDrift already without the change, NodePool default: default-1
    another image

provision(default): 1 × c5a.large a for 2 pods, $0.09/h
  launch c5a.large a spot, $0.09/h, for 2 pods (cpu 1)
    shop: web-0, web-1
    the cheapest of 1 instance type that fits; next best c5.large b $0.1/h
    types left after catalog: 9, policy: 1
  warning W: hm

  Assumed: Images are as they were.
  The nodes cost $0.4/h now, $0.4/h at rest without the change and $0.45/h with it: $0.05/h more.
`
	if diff := cmp.Diff(want, planText(t, func(b *strings.Builder) error { return ImpactText(b, impact()) })); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
	want = "#### On the cluster as it is\n\nState of `origin/reeve/blue` at 2026-04-06T12:00:00Z (`0123456789ab`), 3 nodes. " + `The nodes cost $0.4/h now, $0.4/h at rest without the change and $0.45/h with it: $0.05/h more.

| Drift | NodePool | Nodes | Why |
| --- | --- | --- | --- |
| NodePoolDrifted | default | 2: default-2, default-3 | another template |
| AMIDrift already without the change | default | 1: default-1 | another image |

| When | Decision | Cost | Policy |
| --- | --- | ---: | --- |
| now | provision(default): 1 × c5a.large a for 2 pods, $0.09/h | $0.09/h | allowed |

- W warns: hm

Assumed: Images are as they were.
`
	if diff := cmp.Diff(want, planText(t, func(b *strings.Builder) error { return ImpactMarkdown(b, impact()) })); diff != "" {
		t.Errorf("markdown (-want +got):\n%s", diff)
	}
}

func TestAnImpactOfNothing(t *testing.T) {
	i := impact()
	i.Drift, i.Steps, i.Assumptions, i.Head = nil, nil, nil, i.Base
	want := `On the cluster as origin/reeve/blue recorded it at 2026-04-06T12:00:00Z (0123456789ab), 3 nodes:
  no node drifts
  The nodes cost $0.4/h now, $0.4/h at rest without the change and $0.4/h with it.
`
	if diff := cmp.Diff(want, planText(t, func(b *strings.Builder) error { return ImpactText(b, i) })); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	md := planText(t, func(b *strings.Builder) error { return ImpactMarkdown(b, i) })
	if !strings.Contains(md, "\nNo node drifts.\n\nNothing to launch and nothing to remove.\n") || !i.OK() {
		t.Errorf("got\n%s", md)
	}
}

func TestAPlanInJSONHasItsListsAndMoney(t *testing.T) {
	got := planText(t, func(b *strings.Builder) error { return PlanJSON(b, planned()) })
	for _, want := range []string{`"before": 0.4`, `"cost": -0.2`, `"later": true`, `"assumptions": [`} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
}

func TestWritingAPlanFailsWithItsWriter(t *testing.T) {
	for name, write := range map[string]func() error{
		"text":     func() error { return PlanText(noRoom{}, planned()) },
		"markdown": func() error { return PlanMarkdown(noRoom{}, planned()) },
		"impact":   func() error { return ImpactText(noRoom{}, impact()) },
	} {
		if err := write(); !errors.Is(err, errNoRoom) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

var errNoRoom = errors.New("no room")

type noRoom struct{}

func (noRoom) Write([]byte) (int, error) { return 0, errNoRoom }
