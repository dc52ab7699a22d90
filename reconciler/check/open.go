package check

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/reeve-project/reeve/reconciler/gitrepo"
	"github.com/reeve-project/reeve/reconciler/report"
)

// Target is what to check: a directory, or a revision of a repository.
type Target struct {
	Path string
	Repo string
	// Rev of Repo, HEAD when empty.
	Rev      string
	Clusters []string
	// Base is the revision to compare with, empty for none: of Repo, or of the
	// repository whose work tree Path is in.
	Base string
	// Ledger is the revision of a decision branch, empty for none. It is in the
	// same repository as Base.
	Ledger string
	// FailOnWarn makes warnings fail the check.
	FailOnWarn bool
}

// Open checks a target; see Run.
func Open(ctx context.Context, t Target, now time.Time) (*report.Check, error) {
	o, err := openTarget(ctx, t)
	if err != nil {
		return nil, err
	}
	defer o.close()
	o.Now = now
	return Run(ctx, o.Options)
}

// opened are the options of a target, and what to close when it is done with.
type opened struct {
	Options
	close func()
}

func openTarget(ctx context.Context, t Target) (*opened, error) {
	switch {
	case t.Repo != "" && t.Path != "":
		return nil, errors.New("give either a PATH or --repo, not both")
	case t.Rev != "" && t.Repo == "":
		return nil, errors.New("--rev needs --repo: the repository that the revision is in")
	case t.Repo != "":
		return openRevision(ctx, t)
	default:
		return openPath(t)
	}
}

// openPath reads the files as they are on disk, and the base from the
// repository around them.
func openPath(t Target) (*opened, error) {
	if t.Path == "" {
		t.Path = "."
	}
	root, err := os.OpenRoot(t.Path)
	if err != nil {
		return nil, unreadable(t.Path, err)
	}
	o := &opened{
		Options: Options{Source: t.Path, Files: root.FS(), Dir: within(t.Path), Clusters: t.Clusters, FailOnWarn: t.FailOnWarn},
		close:   func() { root.Close() },
	}
	if t.Base == "" && t.Ledger == "" {
		return o, nil
	}
	repo, err := gitrepo.OpenDir(t.Path, gitrepo.Options{})
	if errors.Is(err, gitrepo.ErrRepositoryMissing) {
		err = fmt.Errorf("%w, so there is no base and no ledger to read from it; give --repo", err)
	}
	if err == nil {
		err = o.read(repo, t, t.Path)
	}
	if err != nil {
		o.close()
		return nil, err
	}
	return o, nil
}

// read finds the base and the ledger that a target names in its repository.
func (o *opened) read(repo *gitrepo.Repo, t Target, name string) (err error) {
	if t.Base != "" {
		if o.Base, err = baseOf(repo, name, t.Base, o.Dir); err != nil {
			return err
		}
	}
	if t.Ledger != "" {
		o.Ledger, err = ledgerOf(repo, name, t.Ledger)
	}
	return err
}

// within is where a directory is in the work tree around it, with slashes; empty
// at its root, and outside of any.
func within(dir string) string {
	abs, err := filepath.Abs(dir)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return ""
	}
	for top := abs; ; top = filepath.Dir(top) {
		if _, err := os.Lstat(filepath.Join(top, ".git")); err == nil {
			rel, err := filepath.Rel(top, abs)
			if err != nil || rel == "." {
				return ""
			}
			return filepath.ToSlash(rel)
		}
		if top == filepath.Dir(top) {
			return ""
		}
	}
}

// unreadable names the path once, as it was given, and says what else to give.
func unreadable(path string, err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return fmt.Errorf("%s: %w: give the root directory of a fleet repository", path, err)
}

// openRevision reads the tree of a revision. A local repository is read where
// it is; a remote one is fetched into memory.
func openRevision(ctx context.Context, t Target) (*opened, error) {
	rev := t.Rev
	if rev == "" {
		rev = "HEAD"
	}
	repo, err := openRepo(ctx, t.Repo)
	if err != nil {
		return nil, err
	}
	hash, err := repo.Resolve(rev)
	if err != nil {
		return nil, fmt.Errorf("%s: revision %s: %w", t.Repo, rev, err)
	}
	files, err := repo.Tree(hash)
	if err != nil {
		return nil, fmt.Errorf("%s: revision %s: %w", t.Repo, rev, err)
	}
	commit := hash.String()
	o := &opened{
		Options: Options{Source: t.Repo + "@" + commit[:12], Commit: commit, Files: files, Clusters: t.Clusters, FailOnWarn: t.FailOnWarn},
		close:   func() {},
	}
	return o, o.read(repo, t, t.Repo)
}

// baseOf reads a revision to compare with. A directory that is not in it yet is
// an empty one.
func baseOf(repo *gitrepo.Repo, name, rev, dir string) (*Base, error) {
	hash, err := repo.Resolve(rev)
	if errors.Is(err, gitrepo.ErrNotFound) {
		return nil, fmt.Errorf("%s: base %s: %w; a clone that is not complete lacks it: fetch it first (in CI, fetch all history)", name, rev, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: base %s: %w", name, rev, err)
	}
	base := &Base{Rev: rev, Commit: hash.String(), Files: noFiles{}}
	tree, err := repo.TreeID(hash)
	if err != nil {
		return nil, fmt.Errorf("%s: base %s: %w", name, rev, err)
	}
	entry, err := repo.Entry(tree, dir)
	switch {
	case errors.Is(err, gitrepo.ErrNotFound):
	case err != nil:
		return nil, fmt.Errorf("%s: base %s: %w", name, rev, err)
	case entry.Kind == gitrepo.Dir:
		base.Files = repo.FS(entry.Hash)
	}
	return base, nil
}

// noFiles is a tree without a file.
type noFiles struct{}

// Open finds nothing.
func (noFiles) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

func openRepo(ctx context.Context, name string) (*gitrepo.Repo, error) {
	if _, err := os.Stat(name); err == nil {
		repo, err := gitrepo.OpenDir(name, gitrepo.Options{})
		if errors.Is(err, gitrepo.ErrRepositoryMissing) {
			return nil, fmt.Errorf("%w; a directory that is no repository is given as PATH, without --repo", err)
		}
		return repo, err
	}
	repo, err := gitrepo.Open(name, gitrepo.Options{})
	if err != nil {
		return nil, err
	}
	return repo, repo.FetchAll(ctx)
}
