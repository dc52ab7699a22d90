package pipeline

import (
	"context"
	"fmt"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/scheduling"
)

// Offerings are what the NodePools of a world can choose from, and what policy
// has to do with it.
type Offerings struct {
	// Exclusions are what the offering stage keeps out of each NodePool. Their
	// types are named and not kept in a list.
	Exclusions []decision.Exclusion
	// Violations are findings of stages that could not say, Warnings those
	// that do no harm.
	Violations, Warnings []decision.Finding
	// Before and After are the choices without and with the exclusions, both
	// in the same order.
	Before, After []scheduling.Choices
}

// Offerings asks the offering stage of each NodePool and works out what it
// leaves. An error means that it could not be worked out.
func (w *World) Offerings(ctx context.Context) (*Offerings, error) {
	types, notReady, err := w.resolve()
	if err != nil {
		return nil, err
	}
	n := newNegotiation(w, w.Snapshot, types, notReady)
	out := &Offerings{}
	if out.Before, err = scheduling.ChoicesOf(n.input()); err != nil {
		return nil, err
	}
	if err := n.offerings(ctx); err != nil {
		return nil, err
	}
	out.After = out.Before
	if len(n.excluded.Offerings) > 0 {
		if out.After, err = scheduling.ChoicesOf(n.input()); err != nil {
			return nil, err
		}
	}
	out.Violations = n.denials
	for _, pool := range w.Fleet.NodePools {
		out.Warnings = append(out.Warnings, n.warnings[pool.Name]...)
		for _, x := range n.exclusions[pool.Name] {
			names, err := x.Types.Resolve(n.lists)
			if err != nil {
				return nil, fmt.Errorf("exclusion by %s: %w", x.Rule, err)
			}
			x.Types = decision.TypeSet{Count: len(names), Names: names}
			out.Exclusions = append(out.Exclusions, x)
		}
	}
	return out, nil
}
