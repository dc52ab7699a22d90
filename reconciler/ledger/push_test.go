package ledger

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/gitrepo"
	"github.com/reeve-project/reeve/reconciler/port"
)

func TestCommitsThatLeaveOurFoldersAloneAreBuiltUpon(t *testing.T) {
	s, l, ds := story(t)
	p := s.provision("c")
	s.pass(l, 5, []*decision.Decision{p}, ds[1])
	s.advance(l, ds[2], decision.Claimed)
	q := s.provision("d")
	s.pass(l, 6, []*decision.Decision{q}, ds[1])
	hand := s.push(s.repo(), branch, "NOTES.md", "by hand")
	must(t, l.Push(ctx, s.tick(), true))
	res := s.proved()
	if res.Decisions != 9 || res.Foreign != 1 || res.Commits != 14 {
		t.Errorf("%s, %d foreign", res, res.Foreign)
	}
	for _, d := range []*decision.Decision{p, q} {
		if e, err := Find(ctx, s.source(), d.ID); err != nil || e.Decision.ID != d.ID {
			t.Errorf("decision %s was dropped: %v", d.ID, err)
		}
	}
	if got := s.git("show", branch+":NOTES.md"); got != "by hand" {
		t.Errorf("the other's file is %q", got)
	}
	if got := s.git("rev-list", "--count", hand.String()+".."+branch); got != "3" {
		t.Errorf("%s commits stand on the other's, want 3", got)
	}
	// And the same once more, now that the file is part of the base.
	s.push(s.repo(), branch, "docs/more.md", "x")
	s.advance(l, q, decision.Claimed)
	must(t, l.Push(ctx, s.tick(), true))
	s.proved()
	if l := s.lead(); l.Epoch() != 2 || len(l.Open()) != 3 {
		t.Errorf("the next leader has epoch %d and %d open decisions", l.Epoch(), len(l.Open()))
	}
	s.proved()
}

func TestChangesInOurFoldersAreAConflict(t *testing.T) {
	for _, path := range []string{"decisions/2026-04-06/extra.json", "state/leader.json", "README.md", "inputs/fleet/x"} {
		t.Run(path, func(t *testing.T) {
			s, l, ds := story(t)
			before := s.git("rev-parse", branch)
			s.push(s.repo(), branch, path, "tampered")
			s.advance(l, ds[2], decision.Claimed)
			err := l.Push(ctx, s.tick(), true)
			if !errors.Is(err, port.ErrConflict) || !strings.Contains(err.Error(), path) {
				t.Fatalf("push: %v, want a conflict that names %s", err, path)
			}
			if err := l.Append(ctx, port.Entry{Time: s.now, Outcomes: []*decision.Outcome{outcome(ds[2], s.now)}}); !errors.Is(err, port.ErrConflict) {
				t.Errorf("append after a conflict: %v", err)
			}
			if err := l.Close(ctx, s.tick()); !errors.Is(err, port.ErrConflict) {
				t.Errorf("close after a conflict: %v", err)
			}
			// Somebody puts it right: nothing was lost.
			s.git("update-ref", "refs/heads/"+branch, before)
			must(t, l.Push(ctx, s.tick(), true))
			s.advance(l, ds[2], decision.Failed)
			must(t, l.Push(ctx, s.tick(), true))
			if res := s.proved(); res.Open != 0 {
				t.Errorf("%s", res)
			}
		})
	}
}

func TestABranchThatVanishesOrIsRewrittenIsAConflict(t *testing.T) {
	for _, tc := range []struct {
		name string
		do   func(s *stage)
		want string
	}{
		{"deleted", func(s *stage) { s.git("update-ref", "-d", "refs/heads/"+branch) }, "was deleted"},
		{"rewound", func(s *stage) { s.git("update-ref", "refs/heads/"+branch, branch+"~2") }, "was rewritten"},
		{"replaced", func(s *stage) { s.git("update-ref", "refs/heads/"+branch, "main") }, "was rewritten"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, l, ds := story(t)
			before := s.git("rev-parse", branch)
			tc.do(s)
			s.advance(l, ds[2], decision.Claimed)
			err := l.Push(ctx, s.tick(), true)
			if !errors.Is(err, port.ErrConflict) || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), before) {
				t.Errorf("push: %v, want a conflict that names the lost commit", err)
			}
			_, err = Open(ctx, s.options(), s.now)
			if !errors.Is(err, port.ErrConflict) {
				t.Errorf("open: %v, want a conflict", err)
			}
			// The advice of the error is followed.
			s.git("update-ref", "refs/heads/"+branch, before)
			must(t, l.Push(ctx, s.tick(), true))
			s.proved()
		})
	}
}

