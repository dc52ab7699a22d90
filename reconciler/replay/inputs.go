package replay

import (
	"context"
	"fmt"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/ledger"
	"github.com/reeve-project/reeve/reconciler/pipeline"
	"github.com/reeve-project/reeve/reconciler/policy"
	"github.com/reeve-project/reeve/reconciler/port"
	"github.com/reeve-project/reeve/reconciler/spec"
)

// Replayer replays decisions. It keeps what neighbouring decisions share: the
// fleet, the compiled policies and the catalog. It is not safe for concurrent
// use.
type Replayer struct {
	fleets   map[string]*fleet.Fleet
	judges   map[string]*policy.Engine
	catalogs map[string]*catalog.Data
	caches   *pipeline.World
	// state is the snapshot that was read last, and passed what its pass came
	// to: one commit may record hundreds of decisions.
	state  recordedState
	passed map[decision.Kind][]*decision.Decision
}

// recordedState is the snapshot of a commit.
type recordedState struct {
	commit   string
	snapshot *cluster.Snapshot
	digest   string
}

// NewReplayer makes one with empty caches.
func NewReplayer() *Replayer {
	r := &Replayer{}
	r.reset()
	return r
}

// A replayer of a long history meets many fleets; what it keeps is bounded.
const maxKept = 32

func (r *Replayer) reset() {
	r.fleets, r.judges, r.catalogs = map[string]*fleet.Fleet{}, map[string]*policy.Engine{}, map[string]*catalog.Data{}
	r.caches = pipeline.NewWorld(nil, nil, nil, nil)
}

func (r *Replayer) bound() {
	if len(r.fleets)+len(r.judges)+len(r.catalogs) > maxKept {
		r.reset()
	}
}

// World is all that a decision about the cluster depended on, read back from
// the commit that records it: fleet, policies, catalog and snapshot. It fails
// for decisions that were made before any fleet was in force.
func (r *Replayer) World(ctx context.Context, e ledger.Entry) (*pipeline.World, error) {
	return r.world(ctx, e)
}

// world is all that a decision about the cluster depended on.
func (r *Replayer) world(ctx context.Context, e ledger.Entry) (*pipeline.World, error) {
	r.bound()
	src, err := e.View.Accepted()
	if err != nil {
		return nil, err
	}
	if src == nil {
		return nil, fmt.Errorf("no fleet was in force at commit %s", e.View.Commit())
	}
	f, err := r.fleet(ctx, e.Decision.Cluster, src)
	if err != nil {
		return nil, err
	}
	files, err := e.View.Policies()
	if err != nil {
		return nil, err
	}
	judge, err := r.judge(f, files, e.Decision)
	if err != nil {
		return nil, err
	}
	data, err := r.catalog(e)
	if err != nil {
		return nil, err
	}
	st, err := r.snapshot(e)
	if err != nil {
		return nil, err
	}
	w := r.caches.With(f, judge, data, st.snapshot)
	w.Repeats = map[string]int{e.Decision.Fingerprint: e.Decision.Repeats}
	return w, nil
}

// snapshot reads the snapshot of a commit once.
func (r *Replayer) snapshot(e ledger.Entry) (recordedState, error) {
	commit := e.View.Commit()
	if r.state.commit == commit {
		return r.state, nil
	}
	snap, err := e.View.Snapshot()
	if err != nil {
		return recordedState{}, err
	}
	r.state, r.passed = recordedState{commit: commit, snapshot: snap, digest: snap.Digest()}, nil
	return r.state, nil
}

// fleet evaluates a tree once.
func (r *Replayer) fleet(ctx context.Context, cluster string, src *port.Source) (*fleet.Fleet, error) {
	f := r.fleets[src.Tree]
	if f == nil {
		var err error
		if f, err = spec.Load(ctx, src.Files, spec.Options{Cluster: cluster, Commit: src.Commit}); err != nil {
			return nil, err
		}
		r.fleets[src.Tree] = f
	}
	if f.Commit == src.Commit {
		return f, nil
	}
	// The same tree may have been accepted at several commits.
	out := *f
	out.Commit = src.Commit
	return &out, nil
}

// judge compiles the recorded policies once; with failures to be handed back
// it is made for the one decision.
func (r *Replayer) judge(f *fleet.Fleet, files map[string][]byte, d *decision.Decision) (*policy.Engine, error) {
	b := policy.RecordedBundle(files, f.Policy)
	if hasGiven(d) {
		return policy.New(b, policy.Options{Given: given(d)})
	}
	digest := b.Digest()
	if e := r.judges[digest]; e != nil {
		return e, nil
	}
	e, err := policy.New(b, policy.Options{})
	if err != nil {
		return nil, err
	}
	r.judges[digest] = e
	return e, nil
}

func (r *Replayer) catalog(e ledger.Entry) (*catalog.Data, error) {
	// By what the commit holds and not by what the decision names: that they are
	// the same is what is to be shown.
	key, err := e.View.ID(ledger.CatalogDir)
	if err != nil {
		return nil, err
	}
	if data := r.catalogs[key]; data != nil {
		return data, nil
	}
	data, err := e.View.Catalog()
	if err != nil {
		return nil, err
	}
	r.catalogs[key] = data
	return data, nil
}

// judgement judges a recorded spec commit again, against what was in force
// before it.
func (r *Replayer) judgement(ctx context.Context, e ledger.Entry) ([]*decision.Decision, error) {
	r.bound()
	files, policies, ok, err := e.View.Proposed()
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("commit %s does not hold the proposed fleet", e.View.Commit())
	}
	d := e.Decision
	sc := d.Proposal.Spec
	c := pipeline.Candidate{
		Cluster: d.Cluster, Now: d.Time, Given: given(d), Policies: policies,
		Source: &port.Source{
			Branch: sc.Branch, Commit: sc.Commit, Tree: sc.Tree, Author: sc.Author, Subject: sc.Subject, Forced: sc.Forced, Files: files,
		},
		Load: r.loader(e),
	}
	if err := r.before(ctx, e, &c); err != nil {
		return nil, err
	}
	j, err := pipeline.JudgeCommit(ctx, c)
	if err != nil {
		return nil, err
	}
	return []*decision.Decision{j.Decision}, nil
}

// loader evaluates a source as it was evaluated then: a bound that was met is
// met again.
func (r *Replayer) loader(e ledger.Entry) func(context.Context, *port.Source) (*fleet.Fleet, error) {
	if found := limits(e.Decision); len(found) > 0 {
		return func(context.Context, *port.Source) (*fleet.Fleet, error) { return nil, &limitError{found} }
	}
	return func(ctx context.Context, src *port.Source) (*fleet.Fleet, error) {
		// By the tree that is there, whatever tree the decision names.
		tree, err := e.View.ID(ledger.ProposedFleetDir)
		if err != nil {
			return nil, err
		}
		is := *src
		is.Tree = tree
		return r.fleet(ctx, e.Decision.Cluster, &is)
	}
}

// before fills in what was in force when the commit was judged.
func (r *Replayer) before(ctx context.Context, e ledger.Entry, c *pipeline.Candidate) error {
	parent, err := e.View.Parent()
	if err != nil || parent == nil {
		return err
	}
	src, err := parent.Accepted()
	if err != nil || src == nil {
		return err
	}
	if c.Previous, err = r.fleet(ctx, e.Decision.Cluster, src); err != nil {
		return err
	}
	files, err := parent.Policies()
	if err != nil {
		return err
	}
	c.Judge, err = r.judge(c.Previous, files, e.Decision)
	return err
}
