package ledger

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/gitrepo"
)

// Problem is something in a ledger that is not as its writer leaves it.
type Problem struct {
	Commit string
	// Path in the commit's tree; empty when it is about the commit.
	Path    string
	Message string
}

// String is the problem as one line.
func (p Problem) String() string {
	where := p.Commit[:min(12, len(p.Commit))]
	if p.Path != "" {
		where += " " + p.Path
	}
	return where + ": " + p.Message
}

// Result is what Verify found.
type Result struct {
	Branch    string
	Commits   int
	Foreign   int // commits by others that left the ledger's folders alone
	Decisions int
	Outcomes  int
	Open      int
	Epoch     int64
	Problems  []Problem
}

// String is the result in one line.
func (r *Result) String() string {
	state := "verified"
	if n := len(r.Problems); n > 0 {
		state = fmt.Sprintf("%d problems", n)
		if n == 1 {
			state = "1 problem"
		}
	}
	return fmt.Sprintf("%s: %s: %d commits, %d decisions, %d outcomes, %d open, epoch %d",
		r.Branch, state, r.Commits, r.Decisions, r.Outcomes, r.Open, r.Epoch)
}

// Check is a further proof of a decision, such as that its policy digest
// follows from the recorded fleet and policies. It answers what is wrong.
type Check func(ctx context.Context, e Entry) []string

// Verify walks every commit of a decision branch, oldest first, and proves that
// it is a chain of commits and leaders; that every decision's id follows from
// its bytes, which never change; that every outcome and every NodeClaim in the
// state has a decision that was recorded in an earlier commit; that open/ is
// exactly the decisions without a final outcome; that what has left the tip is
// in history; and that types, prices and specs are those the decisions name.
// It fails only if the branch cannot be read.
func Verify(ctx context.Context, s Source, checks ...Check) (*Result, error) {
	b, err := s.Open(ctx)
	if err != nil {
		return nil, err
	}
	var chain []*View
	if err := b.Walk(ctx, func(v *View) error { chain = append(chain, v); return nil }); err != nil {
		return nil, err
	}
	slices.Reverse(chain)
	w := &verifier{
		res: &Result{Branch: b.Name}, repo: b.repo, checks: checks, seen: map[string]*seen{},
		open: map[string]bool{}, inTree: map[string]bool{}, commits: map[string]bool{}, policies: map[string]string{}, catalogs: map[string][2]string{},
	}
	for _, v := range chain {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := w.commit(ctx, v); err != nil {
			return nil, fmt.Errorf("commit %s: %w", v.Commit(), err)
		}
	}
	w.finish()
	return w.res, nil
}

// seen is what is kept of a decision that was recorded.
type seen struct {
	path     string
	allowed  bool
	opens    bool
	handover bool
	commit   int // number in the chain
	claims   []string
	final    bool
	left     bool // its file has left the tip
}

type verifier struct {
	res    *Result
	repo   *gitrepo.Repo
	checks []Check

	at       *View // the commit under proof
	prev     *View // the one before it
	seen     map[string]*seen
	byPath   map[string]string
	open     map[string]bool // what should be open
	inTree   map[string]bool // what open/ has
	commits  map[string]bool
	policies map[string]string    // digest → tree of inputs/policies, and the other way round
	accepted string               // spec commit in force
	catalogs map[string][2]string // digests of types and prices by tree of inputs/catalog
}

func (w *verifier) problem(path, format string, args ...any) {
	w.res.Problems = append(w.res.Problems, Problem{Commit: w.at.Commit(), Path: path, Message: fmt.Sprintf(format, args...)})
}

// commit proves one commit against the one before it.
func (w *verifier) commit(ctx context.Context, v *View) error {
	w.at = v
	w.res.Commits++
	defer func() { w.prev, w.commits[v.Commit()] = v, true }()
	w.link(v)
	epoch, ours := v.marks.epoch()
	changes, err := w.changes(v)
	if err != nil {
		return err
	}
	if !ours {
		w.res.Foreign++
		for _, c := range changes {
			w.problem(c.Path, "changed by a commit that is not the ledger's")
		}
		return nil
	}
	if w.byPath == nil {
		w.byPath = map[string]string{}
	}
	added, err := w.decisions(ctx, v, changes)
	if err != nil {
		return err
	}
	w.leaders(v, epoch, added)
	for _, step := range []func(*View, []gitrepo.Change) error{w.outcomes, w.claims, w.days, w.openFiles} {
		if err := step(v, changes); err != nil {
			return err
		}
	}
	return w.inputs(v, added)
}