func TestABranchThatIsNoLedgerIsNotTouched(t *testing.T) {
	s := newStage(t)
	s.push(s.repo(), branch, "main.go", "package main")
	if _, err := Open(ctx, s.options(), s.now); !errors.Is(err, port.ErrConflict) || !strings.Contains(err.Error(), "is not a ledger") {
		t.Errorf("open: %v", err)
	}
	other, _, _ := story(t)
	o := other.options()
	o.Cluster, o.Branch, o.Spool = "second", branch, newSpool()
	if _, err := Open(ctx, o, s.now); !errors.Is(err, port.ErrConflict) || !strings.Contains(err.Error(), `cluster "myeks"`) {
		t.Errorf("open of another cluster's ledger: %v", err)
	}
}

func TestAStaleLeaderIsFenced(t *testing.T) {
	s, old, ds := story(t)
	next := s.lead()
	s.advance(old, ds[2], decision.Claimed)
	before := s.git("rev-parse", branch)
	for range 2 {
		if err := old.Push(ctx, s.tick(), true); !errors.Is(err, port.ErrFenced) {
			t.Fatalf("push of the old leader: %v", err)
		}
	}
	if s.git("rev-parse", branch) != before {
		t.Error("the old leader has written")
	}
	if err := old.Append(ctx, port.Entry{Time: s.now, Outcomes: []*decision.Outcome{outcome(ds[2], s.now)}}); !errors.Is(err, port.ErrFenced) {
		t.Errorf("append of the old leader: %v", err)
	}
	s.outcomes = map[string]*decision.Outcome{}
	s.advance(next, ds[2], decision.Claimed)
	must(t, next.Push(ctx, s.tick(), true))
	s.proved()
}

func TestOfTwoNewLeadersOneIsFenced(t *testing.T) {
	for _, fresh := range []bool{true, false} {
		t.Run(fmt.Sprint("a new branch: ", fresh), func(t *testing.T) {
			s := newStage(t)
			if !fresh {
				s, _, _ = story(t)
			}
			a, b := s.open(), s.open()
			must(t, s.handover(a))
			must(t, s.handover(b))
			must(t, a.Push(ctx, s.tick(), true))
			if err := b.Push(ctx, s.tick(), true); !errors.Is(err, port.ErrFenced) {
				t.Errorf("the slower leader: %v", err)
			}
			s.proved()
		})
	}
}

func TestAHandoverWinsAgainstALeaderThatStillPushes(t *testing.T) {
	s, old, ds := story(t)
	p := s.provision("late")
	s.pass(old, 4, []*decision.Decision{p}, ds[1])
	next := s.open() // finds p in the spool
	must(t, s.handover(next))
	must(t, old.Push(ctx, s.tick(), true)) // in between
	must(t, next.Push(ctx, s.tick(), true))
	if res := s.proved(); res.Epoch != 2 || res.Decisions != 9 {
		t.Errorf("%s", res)
	}
	if len(next.Open()) != 2 {
		t.Errorf("open: %v", ids(next.Open()))
	}
	s.advance(next, p, decision.Claimed)
	must(t, next.Push(ctx, s.tick(), true))
	s.proved()
}

