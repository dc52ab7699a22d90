package check

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/pipeline"
	"github.com/reeve-project/reeve/reconciler/policy"
	"github.com/reeve-project/reeve/reconciler/report"
	"github.com/reeve-project/reeve/reconciler/scheduling"
)

// RuleBase is the id of the warning that the base cannot be compared with.
const RuleBase = "REEVE-BASE-001"

// compare leaves in the head what is new and adds how it differs. The base is
// nil for a cluster that is new.
func compare(o Options, base, head *judged) error {
	change := &report.FleetChange{
		Fixed: []decision.Finding{}, Fields: []report.FieldChange{}, Policies: []report.PolicyChange{},
		Choices: []report.ChoiceChange{}, Budgets: []report.BudgetWeek{},
	}
	head.check.Change = change
	if base == nil {
		e := whole["Cluster"]["add"]
		change.Fields = append(change.Fields, report.FieldChange{Op: "add", Resource: "Cluster/" + head.check.Cluster, Effect: e.class, Why: e.why})
		return nil
	}
	onlyNew(&base.check, &head.check)
	if !base.usable() {
		head.check.Warnings = append(head.check.Warnings, unusableBase(o, &base.check))
	}
	if !base.usable() || !head.usable() {
		return nil
	}
	diff, err := policy.NewDiff(base.fleet, head.fleet, base.judge.Bundle(), head.judge.Bundle())
	if err != nil {
		return err
	}
	if change.Fields, err = fieldChanges(base.fleet, head.fleet, diff.Resources); err != nil {
		return err
	}
	for _, p := range diff.Policies {
		change.Policies = append(change.Policies, report.PolicyChange(p))
	}
	change.Choices = append(change.Choices, choiceChanges(base.found, head.found)...)
	change.Budgets, err = changedBudgets(base.fleet, head.fleet, o.Now)
	return err
}

// onlyNew takes from the head the findings that the base has too. An error that
// was a warning before is new.
func onlyNew(base, head *report.ClusterCheck) {
	change := head.Change
	rest := func(a, b []decision.Finding) (left, shared []decision.Finding) {
		known := map[string]bool{}
		for _, f := range b {
			known[report.Fingerprint(head.Cluster, f)] = true
		}
		left, shared = []decision.Finding{}, nil
		for _, f := range a {
			if known[report.Fingerprint(head.Cluster, f)] {
				shared = append(shared, f)
			} else {
				left = append(left, f)
			}
		}
		return left, shared
	}
	was := slices.Concat(base.Violations, base.Warnings)
	now := slices.Concat(head.Violations, head.Warnings)
	change.Fixed, _ = rest(was, now)
	violations, knownErrors := rest(head.Violations, base.Violations)
	warnings, knownWarnings := rest(head.Warnings, was)
	change.Known = len(knownErrors) + len(knownWarnings)
	head.Violations, head.Warnings = violations, warnings
}

// unusableBase says why there is nothing to compare with.
func unusableBase(o Options, base *report.ClusterCheck) decision.Finding {
	why := ""
	if len(base.Violations) > 0 {
		f := base.Violations[0]
		why = ": " + f.Message
		if f.Position != nil {
			why = ": " + f.Position.String() + ": " + f.Message
		}
	}
	return decision.Finding{
		Rule: RuleBase, Severity: "warning", Title: "The base cannot be compared with", Resource: "Cluster/" + base.Cluster,
		Message:     fmt.Sprintf("the fleet of the base %s cannot be read, so neither its policies judge nor is it compared with%s", o.Base.Rev, why),
		Remediation: "Compare with a commit whose fleet can be read, or mend the base first.",
	}
}

// choiceChanges pair the choices of both fleets by NodePool. Without a catalog
// there are none.
func choiceChanges(base, head *pipeline.Offerings) []report.ChoiceChange {
	if base == nil || head == nil {
		return nil
	}
	var out []report.ChoiceChange
	a, b := base.After, head.After
	for len(a) > 0 || len(b) > 0 {
		var x, y *scheduling.Choices
		if len(a) > 0 && (len(b) == 0 || a[0].NodePool <= b[0].NodePool) {
			x = &a[0]
		}
		if len(b) > 0 && (len(a) == 0 || b[0].NodePool <= a[0].NodePool) {
			y = &b[0]
		}
		out = append(out, choiceChange(x, y))
		if x != nil {
			a = a[1:]
		}
		if y != nil {
			b = b[1:]
		}
	}
	return out
}

func choiceChange(x, y *scheduling.Choices) report.ChoiceChange {
	out := report.ChoiceChange{Before: choiceOf(x), After: choiceOf(y)}
	var before, after []string
	if x != nil {
		out.NodePool, before = x.NodePool, x.Types
	}
	if y != nil {
		out.NodePool, after = y.NodePool, y.Types
	}
	out.Gained, out.Lost = without(after, before), without(before, after)
	return out
}

// without are the members of a that are not in b, both sorted.
func without(a, b []string) []string {
	var out []string
	for _, s := range a {
		if _, ok := slices.BinarySearchFunc(b, s, cmp.Compare[string]); !ok {
			out = append(out, s)
		}
	}
	return out
}

func choiceOf(c *scheduling.Choices) *report.PoolChoice {
	if c == nil {
		return nil
	}
	out := &report.PoolChoice{Types: len(c.Types), Spot: c.Spot}
	for _, o := range c.Cheapest {
		offer := report.Offer{InstanceType: o.InstanceType, Zone: o.Offering.Zone, Price: o.Offering.Price}
		switch o.Offering.CapacityType {
		case "on-demand":
			out.OnDemand = offer
		case "spot":
			out.SpotFrom = offer
		}
	}
	for _, s := range c.Shortfalls {
		out.Short = append(out.Short, fmt.Sprintf("%s: %d of %d", s.Key, s.Have, s.Want))
	}
	return out
}
