package spec

import (
	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/port"
)

var _ port.Diagnosed = (*LimitError)(nil)

// Findings is the limit as a finding, so that a commit that cannot be evaluated
// within bounds is refused instead of tried for ever. Its cause tells replay to
// take it as given.
func (e *LimitError) Findings() []decision.Finding {
	return []decision.Finding{{
		Rule: RuleSpec, Severity: "error", Title: "The specs cannot be evaluated within bounds",
		Message: e.reason(), Cause: decision.CauseLimit,
		Position: &fleet.Position{File: e.Where, Line: 1, Column: 1},
	}}
}