func TestAHandoverIsMadeAgainOnWhatTheOldLeaderStillPushed(t *testing.T) {
	s, old, ds := story(t)
	p := s.provision("late")
	s.pass(old, 4, []*decision.Decision{p}, ds[1])
	s.advance(old, ds[2], decision.Claimed)
	next := s.open() // finds both in the spool
	must(t, s.handover(next))
	q := s.provision("later")
	s.pass(old, 5, []*decision.Decision{q}, ds[1])
	s.advance(old, ds[2], decision.Launched)
	must(t, old.Push(ctx, s.tick(), true))
	must(t, next.Push(ctx, s.tick(), true))
	if res := s.proved(); res.Epoch != 2 || res.Decisions != 10 {
		t.Errorf("%s", res)
	}
	open := next.Open()
	if len(open) != 3 || open[0].Outcome.State != decision.Launched {
		t.Errorf("open: %v, the first with %+v", ids(open), open[0].Outcome)
	}
	s.advance(next, q, decision.Claimed)
	must(t, next.Push(ctx, s.tick(), true))
	s.proved()

	// Once a new leader has decided something, nothing is made again.
	third := s.open()
	must(t, s.handover(third))
	s.advance(third, p, decision.Failed)
	s.outcomes = map[string]*decision.Outcome{}
	must(t, next.Append(ctx, port.Entry{Time: s.tick(), Decisions: []*decision.Decision{s.provision("x")}, Inputs: s.inputs(0)}))
	must(t, next.Push(ctx, s.tick(), true))
	if err := third.Push(ctx, s.tick(), true); !errors.Is(err, port.ErrConflict) {
		t.Errorf("decided without knowing what others have: %v", err)
	}
}

func TestWhatARelievedLeaderStillDecidedIsRecordedLate(t *testing.T) {
	s, old, ds := story(t)
	next := s.lead()
	s.advance(next, ds[2], decision.Claimed)
	must(t, next.Push(ctx, s.tick(), true))
	// The old leader does not know yet.
	p := s.provision("late")
	s.pass(old, 9, []*decision.Decision{p}, ds[1])
	s.outcomes = map[string]*decision.Outcome{}
	s.advance(old, ds[2], decision.Failed)
	s.advance(old, p, decision.Claimed)
	if err := old.Push(ctx, s.tick(), true); !errors.Is(err, port.ErrFenced) {
		t.Fatalf("push of the old leader: %v", err)
	}
	third := s.lead()
	if res := s.proved(); res.Epoch != 3 || res.Decisions != 10 {
		t.Errorf("%s", res)
	}
	if got := s.git("log", "--format=%B", branch); !strings.Contains(got, "Recorded late: epoch 1 had ended") {
		t.Error("no message says that something was recorded late")
	}
	open := third.Open()
	if len(open) != 2 || open[0].Outcome.State != decision.Claimed || open[1].Decision.ID != p.ID || open[1].Outcome.State != decision.Claimed {
		t.Errorf("open: %v", ids(open))
	}
	if s.spool.entries() != 0 {
		t.Errorf("%d entries are left in the spool", s.spool.entries())
	}
}

func TestAPushThatFailsLeavesEverythingForTheNext(t *testing.T) {
	s, l, ds := story(t)
	hook := filepath.Join(s.dir, "hooks", "pre-receive")
	must(t, os.MkdirAll(filepath.Dir(hook), 0o755))
	must(t, os.WriteFile(hook, []byte("#!/bin/sh\necho no >&2; exit 1\n"), 0o755))
	s.advance(l, ds[2], decision.Claimed)
	var wait *port.WaitError
	if err := l.Push(ctx, s.tick(), true); !errors.As(err, &wait) {
		t.Fatalf("push against a hook: %v", err)
	}
	if s.spool.entries() != 1 {
		t.Errorf("%d entries in the spool, want 1", s.spool.entries())
	}
	must(t, os.Remove(hook))
	must(t, l.Push(ctx, s.tick(), true))
	if s.spool.entries() != 0 {
		t.Error("the spool was not cleaned")
	}
	s.proved()
}

func TestASpoolThatCannotBeCleanedIsCleanedLater(t *testing.T) {
	s, l, ds := story(t)
	s.advance(l, ds[2], decision.Claimed)
	s.spool.fail = errors.New("away")
	if err := l.Push(ctx, s.tick(), true); err == nil {
		t.Error("nobody is told that the spool could not be cleaned")
	}
	s.spool.fail = nil
	s.advance(l, ds[2], decision.Launched)
	must(t, l.Push(ctx, s.tick(), true))
	if s.spool.entries() != 0 {
		t.Errorf("%d entries are left", s.spool.entries())
	}
	s.proved()
}

