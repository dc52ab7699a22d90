package ledger

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/gitrepo"
	"github.com/reeve-project/reeve/reconciler/port"
)

// story records a handover, an accept, a provision that comes to its end, a
// second one that stays open, and a reject.
func story(t testing.TB) (*stage, *Ledger, []*decision.Decision) {
	t.Helper()
	s := newStage(t)
	l := s.lead()
	a := s.accept(l, 0)
	p1 := s.provision("default")
	s.pass(l, 3, []*decision.Decision{p1})
	s.advance(l, p1, decision.Claimed, decision.Launched)
	p2, p3 := s.provision("a"), s.provision("b")
	s.pass(l, 4, []*decision.Decision{p2, p3}, p1)
	s.advance(l, p1, decision.Registered, decision.Initialized)
	s.advance(l, p3, decision.Failed)
	s.pushSpec("b")
	r := s.judgeSpec(l, decision.Reject, 1)
	denied := sealed(t, &decision.Decision{Kind: decision.Drift, Time: s.tick(), Verdict: decision.Verdict{Violations: []decision.Finding{{Rule: "R", Message: "no"}}}})
	s.pass(l, 4, []*decision.Decision{denied}, p1)
	must(t, l.Push(ctx, s.tick(), true))
	return s, l, []*decision.Decision{a, p1, p2, p3, r, denied}
}

func TestAStoryIsPushedVerifiedAndReadBack(t *testing.T) {
	s, l, ds := story(t)
	res := s.proved()
	want := Result{Branch: branch, Commits: 10, Decisions: 7, Outcomes: 5, Open: 1, Epoch: 1}
	if diff := cmp.Diff(want, *res); diff != "" {
		t.Errorf("verified (-want +got):\n%s", diff)
	}
	if got := ids(l.Open()); !cmp.Equal(got, []string{ds[2].ID}) {
		t.Errorf("open: %v", got)
	}
	if n, since := l.Unpushed(); n != 0 || !since.IsZero() {
		t.Errorf("unpushed: %d since %v", n, since)
	}
	if s.spool.entries() != 0 {
		t.Errorf("%d entries are left in the spool", s.spool.entries())
	}
	var log []string
	must(t, Log(ctx, s.source(), Query{}, func(e Entry) error {
		state := decision.State("-")
		if e.Outcome != nil {
			state = e.Outcome.State
		}
		log = append(log, fmt.Sprintf("%s %s", e.Decision.Kind, state))
		return nil
	}))
	wantLog := []string{"drift -", "reject -", "provision failed", "provision -", "provision initialized", "accept applied", "handover applied"}
	if diff := cmp.Diff(wantLog, log); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
	src := get(l.Accepted())(t)
	if src.Commit != s.spec[0] || src.Tree != s.fleet[0] || src.Branch != "main" {
		t.Errorf("accepted: %+v", src)
	}
	if got := s.git("rev-parse", branch+":inputs/fleet"); got != s.fleet[0] {
		t.Errorf("inputs/fleet is %s, want the spec commit's tree %s", got, s.fleet[0])
	}
}

func ids(rs []port.Record) []string {
	var out []string
	for _, r := range rs {
		out = append(out, r.Decision.ID)
	}
	return out
}

func TestEverythingADecisionDependsOnIsInItsCommit(t *testing.T) {
	s, _, ds := story(t)
	b := get(s.source().Open(ctx))(t)
	e := get(b.Find(ctx, ds[2].ID))(t)
	if diff := cmp.Diff(ds[2].Proposal.Lists, e.Decision.Proposal.Lists); diff != "" {
		t.Errorf("type lists (-want +got):\n%s", diff)
	}
	at := ds[3].Time
	got := get(e.View.Snapshot())(t)
	want := snapshot(at, 4, ds[1])
	want.Recent = got.Recent
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("snapshot (-want +got):\n%s", diff)
	}
	if len(got.Recent) != 3 || got.Recent[2].ID != ds[1].ID {
		t.Errorf("recent decisions: %+v", got.Recent)
	}
	if diff := cmp.Diff(rego, get(e.View.Policies())(t)); diff != "" {
		t.Errorf("policies (-want +got):\n%s", diff)
	}
	if c := get(e.View.Catalog())(t); c.TypesDigest() != e.Decision.Inputs.Types || c.PricesDigest() != e.Decision.Inputs.Prices {
		t.Error("the catalog is not the one that the decision names")
	}
	if _, _, ok, err := e.View.Proposed(); ok || err != nil {
		t.Errorf("a provision has a proposed commit: %v", err)
	}
	r := get(b.Find(ctx, ds[4].ID[:24]))(t)
	files, policies, ok, err := r.View.Proposed()
	if !ok || err != nil || len(policies) != 2 {
		t.Fatalf("proposed: %v %v %v", ok, err, policies)
	}
	f, err := files.Open("clusters/myeks/fleet.cue")
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if acc := get(r.View.Accepted())(t); acc.Commit != s.spec[0] {
		t.Errorf("accepted at the reject: %s", acc.Commit)
	}
	head := get(b.Head())(t)
	if open := get(head.Open())(t); !cmp.Equal(ids(open), []string{ds[2].ID}) {
		t.Errorf("open at the head: %v", ids(open))
	}
	if v := get(b.At(head.Commit()[:8]))(t); v.Epoch() != 1 || v.Subject() != "drift" || v.Time().IsZero() {
		t.Errorf("view: %d %s", v.Epoch(), v.Subject())
	}
}

