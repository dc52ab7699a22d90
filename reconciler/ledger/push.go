package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/reeve-project/reeve/reconciler/gitrepo"
	"github.com/reeve-project/reeve/reconciler/port"
)

const (
	// maxPushes is how often a branch may move under one Push.
	maxPushes = 5
	// forgetAfter is the number of commits between two times that memory is
	// freed.
	forgetAfter = 256
)

// Push implements port.Ledger. It never forces. After a refused push it looks
// at the branch: a higher epoch there is port.ErrFenced; commits that leave the
// ledger's folders alone are built upon; anything else is port.ErrConflict.
// Other errors are a port.WaitError and leave everything as it was.
func (l *Ledger) Push(ctx context.Context, now time.Time, force bool) error {
	l.pushing.Lock()
	defer l.pushing.Unlock()
	for range maxPushes {
		base, tip, err := l.due(now, force)
		if err != nil || base == tip {
			return err
		}
		err = l.repo.Push(ctx, l.opts.Branch, base, tip)
		if err == nil {
			return l.pushed(ctx, tip, now)
		}
		var moved *gitrepo.MovedError
		if !errors.As(err, &moved) {
			return l.later(err)
		}
		if err := l.moved(ctx, moved.At, now); err != nil {
			return l.stop(err)
		}
	}
	return port.RetryAfter(fmt.Errorf("ledger: branch %s of %s moves faster than it can be pushed to", l.opts.Branch, l.repo.Name()), l.opts.PushInterval)
}

// due is what to push; equal hashes mean nothing. A conflict is looked at again
// each time, since somebody may have resolved it.
func (l *Ledger) due(now time.Time, force bool) (base, tip gitrepo.Hash, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.stopped != nil && !errors.Is(l.stopped, port.ErrConflict):
		return base, tip, l.stopped
	case l.base == l.tip, !force && l.stopped == nil && now.Sub(l.lastPush) < l.opts.PushInterval:
		return base, tip, nil
	}
	return l.base, l.tip, nil
}

// stop remembers an error that ends all acting.
func (l *Ledger) stop(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if errors.Is(err, port.ErrFenced) || errors.Is(err, port.ErrConflict) {
		l.stopped = err
	}
	return err
}

// pushed takes over that the remote has everything up to tip.
func (l *Ledger) pushed(ctx context.Context, tip gitrepo.Hash, now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lastPush, l.stopped = now, nil
	return l.settle(ctx, tip)
}

func (l *Ledger) settle(ctx context.Context, tip gitrepo.Hash) error {
	i := slices.IndexFunc(l.unpushed, func(c commit) bool { return c.hash == tip })
	done := slices.Clone(l.unpushed[:i+1])
	l.done = append(l.done, done...)
	l.base, l.unpushed = tip, slices.Delete(l.unpushed, 0, i+1)
	l.led = l.led || slices.ContainsFunc(done, func(c commit) bool { return c.entry.Handover && c.entry.Epoch == l.epoch })
	if l.kept >= forgetAfter && len(l.unpushed) == 0 {
		l.forget()
		if err := l.edit(); err != nil {
			return err
		}
	}
	return l.clean(ctx)
}

