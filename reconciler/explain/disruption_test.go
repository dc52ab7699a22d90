package explain

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/port"
	"github.com/reeve-project/reeve/reconciler/report"
)

// fill records passes of twenty provision decisions each, with their outcomes.
func (b *book) fill(passes int) {
	b.t.Helper()
	c := b.claim("for 5 pods", 0)
	for i := range passes {
		var ds []*decision.Decision
		var os []*decision.Outcome
		for j := range 20 {
			cc := c
			cc.Launchable = decision.TypeSet{Count: 1, Names: []string{c.InstanceType}}
			cc.Pods = []decision.PodGroup{{Shape: c.Pods[0].Shape, Namespace: "load"}}
			for k := range 20 {
				cc.Pods[0].Names = append(cc.Pods[0].Names, fmt.Sprintf("load-%d-%d-%02d", i, j, k))
			}
			d := &decision.Decision{Kind: decision.Provision, Proposal: decision.Proposal{NodePool: "default", Reason: "20 pending pods", Claims: []decision.Claim{cc}}}
			b.seal(d)
			o := decision.NewOutcome(d.ID)
			name := d.Proposal.Claims[0].Name
			o.Advance(d.Subjects(), decision.Step{Time: b.now, State: decision.Launched, Claim: name, Instance: fmt.Sprintf("i-%08d", 20*i+j)},
				decision.Step{Time: b.now, State: decision.Initialized, Claim: name, Node: fmt.Sprintf("ip-%d", 20*i+j)})
			ds, os = append(ds, d), append(os, o)
		}
		must(b.t, b.ledger.Append(ctx, port.Entry{Time: b.now, Decisions: ds}))
		must(b.t, b.ledger.Append(ctx, port.Entry{Time: b.now, Outcomes: os}))
		if i%50 == 49 {
			must(b.t, b.ledger.Push(ctx, b.now, true))
		}
	}
}

var finding = decision.Finding{Rule: "X-FREEZE", Message: "no nodes go before noon", Remediation: "Wait."}

func evaluation(id string) *decision.Evaluation {
	return &decision.Evaluation{DecisionID: id, Path: "reeve/decision"}
}

// replaced records that two nodes of the demo go for one, and returns the nodes
// and the decision.
func replaced(b *book) (gone [2]decision.Claim, d *decision.Decision) {
	gone = [2]decision.Claim{b.claim("for 5 pods", 0), b.claim("for 23 pods", 1)}
	fresh := b.claim("for 23 pods", 0)
	fresh.Pods = nil
	d = &decision.Decision{
		Kind: decision.Consolidate, Summary: "consolidate(default): 2 nodes for 1 × c5a.4xlarge, saves $0.1/h",
		Proposal: decision.Proposal{
			NodePool: "default", Reason: "underutilized", Method: "multi", Cost: -100_000_000,
			Nodes: []decision.Node{node(gone[0], "its pods fit elsewhere"), node(gone[1], "")}, Claims: []decision.Claim{fresh},
			Lists:      listsOf(b, fresh.Launchable),
			Budgets:    []decision.Budget{{NodePool: "default", Reason: "Underutilized", Allowed: 4, InUse: 1}, {NodePool: "default", Reason: "Empty", Unlimited: true}},
			Placements: []decision.Placement{{Node: b.claim("for 23 pods", 2).Name, Pods: gone[0].Pods}},
		},
	}
	b.seal(d) // for the name of the claim; recorded below with the same content
	b.now = b.now.Add(-time.Minute)
	a, c := gone[0].Name, gone[1].Name
	price := fresh.Price + 50_000_000
	return gone, b.record(d,
		decision.Step{State: decision.Claimed, Claim: d.Proposal.Claims[0].Name},
		decision.Step{State: decision.Launched, Claim: d.Proposal.Claims[0].Name, Instance: "i-0new", InstanceType: "c5.4xlarge", Zone: "ap-northeast-2a", CapacityType: "on-demand", Price: &price},
		decision.Step{State: decision.Initialized, Claim: d.Proposal.Claims[0].Name, Node: "ip-10-0-0-99"},
		decision.Step{State: decision.Tainted, Claim: a, Evaluation: evaluation("second-look")},
		decision.Step{State: decision.Tainted, Claim: c},
		decision.Step{State: decision.Drained, Claim: a}, decision.Step{State: decision.Drained, Claim: c},
		decision.Step{State: decision.Terminated, Claim: a}, decision.Step{State: decision.Terminated, Claim: c},
	)
}

