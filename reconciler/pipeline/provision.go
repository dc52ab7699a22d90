package pipeline

import (
	"context"
	"fmt"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/scheduling"
)

// maxRounds bounds how often propose and judge go back and forth. Exclusions
// only grow, so it would end anyway; the bound keeps a pass short.
const maxRounds = 4

// Provision proposes nodes for the pending pods, and for those of nodes that
// are going, and lets the policies judge
// them, in rounds, until they agree: one decision for each NodePool that gets
// nodes, and one for the pods that stay pending.
func (w *World) Provision(ctx context.Context) ([]*decision.Decision, error) {
	snap, err := w.planningSnapshot(ctx)
	if err != nil || len(snap.Pending) == 0 {
		return nil, err
	}
	types, notReady, err := w.resolve()
	if err != nil {
		return nil, err
	}
	n := newNegotiation(w, snap, types, notReady)
	if err := n.offerings(ctx); err != nil {
		return nil, err
	}
	for n.round = range maxRounds {
		if n.plan, err = scheduling.Solve(n.input()); err != nil {
			return nil, fmt.Errorf("plan: %w", err)
		}
		if err := n.propose(); err != nil {
			return nil, err
		}
		again, err := n.judge(ctx)
		if err != nil {
			return nil, err
		}
		if !again {
			break
		}
	}
	return n.decisions()
}
