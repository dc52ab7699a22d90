package explain

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/agnivade/levenshtein"
	"github.com/google/go-cmp/cmp"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/gitrepo"
	"github.com/reeve-project/reeve/reconciler/ledger"
	"github.com/reeve-project/reeve/reconciler/report"
)

func TestEveryStepOfEveryChoiceOfTheStoryIsWorkedOutAgain(t *testing.T) {
	b := wholeBook(t)
	claims := 0
	for _, d := range b.made {
		if d.Kind != decision.Provision {
			continue // a replacement has steps of its own
		}
		s, err := Decision(ctx, b.source(), d.ID)
		must(t, err)
		for _, a := range s.Arrivals {
			claims++
			if a.Choice.Note != "" {
				t.Errorf("%s: %s", a.Claim.Name, a.Choice.Note)
			}
			left := a.Choice.Steps[0].Left
			for _, st := range a.Choice.Steps {
				if left -= st.Removed; !st.Known || left != st.Left || st.Cheaper > st.Removed {
					t.Errorf("%s: %+v", a.Claim.Name, st)
				}
				for _, r := range st.Examples {
					if r.Why == "" || st.By != "policy" && r.Price >= a.Claim.Price {
						t.Errorf("%s: %s: %+v", a.Claim.Name, st.By, r)
					}
				}
			}
		}
	}
	if claims < 5 {
		t.Errorf("%d claims, want at least those of three provisions", claims)
	}
}

func TestANodeIsFoundByEachOfItsNames(t *testing.T) {
	b := newBook(t)
	c := b.claim("for 5 pods", 0)
	byClaim, err := Node(ctx, b.source(), c.Name)
	must(t, err)
	if byClaim.Name == "" || !strings.HasPrefix(byClaim.Instance, "i-") || byClaim.State != "running" || len(byClaim.Pods) < 5 {
		t.Fatalf("%+v", byClaim)
	}
	for _, name := range []string{byClaim.Name, byClaim.Instance} {
		s, err := Node(ctx, b.source(), name)
		must(t, err)
		if diff := cmp.Diff(byClaim.Came.Act, s.Came.Act); diff != "" || s.Claim != c.Name {
			t.Errorf("%s is %s: %s", name, s.Claim, diff)
		}
	}
	got := nodeText(t, b, c.Name)
	holds(t, got, "Node "+c.Name, "c5a.2xlarge ap-northeast-2a on-demand, $0.344/h, NodePool default", "there in the last recorded state",
		"Why it came", "Reason       5 pending pods", "Spec commit  ", "(Describe the fleet of myeks, by", "Platform Team)", "Policies     sha256:",
		"For          5 pods, cpu 5150m", "    catalog  ", "NodePool requirements  ", " cheaper, the cheapest:",
		"t4g.nano $0.0052/h: karpenter.k8s.aws/instance-category is t,", "wanted In [c m r]",
		"    resources  ", " cheaper, the cheapest:", "c5a.large $0.086/h: cpu 1930m, wanted 5150m",
		"Next best", "$0.03904/h more", "What happened", "launched", "initialized", "EC2 launched what the plan counted on",
		"No decision removes it.", "From 4 decisions of reeve/myeks")
}

func TestWhatPolicyExcludedIsToldWithItsRule(t *testing.T) {
	b := wholeBook(t)
	got := nodeText(t, b, b.claim("provision(graviton)", 0).Name)
	holds(t, got, "    policy  ", "  5 removed by REEVE-TYPE-001, none cheaper", "c6g.16xlarge $2.464/h: excluded by REEVE-TYPE-001")
}

func TestANodeThatIsNotReevesSaysSo(t *testing.T) {
	b := newBook(t)
	holds(t, nodeText(t, b, "ip-10-0-0-4.ap-northeast-2.compute.internal"), "there in the last recorded state", "it is not Reeve's")
}

func TestAPodThatWasPlacedAndOneThatIsPending(t *testing.T) {
	b := newBook(t)
	c := b.claim("for 5 pods", 0)
	got := podText(t, b, c.Pods[0].Names[0])
	holds(t, got, "Pod default/"+c.Pods[0].Names[0], "on node "+c.Name, "created 2026-04-06 12:00:0", "planned for the new node "+c.Name+": c5a.2xlarge",
		"with default: "+c.Pods[0].Names[1], "under spec commit", "What became of the nodes", "claimed 12:00:03, launched 12:00:03 i-")
	b = wholeBook(t)
	last := b.made[len(b.made)-1].Proposal.Unplaced[0]
	pending := last.Pods[0].Namespace + "/" + last.Pods[0].Names[0]
	got = podText(t, b, pending)
	holds(t, got, "pending in the last recorded state", "(denied)", "stays pending: policy by REEVE-CTRL-001", "What would have to change",
		"NodePool default is closed to the pod by REEVE-CTRL-001", "→ Give the controller a node selector", "set off at clusters/myeks/policy.cue:23:2.",
		"NodePool graviton has taint", "→ A toleration in the pod")
	s, err := Pod(ctx, b.source(), pending)
	must(t, err)
	if len(s.Needs) != 2 || s.State != "pending" {
		t.Errorf("%+v", s)
	}
}

func TestAPodThatNoDecisionWasNeededFor(t *testing.T) {
	b := newBook(t)
	h, err := open(ctx, b.source())
	must(t, err)
	var name string
	for _, n := range h.tip.Nodes {
		if n.Claim == nil {
			name = n.Pods[0].Key()
		}
	}
	holds(t, podText(t, b, name), "on node ip-10-0-0-", "no decision was needed for it", "nothing is recorded of its launch")
}

