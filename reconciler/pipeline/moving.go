package pipeline

import (
	"context"
	"slices"

	"github.com/reeve-project/reeve/reconciler/cluster"
)

// planningSnapshot is the snapshot that nodes are planned on: pods of nodes
// that are going count as pending, since they will be as soon as they are
// evicted, and those nodes take nobody (Karpenter, pkg/controllers/provisioning,
// GetPendingPods and the pods of deleting nodes).
func (w *World) planningSnapshot(ctx context.Context) (*cluster.Snapshot, error) {
	lost, err := w.interrupted(ctx)
	if err != nil {
		return nil, err
	}
	s := w.Snapshot
	if len(lost) == 0 && !slices.ContainsFunc(s.Nodes, func(n *cluster.Node) bool { return n.Deleting }) {
		return s, nil
	}
	out := *s
	out.Nodes = slices.Clone(s.Nodes)
	moving := []*cluster.Pod{}
	for i, n := range s.Nodes {
		if !n.Deleting && !lost[n.Key()] {
			continue
		}
		gone := *n
		gone.Deleting, gone.Pods = true, nil
		for _, pod := range n.Pods {
			if moves(s, pod) {
				moving = append(moving, pod)
			} else {
				gone.Pods = append(gone.Pods, pod)
			}
		}
		out.Nodes[i] = &gone
	}
	out.Pending = append(moving, s.Pending...)
	return out.Seal(), nil
}

// moves says whether the pod of a node that is going will need another place:
// not those that end with the node, nor those that will not be evicted yet.
func moves(s *cluster.Snapshot, pod *cluster.Pod) bool {
	if pod.Preempting || !pod.Reschedulable() {
		return false
	}
	if active, _ := pod.DoNotDisrupt(s.Time); active {
		return false
	}
	return pod.Terminating || s.Evictable(pod)
}

// movingPods are the pods of nodes that are being deleted.
func movingPods(s *cluster.Snapshot) []*cluster.Pod {
	var out []*cluster.Pod
	for _, n := range s.Nodes {
		if !n.Deleting {
			continue
		}
		for _, pod := range n.Pods {
			if moves(s, pod) {
				out = append(out, pod)
			}
		}
	}
	return out
}
