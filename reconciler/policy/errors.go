package policy

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/fleet"
)

// LoadError says why policies cannot be used. Nothing is judged by part of a
// bundle.
type LoadError struct {
	findings []decision.Finding
}

// Findings are the faults, sorted by position. Positions of files of the fleet
// repository are paths there; shipped files are below "shipped/".
func (e *LoadError) Findings() []decision.Finding { return e.findings }

// Error lists the faults, one a line.
func (e *LoadError) Error() string {
	lines := make([]string, len(e.findings))
	for i, f := range e.findings {
		lines[i] = f.Message
		if f.Position != nil {
			lines[i] = f.Position.String() + ": " + f.Message
		}
	}
	return "policies: " + strings.Join(lines, "\n")
}

// newLoadError sorts the findings and drops what is said twice: each body of a
// rule is compiled under its own name too.
func newLoadError(findings []decision.Finding) *LoadError {
	slices.SortStableFunc(findings, compareFindings)
	return &LoadError{findings: slices.CompactFunc(findings, func(a, b decision.Finding) bool { return compareFindings(a, b) == 0 })}
}

func loadFinding(at *fleet.Position, format string, args ...any) decision.Finding {
	f := decision.Finding{Rule: RuleCompile, Severity: severityError, Title: "The policies cannot be used", Message: fmt.Sprintf(format, args...), Position: at}
	if at != nil {
		f.Source = fmt.Sprintf("%s:%d", at.File, at.Line)
	}
	return f
}

// fromAST turns errors of OPA's parser and compiler into findings.
func fromAST(err error) []decision.Finding {
	var list ast.Errors
	if !errors.As(err, &list) {
		return []decision.Finding{loadFinding(nil, "%v", err)}
	}
	out := make([]decision.Finding, 0, len(list))
	for _, e := range list {
		out = append(out, loadFinding(position(e.Location), "%s", e.Message+typeDetail(e)))
	}
	return out
}

// typeDetail is what a type error has and wants. The details of other errors
// repeat the source.
func typeDetail(e *ast.Error) string {
	if e.Code != ast.TypeErr || e.Details == nil {
		return ""
	}
	text := strings.Join(strings.Fields(strings.Join(e.Details.Lines(), " ")), " ")
	if i := strings.Index(text, "have: "); i >= 0 {
		return ": " + text[i:]
	}
	return ""
}

// position is the place in the fleet repository, or below "shipped/".
func position(loc *ast.Location) *fleet.Position {
	if loc == nil || loc.File == "" {
		return nil
	}
	return &fleet.Position{File: strings.TrimPrefix(loc.File, FleetDir), Line: max(1, loc.Row), Column: max(1, loc.Col)}
}

// compareFindings orders findings by position, then by everything that tells
// them apart.
func compareFindings(a, b decision.Finding) int {
	return cmp.Or(
		comparePositions(a.Position, b.Position),
		cmp.Compare(a.Rule, b.Rule),
		cmp.Compare(a.Resource, b.Resource),
		slices.Compare(a.Path, b.Path),
		cmp.Compare(a.Message, b.Message),
		cmp.Compare(a.Source, b.Source),
	)
}

func comparePositions(a, b *fleet.Position) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return -1
	case b == nil:
		return 1
	}
	return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
}
