package policy

import (
	"context"
	"slices"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/fleet"
)

// SpecInput is what policies of package reeve.spec see as input: a fleet that
// is to become the one in force.
type SpecInput struct {
	// Fleet is the fleet under judgement with its defaults filled in.
	Fleet FleetDocument `json:"fleet"`
	// Previous is the fleet in force, null for the first.
	Previous FleetDocument `json:"previous"`
	// Diff is what differs between them.
	Diff Diff `json:"diff"`
	// Now is the time of the judgement, RFC 3339 in UTC.
	Now time.Time `json:"now"`
}

// NewSpecInput is the input for a fleet that follows another, which is nil for
// the first. The diff is that of NewDiff.
func NewSpecInput(next, previous *fleet.Fleet, diff Diff, now time.Time) SpecInput {
	in := SpecInput{Fleet: FleetDocument(next.Document), Diff: diff, Now: decision.Milliseconds(now)}
	if previous != nil {
		in.Previous = FleetDocument(previous.Document)
	}
	return in
}

// Spec judges a fleet: the rules of reeve.spec on the whole, and those of
// package main on each NodePool and EC2NodeClass. Its warnings name exceptions
// that lift nothing and files in old syntax. The error is that of ctx.
func (e *Engine) Spec(ctx context.Context, c Case, in SpecInput) (Result, error) {
	input, digest, err := encodeInput(in)
	if err != nil {
		return Result{}, err
	}
	q := &question{stage: StageSpec, digest: digest, scope: noTypes{}}
	q.ask = func(ctx context.Context) ([]element, error) {
		out, err := e.elements(ctx, string(StageSpec), input, c.Now)
		if err != nil {
			return nil, err
		}
		more, err := e.conftest(ctx, in, c.Now)
		return append(out, more...), err
	}
	a, err := e.judge(ctx, c, q)
	if err != nil {
		return Result{}, err
	}
	r := e.result(c, q, a)
	r.Warnings = append(append(e.exceptionFindings(c), e.loadWarnings(c)...), r.Warnings...)
	return r, nil
}

// loadWarnings are those of the policies themselves. One that is about their
// data has its place in the fleet.
func (e *Engine) loadWarnings(c Case) []decision.Finding {
	out := slices.Clone(e.warnings)
	for i := range out {
		if out[i].Position == nil {
			out[i].Position = find(c, out[i].Path)
		}
	}
	return out
}

// elements evaluates a group and reads what its rules found.
func (e *Engine) elements(ctx context.Context, group string, input ast.Value, now time.Time) ([]element, error) {
	results, err := e.run(ctx, group, input, now)
	if err != nil {
		return nil, err
	}
	return allElements(results)
}

func allElements(results []found) ([]element, error) {
	var out []element
	for _, f := range results {
		els, err := elements(f)
		if err != nil {
			return nil, err
		}
		out = append(out, els...)
	}
	return out, nil
}