func TestCommitsReadWellAndNameTheirDecisions(t *testing.T) {
	s, _, ds := story(t)
	msgs := strings.Split(s.git("log", "--format=%B%x00", branch), "\x00")
	var pair string
	for _, m := range msgs {
		if strings.Contains(m, "2 decisions") {
			pair = strings.TrimSpace(m)
		}
	}
	want := fmt.Sprintf(`2 decisions: 2 × provision

* provision(a): 1 × c5a.2xlarge for 2 pods
* provision(b): 1 × c5a.2xlarge for 2 pods

[skip ci]

Decision-Id: %s
Kind: provision
Verdict: allowed
Decision-Id: %s
Kind: provision
Verdict: allowed
Spec-Commit: %s
Policy-Digest: sha256:aa
Epoch: 1`, ds[2].ID, ds[3].ID, s.spec[0])
	if diff := cmp.Diff(want, pair); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
	if got := s.git("log", "--format=%s", branch); !strings.Contains(got, "\nlaunched: provision(default): 1 × c5a.2xlarge for 2 pods\n") {
		t.Errorf("subjects:\n%s", got)
	}
	if got := s.git("log", "-1", "--format=%an %ae %aI", branch); !strings.HasPrefix(got, "Reeve reeve@myeks.invalid 2026-04-06T12:00:") {
		t.Errorf("author %s", got)
	}
}

func TestTheSameInputsGiveTheSameTree(t *testing.T) {
	a, la, _ := story(t)
	b, lb, _ := story(t)
	must(t, la.Close(ctx, a.tick()))
	must(t, lb.Close(ctx, b.tick()))
	if x, y := a.git("rev-parse", branch), b.git("rev-parse", branch); x != y {
		t.Errorf("tips %s and %s", x, y)
	}
	a.proved()
	readme := a.git("show", branch+":README.md")
	for _, want := range []string{"# Decisions of cluster myeks", "| decisions ever | 7 |", "| open | 1 |", "| leader | pod-1 |"} {
		if !strings.Contains(readme, want) {
			t.Errorf("README.md has no %q:\n%s", want, readme)
		}
	}
	summary := a.git("show", branch+":decisions/2026-04-06/SUMMARY.md")
	if !strings.Contains(summary, "| provision | b | provision(b): 1 × c5a.2xlarge for 2 pods | allowed | failed |") {
		t.Errorf("SUMMARY.md:\n%s", summary)
	}
}

func TestANewLeaderGoesOnWhereTheLastStopped(t *testing.T) {
	s, _, ds := story(t)
	l := s.lead()
	if l.Epoch() != 2 {
		t.Errorf("epoch %d", l.Epoch())
	}
	if diff := cmp.Diff([]string{ds[2].ID}, ids(l.Open())); diff != "" {
		t.Errorf("open (-want +got):\n%s", diff)
	}
	if got := len(l.Recent(s.now)); got != 8 {
		t.Errorf("%d recent decisions, want 8", got)
	}
	if got := len(l.Recent(s.now.Add(2 * time.Hour))); got != 0 {
		t.Errorf("%d recent decisions two hours later", got)
	}
	if src := get(l.Accepted())(t); src.Commit != s.spec[0] {
		t.Errorf("accepted %s", src.Commit)
	}
	s.advance(l, ds[2], decision.Abandoned)
	must(t, l.Push(ctx, s.tick(), true))
	if res := s.proved(); res.Open != 0 || res.Epoch != 2 {
		t.Errorf("%s", res)
	}
}