// listsOf are the lists of the demo's decision that has the set.
func listsOf(b *book, set decision.TypeSet) map[string][]string {
	for _, d := range b.made {
		if names, ok := d.Proposal.Lists[set.List]; ok {
			return map[string][]string{set.List: names}
		}
	}
	b.t.Fatalf("no list %s", set.List)
	return nil
}

func TestANodeThatWasConsolidatedSaysWhyItWent(t *testing.T) {
	b := newBook(t)
	b.lead()
	gone, d := replaced(b)
	b.push()
	fresh, room := d.Proposal.Claims[0].Name, d.Proposal.Placements[0].Node
	got := nodeText(t, b, gone[0].Name)
	holds(t, got, "  removed\n", "Why it came", "c5a.2xlarge", "Why it went", d.ID+" (terminated)", "Kind         consolidate, multi", "Reason       underutilized",
		"Spec commit  ", "Policies     sha256:", "Why this     its pods fit elsewhere", "Disruption   cost 1.500",
		"Budget       NodePool default, Underutilized: 4 nodes allowed, 1 in use already", "NodePool default, Empty: no budget bounds it",
		"Saves        $0.1/h", "Together     with "+gone[1].Name, "Replaced by  "+fresh+": c5a.4xlarge", "Room on      "+room+" for default: ",
		"Verdict, when it was proposed: allowed", "Second verdict, after the validation wait, at 2026-04-06 13:02:20: allowed",
		"2026-04-06 13:02:20  tainted", "drained", "13:02:40  terminated")
	if s, err := Node(ctx, b.source(), gone[1].Name); err != nil || s.Decisions[0].Second == nil || s.Decisions[0].Second.Evaluation != "second-look" {
		t.Errorf("the nodes of a command are judged as one: %+v %v", s, err)
	}
	got = nodeText(t, b, "i-0new")
	holds(t, got, "Node "+fresh+" (ip-10-0-0-99, i-0new)", "c5.4xlarge", "Replaces     "+gone[0].Name+", "+gone[1].Name, "Why c5a.4xlarge",
		"EC2 launched c5.4xlarge ap-northeast-2a on-demand, $0.738/h, where the plan counted on", "$0.05/h more")
	got = nodeText(t, b, room)
	holds(t, got, "What was planned for it later", d.ID, "default: "+gone[0].Pods[0].Names[0], "No decision removes it.")
	pod := gone[0].Pods[0].Names[0]
	got = podText(t, b, pod)
	holds(t, got, "planned for the new node "+gone[0].Name, "consolidate, multi", "is on node "+gone[0].Name+", which the decision is about",
		"because: underutilized: its pods fit elsewhere", "planned for node "+room, "What became of the nodes", gone[0].Name, "consolidate: underutilized (terminated) "+d.ID)
	got = decisionText(t, b, d.ID)
	holds(t, got, "Kind         consolidate, multi", "New node "+fresh, "Replaces", "Node "+gone[0].Name+": c5a.2xlarge", "Why this     its pods fit elsewhere", "terminated",
		"Node "+gone[1].Name, "Bounds and effect", "Budget", "Saves        $0.1/h", "Replaced by", "Second verdict", "Verdict: allowed")
}

func TestANodeThatTheStoryConsolidatedSaysWhyItWent(t *testing.T) {
	b := wholeBook(t)
	d := b.named("consolidate(default): replace")
	gone, fresh := d.Proposal.Nodes[0].Claim, d.Proposal.Claims[0].Name
	holds(t, nodeText(t, b, gone), "  removed\n", "Why it came", "EC2 launched what the plan counted on", "Why it went", d.ID+" (terminated)", "Kind         consolidate, multi",
		"Budget       NodePool default, Underutilized: ", "Saves        $", "Together     with ", "Replaced by  "+fresh, "Verdict, when it was proposed: allowed",
		"Second verdict, after the validation wait, at 2026-04-06 12:", "tainted", "drained", "terminated")
	holds(t, nodeText(t, b, fresh), "Replaces     "+gone, "cheaper than the nodes it replaces", "must cost less than $")
	empty := b.named("empty node")
	holds(t, decisionText(t, b, empty.ID), "Kind         consolidate, empty", "Node "+empty.Proposal.Nodes[0].Claim, "terminated", "Bounds and effect", "Verdict: allowed")
}