// link proves the place of the commit in the chain.
func (w *verifier) link(v *View) {
	switch n := len(v.commit.Parents); {
	case w.prev == nil && n > 0:
		w.problem("", "the history ends here, and the commit has a parent: the clone is shallow, fetch all of it with git fetch --unshallow")
	case w.prev != nil && n > 1:
		w.problem("", "the commit has %d parents: the ledger is a chain", n)
	}
}

// changes are the files in the ledger's folders that differ from the commit
// before.
func (w *verifier) changes(v *View) ([]gitrepo.Change, error) {
	var before gitrepo.Hash
	if w.prev != nil {
		before = w.prev.commit.Tree
	}
	var out []gitrepo.Change
	for _, name := range owned {
		a, err := entryOrNone(w.repo, before, name)
		if err != nil {
			return nil, err
		}
		b, err := entryOrNone(w.repo, v.commit.Tree, name)
		if err != nil {
			return nil, err
		}
		if a == b {
			continue
		}
		var from, to gitrepo.Hash
		if a.Kind == gitrepo.Dir {
			from, a = a.Hash, gitrepo.Entry{}
		}
		if b.Kind == gitrepo.Dir {
			to, b = b.Hash, gitrepo.Entry{}
		}
		if !a.Hash.IsZero() || !b.Hash.IsZero() {
			out = append(out, gitrepo.Change{Path: name, From: a, To: b})
		}
		// The grafted trees are compared by id and need not be walked.
		changes, err := w.repo.Changes(from, to)
		if err != nil {
			return nil, err
		}
		for _, c := range changes {
			c.Path = name + "/" + c.Path
			if !strings.HasPrefix(c.Path, fleetDir+"/") && !strings.HasPrefix(c.Path, proposedDir+"/") {
				out = append(out, c)
			}
		}
	}
	return out, nil
}

func entryOrNone(repo *gitrepo.Repo, tree gitrepo.Hash, name string) (gitrepo.Entry, error) {
	if tree.IsZero() {
		return gitrepo.Entry{}, nil
	}
	e, err := repo.Entry(tree, name)
	if errors.Is(err, gitrepo.ErrNotFound) {
		return gitrepo.Entry{}, nil
	}
	return e, err
}

func isAdded(c gitrepo.Change) bool   { return c.From.Hash.IsZero() }
func isRemoved(c gitrepo.Change) bool { return c.To.Hash.IsZero() }

// leaders proves that epochs only rise, each by a handover that is in the
// commit.
func (w *verifier) leaders(v *View, epoch int64, added []*decision.Decision) {
	handover := slices.IndexFunc(added, func(d *decision.Decision) bool { return d.Kind == decision.Handover })
	switch {
	case epoch < w.res.Epoch:
		w.problem("", "epoch %d comes after epoch %d: a leader wrote that had been relieved", epoch, w.res.Epoch)
	case epoch > w.res.Epoch && handover < 0:
		w.problem("", "epoch %d begins without a handover", epoch)
	}
	if handover >= 0 && (added[handover].Proposal.Handover == nil || added[handover].Proposal.Handover.Epoch != epoch) {
		w.problem("", "the handover is not to epoch %d of its commit", epoch)
	}
	w.res.Epoch = max(w.res.Epoch, epoch)
	if rec, err := v.leader(); err != nil {
		w.problem(leaderFile, "%v", err)
	} else if rec.Epoch != epoch {
		w.problem(leaderFile, "names epoch %d, and the commit is of epoch %d", rec.Epoch, epoch)
	}
}

// finish looks at what must hold at the end.
func (w *verifier) finish() {
	w.res.Decisions, w.res.Open = len(w.seen), len(w.open)
	if w.prev == nil {
		return
	}
	w.at = w.prev
	if w.res.Decisions == 0 {
		w.problem("", "no commit records a decision, not even who leads: this is no decision branch, or its history was replaced")
	}
	for _, id := range slices.Sorted(maps.Keys(w.seen)) {
		if s := w.seen[id]; w.open[id] && s.left {
			w.problem(s.path, "decision %s is open and has left the tip", id)
		}
	}
	if _, err := w.prev.Snapshot(); err != nil && !errors.Is(err, gitrepo.ErrNotFound) && !missing(err) {
		w.problem(stateDir, "%v", err)
	}
}
