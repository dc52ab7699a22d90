package ledger

import (
	"bytes"
	"errors"
	"io/fs"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/port"
)

func (s *stage) search(want string, fn func(port.Record) error) ([]string, []string) {
	s.t.Helper()
	var ids []string
	a := get(get(s.source().Open(ctx))(s.t).Archive())(s.t)
	for range 2 { // the second time from what is kept
		ids = nil
		must(s.t, a.Search(ctx,
			func(record, outcome []byte) bool {
				return bytes.Contains(record, []byte(want)) || bytes.Contains(outcome, []byte(want))
			},
			func(r port.Record) error {
				ids = append(ids, r.Decision.ID)
				if fn != nil {
					return fn(r)
				}
				return nil
			}))
	}
	return ids, a.Missing
}

func TestSearchFindsWhatEntriesVisitsAlsoInDaysThatHaveLeftTheTip(t *testing.T) {
	s := newStage(t)
	l := s.lead()
	s.accept(l, 0)
	var made []*decision.Decision
	for _, pool := range []string{"alpha", "beta"} {
		d := s.provision(pool)
		s.pass(l, 1, []*decision.Decision{d})
		s.advance(l, d, decision.Claimed)
		made = append(made, d)
	}
	s.advance(l, made[0], decision.Initialized)
	must(t, l.Push(ctx, s.tick(), true))
	s.now = s.now.Add(30 * 24 * time.Hour)
	later := s.provision("alpha")
	s.pass(l, 1, []*decision.Decision{later}) // takes the old day out of the tip, but for the open decision
	must(t, l.Push(ctx, s.tick(), true))
	s.advance(l, made[1], decision.Initialized)
	must(t, l.Push(ctx, s.tick(), true))
	s.now = s.now.Add(30 * 24 * time.Hour)
	s.pass(l, 1, nil)
	must(t, l.Close(ctx, s.tick()))

	got, missing := s.search("", func(r port.Record) error {
		if r.Decision.ID == made[1].ID && (r.Outcome == nil || r.Outcome.State != decision.Initialized) {
			t.Errorf("the outcome that came after its day left the tip is not seen: %+v", r.Outcome)
		}
		return nil
	})
	var want []string
	b := get(s.source().Open(ctx))(t)
	must(t, b.Entries(ctx, nil, func(e Entry) error { want = append(want, e.Decision.ID); return nil }))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(missing) > 0 {
		t.Errorf("days are missing from a whole clone: %v", missing)
	}
	if got, _ := s.search(`"alpha"`, nil); !cmp.Equal(got, []string{later.ID, made[0].ID}) {
		t.Errorf("by content: %v", got)
	}
	if got, _ := s.search(`"alpha"`, func(port.Record) error { return fs.SkipAll }); !cmp.Equal(got, []string{later.ID}) {
		t.Errorf("SkipAll: %v", got)
	}
	at := get(b.Recorded(ctx, made[0].ID, "no such"))(t)
	if e, ok := at[made[0].ID]; len(at) != 1 || !ok || !cmp.Equal(e.View.Decisions(), []string{made[0].ID}) {
		t.Errorf("Recorded: %+v", at)
	}
	if at := get(b.Recorded(ctx))(t); len(at) != 0 {
		t.Errorf("nothing asked for: %v", at)
	}
}

func TestSearchSaysWhichDaysAShallowCloneLacks(t *testing.T) {
	s := newStage(t)
	l := s.lead()
	s.accept(l, 0)
	must(t, l.Push(ctx, s.tick(), true))
	s.now = s.now.Add(30 * 24 * time.Hour)
	s.pass(l, 1, []*decision.Decision{s.provision("alpha")})
	must(t, l.Close(ctx, s.tick()))
	clone := t.TempDir()
	s.git("clone", "-q", "--bare", "--depth", "1", "-b", branch, "file://"+s.dir, clone)
	b := get(Source{Repo: clone}.Open(ctx))(t)
	n := 0
	a := get(b.Archive())(t)
	all := func(_, _ []byte) bool { return true }
	must(t, a.Search(ctx, all, func(port.Record) error { n++; return nil }))
	if n != 1 || a.Len() != 1 || !cmp.Equal(a.Missing, []string{"2026-04-06"}) {
		t.Errorf("%d of %d decisions, missing %v", n, a.Len(), a.Missing)
	}
	fail := errors.New("no")
	a.room, a.records[0].contents = 0, nil // as when there is no room to keep anything
	if err := a.Search(ctx, all, func(port.Record) error { return fail }); !errors.Is(err, fail) {
		t.Errorf("an error of fn is lost: %v", err)
	}
}