func TestANodeThatPolicyKeptSaysWhichRule(t *testing.T) {
	b := newBook(t)
	b.lead()
	c := b.claim("for 5 pods", 0)
	first := b.record(&decision.Decision{
		Kind: decision.Drift, Verdict: decision.Verdict{Violations: []decision.Finding{finding}},
		Proposal: decision.Proposal{NodePool: "default", Reason: "drifted", Nodes: []decision.Node{node(c, "AMIDrift")}},
	})
	second := b.record(&decision.Decision{
		Kind:     decision.Consolidate,
		Proposal: decision.Proposal{NodePool: "default", Reason: "empty", Method: "empty", Cost: -c.Price, Nodes: []decision.Node{node(c, "")}},
	}, decision.Step{State: decision.Dropped, Claim: c.Name, Message: "denied", Violations: []decision.Finding{finding}, Evaluation: evaluation("e2")})
	watched := b.record(&decision.Decision{
		Kind: decision.Expire, Mode: "observe",
		Proposal: decision.Proposal{NodePool: "default", Reason: "too old", Cost: 3, Nodes: []decision.Node{node(c, "")}},
	})
	lost := b.record(&decision.Decision{
		Kind: decision.Expire, Proposal: decision.Proposal{NodePool: "default", Reason: "too old", Nodes: []decision.Node{node(c, "")}},
	}, decision.Step{State: decision.Abandoned, Claim: c.Name})
	b.push()
	got := nodeText(t, b, c.Name)
	holds(t, got, "there in the last recorded state",
		"Why it stayed\n", first.ID, "Why this     AMIDrift", "Verdict, when it was proposed: denied", "denied by X-FREEZE: no nodes go before noon", "Wait.",
		"Why it stayed\n", second.ID, "Saves        $0.344/h", "Verdict, when it was proposed: allowed", "Second verdict, after the validation wait", "denied", "denied by X-FREEZE", "dropped", "denied",
		"Why it would have gone\n", watched.ID, "Adds         $0.000000003/h", "Why it was to go, and did not\n", lost.ID)
	s, err := Node(ctx, b.source(), c.Name)
	must(t, err)
	want := &report.Judgement{Time: s.Decisions[1].Steps[0].Time, Violations: []decision.Finding{finding}, Evaluation: "e2"}
	if diff := cmp.Diff(want, s.Decisions[1].Second); diff != "" {
		t.Error(diff)
	}
}

