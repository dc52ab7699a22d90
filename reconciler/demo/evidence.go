package demo

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/ledger"
	"github.com/reeve-project/reeve/reconciler/sim"
	"github.com/reeve-project/reeve/reconciler/sim/awsapi"
)

// recorded are the decisions of the kind that the decision branch holds from the
// instant on, oldest first, with their outcomes. What waits for its push is
// pushed first.
func (s *stage) recorded(ctx context.Context, since time.Time, kind decision.Kind) ([]ledger.Entry, error) {
	if err := s.ledger.Push(ctx, s.world.Now(), true); err != nil {
		return nil, err
	}
	return s.pushed(ctx, since, kind)
}

// pushed reads the repository as an auditor would, without asking the pipeline.
func (s *stage) pushed(ctx context.Context, since time.Time, kind decision.Kind) ([]ledger.Entry, error) {
	branch, err := ledger.Source{Repo: s.repo, Branch: s.branch}.Open(ctx)
	if err != nil {
		return nil, err
	}
	var out []ledger.Entry
	want := func(_ string, k decision.Kind) bool { return k == kind }
	err = branch.Entries(ctx, want, func(e ledger.Entry) error {
		if e.Decision.Time.Before(since) {
			return fs.SkipAll
		}
		out = append(out, e)
		return nil
	})
	slices.Reverse(out)
	return out, err
}

// written is when Reeve first wrote that to the object of the API server.
func (s *stage) written(key, note string) (time.Time, bool) {
	for _, w := range s.world.API.Audit() {
		if w.Actor == "reeve" && w.Key == key && w.Note == note {
			return w.Time, true
		}
	}
	return time.Time{}, false
}

// calls are what one pass asks of the API server, the spool and AWS, in order:
// "cluster Taint", "ec2 CreateFleet".
func (s *stage) calls(ctx context.Context) ([]string, error) {
	var out []string
	s.world.SetFaults(func(c sim.Call) *sim.Fault { out = append(out, c.Port+" "+c.Op); return nil })
	s.account.SetFaults(func(c awsapi.Call) *awsapi.Fault { out = append(out, c.Service+" "+c.Action); return nil })
	err := s.pass(ctx, time.Second)
	s.world.SetFaults(nil)
	s.account.SetFaults(nil)
	return out, err
}

// before fails unless the first of the calls was made, and each of the others
// after it.
func before(calls []string, first string, others ...string) error {
	begin := slices.Index(calls, first)
	if begin < 0 {
		return fmt.Errorf("%s was not called", first)
	}
	for _, other := range others {
		if i := slices.Index(calls, other); i < begin {
			return fmt.Errorf("%s was not called after %s, in %q", other, first, calls)
		}
	}
	return nil
}
