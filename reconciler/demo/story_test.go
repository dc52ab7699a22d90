package demo

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/ledger"
	"github.com/reeve-project/reeve/reconciler/resources"
	"github.com/reeve-project/reeve/reconciler/sim"
)

// entries are the decisions of the kind as a clone of the repository has them.
func (p *played) entries(t *testing.T, kind decision.Kind) []ledger.Entry {
	t.Helper()
	out, err := p.pushed(t.Context(), begin, kind)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// pick is the one entry whose summary contains the words.
func pick(t *testing.T, entries []ledger.Entry, words string) ledger.Entry {
	t.Helper()
	found := slices.DeleteFunc(slices.Clone(entries), func(e ledger.Entry) bool { return !strings.Contains(e.Decision.Summary, words) })
	if len(found) == 0 {
		t.Fatalf("no decision says %q", words)
	}
	return found[0]
}

func TestFivePodsGetOneNode(t *testing.T) {
	p := left(t, "myeks")
	d := p.entries(t, decision.Provision)[0].Decision
	if len(d.Proposal.Claims) != 1 {
		t.Fatalf("%d claims", len(d.Proposal.Claims))
	}
	c := &d.Proposal.Claims[0]
	if c.PodCount() != 5 || c.Requests["cpu"] != 5150 || c.InstanceType != "c5a.2xlarge" || c.Price != usd(344) {
		t.Errorf("%d pods, requests %v, %s for %s", c.PodCount(), c.Requests, c.InstanceType, c.Price)
	}
	candidates := slices.ContainsFunc(c.Filters, func(f decision.Filter) bool { return f.Left == 206 })
	if !candidates || c.Launchable.Count > 60 {
		t.Errorf("%d types are launchable after %+v: want 206 candidates and at most 60 launchable", c.Launchable.Count, c.Filters)
	}
	for _, in := range p.account.Instances() {
		if in.Tags["karpenter.sh/nodeclaim"] == c.Name && (in.Type != "c5a.2xlarge" || in.Price != usd(344)) {
			t.Errorf("EC2 launched %s for %s", in.Type, in.Price)
		}
	}
}

func TestThirtyPodsCostTheOptimumAtRest(t *testing.T) {
	p := left(t, "myeks")
	grown := pick(t, p.entries(t, decision.Provision), "for 23 pods").Decision
	if grown.Proposal.Cost > usd(1376) {
		t.Errorf("the new nodes cost %s", grown.Proposal.Cost)
	}
	// The state that the removal of all nodes was decided on is that at rest.
	e := pick(t, p.entries(t, decision.Consolidate), "empty")
	snap, err := e.View.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	var sum resources.Price
	for _, n := range snap.Nodes {
		if n.Claim != nil {
			sum += n.Claim.Price
		}
	}
	if want, _ := cover(storyNodes(t), 30); sum != usd(1376) || want != sum {
		t.Errorf("the nodes at rest cost %s; the covering program finds %s", sum, want)
	}
}

func TestRemovalsSaveAllThatWasSpent(t *testing.T) {
	p := left(t, "myeks")
	var saved resources.Price
	for _, e := range p.entries(t, decision.Consolidate) {
		if !e.Decision.Verdict.Allowed || !strings.Contains(e.Decision.Summary, "empty") {
			continue
		}
		saved -= e.Decision.Proposal.Cost
		for _, n := range e.Decision.Proposal.Nodes {
			var states []decision.State
			for _, s := range e.Outcome.Steps {
				if s.Claim == n.Claim && (len(states) == 0 || states[len(states)-1] != s.State) {
					states = append(states, s.State)
				}
			}
			if want := []decision.State{decision.Tainted, decision.Drained, decision.Terminated}; !slices.Equal(states, want) {
				t.Errorf("node %s: %v, want %v", n.Name, states, want)
			}
			p.wasRemoved(t, n, e.Decision)
		}
	}
	if saved != usd(1376) {
		t.Errorf("%s saved", saved)
	}
}

// wasRemoved holds the API server and EC2 to what the record says of a node: it
// was tainted after the decision, then deleted, and its instance is gone.
func (p *played) wasRemoved(t *testing.T, n decision.Node, d *decision.Decision) {
	t.Helper()
	tainted, ok := p.written(n.Name, "Taint karpenter.sh/disrupted:NoSchedule")
	if !ok || tainted.Before(d.Time) {
		t.Errorf("node %s was not tainted after its decision", n.Name)
	}
	gone := slices.IndexFunc(p.world.API.Audit(), func(w sim.Write) bool { return w.Verb == "remove" && w.Kind == sim.KindNode && w.Key == n.Name })
	if gone < 0 || p.world.API.Audit()[gone].Time.Before(tainted) {
		t.Errorf("node %s was not removed after its taint", n.Name)
	}
	id := n.ProviderID[strings.LastIndex(n.ProviderID, "/")+1:]
	if in, ok := p.account.Instance(id); ok && in.State != "terminated" {
		t.Errorf("instance %s is %s", id, in.State)
	}
}

func TestAMovingImageIsRefusedTwice(t *testing.T) {
	p := left(t, "myeks")
	rejected := p.entries(t, decision.Reject)
	if len(rejected) != 1 {
		t.Fatalf("%d commits were rejected", len(rejected))
	}
	f := rejected[0].Decision.Verdict.Violations[0]
	if f.Rule != "REEVE-AMI-001" || f.Position == nil || f.Position.String() != "clusters/myeks/nodeclasses.cue:9:22" {
		t.Errorf("%+v", f)
	}
	if !strings.Contains(p.out, "reeve check: REEVE-AMI-001 at clusters/myeks/nodeclasses.cue:9:22") {
		t.Errorf("the pull request was not refused:\n%s", p.out)
	}
	for _, c := range p.account.Log() {
		if c.Action == "GetParameter" && strings.Contains(c.Body, "recommended") {
			t.Errorf("the newest image was asked for: %s", c.Body)
		}
	}
}

func TestExcludedTypesAreNeverCandidates(t *testing.T) {
	p := left(t, "myeks")
	excluded := []string{"c6g.16xlarge", "m6g.16xlarge", "m6gd.16xlarge", "r6g.16xlarge", "r6gd.16xlarge"}
	d := pick(t, p.entries(t, decision.Provision), "provision(graviton)").Decision
	var got []string
	for _, x := range d.Verdict.Exclusions {
		names, err := x.Types.Resolve(d.Proposal.Lists)
		if err != nil {
			t.Fatal(err)
		}
		if x.Rule != "REEVE-TYPE-001" || x.Position == nil || x.Position.File != "clusters/myeks/policy.cue" {
			t.Errorf("%+v does not say why and where", x)
		}
		got = append(got, names...)
	}
	if slices.Sort(got); !slices.Equal(got, excluded) {
		t.Errorf("excluded are %v", got)
	}
	for _, c := range p.account.Log() {
		for _, name := range excluded {
			if c.Action == "CreateFleet" && strings.Contains(c.Body, name) {
				t.Errorf("EC2 was offered %s", name)
			}
		}
	}
}

func TestTheControllerStaysOffItsOwnNodes(t *testing.T) {
	p := left(t, "myeks")
	for _, kind := range []decision.Kind{decision.Provision, decision.Consolidate} {
		denied := slices.DeleteFunc(p.entries(t, kind), func(e ledger.Entry) bool { return e.Decision.Verdict.Allowed })
		if len(denied) == 0 || !strings.HasPrefix(denied[0].Decision.Verdict.Violations[0].Rule, "REEVE-CTRL-00") {
			t.Errorf("%s: %d decisions were denied", kind, len(denied))
		}
	}
	// The pod that waited came to a node of ours, and both are still there.
	ours := 0
	for _, pod := range sim.List[*corev1.Pod](p.world.API) {
		if pod.Labels["app.kubernetes.io/name"] != "reeve" || pod.Status.Phase != corev1.PodRunning {
			continue
		}
		for _, in := range p.instances() {
			if in.Node == pod.Spec.NodeName {
				ours++
			}
		}
	}
	if ours != 1 {
		t.Errorf("%d pods of the controller run on nodes of ours", ours)
	}
}
