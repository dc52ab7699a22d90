package spec

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/gitrepo"
	"github.com/reeve-project/reeve/reconciler/port"
)

// Repository reads the fleet of one cluster from the spec branch of a Git
// repository. It is safe for concurrent use.
type Repository struct {
	repo    *gitrepo.Repo
	branch  string
	options Options

	mu     sync.Mutex
	head   gitrepo.Hash
	loaded map[string]*fleet.Fleet
}

var _ port.Specs = (*Repository)(nil)

// maxLoaded is how many evaluated trees are kept: the one in force, its
// predecessor, and room for a few that are reverted back and forth.
const maxLoaded = 8

// NewRepository reads the branch of the repository; options.Cluster says which
// fleet. Options.Commit is not used.
func NewRepository(repo *gitrepo.Repo, branch string, options Options) *Repository {
	return &Repository{repo: repo, branch: branch, options: options, loaded: map[string]*fleet.Fleet{}}
}

// Head fetches the branch and returns the commit at its tip. A branch that is
// not there is port.ErrBranchMissing.
func (r *Repository) Head(ctx context.Context) (string, error) {
	heads, err := r.repo.Fetch(ctx, r.branch, 1)
	if err != nil {
		if errors.Is(err, gitrepo.ErrBranchMissing) {
			return "", fmt.Errorf("%w: %w", port.ErrBranchMissing, err)
		}
		return "", err
	}
	return heads.New.String(), nil
}

// Source reads the tree of a commit that Head has returned.
func (r *Repository) Source(_ context.Context, commit string) (*port.Source, error) {
	hash, err := gitrepo.ParseHash(commit)
	if err != nil {
		return nil, err
	}
	c, err := r.repo.ReadCommit(hash)
	if err != nil {
		return nil, err
	}
	files, err := r.repo.Tree(hash)
	if err != nil {
		return nil, err
	}
	return &port.Source{
		Branch: r.branch, Commit: commit, Tree: files.TreeID().String(),
		Author: c.Author.Name, Subject: c.Subject(), Files: files, Forced: r.forced(hash),
	}, nil
}

// forced says whether the commit does not come after the last one that was
// read. A history that is not complete here gives no evidence of that.
func (r *Repository) forced(next gitrepo.Hash) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.head
	r.head = next
	if last.IsZero() {
		return false
	}
	ok, err := r.repo.Contains(next, last)
	return err == nil && !ok
}

// Load evaluates the source; see Load. The result is kept by tree, since it is
// a function of nothing else.
func (r *Repository) Load(ctx context.Context, src *port.Source) (*fleet.Fleet, error) {
	r.mu.Lock()
	kept := r.loaded[src.Tree]
	r.mu.Unlock()
	if kept == nil {
		o := r.options
		o.Commit = src.Commit
		f, err := Load(ctx, src.Files, o)
		if err != nil {
			return nil, err
		}
		r.mu.Lock()
		if len(r.loaded) >= maxLoaded {
			clear(r.loaded)
		}
		r.loaded[src.Tree], kept = f, f
		r.mu.Unlock()
	}
	// The same tree may be at several commits.
	out := *kept
	out.Commit = src.Commit
	return &out, nil
}