func TestALongOutageFillsTheSpoolWithoutStoppingAnything(t *testing.T) {
	s, l, ds := story(t)
	var last []*decision.Decision
	for i := 0; !l.lean; i++ {
		d := s.provision(fmt.Sprintf("pool-%d", i))
		s.pass(l, 100+i%7, []*decision.Decision{d}, ds[1])
		last = append(last, d)
		if i > 2000 {
			t.Fatal("the spool never fills")
		}
	}
	extra := s.provision("more")
	s.pass(l, 3, []*decision.Decision{extra}, ds[1])
	next := s.open()
	must(t, s.handover(next))
	must(t, next.Push(ctx, s.tick(), true))
	if res := s.proved(); res.Decisions != 7+len(last)+2 {
		t.Errorf("%s", res)
	}
	if got := s.git("log", "--format=%B", branch); !strings.Contains(got, "did not fit into the spool") {
		t.Error("no message says that a state is missing")
	}
}

func TestOldDaysLeaveTheTipAndStayInHistory(t *testing.T) {
	s, l, ds := story(t) // ds[2] stays open
	s.now = noon.Add(8 * 24 * time.Hour)
	a := s.provision("later")
	s.pass(l, 3, []*decision.Decision{a}, ds[1]) // trims
	must(t, l.Push(ctx, s.tick(), true))
	tree := s.git("ls-tree", "-r", "--name-only", branch, "decisions/2026-04-06")
	if got := strings.Count(tree, ".json"); got != 1 || !strings.Contains(tree, "-provision-a.json") {
		t.Errorf("of the old day the tip should have the open decision only:\n%s", tree)
	}
	day := s.git("show", branch+":days/2026-04-06.json")
	if !strings.Contains(day, `"decisions": 7`) || !strings.Contains(day, `"provision": 3`) {
		t.Errorf("record of the day:\n%s", day)
	}
	s.advance(l, ds[2], decision.Abandoned)
	must(t, l.Push(ctx, s.tick(), true))
	b := s.provision("after")
	s.pass(l, 3, []*decision.Decision{b}, ds[1]) // sweeps the rest
	must(t, l.Push(ctx, s.tick(), true))
	if got := s.git("ls-tree", "-r", "--name-only", branch, "decisions/2026-04-06"); got != "" {
		t.Errorf("left of the old day:\n%s", got)
	}
	if res := s.proved(); res.Decisions != 9 {
		t.Errorf("%s", res)
	}
	if e := get(Find(ctx, s.source(), ds[2].ID))(t); e.Outcome == nil || e.Outcome.State != decision.Abandoned {
		t.Errorf("the old decision with its late outcome: %+v", e.Outcome)
	}
	next := s.lead()
	must(t, next.Close(ctx, s.tick()))
	if got := s.git("show", branch+":README.md"); !strings.Contains(got, "| decisions ever | 10 |") {
		t.Errorf("README.md:\n%s", got)
	}
	s.proved()
}

func TestBlocksHaveAtMost256Files(t *testing.T) {
	s := newStage(t)
	l := s.lead()
	s.accept(l, 0)
	var ds []*decision.Decision
	for i := range 300 {
		ds = append(ds, sealed(t, &decision.Decision{Kind: decision.Interrupt, Time: s.now, Summary: fmt.Sprint("interrupt ", i),
			Proposal: decision.Proposal{Nodes: []decision.Node{{Claim: fmt.Sprintf("default-%04d", i)}}}}))
	}
	must(t, l.Append(ctx, port.Entry{Time: s.now, Decisions: ds[:200]}))
	must(t, l.Push(ctx, s.tick(), true))
	l = s.lead() // a new leader counts on
	must(t, l.Append(ctx, port.Entry{Time: s.now, Decisions: ds[200:]}))
	for _, d := range ds {
		s.advance(l, d, decision.Tainted)
	}
	must(t, l.Push(ctx, s.tick(), true))
	count := map[string]int{}
	for f := range strings.FieldsSeq(s.git("ls-tree", "-r", "--name-only", branch, "decisions/2026-04-06/")) {
		count[filepath.Dir(f)]++
	}
	for dir, n := range count {
		if n > 256 {
			t.Errorf("%s has %d files", dir, n)
		}
	}
	if res := s.proved(); res.Open != 300 {
		t.Errorf("%s", res)
	}
}

