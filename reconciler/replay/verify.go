package replay

import (
	"context"
	"fmt"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/ledger"
	"github.com/reeve-project/reeve/reconciler/policy"
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
	if d.Inputs.Fleet == "" || d.Kind == decision.Accept || d.Kind == decision.Reject {
		// Of a commit under judgement replay makes everything again.
		return nil
	}
	src, err := e.View.Accepted()
	if err != nil {
		return []string{err.Error()}
	}
	if src == nil {
		return []string{"no fleet was in force"}
	}
	f, err := r.fleet(ctx, d.Cluster, src)
	if err != nil {
		return []string{fmt.Sprintf("the accepted fleet: %v", err)}
	}
	files, err := e.View.Policies()
	if err != nil {
		return []string{err.Error()}
	}
	var wrong []string
	if got := decision.Digest(f.Document); got != d.Inputs.Fleet {
		wrong = append(wrong, fmt.Sprintf("the fleet has the digest %s, the decision names %s", got, d.Inputs.Fleet))
	}
	if got := policy.RecordedBundle(files, f.Policy).Digest(); got != d.Inputs.Policies {
		wrong = append(wrong, fmt.Sprintf("the policies have the digest %s, the decision names %s", got, d.Inputs.Policies))
	}
	return wrong
}
