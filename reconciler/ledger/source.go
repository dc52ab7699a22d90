package ledger

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/gitrepo"
)

// branchPrefix begins the names of decision branches.
const branchPrefix = "reeve/"

// Source is where a decision branch is read from.
type Source struct {
	// Repo is a path on disk, which is read in place, or a URL, which is
	// fetched into memory with its history. For a long history a clone is the
	// better way.
	Repo string
	// Branch; when empty, the only one below reeve/.
	Branch string
	// Auth for a URL.
	Auth func(context.Context) (gitrepo.Auth, error)
}

// Branch is a decision branch that is open for reading.
type Branch struct {
	Name string
	repo *gitrepo.Repo
	head gitrepo.Hash
}

// Open finds the branch.
func (s Source) Open(ctx context.Context) (*Branch, error) {
	if _, err := os.Stat(s.Repo); err == nil {
		repo, err := gitrepo.OpenDir(s.Repo, gitrepo.Options{})
		if err != nil {
			return nil, err
		}
		all, err := repo.Branches()
		if err != nil {
			return nil, err
		}
		return s.choose(repo, all)
	}
	repo, err := gitrepo.Open(s.Repo, gitrepo.Options{Auth: s.Auth})
	if err != nil {
		return nil, err
	}
	all, err := repo.Heads(ctx)
	if err != nil {
		return nil, err
	}
	b, err := s.choose(repo, all)
	if err != nil {
		return nil, err
	}
	heads, err := repo.Fetch(ctx, b.Name, gitrepo.AllNew)
	b.head = heads.New
	return b, err
}

func (s Source) choose(repo *gitrepo.Repo, all map[string]gitrepo.Hash) (*Branch, error) {
	name := s.Branch
	if name == "" {
		var found []string
		for _, b := range slices.Sorted(maps.Keys(all)) {
			if strings.HasPrefix(b, branchPrefix) {
				found = append(found, b)
			}
		}
		switch len(found) {
		case 0:
			return nil, fmt.Errorf("%s has no branch below %s: name the decision branch with --branch, or fetch it first", repo.Name(), branchPrefix)
		case 1:
			name = found[0]
		default:
			return nil, fmt.Errorf("%s has several decision branches, name one with --branch: %s", repo.Name(), strings.Join(found, ", "))
		}
	}
	head, ok := all[name]
	if !ok {
		return nil, fmt.Errorf("branch %s of %s: %w", name, repo.Name(), gitrepo.ErrBranchMissing)
	}
	return &Branch{Name: name, repo: repo, head: head}, nil
}

// Head is the ledger at the tip.
func (b *Branch) Head() (*View, error) { return newView(b.repo, b.head) }

// At is the ledger at a revision of the repository, such as a commit.
func (b *Branch) At(rev string) (*View, error) {
	h, err := b.repo.Resolve(rev)
	if err != nil {
		return nil, err
	}
	return newView(b.repo, h)
}

// Entry is a decision in the ledger.
type Entry struct {
	Decision *decision.Decision
	// Outcome as far as the branch tells, nil if there is none.
	Outcome *decision.Outcome
	// View is the ledger at the commit that records the decision.
	View *View
}

// Walk visits the commits of the branch, newest first, until fn fails, fn
// returns fs.SkipAll, or the history ends.
func (b *Branch) Walk(ctx context.Context, fn func(*View) error) error {
	return b.repo.History(b.head, func(c gitrepo.Commit) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return fn(&View{repo: b.repo, commit: c, marks: parseTrailers(c.Message)})
	})
}

