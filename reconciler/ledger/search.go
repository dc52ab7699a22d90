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

// Archive is all records of a branch, to be searched by what they hold. It is not
// safe for concurrent use.
type Archive struct {
	// Missing are the days that have left the tip and that a shallow clone does
	// not have.
	Missing []string
	branch  *Branch
	records []archived
	// room is how many more bytes may be kept.
	room int
}

// archived is a record in the newest tree that has it. Its contents are kept
// once read, while there is room.
type archived struct {
	view            *View
	path            string
	record, outcome gitrepo.Hash
	contents        *[2][]byte
}

// maxKept bounds the bytes that an Archive keeps between searches.
const maxKept = 256 << 20

// Archive lists the records of the branch. It reads trees and no records, and
// walks no commits: a day's records are in the tip, or in a commit that the tip
// names.
func (b *Branch) Archive() (*Archive, error) {
	days, err := b.searchable()
	if err != nil {
		return nil, err
	}
	a := &Archive{branch: b, room: maxKept}
	for _, day := range slices.Backward(slices.Sorted(maps.Keys(days))) {
		if len(days[day]) == 0 {
			a.Missing = append(a.Missing, day)
		} else if err := a.add(day, days[day]); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// Len is the number of decisions.
func (a *Archive) Len() int { return len(a.records) }

// Search visits the decisions whose record or outcome want takes as it stands in
// the file, newest first, until fn fails or returns fs.SkipAll. outcome is nil
// where there is none. Only what want takes is decoded, so that a name is found
// quickly in a long history.
func (a *Archive) Search(ctx context.Context, want func(record, outcome []byte) bool, fn func(port.Record) error) error {
	for i := range a.records {
		if err := ctx.Err(); err != nil {
			return err
		}
		r := &a.records[i]
		c, err := a.read(r)
		if err != nil {
			return fmt.Errorf("%s: %w", r.path, err)
		}
		if !want(c[0], c[1]) {
			continue
		}
		d, o, err := r.view.record(r.path)
		if err != nil {
			return fmt.Errorf("commit %s: %w", r.view.Commit(), err)
		}
		if err := fn(port.Record{Decision: d, Outcome: o}); errors.Is(err, fs.SkipAll) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return nil
}

// read is the record and the outcome.
func (a *Archive) read(r *archived) (*[2][]byte, error) {
	if r.contents != nil {
		return r.contents, nil
	}
	var c [2][]byte
	var err error
	if c[0], err = a.branch.repo.Blob(r.record); err != nil {
		return nil, err
	}
	if !r.outcome.IsZero() {
		if c[1], err = a.branch.repo.Blob(r.outcome); err != nil {
			return nil, err
		}
	}
	if n := len(c[0]) + len(c[1]); n <= a.room {
		a.room -= n
		r.contents = &c
	}
	return &c, nil
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

// add appends the records of a day, newest first, each from the newest view that
// has it.
func (a *Archive) add(day string, views []*View) error {
	at := map[string]archived{}
	for _, v := range slices.Backward(views) {
		files, err := v.filesOfDay(day)
		if err != nil {
			return err
		}
		for name, record := range files {
			if isRecord(name) {
				at[name] = archived{view: v, path: name, record: record, outcome: files[outcomePath(name)]}
			}
		}
	}
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(at))) {
		a.records = append(a.records, at[name])
	}
	return nil
}

// filesOfDay are the files in the blocks of a day, by path.
func (v *View) filesOfDay(day string) (map[string]gitrepo.Hash, error) {
	dir := decisionsDir + "/" + day
	blocks, err := v.list(dir)
	if err != nil {
		return nil, err
	}
	out := map[string]gitrepo.Hash{}
	for _, b := range blocks {
		if !isBlock(b.Name) || b.Kind != gitrepo.Dir {
			continue
		}
		files, err := v.repo.Entries(b.Hash)
		if err != nil {
			return nil, fmt.Errorf("%s/%s: %w", dir, b.Name, err)
		}
		for _, f := range files {
			out[dir+"/"+b.Name+"/"+f.Name] = f.Hash
		}
	}
	return out, nil
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
