package policy

import (
	"context"
	"encoding/json"
	"fmt"
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
	r.Warnings = append(append(e.exceptionFindings(c), e.warnings...), r.Warnings...)
	return r, nil
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

// conftest runs package main once for each rendered object, in the order of
// kinds and names.
func (e *Engine) conftest(ctx context.Context, in SpecInput, now time.Time) ([]element, error) {
	if e.groups[conftestPackage] == nil {
		return nil, nil
	}
	docs, err := parseDocuments(&fleet.Fleet{Document: json.RawMessage(in.Fleet)})
	if err != nil {
		return nil, err
	}
	var out []element
	for _, part := range []struct {
		field   string
		objects map[string]json.RawMessage
	}{{"nodePools", docs.NodePools}, {"nodeClasses", docs.NodeClasses}} {
		for _, name := range sortedKeys(part.objects) {
			els, err := e.conftestObject(ctx, part.objects[name], fleet.Path{part.field, name}, now)
			if err != nil {
				return nil, fmt.Errorf("%s/%s: %w", specKinds[part.field], name, err)
			}
			out = append(out, els...)
		}
	}
	return out, nil
}

// conftestObject judges one object. Paths in its findings begin at the object.
func (e *Engine) conftestObject(ctx context.Context, doc json.RawMessage, at fleet.Path, now time.Time) ([]element, error) {
	input, err := toValue(doc)
	if err != nil {
		return nil, err
	}
	results, err := e.run(ctx, conftestPackage, input, now)
	if err != nil {
		return nil, err
	}
	excepted := map[string]bool{}
	for _, f := range results {
		if f.body.Kind == kindException {
			if err := exceptedRules(f, excepted); err != nil {
				return nil, err
			}
		}
	}
	var out []element
	for _, f := range results {
		if f.body.Kind == kindException {
			continue
		}
		els, err := elements(f)
		if err != nil {
			return nil, err
		}
		for _, el := range els {
			el.path = append(append(fleet.Path{}, at...), el.path...)
			if el.resource == "" {
				el.resource = resourceOf(at)
			}
			el.excepted = excepted[f.body.suffix]
			out = append(out, el)
		}
	}
	return out, nil
}

// exceptedRules reads conftest's exception rule: a set of lists of rule names
// without deny_, violation_ or warn_; "" means the rule without a suffix.
func exceptedRules(f found, into map[string]bool) error {
	lists, err := members(f.value)
	if err != nil {
		return fmt.Errorf("%s: rule exception is %w: write it as a set of lists of rule names", f.body.source(), err)
	}
	for _, list := range lists {
		names, err := members(list.Value)
		if err != nil {
			return fmt.Errorf("%s: rule exception has %w in it, which is no list of rule names", f.body.source(), err)
		}
		for _, n := range names {
			if s, ok := n.Value.(ast.String); ok {
				into[string(s)] = true
			}
		}
	}
	return nil
}
