package policy

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	// Time zones have names in policies, and what a name means must not depend
	// on whether the machine has a database of them.
	_ "time/tzdata"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/util"
	opaversion "github.com/open-policy-agent/opa/v1/version"

	"github.com/reeve-project/reeve/reconciler/decision"
)

// OPAVersion is the version of OPA that judges. Decisions record it.
func OPAVersion() string { return opaversion.Version }

// Engine judges by one bundle. It is safe for use by several goroutines.
type Engine struct {
	bundle   Bundle
	digest   string
	options  Options
	warnings []decision.Finding
	groups   map[string]*prepared
	labels   map[string]string
	parts    []*part
	cache    offeringCache
}

// prepared is a group ready for evaluation.
type prepared struct {
	bodies []*body
	query  rego.PreparedEvalQuery
}

// Compiled is the policies of a bundle without their data, or why they cannot be
// used.
type Compiled struct {
	loaded *loaded
	err    error
}

// Compile compiles the policies of a bundle. It does not look at the data, so it
// can be done while the fleet is still being read.
func Compile(b Bundle) *Compiled {
	l, err := load(b)
	return &Compiled{l, err}
}

// New compiles a bundle. When the policies cannot be used the error is a
// *LoadError with the place of each fault.
func New(b Bundle, o Options) (*Engine, error) { return Compile(b).Engine(b, o) }

// Engine is New for a bundle whose policies have been compiled: it has the same
// files, and maybe other data.
func (c *Compiled) Engine(b Bundle, o Options) (*Engine, error) {
	data, err := policyData(b.data)
	if err != nil {
		return nil, err
	}
	if err := b.bounded(); err != nil {
		return nil, err
	}
	if c.err != nil {
		return nil, c.err
	}
	l := c.loaded
	o.Deadline = cmp.Or(o.Deadline, defaultDeadline)
	o.Memory = cmp.Or(o.Memory, defaultMemory)
	e := &Engine{
		bundle: b, digest: b.Digest(), options: o, warnings: l.warnings,
		groups: map[string]*prepared{},
		labels: map[string]string{"app": "reeve"},
	}
	if o.Version != "" {
		e.labels["version"] = o.Version
	}
	store := inmem.NewFromObjectWithOpts(map[string]any{"policy": data},
		inmem.OptReturnASTValuesOnRead(true), inmem.OptRoundTripOnWrite(false))
	options := []func(*rego.Rego){
		rego.Compiler(l.compiler), rego.Store(store), rego.StrictBuiltinErrors(true), rego.GenerateJSON(keepTerm),
	}
	for _, g := range l.groups {
		p := &prepared{bodies: g.bodies}
		e.groups[g.name] = p
		if g.name == string(StageOffering) {
			if e.parts, err = offeringParts(l, g, options...); err != nil {
				return nil, err
			}
			continue
		}
		p.query, err = rego.New(append(slices.Clip(options), rego.Query(g.query()))...).PrepareForEval(context.Background())
		if err != nil {
			return nil, newLoadError(fromAST(err))
		}
	}
	return e, nil
}

// keepTerm hands results over as they are: numbers stay exact.
func keepTerm(t *ast.Term, _ *rego.EvalContext) (any, error) { return t, nil }

// policyData decodes the data of a bundle with exact numbers.
func policyData(raw json.RawMessage) (map[string]any, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return map[string]any{}, nil
	}
	var out map[string]any
	if err := util.UnmarshalJSON(raw, &out); err != nil {
		return nil, newLoadError([]decision.Finding{loadFinding(nil, "the policy data is not a JSON object: %v", err)})
	}
	if out == nil {
		out = map[string]any{}
	}
	return out, nil
}

// Bundle is what the engine judges by.
func (e *Engine) Bundle() Bundle { return e.bundle }

// Digest is that of the bundle.
func (e *Engine) Digest() string { return e.digest }

// Rules are all rules, sorted by id and position.
func (e *Engine) Rules() []Rule {
	var out []Rule
	for _, name := range sortedKeys(e.groups) {
		for _, b := range e.groups[name].bodies {
			out = append(out, b.Rule)
		}
	}
	slices.SortFunc(out, func(a, b Rule) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), comparePositions(&a.Position, &b.Position))
	})
	return out
}

// run evaluates one group on one input and returns what each body found.
// A body that has no result is an error: an undefined policy allows nothing.
func (e *Engine) run(ctx context.Context, name string, input ast.Value, now time.Time) ([]found, error) {
	p := e.groups[name]
	if p == nil {
		return nil, nil
	}
	rs, err := p.query.Eval(ctx, rego.EvalParsedInput(input), rego.EvalTime(now))
	if err != nil {
		return nil, err
	}
	return foundBy(rs, p.bodies)
}

// foundBy reads the document of a query: what each body found, by its key.
func foundBy(rs rego.ResultSet, bodies []*body) ([]found, error) {
	if len(rs) != 1 || len(rs[0].Expressions) != 1 {
		return nil, fmt.Errorf("package %s has no result", bodies[0].Package)
	}
	term, ok := rs[0].Expressions[0].Value.(*ast.Term)
	if !ok {
		return nil, fmt.Errorf("package %s has no result", bodies[0].Package)
	}
	results, ok := term.Value.(ast.Object)
	if !ok {
		return nil, fmt.Errorf("package %s has %s as its result", bodies[0].Package, ast.ValueName(term.Value))
	}
	out := make([]found, 0, len(bodies))
	for _, b := range bodies {
		value := results.Get(ast.StringTerm(b.key))
		if value == nil {
			return nil, fmt.Errorf("%s: rule %s is undefined: write it as a set, which is empty when nothing is found", b.source(), b.ID)
		}
		out = append(out, found{body: b, value: value.Value})
	}
	return out, nil
}

// found is what one body found.
type found struct {
	body  *body
	value ast.Value
}