func TestUnknownNamesSayWhatWasSearchedAndWhatIsNear(t *testing.T) {
	b := newBook(t)
	c := b.claim("for 5 pods", 0)
	var unknown *Unknown
	_, err := Node(ctx, b.source(), c.Name[:len(c.Name)-1])
	if !errors.As(err, &unknown) || !slices.Equal(unknown.Near, []string{c.Name}) {
		t.Fatalf("%v", err)
	}
	holds(t, err.Error(), "not found: none of the 4 decisions of branch reeve/myeks names it, nor does the last recorded state (2026-04-06 12:0",
		"Did you mean "+c.Name+"?", "reeve log lists the decisions")
	_, err = Pod(ctx, b.source(), "web/"+c.Pods[0].Names[0])
	if !errors.As(err, &unknown) || unknown.Near[0] != "default/"+c.Pods[0].Names[0] {
		t.Errorf("the same name in another namespace is the nearest: %v", err)
	}
	if _, err = Pod(ctx, b.source(), "nothing-like-it-at-all"); !errors.As(err, &unknown) || len(unknown.Near) > 0 || strings.Contains(err.Error(), "Did you mean") {
		t.Errorf("%v", err)
	}
	unknown.Missing = []string{"2026-04-05"}
	holds(t, unknown.Error(), "This clone is shallow and lacks 2026-04-05")
	if _, err := Node(ctx, ledger.Source{Repo: t.TempDir()}, "x"); err == nil {
		t.Error("no repository")
	}
}

func TestADecisionIsFoundByAPartOfItsIdOrAsTheLatest(t *testing.T) {
	b := wholeBook(t)
	last := b.made[len(b.made)-1]
	for _, part := range []string{"latest", last.ID, last.ID[len(last.ID)-6:]} {
		s, err := Decision(ctx, b.source(), part)
		must(t, err)
		if s.Decision.ID != last.ID {
			t.Errorf("%s is %s", part, s.Decision.ID)
		}
	}
	_, err := Decision(ctx, b.source(), "20260406T1200")
	if !errors.Is(err, ledger.ErrAmbiguous) {
		t.Fatal(err)
	}
	holds(t, err.Error(), `"20260406T1200" names several decisions:`, "\n  "+b.made[3].ID+"  provision(default)", "\n  "+b.made[0].ID+"  handover")
	for _, part := range []string{"", "zzzz"} {
		if _, err := Decision(ctx, b.source(), part); !errors.Is(err, gitrepo.ErrNotFound) {
			t.Errorf("%q: %v", part, err)
		}
	}
	holds(t, decisionText(t, b, b.named("reject(").ID[15:]), "Kind         reject", "change EC2NodeClass/default", "Verdict: denied", "denied by REEVE-AMI-001", "at clusters/myeks/nodeclasses.cue:9:22")
	holds(t, decisionText(t, b, b.made[1].ID), "Kind         accept", "Outcome: applied")
}

func TestNearPrefersWhatContainsTheName(t *testing.T) {
	names := map[string]bool{"a/web-1": true, "b/web-1": true, "a/web-12": true, "a/wxb-1": true, "a/other": true, "a/gone": false, "a/gone-1": true}
	if diff := cmp.Diff([]string{"a/web-1", "b/web-1", "a/web-12", "a/wxb-1"}, near("c/web-1", names)); diff != "" {
		t.Error(diff)
	}
	if got := near("gone", names); !cmp.Equal(got, []string{"a/gone-1"}) {
		t.Error(got)
	}
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"abc", "", 3}, {"kitten", "sitting", 3}, {"abc", "abc", 0}} {
		if got := levenshtein.ComputeDistance(c.a, c.b); got != c.want {
			t.Errorf("distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestObstaclesAreSplitByNodePool(t *testing.T) {
	d := &decision.Decision{Proposal: decision.Proposal{Unplaced: []decision.Unplaced{
		{Reason: "limits", Message: `NodePool "a" is at its limits: cpu; 3 more; NodePool "b" has taint x:NoSchedule that the pod does not tolerate`, Pods: []decision.PodGroup{{Namespace: "n", Names: []string{"p"}}}},
		{Reason: "no-nodepool", Message: "the fleet has no NodePool", Pods: []decision.PodGroup{{Namespace: "n", Names: []string{"q"}}}},
		{Reason: "constraint-unhandled", Message: "volumes"}, {Reason: "invalid-pod", Message: "bad"}, {Reason: "policy", Message: "shut", Rules: []string{"R-1"}}, {Reason: "other", Message: "?"},
	}}}
	want := []report.Need{
		{NodePool: "a", Obstacle: "is at its limits: cpu; 3 more", Remedy: "Higher spec.limits of the NodePool, or nodes of it that go."},
		{NodePool: "b", Obstacle: "has taint x:NoSchedule that the pod does not tolerate", Remedy: "A toleration in the pod, or the NodePool without the taint."},
	}
	if diff := cmp.Diff(want, needs(d, "n/p")); diff != "" {
		t.Error(diff)
	}
	if got := needs(d, ""); len(got) != 7 || got[2].Remedy != "A NodePool in the fleet." || got[6].Remedy != "See the reason." {
		t.Errorf("%+v", got)
	}
}