func TestMemoryIsFreedAndWritingGoesOn(t *testing.T) {
	s, l, ds := story(t)
	before := get(l.repo.TreeID(l.tip))(t)
	l.kept = forgetAfter
	s.advance(l, ds[2], decision.Claimed)
	must(t, l.Push(ctx, s.tick(), true))
	if l.kept != 0 || l.repo.Has(before) {
		t.Error("nothing was forgotten")
	}
	s.pushSpec("c")
	s.push(s.repo(), branch, "NOTES.md", "by hand")
	s.accept(l, 2)
	must(t, l.Push(ctx, s.tick(), true))
	s.proved()
	src := get(l.Accepted())(t)
	if _, err := src.Files.Open("clusters/myeks/fleet.cue"); err != nil {
		t.Errorf("the accepted fleet cannot be read: %v", err)
	}
}

func TestAppendAndPushRunSideBySide(t *testing.T) {
	s, l, _ := story(t)
	const n = 40
	var wg sync.WaitGroup
	errs := make(chan error, 3*n)
	wg.Go(func() {
		for range n / 4 {
			errs <- l.Push(ctx, noon, true)
		}
	})
	wg.Go(func() {
		for range n {
			l.Open()
			l.Recent(noon)
			l.Unpushed()
			_, err := l.Accepted()
			errs <- err
		}
	})
	for i := range n {
		d := sealed(t, &decision.Decision{Kind: decision.Interrupt, Time: noon, Summary: fmt.Sprint(i)})
		errs <- l.Append(ctx, port.Entry{Time: noon, Decisions: []*decision.Decision{d}})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
	must(t, l.Push(ctx, noon, true))
	if res := s.proved(); res.Decisions != 7+n {
		t.Errorf("%s", res)
	}
}

type signer struct{ n int }

func (s *signer) Sign(io.Reader) ([]byte, error) {
	s.n++
	return []byte("-----BEGIN SSH SIGNATURE-----\nAAAA\n-----END SSH SIGNATURE-----\n"), nil
}

func TestCommitsAreSignedAlsoWhenTheyMove(t *testing.T) {
	s := newStage(t)
	o, sig := s.options(), &signer{}
	o.Signer = sig
	l := get(Open(ctx, o, s.now))(t)
	must(t, s.handover(l))
	must(t, l.Push(ctx, s.tick(), true))
	s.push(s.repo(), branch, "NOTES.md", "x")
	s.accept(l, 0)
	must(t, l.Push(ctx, s.tick(), true))
	s.proved()
	if got := strings.Count(s.git("log", "--format=%B%n%(trailers)%n", branch), "Epoch: 1"); got == 0 || sig.n != 5 {
		t.Errorf("%d signatures, want 5: three commits, two of them moved", sig.n)
	}
	for rev := range strings.FieldsSeq(s.git("rev-list", branch)) {
		if raw := s.git("cat-file", "commit", rev); strings.Contains(raw, "Epoch: ") != strings.Contains(raw, "gpgsig ") {
			t.Errorf("commit %s:\n%s", rev, raw)
		}
	}
}

var _ gitrepo.Signer = (*signer)(nil)

// BenchmarkPasses records passes of 20 decisions with 10 changed nodes of 500
// and pushes every 10 passes.
func BenchmarkPasses(b *testing.B) {
	s := newStage(b)
	l := s.lead()
	s.accept(l, 0)
	const perPass = 20
	b.ReportAllocs()
	pass := 0
	for b.Loop() {
		b.StopTimer()
		var ds []*decision.Decision
		for i := range perPass {
			ds = append(ds, s.provision(fmt.Sprintf("p%d", i)))
		}
		snap := snapshot(s.now, 500)
		for i := range 10 {
			snap.Nodes[(pass*10+i)%500].Nominated = []string{fmt.Sprint("default/", pass)}
		}
		b.StartTimer()
		snap.Recent = l.Recent(s.now)
		must(b, l.Append(ctx, port.Entry{Time: s.now, Snapshot: snap, Decisions: ds, Inputs: s.inputs(0)}))
		if pass++; pass%10 == 0 {
			must(b, l.Push(ctx, s.now, true))
		}
	}
	b.ReportMetric(float64(b.N*perPass)/b.Elapsed().Seconds(), "decisions/s")
}
