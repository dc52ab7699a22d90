package check

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/reeve-project/reeve/reconciler/gitrepo"
	"github.com/reeve-project/reeve/reconciler/ledger"
	"github.com/reeve-project/reeve/reconciler/plan"
)

// Ledger is the decision branch of a cluster, which holds the state that the
// fleet is held against.
type Ledger struct {
	Repo *gitrepo.Repo
	// Ref is how the branch was named, Cluster the one that it is of.
	Ref, Cluster string
}

// ledgerOf finds out of which cluster a decision branch is.
func ledgerOf(repo *gitrepo.Repo, name, ref string) (*Ledger, error) {
	_, err := repo.Resolve(ref)
	if errors.Is(err, gitrepo.ErrNotFound) {
		return nil, fmt.Errorf("%s: ledger %s: %w; a decision branch is named reeve/<cluster>: fetch it first", name, ref, err)
	}
	var v *ledger.View
	if err == nil {
		v, err = ledger.At(repo, ref)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: ledger %s: %w", name, ref, err)
	}
	return &Ledger{Repo: repo, Ref: ref, Cluster: v.Cluster()}, nil
}

// of fails for a ledger of none of the clusters that are checked.
func (l *Ledger) of(clusters []string) error {
	if l == nil || slices.Contains(clusters, l.Cluster) {
		return nil
	}
	return fmt.Errorf("ledger %s: it is the decision branch of cluster %q, and what is checked is %s", l.Ref, l.Cluster, strings.Join(clusters, ", "))
}

// impact adds what the fleet does to the cluster that the ledger recorded. One
// that cannot be read does nothing to any.
func (l *Ledger) impact(ctx context.Context, base, head *judged) error {
	if l == nil || l.Cluster != head.check.Cluster || !head.usable() {
		return nil
	}
	state, err := plan.ReadState(ctx, l.Repo, l.Ref, l.Cluster)
	if err != nil {
		return fmt.Errorf("ledger %w", err)
	}
	head.check.Impact, err = plan.Against(ctx, state, base.revision(), head.revision())
	if err != nil {
		return fmt.Errorf("ledger %s: %w", l.Ref, err)
	}
	return nil
}

// revision is the fleet with its own policies; nil where it could not be read.
func (j *judged) revision() *plan.Revision {
	if !j.usable() {
		return nil
	}
	return &plan.Revision{Fleet: j.fleet, Judge: j.judge}
}
