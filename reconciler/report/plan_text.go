package report

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/resources"
)

// PlanText writes the plan for people.
func PlanText(w io.Writer, p *Plan) error {
	t := &printer{w: w}
	t.line("%s at %s, fleet %s", p.Cluster, p.Time.UTC().Format(time.RFC3339), p.Source)
	t.line("%s, %s, %s, %s", count(p.Seen.Nodes, "node of the fleet", "nodes of the fleet"), count(p.Seen.Others, "other", "others"),
		count(p.Seen.Bound, "bound pod", "bound pods"), count(p.Seen.Pending, "pending pod", "pending pods"))
	for _, s := range p.Seen.Waiting {
		t.line("%s", count(s.Count, "pod is ", "pods are ")+s.Kind)
	}
	t.planSteps(p.Steps)
	if p.Fitting > 0 {
		t.line("")
		t.line("%s room on nodes that exist.", count(p.Fitting, "pending pod finds", "pending pods find"))
	}
	if len(p.Steps) == 0 {
		t.line("")
		t.line("Nothing to launch and nothing to remove.")
	}
	t.planStaying(p.Staying)
	t.planAssumed(p.Assumptions, p.Unused)
	t.line("")
	t.line("%s", costLine(p.Before, p.After))
	return t.err
}

// costLine is "The nodes cost $0.344/h, and $0.17/h after this: $0.174/h less."
func costLine(before, after resources.Price) string {
	switch {
	case after > before:
		return fmt.Sprintf("The nodes cost %s, and %s after this: %s more.", before, after, after-before)
	case after < before:
		return fmt.Sprintf("The nodes cost %s, and %s after this: %s less.", before, after, before-after)
	default:
		return fmt.Sprintf("The nodes cost %s, before and after.", before)
	}
}

func (p *printer) planSteps(steps []PlanStep) {
	later := false
	for i := range steps {
		s := &steps[i]
		if s.Later && !later {
			later = true
			p.line("")
			p.line("After that, if nothing else changes:")
		}
		p.line("")
		p.planStep(s)
	}
}

func (p *printer) planStep(s *PlanStep) {
	p.line("%s", s.Summary)
	for i := range s.Launches {
		p.planLaunch(&s.Launches[i])
	}
	for _, n := range s.Removals {
		p.line("  remove %s: %s %s %s, %s%s", cmp.Or(n.Name, n.Claim), n.InstanceType, n.Zone, n.CapacityType, n.Price, suffix(": ", n.Detail))
	}
	for _, pl := range s.Placements {
		p.line("  onto %s", pl.Node)
		p.pods(pl.Pods)
	}
	for _, u := range s.Pending {
		p.line("  pending, %s%s: %s", u.Reason, suffix(" by ", strings.Join(u.Rules, ", ")), u.Message)
		p.pods(u.Pods)
	}
	for _, f := range s.Violations {
		p.finding("denied by", f)
	}
	for _, f := range s.Warnings {
		p.finding("warning", f)
	}
	for _, x := range s.Exclusions {
		p.line("  excluded by %s: %s%s: %s", x.Rule, choices(x), suffix(" in NodePool ", x.NodePool), x.Message)
	}
}

func (p *printer) planLaunch(l *PlanLaunch) {
	p.line("  launch %s %s %s, %s, for %s (%s)", l.InstanceType, l.Zone, l.CapacityType, l.Price, count(podCount(l.Pods), "pod", "pods"), l.Requests)
	p.pods(l.Pods)
	p.line("    the cheapest of %s%s", count(l.Choices, "instance type that fits", "instance types that fit"), suffix("; next best ", nextBest(l.NextBest)))
	if steps := filters(l.Filters); steps != "" {
		p.line("    types left after %s", steps)
	}
}

func podCount(groups []decision.PodGroup) int {
	n := 0
	for _, g := range groups {
		n += len(g.Names)
	}
	return n
}

func nextBest(os []decision.Offering) string {
	var out []string
	for _, o := range os {
		out = append(out, fmt.Sprintf("%s %s %s", o.InstanceType, o.Zone, o.Price))
	}
	return strings.Join(out, "; ")
}

func filters(fs []decision.Filter) string {
	var out []string
	for _, f := range fs {
		out = append(out, fmt.Sprintf("%s: %d", f.By, f.Left))
	}
	return strings.Join(out, ", ")
}

func (p *printer) planStaying(ss []PlanStaying) {
	if len(ss) == 0 {
		return
	}
	p.line("")
	p.line("Nodes that stay")
	for _, s := range ss {
		p.line("  %s: %s", few(s.Nodes), s.Message)
	}
}

func (p *printer) planAssumed(assumptions []string, unused []PlanUnused) {
	p.line("")
	p.line("Assumed")
	for _, a := range assumptions {
		p.line("  %s", a)
	}
	var kinds []string
	for _, u := range unused {
		kinds = append(kinds, fmt.Sprintf("%d × %s", u.Count, u.Kind))
	}
	if len(kinds) > 0 {
		p.line("  Not looked at, since no plan depends on it: %s.", strings.Join(kinds, ", "))
	}
}