func TestInterruptedReclaimedAndAdoptedNodes(t *testing.T) {
	b := newBook(t)
	b.lead()
	c := b.claim("for 23 pods", 2)
	n := node(c, "spot interruption")
	n.Name, n.ProviderID = "ip-10-0-0-9.ap-northeast-2.compute.internal", "aws:///ap-northeast-2a/i-0spot"
	b.record(&decision.Decision{Kind: decision.Interrupt, Proposal: decision.Proposal{
		NodePool: "default", Reason: "AWS takes the instance", Nodes: []decision.Node{n},
		Interruption: &decision.Interruption{Kind: "EC2 Spot Instance Interruption Warning", Message: "m-1", Instance: "i-0spot", Action: "terminate", Time: b.now},
	}}, decision.Step{State: decision.Tainted, Claim: c.Name})
	b.record(&decision.Decision{Kind: decision.Adopt, Proposal: decision.Proposal{Reason: "Karpenter's", Nodes: []decision.Node{{Claim: "old-abc", Name: "ip-old", InstanceType: "m5.large"}}}},
		decision.Step{State: decision.Applied, Claim: "old-abc"})
	b.record(&decision.Decision{Kind: decision.Reclaim, Proposal: decision.Proposal{
		Reason: "no claim", Instances: []decision.Instance{{ID: "i-0orphan", InstanceType: "m5.large", Zone: "ap-northeast-2b", CapacityType: "spot"}},
	}}, decision.Step{State: decision.Terminated, Instance: "i-0orphan"})
	again := node(decision.Claim{Name: "default-zzzzzzzz", InstanceType: "m5.large"}, "")
	again.Name = "ip-old" // addresses come again
	b.record(&decision.Decision{Kind: decision.Delete, Proposal: decision.Proposal{Reason: "by hand", Nodes: []decision.Node{again}}})
	b.push()
	holds(t, nodeText(t, b, "i-0spot"), "Node "+c.Name, "Why it came", "Why it went", "AWS said     EC2 Spot Instance Interruption Warning to terminate of i-0spot", "tainted")
	holds(t, nodeText(t, b, "old-abc"), "Node old-abc (ip-old)", "m5.large", "not there", "No decision on the branch made it.", "How it was taken over", "applied")
	holds(t, nodeText(t, b, "i-0orphan"), "Node i-0orphan", "m5.large ap-northeast-2b spot", "removed", "Kind         reclaim", "terminated")
	holds(t, nodeText(t, b, "ip-old"), "Node default-zzzzzzzz (ip-old)", "The name also was that of old-abc", "Why it", "by hand")
}

func TestAChoiceThatComesOutOtherwiseIsNotTold(t *testing.T) {
	b := newBook(t)
	b.lead()
	c := b.claim("for 23 pods", 0)
	c.Filters = slices.Clone(c.Filters)
	c.Filters[2].Left--
	d := b.record(&decision.Decision{Kind: decision.Provision, Proposal: decision.Proposal{NodePool: "default", Reason: "x", Claims: []decision.Claim{c}, Lists: listsOf(b, c.Launchable)}})
	lost := b.claim("for 23 pods", 0)
	lost.NodePool, lost.Launchable = "nosuch", decision.TypeSet{Count: 1, Names: []string{"c5a.large"}}
	nosuch := b.record(&decision.Decision{Kind: decision.Provision, Proposal: decision.Proposal{NodePool: "nosuch", Reason: "x", Claims: []decision.Claim{lost}}})
	other := b.claim("for 23 pods", 0)
	other.Filters = append(slices.Clone(other.Filters), decision.Filter{By: "cheaper than what goes", Left: 3})
	step := b.record(&decision.Decision{Kind: decision.Provision, Proposal: decision.Proposal{NodePool: "default", Reason: "x", Claims: []decision.Claim{other}, Lists: listsOf(b, other.Launchable)}})
	b.push()
	holds(t, decisionText(t, b, step.ID), "cheapest 60", "cheaper than what goes     3  57 removed\n", "Not all is told: the step \"cheaper than what goes\" is not worked out again")
	holds(t, decisionText(t, b, d.ID), "NodePool requirements  ", " cheaper, the cheapest:", "offerings  ", " removed\n", "Not all is told: the step \"offerings\" leaves")
	holds(t, decisionText(t, b, nosuch.ID), "Not all is told: NodePool nosuch is not in the fleet of the record.")
}

// BenchmarkTenThousandDecisions explains a node, a pod and a name that is not
// there from a ledger of ten thousand decisions.
func BenchmarkTenThousandDecisions(b *testing.B) {
	bk := newBook(b)
	bk.lead()
	bk.fill(500)
	bk.push()
	node, pod := bk.claim("for 5 pods", 0).Name, bk.claim("for 5 pods", 0).Pods[0].Names[0]
	for name, ask := range map[string]func() error{
		"node":     func() error { _, err := Node(ctx, bk.source(), node); return err },
		"pod":      func() error { _, err := Pod(ctx, bk.source(), pod); return err },
		"decision": func() error { _, err := Decision(ctx, bk.source(), bk.made[2].ID); return err },
		"unknown": func() error {
			if _, err := Node(ctx, bk.source(), "nosuch"); err == nil {
				return fmt.Errorf("found")
			}
			return nil
		},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := ask(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
