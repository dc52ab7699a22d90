package pipeline

import (
	"context"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/disruption"
)

// Foresee is every decision that a pass over this world would make, in the
// order in which a pass makes them: what a live pass keeps for later, because a
// batch of pods is still open or a decision is under way, is among them. Nothing
// is recorded and nothing is done.
func (w *World) Foresee(ctx context.Context) ([]*decision.Decision, error) {
	return proposed(ctx, w.Interrupt, w.Liveness, w.Delete, w.Reclaim, w.Provision, w.Consolidate)
}

// Blocked is why nodes stay that Consolidate looked at last, sorted by node.
func (w *World) Blocked() []disruption.Blocked { return w.blocked }
