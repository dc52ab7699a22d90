// Package plan works out what would be done to a cluster that cannot be asked:
// one that kubectl has printed, or one as the decision branch last recorded it.
// It makes the snapshot; what is proposed and judged on it is the pipeline's.
package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/gitrepo"
	"github.com/reeve-project/reeve/reconciler/kube/dump"
	"github.com/reeve-project/reeve/reconciler/pipeline"
	"github.com/reeve-project/reeve/reconciler/report"
	"github.com/reeve-project/reeve/reconciler/spec"
)

// Target is the fleet to plan with: a directory, or a revision of a repository.
type Target struct {
	Path string
	Repo string
	// Rev of Repo, HEAD when empty.
	Rev string
	// Cluster may be empty if the repository has but one.
	Cluster string
}

// Options say what to plan.
type Options struct {
	// Target is the fleet.
	Target Target
	// Objects are the inputs with the objects of the cluster.
	Objects []dump.Source
	// Now is the instant to plan for. When zero it is Present, or the newest
	// instant that an object tells of if that is later.
	Now, Present time.Time
	// AssumeIdle takes it that consolidateAfter has passed on every node.
	AssumeIdle bool
}

// Of works out what would be launched and removed now for the objects of a
// cluster: the snapshot is made from them, and everything after that is the
// pipeline's own propose and judge. An error means that no plan could be made;
// what policy denies is in the plan.
func Of(ctx context.Context, o Options) (*report.Plan, error) {
	src, err := openFleet(ctx, o.Target)
	if err != nil {
		return nil, err
	}
	defer src.close()
	f, rego, err := src.load(ctx, o.Target.Cluster)
	if err != nil {
		return nil, err
	}
	seen, err := dump.Read(o.Objects...)
	if err != nil {
		return nil, err
	}
	data, err := catalog.Embedded(f.Cluster.Region)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", f.Cluster.Name, err)
	}
	judge, err := pipeline.NewJudge(f, rego, nil)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: policies: %w", f.Cluster.Name, err)
	}
	s := &scene{fleet: f, data: data}
	s.stage(seen, instantOf(o, seen), o.AssumeIdle)
	out := &report.Plan{Source: src.name, Commit: src.commit, Cluster: f.Cluster.Name, Time: s.snap.Time, Seen: s.seen(seen), Unused: unused(seen)}
	run, err := foresee(ctx, pipeline.NewWorld(f, judge, data, s.snap))
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", f.Cluster.Name, err)
	}
	out.Steps, out.Staying, out.Before, out.After = append([]report.PlanStep{}, run.steps...), run.staying, costOf(data, s.snap), costOf(data, run.snap)
	out.Fitting = run.fitting
	out.Assumptions = s.assumptions
	return out, nil
}

func instantOf(o Options, seen *dump.Dump) time.Time {
	now := o.Now
	if now.IsZero() {
		now = o.Present
		if seen.Newest.After(now) {
			now = seen.Newest
		}
	}
	return decision.Milliseconds(now)
}

func unused(seen *dump.Dump) []report.PlanUnused {
	var out []report.PlanUnused
	for _, u := range seen.Unused {
		out = append(out, report.PlanUnused{Kind: u.Kind, Count: u.N})
	}
	return out
}

// source is the tree of a fleet repository, open for reading.
type source struct {
	name, commit string
	files        fs.FS
	close        func()
}

func openFleet(ctx context.Context, t Target) (*source, error) {
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
		return &source{t.Repo + "@" + commit[:min(12, len(commit))], commit, files, func() {}}, nil
	}
	path := t.Path
	if path == "" {
		path = "."
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: give the root directory of a fleet repository", path, unwrapPath(err))
	}
	return &source{path, "", root.FS(), func() { root.Close() }}, nil
}

// atRevision is the tree of a revision. A local repository is read where it is;
// a remote one is fetched into memory.
func atRevision(ctx context.Context, t Target) (fs.FS, string, error) {
	repo, err := openRepo(ctx, t.Repo)
	if err != nil {
		return nil, "", err
	}
	rev := cmp.Or(t.Rev, "HEAD")
	hash, err := repo.Resolve(rev)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", t.Repo, err)
	}
	files, err := repo.Tree(hash)
	if err != nil {
		return nil, "", fmt.Errorf("%s: revision %s: %w", t.Repo, rev, err)
	}
	return files, hash.String(), nil
}

func openRepo(ctx context.Context, name string) (*gitrepo.Repo, error) {
	if _, err := os.Stat(name); err == nil {
		return gitrepo.OpenDir(name, gitrepo.Options{})
	}
	repo, err := gitrepo.Open(name, gitrepo.Options{})
	if err != nil {
		return nil, err
	}
	return repo, repo.FetchAll(ctx)
}

// load evaluates the cluster that is asked for, or the only one.
func (s *source) load(ctx context.Context, name string) (*fleet.Fleet, map[string][]byte, error) {
	all, err := spec.Clusters(s.files)
	switch {
	case err != nil:
		return nil, nil, err
	case len(all) == 0:
		return nil, nil, fmt.Errorf("%s: there is no directory below clusters/: give the root directory of a fleet repository", s.name)
	case name == "" && len(all) > 1:
		return nil, nil, fmt.Errorf("%s: a plan is for one cluster, name it with --cluster: %s", s.name, strings.Join(all, ", "))
	case name == "":
		name = all[0]
	case !slices.Contains(all, name):
		return nil, nil, fmt.Errorf("%s: there is no cluster %q; there are %s", s.name, name, strings.Join(all, ", "))
	}
	f, err := spec.Load(ctx, s.files, spec.Options{Cluster: name, Commit: s.commit})
	if err != nil {
		return nil, nil, err
	}
	rego, err := pipeline.PolicyFiles(s.files)
	return f, rego, err
}

// unwrapPath leaves the path away that the error names beside its cause.
func unwrapPath(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
