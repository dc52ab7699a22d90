package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/fleet"
)

// result applies the case to an answer: exceptions, positions, and whether the
// kind goes ahead without a verdict.
func (e *Engine) result(c Case, q *question, a *answer) Result {
	out := Result{Evaluation: e.evaluation(c, q, a)}
	if a.failure != nil {
		f := failureFinding(q, *a.failure)
		if failsOpen(c, q.kind) {
			f.Severity = severityWarning
			f.Message += fmt.Sprintf("; decisions of kind %s go ahead without one", q.kind)
			out.Warnings = append(out.Warnings, f)
		} else {
			out.Violations = append(out.Violations, f)
		}
		return out
	}
	for _, el := range a.deny {
		f := finding(c, el)
		if f.Exception = exceptionFor(c, f.Rule, append([]string{f.Resource}, q.resources...)...); f.Exception != nil {
			f.Severity = severityWarning
			out.Warnings = append(out.Warnings, f)
		} else {
			out.Violations = append(out.Violations, f)
		}
	}
	for _, el := range a.warn {
		out.Warnings = append(out.Warnings, finding(c, el))
	}
	e.exclusions(c, q, a, &out)
	slices.SortStableFunc(out.Violations, compareFindings)
	slices.SortStableFunc(out.Warnings, compareFindings)
	return out
}

// exclusions are those that no exception lifts; one that is lifted is a
// warning, so that it shows wherever it applies.
func (e *Engine) exclusions(c Case, q *question, a *answer, out *Result) {
	for _, ch := range a.exclude {
		pool := "NodePool/" + ch.nodePool
		if ex := exceptionFor(c, ch.body.ID, append([]string{pool}, q.resources...)...); ex != nil {
			f := finding(c, element{body: ch.body, msg: ch.msg, resource: pool, path: ch.path})
			f.Message = fmt.Sprintf("%s: %d instance types stay", f.Message, len(ch.types))
			f.Severity, f.Exception = severityWarning, ex
			out.Warnings = append(out.Warnings, f)
			continue
		}
		if ch.set.List != "" {
			if out.Lists == nil {
				out.Lists = map[string][]string{}
			}
			out.Lists[ch.set.List] = ch.types
		}
		out.Exclusions = append(out.Exclusions, decision.Exclusion{
			Rule: ch.body.ID, Message: ch.msg, NodePool: ch.nodePool,
			Types: ch.set, Zone: ch.zone, CapacityType: ch.capacityType,
			Position: find(c, ch.path),
		})
	}
}

// finding is an element as a verdict holds it. A path gives the resource, and a
// resource the path, where the policy gave only one.
func finding(c Case, el element) decision.Finding {
	r := &el.body.Rule
	f := decision.Finding{
		Rule: r.ID, Severity: r.Severity, Title: r.Title, Message: el.msg,
		Resource: cmp.Or(el.resource, resourceOf(el.path)), Path: el.path,
		Remediation: r.Remediation, Source: r.source(),
	}
	if len(f.Path) == 0 {
		f.Path = pathOf(f.Resource)
	}
	f.Position = find(c, f.Path)
	return f
}

func find(c Case, path fleet.Path) *fleet.Position {
	if c.Fleet == nil || len(path) == 0 {
		return nil
	}
	at, ok := c.Fleet.Positions.Find(path)
	if !ok {
		return nil
	}
	return &at
}

// specKinds are the kinds of the objects in a fleet by the field that holds
// them.
var specKinds = map[string]string{"nodePools": "NodePool", "nodeClasses": "EC2NodeClass"}

func resourceOf(path fleet.Path) string {
	if len(path) < 2 || specKinds[path[0]] == "" {
		return ""
	}
	return specKinds[path[0]] + "/" + path[1]
}

func pathOf(resource string) fleet.Path {
	kind, name, _ := strings.Cut(resource, "/")
	for _, field := range []string{"nodePools", "nodeClasses"} {
		if specKinds[field] == kind {
			return fleet.Path{field, name}
		}
	}
	return nil
}

// failureFinding stands for a missing verdict.
func failureFinding(q *question, f Failure) decision.Finding {
	out := decision.Finding{
		Rule: RuleVerdict, Severity: severityError, Title: "The policies gave no verdict",
		Message: fmt.Sprintf("stage %s: %s", q.stage, f.Error), Cause: f.Cause,
		Remediation: "Correct the policy; until then what it judges is denied.",
	}
	if f.Cause == decision.CauseLimit {
		out.Remediation = "Make the policy hold less at once; until then what it judges is denied."
	}
	if f.Cause == decision.CauseDeadline {
		out.Remediation = "Make the policy do less, or raise cluster.judge.deadline; until then what it judges is denied."
	}
	return out
}
