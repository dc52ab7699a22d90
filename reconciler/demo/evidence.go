package demo

import (
	"context"
	"io/fs"
	"slices"
	"time"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/ledger"
)

// recorded are the decisions of the kind that the decision branch holds from the
// instant on, oldest first, with their outcomes. They are read from the
// repository as an auditor would, and not from the pipeline.
func (s *stage) recorded(ctx context.Context, since time.Time, kind decision.Kind) ([]ledger.Entry, error) {
	if err := s.ledger.Push(ctx, s.world.Now(), true); err != nil {
		return nil, err
	}
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
