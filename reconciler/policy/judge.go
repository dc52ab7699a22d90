package policy

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/reeve-project/reeve/reconciler/decision"
)

// question is one evaluation to be made.
type question struct {
	stage Stage
	// kind of the decision, for whether it goes ahead without a verdict.
	kind decision.Kind
	// digest of the canonical input.
	digest string
	// nodePool that exclusions hold for unless they say so themselves.
	nodePool string
	// resources are what the whole is about: exceptions for them hold for
	// every finding.
	resources []string
	// scope is what exclusions can be about.
	scope scope
	// id is the evaluation's.
	id string
	// ask evaluates the policies.
	ask func(ctx context.Context) ([]element, error)
}

// answer is what the policies said, before exceptions and positions.
type answer struct {
	deny, warn []element
	exclude    []choice
	failure    *Failure
	record     record
}

// reproducible says whether the same question has the same answer again.
func (a *answer) reproducible() bool { return a.failure == nil || a.failure.Cause.Reproducible() }

// judge asks the question, or takes the failure that was recorded for it. The
// error is that of ctx: it was the caller who gave up.
func (e *Engine) judge(ctx context.Context, c Case, q *question) (*answer, error) {
	q.id = e.evaluationID(q)
	if e.options.Given != nil {
		if f, ok := e.options.Given(q.id); ok {
			return &answer{failure: &f}, nil
		}
	}
	a, err := e.evaluate(ctx, q, e.deadline(c))
	if ctx.Err() != nil {
		return nil, fmt.Errorf("judge %s: %w", q.stage, ctx.Err())
	}
	if err != nil {
		return &answer{failure: &Failure{Cause: decision.CauseError, Error: e.errorText(err)}}, nil
	}
	return a, nil
}

// evaluate asks within bounds of time and memory. What ends it by a bound is an
// answer too.
func (e *Engine) evaluate(ctx context.Context, q *question, deadline time.Duration) (*answer, error) {
	timed, stop := context.WithTimeout(ctx, deadline)
	defer stop()
	bounded, cancel := context.WithCancelCause(timed)
	defer cancel(nil)
	defer watchMemory(cancel, e.options.Memory)()
	els, err := guarded(bounded, q.ask)
	switch {
	case errors.Is(context.Cause(bounded), errMemory):
		return &answer{failure: &Failure{Cause: decision.CauseLimit, Error: fmt.Sprintf("the policies took more than %d MiB of memory", e.options.Memory>>20)}}, nil
	case timed.Err() != nil || topdown.IsCancel(err):
		return &answer{failure: &Failure{Cause: decision.CauseDeadline, Error: fmt.Sprintf("no verdict within the deadline of %s", deadline)}}, nil
	case err != nil:
		return nil, err
	}
	return newAnswer(els, q)
}

// guarded turns a panic of the evaluator into an error: a policy must never end
// the process.
func guarded(ctx context.Context, ask func(context.Context) ([]element, error)) (els []element, err error) {
	defer func() {
		if r := recover(); r != nil {
			els, err = nil, fmt.Errorf("the policy evaluator failed: %v", r)
		}
	}()
	return ask(ctx)
}

// errorText is the error in one line, with paths of the fleet repository instead
// of those of the bundle, and with the names that rules have in their files.
func (e *Engine) errorText(err error) string {
	s := strings.Join(strings.Fields(err.Error()), " ")
	s = strings.ReplaceAll(" "+s, " "+FleetDir, " ")[1:]
	s = generatedName.ReplaceAllStringFunc(s, func(key string) string {
		for _, p := range e.groups {
			if i := slices.IndexFunc(p.bodies, func(b *body) bool { return b.key == key }); i >= 0 {
				return p.bodies[i].head
			}
		}
		return key
	})
	return shortenTo(s, maxMessage)
}

var generatedName = regexp.MustCompile(generatedRule + `[0-9]{4,}`)

func (e *Engine) deadline(c Case) time.Duration {
	if c.Fleet != nil && c.Fleet.Cluster.Judge.Deadline > 0 {
		return time.Duration(c.Fleet.Cluster.Judge.Deadline)
	}
	return e.options.Deadline
}

// failsOpen says whether decisions of the kind go ahead without a verdict.
func failsOpen(c Case, kind decision.Kind) bool {
	if kind == "" {
		return false
	}
	if c.Fleet != nil && c.Fleet.Cluster.Judge.FailOpen != nil {
		return slices.Contains(c.Fleet.Cluster.Judge.FailOpen, string(kind))
	}
	return kind.FailsOpen()
}

// newAnswer sorts the elements by kind. More than a record can hold is an
// error.
func newAnswer(els []element, q *question) (*answer, error) {
	a := &answer{}
	var exclude []element
	for _, el := range els {
		switch {
		case el.excepted:
			el.msg += " (let pass by the rule exception)"
			a.warn = append(a.warn, el)
		case el.body.Kind == kindDeny:
			a.deny = append(a.deny, el)
		case el.body.Kind == kindWarn:
			a.warn = append(a.warn, el)
		case el.body.Kind == kindExclude:
			exclude = append(exclude, el)
		}
	}
	if n := len(a.deny) + len(a.warn); n > maxFindings {
		return nil, fmt.Errorf("the policies find %d things, more than the %d that are read", n, maxFindings)
	}
	a.exclude = choices(exclude, q)
	var err error
	a.record, err = newRecord(a)
	return a, err
}

const evaluationHash = 16

// evaluationID names an evaluation by the stage, its input and the policies.
func (e *Engine) evaluationID(q *question) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%s\n", q.stage, q.digest, e.digest))
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:]))[:evaluationHash]
}