func TestWhatWasNotPushedComesFromTheSpool(t *testing.T) {
	for _, tc := range []struct {
		name string
		// before is what reaches the remote of the unpushed entries all the
		// same.
		pushed bool
	}{{"nothing was pushed", false}, {"it was pushed, and the spool not cleaned", true}} {
		t.Run(tc.name, func(t *testing.T) {
			s, l, ds := story(t)
			p := s.provision("late")
			s.pass(l, 5, []*decision.Decision{p}, ds[1])
			s.advance(l, ds[2], decision.Claimed)
			s.pushSpec("c")
			acc := s.judgeSpec(l, decision.Accept, 2)
			spool := newSpool()
			for k, v := range s.spool.data {
				spool.data[k] = v
			}
			if tc.pushed {
				must(t, l.Push(ctx, s.tick(), true))
			}
			s.spool = spool

			next := s.open()
			want := []string{ds[2].ID, p.ID, acc.ID}
			if diff := cmp.Diff(want, ids(next.Open())); diff != "" {
				t.Errorf("open (-want +got):\n%s", diff)
			}
			if o := next.Open()[0].Outcome; o.State != decision.Claimed {
				t.Errorf("outcome %+v", o)
			}
			if src := get(next.Accepted())(t); src.Commit != s.spec[2] {
				t.Errorf("accepted %s", src.Commit)
			}
			must(t, s.handover(next))
			must(t, next.Push(ctx, s.tick(), true))
			if s.spool.entries() != 0 {
				t.Errorf("%d entries are left in the spool", s.spool.entries())
			}
			if res := s.proved(); res.Decisions != 10 || res.Epoch != 2 {
				t.Errorf("%s", res)
			}
		})
	}
}

func TestAFleetThatIsLostWithItsBranchDoesNotLoseDecisions(t *testing.T) {
	s, l, _ := story(t)
	s.pushSpec("c")
	s.judgeSpec(l, decision.Accept, 2)
	s.git("update-ref", "-d", "refs/heads/main")
	s.git("gc", "--prune=now", "--quiet")
	s.specs = s.repo()
	next := s.open()
	must(t, s.handover(next))
	must(t, next.Push(ctx, s.tick(), true))
	res := get(Verify(ctx, s.source()))(t)
	if res.Decisions != 9 || len(res.Problems) == 0 {
		t.Errorf("%s: the lost fleet must be told", res)
	}
	if got := s.git("log", "--format=%B", branch); !strings.Contains(got, "The fleet's tree is lost") {
		t.Error("no message says that the tree is lost")
	}
}

func TestPushesAreCoalesced(t *testing.T) {
	s := newStage(t)
	l := s.lead()
	before := s.git("rev-parse", branch)
	s.accept(l, 0)
	must(t, l.Push(ctx, s.tick(), false))
	if s.git("rev-parse", branch) != before {
		t.Error("pushed before the interval had passed")
	}
	if n, since := l.Unpushed(); n != 1 || since.IsZero() {
		t.Errorf("unpushed: %d since %v", n, since)
	}
	must(t, l.Push(ctx, s.now.Add(DefaultPushInterval), false))
	if got := s.git("rev-list", "--count", before+".."+branch); got != "2" {
		t.Errorf("%s commits came, want 2", got)
	}
	s.proved()
}

