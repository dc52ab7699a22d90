package replay

import (
	"context"
	"errors"
	"fmt"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/ledger"
	"github.com/reeve-project/reeve/reconciler/policy"
	"github.com/reeve-project/reeve/reconciler/port"
)

// Verify proves a decision branch as ledger.Verify does, and also that the
// digests of fleet and policies in each decision follow from the files that the
// ledger holds.
func Verify(ctx context.Context, src ledger.Source) (*ledger.Result, error) {
	return ledger.Verify(ctx, src, NewReplayer().digests)
}

// digests says which digests of the decision do not follow from the tree that
// records it.
func (r *Replayer) digests(ctx context.Context, e ledger.Entry) []string {
	r.bound()
	d := e.Decision
	if d.Inputs.Fleet == "" {
		return nil
	}
	src, files, err := judged(e)
	if err != nil {
		return []string{err.Error()}
	}
	f, err := r.fleet(ctx, d.Cluster, src)
	if err != nil {
		return []string{fmt.Sprintf("the recorded fleet: %v", err)}
	}
	var wrong []string
	if d.Inputs.State != "" {
		wrong = r.wrongState(e)
	}
	if got := decision.Digest(f.Document); got != d.Inputs.Fleet {
		wrong = append(wrong, fmt.Sprintf("the fleet has the digest %s, the decision names %s", got, d.Inputs.Fleet))
	}
	if got := policy.RecordedBundle(files, f.Policy).Digest(); d.Inputs.Policies != "" && got != d.Inputs.Policies {
		wrong = append(wrong, fmt.Sprintf("the policies have the digest %s, the decision names %s", got, d.Inputs.Policies))
	}
	return wrong
}

// judged are the fleet that a decision names and the policies that judged it:
// those under judgement of an accept or reject, those in force of all others.
func judged(e ledger.Entry) (*port.Source, map[string][]byte, error) {
	if sc := e.Decision.Proposal.Spec; sc != nil {
		files, policies, ok, err := e.View.Proposed()
		if err == nil && !ok {
			err = errors.New("the proposed fleet is not in the commit")
		}
		if err != nil {
			return nil, nil, err
		}
		tree, err := e.View.ID(ledger.ProposedFleetDir)
		return &port.Source{Commit: sc.Commit, Tree: tree, Files: files}, policies, err
	}
	src, err := e.View.Accepted()
	if err != nil {
		return nil, nil, err
	}
	if src == nil {
		return nil, nil, errors.New("no fleet was in force")
	}
	policies, err := e.View.Policies()
	return src, policies, err
}

// wrongState says how the recorded cluster differs from the one that the
// decision names.
func (r *Replayer) wrongState(e ledger.Entry) []string {
	st, err := r.snapshot(e)
	if err != nil {
		return []string{fmt.Sprintf("the recorded state: %v", err)}
	}
	if st.digest != e.Decision.Inputs.State {
		return []string{fmt.Sprintf("the state has the digest %s, the decision names %s", st.digest, e.Decision.Inputs.State)}
	}
	return nil
}
