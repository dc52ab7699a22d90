package ledger

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/gitrepo"
	"github.com/reeve-project/reeve/reconciler/port"
)

// Search visits the decisions of the branch whose record or outcome want takes
// as it stands in the file, newest first, until fn fails or returns fs.SkipAll.
// outcome is nil where there is none. It reads each file once, from the newest
// tree that holds it, and decodes only what want takes, so that a name is found
// in a long history without walking its commits. missing are the days that have
// left the tip and that a shallow clone does not have.
func (b *Branch) Search(ctx context.Context, want func(record, outcome []byte) bool, fn func(port.Record) error) (missing []string, err error) {
	days, err := b.searchable()
	if err != nil {
		return nil, err
	}
	for _, day := range slices.Backward(slices.Sorted(maps.Keys(days))) {
		if len(days[day]) == 0 {
			missing = append(missing, day)
			continue
		}
		if err := searchDay(ctx, day, days[day], want, fn); errors.Is(err, fs.SkipAll) {
			return missing, nil
		} else if err != nil {
			return missing, err
		}
	}
	return missing, nil
}

// searchable are the views that hold records of each day, newest first; none of
// a day whose commits are not here.
func (b *Branch) searchable() (map[string][]*View, error) {
	head, err := b.Head()
	if err != nil {
		return nil, err
	}
	entries, err := head.list(decisionsDir)
	if err != nil {
		return nil, err
	}
	out := map[string][]*View{}
	for _, e := range entries {
		if e.Kind == gitrepo.Dir {
			out[e.Name] = append(out[e.Name], head)
		}
	}
	gone, err := head.days()
	if err != nil {
		return nil, err
	}
	for day, rec := range gone {
		commits := []string{rec.Commit}
		for _, later := range rec.Later {
			commits = append(commits, later.Commit)
		}
		for _, c := range slices.Backward(commits) {
			v, err := b.viewIfHere(c)
			if err != nil {
				return nil, fmt.Errorf("%s/%s: %w", daysDir, day, err)
			}
			if v != nil {
				out[day] = append(out[day], v)
			}
		}
		if _, ok := out[day]; !ok {
			out[day] = nil
		}
	}
	return out, nil
}

// viewIfHere is nil for a commit behind a shallow border.
func (b *Branch) viewIfHere(commit string) (*View, error) {
	h, err := gitrepo.ParseHash(commit)
	if err != nil || !b.repo.Has(h) {
		return nil, err
	}
	return newView(b.repo, h)
}

func searchDay(ctx context.Context, day string, views []*View, want func(record, outcome []byte) bool, fn func(port.Record) error) error {
	at := map[string]*View{} // by path, the newest that has it
	for _, v := range slices.Backward(views) {
		paths, err := v.records(day)
		if err != nil {
			return err
		}
		for _, p := range paths {
			at[p] = v
		}
	}
	for _, p := range slices.Backward(slices.Sorted(maps.Keys(at))) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := at[p].searchRecord(p, want, fn); err != nil {
			return err
		}
	}
	return nil
}

func (v *View) searchRecord(p string, want func(record, outcome []byte) bool, fn func(port.Record) error) error {
	record, err := v.read(p)
	if err != nil {
		return err
	}
	outcome, err := v.read(outcomePath(p))
	if err != nil && !errors.Is(err, gitrepo.ErrNotFound) {
		return err
	}
	if !want(record, outcome) {
		return nil
	}
	d, o, err := v.record(p)
	if err != nil {
		return fmt.Errorf("commit %s: %w", v.Commit(), err)
	}
	return fn(port.Record{Decision: d, Outcome: o})
}

// Recorded are the entries of decisions by id, each with the ledger at the
// commit that records it. Those that the history does not have are left out.
// Commits are walked from the tip only as far back as the oldest of them.
func (b *Branch) Recorded(ctx context.Context, ids ...string) (map[string]Entry, error) {
	wanted, out := map[string]bool{}, map[string]Entry{}
	for _, id := range ids {
		wanted[id] = true
	}
	if len(wanted) == 0 {
		return out, nil
	}
	want := func(id string, _ decision.Kind) bool { return wanted[id] }
	err := b.Entries(ctx, want, func(e Entry) error {
		if out[e.Decision.ID] = e; len(out) == len(wanted) {
			return fs.SkipAll
		}
		return nil
	})
	return out, err
}
