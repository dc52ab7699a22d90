package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/port"
)

// observe makes the snapshot of a pass: what the API server says, with what
// the cloud and the ledger know.
func (p *Pipeline) observe(ctx context.Context, now time.Time) (*cluster.Snapshot, error) {
	snap, err := p.Cluster.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	snap.Time = now
	if err := p.refreshCatalog(ctx); err != nil {
		return nil, err
	}
	for _, class := range p.fleet.NodeClasses {
		status, err := p.Cloud.ResolveNodeClass(ctx, class)
		if err != nil {
			return nil, fmt.Errorf("EC2NodeClass %s: %w", class.Name, err)
		}
		p.notePause(now, class.Name, &status)
		snap.NodeClasses = append(snap.NodeClasses, &cluster.NodeClassStatus{Name: class.Name, Status: status})
	}
	snap.Interruptions = p.interruptions(snap)
	p.unavailable = slices.DeleteFunc(p.unavailable, func(u cluster.Unavailable) bool { return !u.Until.After(now) })
	snap.Unavailable = slices.Clone(p.unavailable)
	snap.Recent = p.Ledger.Recent(now)
	snap.Controller = locate(snap, p.opts.Pod)
	p.look(ctx, snap)
	snap.Seal()
	nominate(snap, p.open)
	markRemoving(snap, p.open)
	p.holds.note(snap, p.fleet.Commit)
	return snap, nil
}

// locate finds the controller's own pod, given as "namespace/name". Its node is
// empty while the pod is on none of the cluster's.
func locate(snap *cluster.Snapshot, key string) cluster.Controller {
	namespace, name, ok := strings.Cut(key, "/")
	if !ok {
		return cluster.Controller{}
	}
	out := cluster.Controller{Namespace: namespace, Pod: name}
	for _, n := range snap.Nodes {
		if slices.ContainsFunc(n.Pods, func(o *cluster.Pod) bool { return o.Key() == key && !o.Preempting }) {
			out.Node = n.Name
		}
	}
	return out
}

// refreshCatalog takes the cloud's catalog. Where the cloud cannot be asked,
// the last one serves: prices that are a day old beat standing still.
func (p *Pipeline) refreshCatalog(ctx context.Context) error {
	data, err := p.Cloud.Catalog(ctx)
	if err != nil {
		if p.catalog == nil {
			return fmt.Errorf("catalog: %w", err)
		}
		p.Log.Warn("catalog is kept", "error", err)
		return nil
	}
	p.catalog = data
	return nil
}

// nominate notes on each node which pending pods an open decision planned for
// it. Without that, a pass before the nodes are up could pack the same pods
// differently and want one node more.
func nominate(snap *cluster.Snapshot, open []*port.Record) {
	pending := make(map[string]bool, len(snap.Pending))
	for _, pod := range append(movingPods(snap), snap.Pending...) {
		pending[pod.Key()] = true
	}
	for _, r := range open {
		for i := range r.Decision.Proposal.Claims {
			c := &r.Decision.Proposal.Claims[i]
			addNominations(snap.NodeOf(c.Name), c.Pods, pending)
		}
		for _, pl := range r.Decision.Proposal.Placements {
			addNominations(snap.Node(pl.Node), pl.Pods, pending)
		}
	}
	for _, n := range snap.Nodes {
		slices.Sort(n.Nominated)
		n.Nominated = slices.Compact(n.Nominated)
	}
}

func addNominations(n *cluster.Node, groups []decision.PodGroup, pending map[string]bool) {
	if n == nil {
		return
	}
	for _, g := range groups {
		for _, name := range g.Names {
			if key := g.Namespace + "/" + name; pending[key] {
				n.Nominated = append(n.Nominated, key)
			}
		}
	}
}

// Offerings that EC2 had no capacity for are left alone for that long
// (Karpenter, pkg/cache/cache.go, UnavailableOfferingsTTL).
const unavailableFor = 3 * time.Minute

// markUnavailable remembers what EC2 refused.
func (p *Pipeline) markUnavailable(now time.Time, refused []port.Refusal) {
	for _, r := range refused {
		o := r.Offering
		p.unavailable = slices.DeleteFunc(p.unavailable, func(u cluster.Unavailable) bool {
			return u.InstanceType == o.InstanceType && u.Zone == o.Zone && u.CapacityType == o.CapacityType
		})
		p.unavailable = append(p.unavailable, cluster.Unavailable{
			InstanceType: o.InstanceType, Zone: o.Zone, CapacityType: o.CapacityType, Until: now.Add(unavailableFor),
		})
	}
}

// isGone says whether the error means that the object is not there.
func isGone(err error) bool { return errors.Is(err, port.ErrNotFound) }
