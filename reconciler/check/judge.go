package check

import (
	"context"
	"io/fs"
	"time"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/pipeline"
	"github.com/reeve-project/reeve/reconciler/policy"
	"github.com/reeve-project/reeve/reconciler/port"
	"github.com/reeve-project/reeve/reconciler/report"
	"github.com/reeve-project/reeve/reconciler/spec"
)

// source is one cluster's fleet in one tree.
type source struct {
	label, commit, cluster string
	files                  fs.FS
	now                    time.Time
}

// judged is a fleet and what was found in it.
type judged struct {
	check report.ClusterCheck
	// fleet and judge are nil where they could not be read.
	fleet *fleet.Fleet
	judge *policy.Engine
	// found is nil where the instance types were not looked at.
	found *pipeline.Offerings
	data  *catalog.Data
	world *pipeline.World
}

// usable says whether another fleet can be compared with this one.
func (j *judged) usable() bool { return j != nil && j.fleet != nil && j.judge != nil }

// judge evaluates and judges a fleet as if base was the one in force, which may
// be nil.
func judge(ctx context.Context, s source, base *judged) (*judged, error) {
	var w world
	c := pipeline.Candidate{
		Cluster: s.cluster,
		Now:     s.now,
		Source:  &port.Source{Branch: s.label, Commit: s.commit, Files: s.files},
		Load: func(ctx context.Context, src *port.Source) (*fleet.Fleet, error) {
			f, err := spec.Load(ctx, src.Files, spec.Options{Cluster: s.cluster, Commit: src.Commit, Seen: func(texts [][]byte) { go readCatalogs(texts) }})
			if err == nil {
				w = newWorld(f, s.now, base)
			}
			return f, err
		},
	}
	if base.usable() {
		c.Previous, c.Judge = base.fleet, base.judge
	}
	j, err := pipeline.JudgeCommit(ctx, c)
	if err != nil {
		return nil, err
	}
	d := j.Decision
	out := &judged{fleet: j.Loaded, judge: j.Own, check: report.ClusterCheck{
		Cluster: s.cluster, Policies: len(j.Files),
		NodePools: d.Proposal.Spec.NodePools, NodeClasses: d.Proposal.Spec.NodeClasses,
		Violations: list(d.Verdict.Violations), Warnings: list(d.Verdict.Warnings),
		Exclusions: []decision.Exclusion{},
	}}
	if !out.usable() {
		return out, nil
	}
	return out, out.offerings(ctx, w)
}

// list is what JSON writes as a list even if nothing is in it.
func list(fs []decision.Finding) []decision.Finding { return append([]decision.Finding{}, fs...) }