func TestAppendRefusesWhatWouldNotVerify(t *testing.T) {
	s, l, ds := story(t)
	n := s.spool.entries()
	other := sealed(t, &decision.Decision{Kind: decision.Expire, Time: s.tick()})
	other.Cluster = "other"
	must(t, other.Seal())
	tampered := sealed(t, &decision.Decision{Kind: decision.Expire, Time: s.tick()})
	tampered.Summary = "changed"
	noList := s.provision("x")
	noList.Proposal.Lists = nil
	stranger := sealed(t, &decision.Decision{Kind: decision.Expire, Time: s.tick()})
	late := sealed(t, &decision.Decision{Kind: decision.Handover, Time: s.tick(), Proposal: decision.Proposal{Handover: &decision.Leader{Epoch: 7}}})
	accept := sealed(t, &decision.Decision{Kind: decision.Accept, Time: s.tick()})
	for name, e := range map[string]port.Entry{
		"a decision of another cluster":            {Decisions: []*decision.Decision{other}},
		"a decision that was changed after Seal":   {Decisions: []*decision.Decision{tampered}},
		"a type list that is missing":              {Decisions: []*decision.Decision{noList}},
		"an outcome without its decision":          {Outcomes: []*decision.Outcome{outcome(stranger, s.now, decision.Claimed)}},
		"an outcome in the commit of its decision": {Decisions: []*decision.Decision{stranger}, Outcomes: []*decision.Outcome{outcome(stranger, s.now, decision.Claimed)}},
		"an outcome of a denied decision":          {Outcomes: []*decision.Outcome{outcome(ds[5], s.now, decision.Claimed)}},
		"an outcome after the final one":           {Outcomes: []*decision.Outcome{outcome(ds[1], s.now, decision.Failed)}},
		"a handover to another epoch":              {Decisions: []*decision.Decision{late}},
		"an accept without its commit":             {Decisions: []*decision.Decision{accept}},
		"an accept together with another decision": {Decisions: []*decision.Decision{accept, stranger}, Proposed: &port.Proposed{}},
		"a proposed commit without an accept":      {Decisions: []*decision.Decision{stranger}, Proposed: &port.Proposed{}},
		"a fleet whose tree is nowhere":            {Decisions: []*decision.Decision{stranger}, Inputs: port.Inputs{FleetTree: strings.Repeat("1a", 20)}},
		"a fleet whose tree is no id":              {Decisions: []*decision.Decision{stranger}, Inputs: port.Inputs{FleetTree: "main"}},
		"a policy whose name a tree cannot hold":   {Decisions: []*decision.Decision{stranger}, Inputs: port.Inputs{Policies: map[string][]byte{"../x": nil}}},
	} {
		t.Run(name, func(t *testing.T) {
			e.Time = s.now
			if err := l.Append(ctx, e); err == nil {
				t.Error("it was appended")
			}
		})
	}
	if s.spool.entries() != n {
		t.Error("something refused is in the spool")
	}
	must(t, l.Append(ctx, port.Entry{Time: s.now}))
	if n, _ := l.Unpushed(); n != 0 {
		t.Error("something refused is appended")
	}
	s.advance(l, ds[2], decision.Claimed)
	must(t, l.Push(ctx, s.tick(), true))
	s.proved()
}

func TestNothingIsAppendedThatIsNotDurable(t *testing.T) {
	s, l, ds := story(t)
	s.spool.fail = errors.New("the API server is away")
	err := l.Append(ctx, port.Entry{Time: s.tick(), Outcomes: []*decision.Outcome{outcome(ds[2], s.now, decision.Claimed)}})
	if err == nil || !strings.Contains(err.Error(), "the API server is away") {
		t.Fatalf("append without a spool: %v", err)
	}
	s.spool.fail = nil
	if o := l.Open()[0].Outcome; o.State != "" {
		t.Errorf("an outcome that was not recorded is remembered: %+v", o)
	}
	s.advance(l, ds[2], decision.Failed)
	must(t, l.Push(ctx, s.tick(), true))
	if res := s.proved(); res.Open != 0 || res.Commits != 11 {
		t.Errorf("%s", res)
	}
	s.spool.fail = errors.New("away")
	if _, err := Open(ctx, s.options(), s.now); err == nil {
		t.Error("opened without reading the spool")
	}
}

func TestOpenNeedsWhatItCannotDoWithout(t *testing.T) {
	s := newStage(t)
	r := s.repo()
	for name, o := range map[string]Options{
		"no cluster": {Repo: r, Spool: s.spool}, "no repository": {Cluster: "c", Spool: s.spool}, "no spool": {Cluster: "c", Repo: r},
		"a repository that is the specs' too": {Cluster: "c", Repo: r, Specs: r, Spool: s.spool},
	} {
		if _, err := Open(ctx, o, s.now); err == nil {
			t.Errorf("opened with %s", name)
		}
	}
	o := s.options()
	o.Repo = get(gitrepo.Open("http://127.0.0.1:1/x.git", gitrepo.Options{}))(t)
	var wait *port.WaitError
	if _, err := Open(ctx, o, s.now); !errors.As(err, &wait) {
		t.Errorf("an unreachable remote: %v, want a WaitError", err)
	}
	l := s.open()
	if err := l.Append(ctx, port.Entry{Time: s.now, Decisions: []*decision.Decision{s.provision("x")}}); err == nil || !strings.Contains(err.Error(), "handover") {
		t.Errorf("a decision before the handover: %v", err)
	}
	if src, err := l.Accepted(); src != nil || err != nil {
		t.Errorf("accepted before the first: %v %v", src, err)
	}
	if l.Branch() != branch {
		t.Errorf("branch %s", l.Branch())
	}
}