// moved decides what a branch that is not where it was left means.
func (l *Ledger) moved(ctx context.Context, at gitrepo.Hash, now time.Time) error {
	if at.IsZero() {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.conflict("was deleted. Restore it with: git push %s %s:refs/heads/%s", l.repo.Name(), l.base, l.opts.Branch)
	}
	heads, err := l.repo.Fetch(ctx, l.opts.Branch, l.depth())
	if errors.Is(err, gitrepo.ErrBranchMissing) {
		return nil // deleted since; the next push says so
	}
	if err != nil {
		return l.later(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	theirs := heads.New
	switch {
	case theirs == l.base:
		return nil
	case slices.ContainsFunc(l.unpushed, func(c commit) bool { return c.hash == theirs }):
		return l.settle(ctx, theirs) // pushed before, and the answer was lost
	}
	return l.meet(ctx, theirs, now)
}

// depth of the fetch after a refused push: what is new since the base, or only
// the tip of a branch that was not there before.
func (l *Ledger) depth() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.base.IsZero() {
		return 1
	}
	return gitrepo.AllNew
}

// meet decides what to do about commits of others.
func (l *Ledger) meet(ctx context.Context, theirs gitrepo.Hash, now time.Time) error {
	view, err := newView(l.repo, theirs)
	if err != nil {
		return err
	}
	leader, err := view.leader()
	if err == nil && leader.Cluster == l.opts.Cluster && (leader.Epoch > l.epoch || leader.Epoch == l.epoch && leader.Decision != l.leader.Decision) {
		return fmt.Errorf("%w: %s leads cluster %s with epoch %d since decision %s, and this writer has epoch %d",
			port.ErrFenced, leader.Identity, l.opts.Cluster, leader.Epoch, leader.Decision, l.epoch)
	}
	if !l.base.IsZero() {
		in, err := l.repo.Contains(theirs, l.base)
		if err != nil {
			return err
		}
		if !in {
			return l.conflict("was rewritten: it is at %s, which does not contain %s. Restore it with: git push --force-with-lease=%s:%s %s %s:refs/heads/%s",
				theirs, l.base, l.opts.Branch, theirs, l.repo.Name(), l.base, l.opts.Branch)
		}
		foreign, err := l.foreign(theirs)
		if err != nil {
			return err
		}
		if len(foreign) == 0 {
			return l.reparent(theirs)
		}
		if l.led {
			return l.conflict("has changes by somebody else in the ledger's folders: %s. See them with: git log %s..%s", strings.Join(foreign, ", "), l.base, theirs)
		}
	}
	return l.restart(ctx, theirs, now)
}

// foreign lists some paths in the ledger's folders that others have changed.
func (l *Ledger) foreign(theirs gitrepo.Hash) ([]string, error) {
	from, err := l.repo.TreeID(l.base)
	if err != nil {
		return nil, err
	}
	to, err := l.repo.TreeID(theirs)
	if err != nil {
		return nil, err
	}
	const most = 5
	var out []string
	for _, name := range owned {
		a, errA := l.repo.Entry(from, name)
		b, errB := l.repo.Entry(to, name)
		if err := errors.Join(notMissing(errA), notMissing(errB)); err != nil {
			return nil, err
		}
		if a == b {
			continue
		}
		if a.Kind != gitrepo.Dir || b.Kind != gitrepo.Dir {
			out = append(out, name)
			continue
		}
		changes, err := l.repo.Changes(a.Hash, b.Hash)
		if err != nil {
			return nil, err
		}
		for _, c := range changes {
			out = append(out, name+"/"+c.Path)
		}
	}
	return out[:min(most, len(out))], nil
}

func notMissing(err error) error {
	if errors.Is(err, gitrepo.ErrNotFound) {
		return nil
	}
	return err
}

// reparent puts the commits that are not pushed on top of others' commits,
// which have left the ledger's folders alone. Decision ids stay, since they do
// not depend on commits; nothing is dropped.
func (l *Ledger) reparent(onto gitrepo.Hash) error {
	ground, err := l.repo.TreeID(onto)
	if err != nil {
		return err
	}
	moved := slices.Clone(l.unpushed)
	parent := onto
	for i := range moved {
		c, err := l.repo.ReadCommit(moved[i].hash)
		if err != nil {
			return err
		}
		if c.Tree, err = l.overlay(ground, c.Tree); err != nil {
			return err
		}
		c.Parents = []gitrepo.Hash{parent}
		if parent, err = l.repo.WriteCommit(c, l.opts.Signer); err != nil {
			return err
		}
		moved[i].hash = parent
	}
	l.base, l.tip, l.unpushed = onto, parent, moved
	return l.edit()
}

// overlay is a tree with the ledger's entries taken from another.
func (l *Ledger) overlay(ground, ours gitrepo.Hash) (gitrepo.Hash, error) {
	ed, err := l.repo.Edit(ground)
	if err != nil {
		return gitrepo.Hash{}, err
	}
	for _, name := range owned {
		if err := ed.Remove(name); err != nil {
			return gitrepo.Hash{}, err
		}
		e, err := l.repo.Entry(ours, name)
		if errors.Is(err, gitrepo.ErrNotFound) {
			continue
		}
		if err == nil {
			err = ed.Place(name, e)
		}
		if err != nil {
			return gitrepo.Hash{}, err
		}
	}
	return ed.Write()
}

// restart begins again on a tip that an earlier leader has pushed to meanwhile:
// the handover and the spool's entries are made on it.
func (l *Ledger) restart(ctx context.Context, theirs gitrepo.Hash, now time.Time) error {
	entries := make([]*spoolEntry, len(l.unpushed))
	for i, c := range l.unpushed {
		if !c.beginning {
			return l.conflict("has changes by somebody else, and %s was decided without them", strings.Join(c.entry.Decisions, ", "))
		}
		entries[i] = c.entry
	}
	if err := l.load(theirs, now); err != nil {
		return err
	}
	return l.begin(ctx, entries)
}
