package check

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
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
}

// Open checks a target; see Run.
func Open(ctx context.Context, t Target, now time.Time) (*report.Check, error) {
	o := Options{Clusters: t.Clusters, Now: now}
	switch {
	case t.Repo != "" && t.Path != "":
		return nil, errors.New("give either a PATH or --repo, not both")
	case t.Rev != "" && t.Repo == "":
		return nil, errors.New("--rev needs --repo: the repository that the revision is in")
	case t.Repo != "":
		files, commit, err := atRevision(ctx, t)
		if err != nil {
			return nil, err
		}
		o.Source, o.Commit, o.Files = t.Repo+"@"+commit[:min(12, len(commit))], commit, files
	default:
		if t.Path == "" {
			t.Path = "."
		}
		root, err := os.OpenRoot(t.Path)
		if err != nil {
			return nil, unreadable(t.Path, err)
		}
		defer root.Close()
		o.Source, o.Files = t.Path, root.FS()
	}
	return Run(ctx, o)
}

// unreadable names the path once, as it was given, and says what else to give.
func unreadable(path string, err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return fmt.Errorf("%s: %w: give the root directory of a fleet repository", path, err)
}

// atRevision is the tree of a revision. A local repository is read where it
// is; a remote one is fetched into memory.
func atRevision(ctx context.Context, t Target) (fs.FS, string, error) {
	rev := t.Rev
	if rev == "" {
		rev = "HEAD"
	}
	repo, err := openRepo(ctx, t.Repo)
	if err != nil {
		return nil, "", err
	}
	hash, err := repo.Resolve(rev)
	if err != nil {
		return nil, "", fmt.Errorf("%s: revision %s: %w", t.Repo, rev, err)
	}
	files, err := repo.Tree(hash)
	if err != nil {
		return nil, "", fmt.Errorf("%s: revision %s: %w", t.Repo, rev, err)
	}
	return files, hash.String(), nil
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
