package plan

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/gitrepo"
	"github.com/reeve-project/reeve/reconciler/ledger"
	"github.com/reeve-project/reeve/reconciler/pipeline"
	"github.com/reeve-project/reeve/reconciler/policy"
	"github.com/reeve-project/reeve/reconciler/spec"
)

// Revision is a fleet with those who judge what it does.
type Revision struct {
	Fleet *fleet.Fleet
	Judge *policy.Engine
}

// NewRevision compiles the policies of a fleet repository for its fleet. rego is
// what pipeline.PolicyFiles reads.
func NewRevision(f *fleet.Fleet, rego map[string][]byte) (*Revision, error) {
	judge, err := pipeline.NewJudge(f, rego, nil)
	if err != nil {
		return nil, fmt.Errorf("policies: %w", err)
	}
	return &Revision{Fleet: f, Judge: judge}, nil
}

// State is a cluster as a decision branch last recorded it.
type State struct {
	// Branch is how the state was asked for, Commit where it was found.
	Branch, Commit string
	// Snapshot is the cluster, and Catalog the types and prices, of the last
	// decision.
	Snapshot *cluster.Snapshot
	Catalog  *catalog.Data
	// Accepted is the fleet that was in force.
	Accepted *Revision
}

// ReadState reads the state that a revision of a decision branch holds: ref is
// "reeve/myeks", "origin/reeve/myeks" or a commit of it. It fails for a branch of
// another cluster, for one that no decision about the cluster was recorded in
// yet, and for a revision that is no decision branch.
func ReadState(ctx context.Context, repo *gitrepo.Repo, ref, clusterName string) (*State, error) {
	v, err := ledger.At(repo, ref)
	if err != nil {
		return nil, err
	}
	if name := v.Cluster(); name != clusterName {
		return nil, fmt.Errorf("%s: it is the decision branch of cluster %q, and not of %q", ref, name, clusterName)
	}
	out := &State{Branch: ref, Commit: v.Commit()}
	if out.Snapshot, err = v.Snapshot(); err == nil {
		out.Catalog, err = v.Catalog()
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, gitrepo.ErrNotFound) {
		return nil, fmt.Errorf("%s: no decision about nodes is recorded there yet: %w", ref, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ref, err)
	}
	src, err := v.Accepted()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ref, err)
	}
	if src == nil {
		return nil, fmt.Errorf("%s: no fleet was in force yet", ref)
	}
	f, err := spec.Load(ctx, src.Files, spec.Options{Cluster: clusterName, Commit: src.Commit})
	if err != nil {
		return nil, fmt.Errorf("%s: accepted commit %.12s: %w", ref, src.Commit, err)
	}
	files, err := v.Policies()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ref, err)
	}
	judge, err := policy.New(policy.RecordedBundle(files, f.Policy), policy.Options{})
	if err != nil {
		return nil, fmt.Errorf("%s: recorded policies: %w", ref, err)
	}
	out.Accepted = &Revision{Fleet: f, Judge: judge}
	return out, nil
}
