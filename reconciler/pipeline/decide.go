package pipeline

import (
	"context"
	"time"

	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/decision"
)

// decide makes the decisions of a pass that say something new.
func (p *Pipeline) decide(ctx context.Context, snap *cluster.Snapshot) ([]*decision.Decision, error) {
	w := p.world(snap)
	out, err := w.Liveness(ctx)
	if err != nil {
		return nil, err
	}
	e := p.fleet.Cluster.Engine
	if p.batch.closed(snap.Time, snap.Pending, time.Duration(e.BatchIdle), time.Duration(e.BatchMax)) {
		ds, err := w.Provision(ctx)
		if err != nil {
			return nil, err
		}
		out = append(out, ds...)
	}
	return p.novel(snap.Time, snap.Recent, out, p.fleet.Cluster.Mode), nil
}
