package spec

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/port"
	"github.com/reeve-project/reeve/reconciler/spec/eval"
)

// Diagnostic is one fault in a fleet repository.
type Diagnostic struct {
	// Position of the fault in the repository. It is always set: a fault that
	// only the schema knows of is placed at the nearest parent that the
	// repository wrote.
	Position fleet.Position `json:"position"`
	// Path of the field, empty for faults of a whole file.
	Path fleet.Path `json:"path,omitempty"`
	// Message says what is wrong.
	Message string `json:"message"`
	// Hint says what to do about it, if more can be said.
	Hint string `json:"hint,omitempty"`
}

// String is "file:line:column: path: message (hint)" on one line.
func (d Diagnostic) String() string {
	var b strings.Builder
	b.WriteString(d.Position.String() + ": ")
	if len(d.Path) > 0 {
		b.WriteString(d.Path.String() + ": ")
	}
	b.WriteString(d.Message)
	if d.Hint != "" {
		b.WriteString(" (" + d.Hint + ")")
	}
	return b.String()
}

// Error says that a commit's specs cannot be used. It is a pure function of the
// commit and the version of Reeve, so it may be cached and recorded; the cure
// is another commit.
type Error struct {
	// Diagnostics are sorted by position and never empty.
	Diagnostics []Diagnostic
}

// Error is all diagnostics, one on each line.
func (e *Error) Error() string {
	lines := make([]string, len(e.Diagnostics))
	for i, d := range e.Diagnostics {
		lines[i] = d.String()
	}
	return strings.Join(lines, "\n")
}

// RuleSpec is the rule id of findings about specs that cannot be used.
const RuleSpec = "REEVE-SPEC-001"

// Findings are the diagnostics in the form of policy findings, so that checks,
// reject decisions and reports treat both alike. Error is a port.Diagnosed.
func (e *Error) Findings() []decision.Finding {
	out := make([]decision.Finding, len(e.Diagnostics))
	for i, d := range e.Diagnostics {
		out[i] = decision.Finding{
			Rule:        RuleSpec,
			Severity:    "error",
			Title:       "The specs cannot be used",
			Message:     d.Message,
			Resource:    d.Path.Resource(),
			Path:        d.Path,
			Position:    &d.Position,
			Remediation: d.Hint,
		}
	}
	return out
}

var _ port.Diagnosed = (*Error)(nil)

// fromChild takes over what the child found.
func fromChild(found []eval.Diagnostic) []Diagnostic {
	ds := make([]Diagnostic, len(found))
	for i, d := range found {
		ds[i] = Diagnostic{Position: fleet.Position(d.Position), Path: fleet.Path(d.Path), Message: d.Message, Hint: d.Hint}
	}
	return ds
}

// newError sorts diagnostics and removes repeated ones.
func newError(ds []Diagnostic) *Error {
	slices.SortStableFunc(ds, func(a, b Diagnostic) int {
		return cmp.Or(
			comparePositions(a.Position, b.Position),
			slices.Compare(a.Path, b.Path),
			cmp.Compare(a.Message, b.Message),
		)
	})
	ds = slices.CompactFunc(ds, func(a, b Diagnostic) bool {
		return a.Position == b.Position && slices.Equal(a.Path, b.Path) && a.Message == b.Message
	})
	return &Error{Diagnostics: ds}
}

func comparePositions(a, b fleet.Position) int {
	return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
}

// fileError is an Error about a whole file or directory.
func fileError(file, message, hint string) *Error {
	return newError([]Diagnostic{{
		Position: fleet.Position{File: file, Line: 1, Column: 1},
		Message:  message,
		Hint:     hint,
	}})
}

// Limit is something that evaluation may use up.
type Limit string

// The limits of an evaluation.
const (
	// LimitCPU is processor time.
	LimitCPU Limit = "cpu time"
	// LimitMemory is memory, the stack included.
	LimitMemory Limit = "memory"
	// LimitTime is wall time.
	LimitTime Limit = "wall time"
	// LimitSize is the size of the specs in the commit.
	LimitSize Limit = "size"
	// LimitOutput is the size of the rendered fleet.
	LimitOutput Limit = "output"
)

// LimitError says that a commit's specs were not evaluated to the end. Unlike
// Error it may come out otherwise on another machine, so it must not be cached
// as a property of the commit; trying again later is reasonable, and the last
// good fleet stays.
type LimitError struct {
	// Limit that was reached.
	Limit Limit
	// Allowed is how much was allowed, for people: "10s", "768 MiB".
	Allowed string
	// Where is the cluster's directory or the file, relative to the repository.
	Where string
}

// Error says what was used up and what usually is the cause.
func (e *LimitError) Error() string {
	return fmt.Sprintf("%s: %s", e.Where, e.reason())
}

func (e *LimitError) reason() string {
	switch e.Limit {
	case LimitSize:
		return fmt.Sprintf("the CUE files are larger than %s: keep only specs in this repository, or split it", e.Allowed)
	case LimitOutput:
		return fmt.Sprintf("the rendered fleet is larger than %s: split the cluster's NodePools", e.Allowed)
	case LimitMemory:
		return fmt.Sprintf("evaluation needs more than %s of memory: look for large lists, repeated strings and deep nesting", e.Allowed)
	default:
		return fmt.Sprintf("evaluation needs more than %s of %s: look for disjunctions of structs that multiply, long comprehensions and deep nesting", e.Allowed, e.Limit)
	}
}

// IsLimit says whether an error is about a limit of evaluation.
func IsLimit(err error) bool {
	var limit *LimitError
	return errors.As(err, &limit)
}
