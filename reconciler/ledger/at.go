package ledger

import (
	"fmt"

	"github.com/reeve-project/reeve/reconciler/gitrepo"
)

// At is the ledger at a revision of a repository that is open: a decision
// branch, here or of a remote, or a commit of one. It fails for a revision that
// holds no ledger, and for one in a format that this release does not read.
func At(repo *gitrepo.Repo, rev string) (*View, error) {
	h, err := repo.Resolve(rev)
	if err != nil {
		return nil, err
	}
	v, err := newView(repo, h)
	if err != nil {
		return nil, err
	}
	if _, err := v.leader(); err != nil {
		return nil, fmt.Errorf("revision %q in %s is no decision branch: %w", rev, repo.Name(), err)
	}
	return v, nil
}

// Cluster is the name of the cluster that the ledger is of, empty if the commit
// holds no ledger.
func (v *View) Cluster() string {
	rec, err := v.leader()
	if err != nil {
		return ""
	}
	return rec.Cluster
}
