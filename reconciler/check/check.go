// Package check judges a fleet repository as the reconciler would, before it
// is pushed: the same schema, the same policies, the same code. Against a base
// it says what is new, and what the change does to nodes.
package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/reeve-project/reeve/reconciler/policy"
	"github.com/reeve-project/reeve/reconciler/report"
	"github.com/reeve-project/reeve/reconciler/spec"
)

// ErrNothing says that there was nothing to check. It is no success: a check
// that looks at nothing must not pass.
var ErrNothing = errors.New("nothing to check")

// Options of a check.
type Options struct {
	// Source names what is checked, for the report.
	Source string
	// Commit of Files, empty for a directory.
	Commit string
	Files  fs.FS
	// Dir is where Files are within their Git repository.
	Dir string
	// Clusters to check; all when empty.
	Clusters []string
	// Base is what to compare with, nil for nothing.
	Base *Base
	// Ledger is where the state of one of the clusters is recorded, nil for
	// nowhere.
	Ledger *Ledger
	// FailOnWarn makes warnings fail the check.
	FailOnWarn bool
	// Now is the instant at which policies judge.
	Now time.Time
}

// Base is the commit that takes the part of the fleet in force: its policies
// judge too, and rules that compare see its fleet as the previous one.
type Base struct {
	Rev, Commit string
	Files       fs.FS
}

// Run checks the clusters of a fleet repository. An error means that the check
// could not be made, or that there was nothing to check (ErrNothing); what is
// wrong with the fleet is in the result.
func Run(ctx context.Context, o Options) (*report.Check, error) {
	names, err := clusters(o)
	if err != nil {
		return nil, err
	}
	out := &report.Check{Source: o.Source, Commit: o.Commit, Dir: o.Dir, FailOnWarn: o.FailOnWarn}
	before, err := baseClusters(o, out)
	if err != nil {
		return nil, err
	}
	if err := o.Ledger.of(slices.Concat(names, out.Removed)); err != nil {
		return nil, err
	}
	rules := map[string]report.Rule{}
	for _, name := range names {
		cc, err := one(ctx, o, name, slices.Contains(before, name), rules)
		if err != nil {
			return nil, fmt.Errorf("cluster %s: %w", name, err)
		}
		out.Clusters = append(out.Clusters, *cc)
	}
	out.Rules = spoke(out, rules)
	return out, nil
}

// spoke are the rules of the findings that have annotations, by id.
func spoke(c *report.Check, rules map[string]report.Rule) []report.Rule {
	var out []report.Rule
	for i := range c.Clusters {
		for _, f := range slices.Concat(c.Clusters[i].Violations, c.Clusters[i].Warnings) {
			if r, ok := rules[f.Rule]; ok {
				out = append(out, r)
				delete(rules, f.Rule)
			}
		}
	}
	slices.SortFunc(out, func(a, b report.Rule) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

func clusters(o Options) ([]string, error) {
	all, err := spec.Clusters(o.Files)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: %w: there is no directory below clusters/ (reeve init makes one)", o.Source, ErrNothing)
	}
	for _, name := range o.Clusters {
		if !slices.Contains(all, name) {
			return nil, fmt.Errorf("%s: %w: there is no cluster %q; there are %s", o.Source, ErrNothing, name, strings.Join(all, ", "))
		}
	}
	if len(o.Clusters) > 0 {
		return o.Clusters, nil
	}
	return all, nil
}

// baseClusters are the clusters of the base. Those that are gone since are told.
func baseClusters(o Options, out *report.Check) ([]string, error) {
	if o.Base == nil {
		return nil, nil
	}
	out.Base = &report.Base{Rev: o.Base.Rev, Commit: o.Base.Commit}
	before, err := spec.Clusters(o.Base.Files)
	if err != nil {
		return nil, fmt.Errorf("base %s: %w", o.Base.Rev, err)
	}
	now, err := spec.Clusters(o.Files)
	if err != nil {
		return nil, err
	}
	for _, name := range before {
		asked := len(o.Clusters) == 0 || slices.Contains(o.Clusters, name)
		if asked && !slices.Contains(now, name) {
			out.Removed = append(out.Removed, name)
		}
	}
	return before, nil
}

// one checks one cluster, against its base if it is there too.
func one(ctx context.Context, o Options, name string, inBase bool, rules map[string]report.Rule) (*report.ClusterCheck, error) {
	tree := source{label: o.Source, commit: o.Commit, files: o.Files, cluster: name, now: o.Now}
	var base *judged
	if inBase {
		var err error
		base, err = judge(ctx, source{label: o.Base.Rev, commit: o.Base.Commit, files: o.Base.Files, cluster: name, now: o.Now}, nil)
		if err != nil {
			return nil, fmt.Errorf("base %s: %w", o.Base.Rev, err)
		}
		addRules(rules, base.judge)
	}
	head, err := judge(ctx, tree, base)
	if err != nil {
		return nil, err
	}
	addRules(rules, head.judge)
	if o.Base != nil {
		if err := compare(o, base, head); err != nil {
			return nil, err
		}
	}
	return &head.check, o.Ledger.impact(ctx, base, head)
}

// addRules gathers what the annotations of the rules say. Of two sets of
// policies the later one has the word.
func addRules(into map[string]report.Rule, e *policy.Engine) {
	if e == nil {
		return
	}
	seen := map[string]bool{}
	for _, r := range e.Rules() {
		if !seen[r.ID] {
			seen[r.ID] = true
			into[r.ID] = report.Rule{ID: r.ID, Title: r.Title, Description: r.Description, Remediation: r.Remediation, Severity: r.Severity}
		}
	}
}