// Entries visits the decisions of the branch, newest first, until fn fails or
// returns fs.SkipAll. Decisions that want refuses by their id and kind are not
// read; a nil want takes all.
func (b *Branch) Entries(ctx context.Context, want func(id string, kind decision.Kind) bool, fn func(Entry) error) error {
	outcomes := map[string]*View{} // the newest commit with an outcome
	ours := false
	err := b.Walk(ctx, func(v *View) error {
		if _, marked := v.marks.epoch(); marked {
			ours = true
		}
		for _, id := range v.Outcomes() {
			if outcomes[id] == nil {
				outcomes[id] = v
			}
		}
		ids, kinds := v.Decisions(), v.marks.all(trailerKind)
		for i, id := range slices.Backward(ids) {
			if want != nil && (i >= len(kinds) || !want(id, decision.Kind(kinds[i]))) {
				continue
			}
			d, _, err := v.Decision(id)
			if err != nil {
				return fmt.Errorf("commit %s: %w", v.Commit(), err)
			}
			e := Entry{Decision: d, View: v}
			if at := outcomes[id]; at != nil {
				if _, e.Outcome, err = at.Decision(id); err != nil {
					return fmt.Errorf("commit %s: %w", at.Commit(), err)
				}
			}
			if err := fn(e); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && !ours {
		return fmt.Errorf("branch %s of %s: %w", b.Name, b.repo.Name(), ErrNoLedger)
	}
	return err
}

// ErrNoLedger says that no commit of a branch was written by a ledger.
var ErrNoLedger = errors.New("no commit of it records decisions: name a decision branch, such as reeve/<cluster>")

// Query narrows a Log.
type Query struct {
	// Kinds, or all when empty.
	Kinds []string
	// Limit is how many decisions at most, or all when zero.
	Limit int
}

// kindList are all kinds for a message.
func kindList() string {
	var out []string
	for _, k := range decision.Kinds() {
		out = append(out, string(k))
	}
	return strings.Join(out, ", ")
}

// Log visits decisions, newest first.
func Log(ctx context.Context, s Source, q Query, fn func(Entry) error) error {
	for _, k := range q.Kinds {
		if !decision.Kind(k).Valid() {
			return fmt.Errorf("%q is no kind of decision; the kinds are %s", k, kindList())
		}
	}
	b, err := s.Open(ctx)
	if err != nil {
		return err
	}
	n := 0
	want := func(_ string, k decision.Kind) bool { return len(q.Kinds) == 0 || slices.Contains(q.Kinds, string(k)) }
	return b.Entries(ctx, want, func(e Entry) error {
		if err := fn(e); err != nil {
			return err
		}
		if n++; n == q.Limit {
			return fs.SkipAll
		}
		return nil
	})
}

// ErrAmbiguous says that a part of an id names several decisions.
var ErrAmbiguous = errors.New("names several decisions")

// Find is the decision whose id contains the part.
func Find(ctx context.Context, s Source, part string) (Entry, error) {
	b, err := s.Open(ctx)
	if err != nil {
		return Entry{}, err
	}
	return b.Find(ctx, part)
}

// Latest stands for the newest decision of a branch, where a part of an id is
// asked for.
const Latest = "latest"

// Find is the decision whose id contains the part, or the newest when the part
// is Latest. It fails with ErrAmbiguous or gitrepo.ErrNotFound unless there is
// exactly one.
func (b *Branch) Find(ctx context.Context, part string) (Entry, error) {
	var found []Entry
	want := func(id string, _ decision.Kind) bool {
		return part == Latest || part != "" && strings.Contains(id, part)
	}
	err := b.Entries(ctx, want, func(e Entry) error {
		found = append(found, e)
		if part == Latest || e.Decision.ID == part || len(found) > 2 {
			return fs.SkipAll
		}
		return nil
	})
	switch {
	case err != nil:
		return Entry{}, err
	case len(found) == 0:
		return Entry{}, fmt.Errorf("decision %q on branch %s: %w: reeve log lists the decisions", part, b.Name, gitrepo.ErrNotFound)
	case len(found) > 1 && found[len(found)-1].Decision.ID != part:
		return Entry{}, fmt.Errorf("%q %w: %s, %s", part, ErrAmbiguous, found[0].Decision.ID, found[1].Decision.ID)
	}
	return found[len(found)-1], nil
}
