// Package check judges a fleet repository as the reconciler would, before it
// is pushed: the same schema, the same policies, the same code.
package check

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/pipeline"
	"github.com/reeve-project/reeve/reconciler/port"
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
	// Clusters to check; all when empty.
	Clusters []string
	// Now is the instant at which policies judge.
	Now time.Time
}

// Run checks the clusters of a fleet repository. An error means that the check
// could not be made, or that there was nothing to check (ErrNothing); what is
// wrong with the fleet is in the result.
func Run(ctx context.Context, o Options) (*report.Check, error) {
	names, err := clusters(o)
	if err != nil {
		return nil, err
	}
	out := &report.Check{Source: o.Source, Commit: o.Commit}
	for _, name := range names {
		cc, err := one(ctx, o, name)
		if err != nil {
			return nil, fmt.Errorf("cluster %s: %w", name, err)
		}
		out.Clusters = append(out.Clusters, *cc)
	}
	return out, nil
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

func one(ctx context.Context, o Options, name string) (*report.ClusterCheck, error) {
	var loaded *fleet.Fleet
	j, err := pipeline.JudgeCommit(ctx, pipeline.Candidate{
		Cluster: name,
		Now:     o.Now,
		Source:  &port.Source{Branch: o.Source, Commit: o.Commit, Files: o.Files},
		Load: func(ctx context.Context, src *port.Source) (*fleet.Fleet, error) {
			f, err := spec.Load(ctx, src.Files, spec.Options{Cluster: name, Commit: src.Commit})
			loaded = f
			return f, err
		},
	})
	if err != nil {
		return nil, err
	}
	d := j.Decision
	out := &report.ClusterCheck{
		Cluster: name, Policies: len(j.Files),
		NodePools: d.Proposal.Spec.NodePools, NodeClasses: d.Proposal.Spec.NodeClasses,
		Violations: list(d.Verdict.Violations), Warnings: list(d.Verdict.Warnings),
		Exclusions: []decision.Exclusion{},
	}
	if loaded == nil {
		return out, nil
	}
	return out, offerings(ctx, out, loaded, o)
}

// list is what JSON writes as a list even if nothing is in it.
func list(fs []decision.Finding) []decision.Finding { return append([]decision.Finding{}, fs...) }
