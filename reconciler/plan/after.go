package plan

import (
	"fmt"
	"maps"
	"slices"

	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/pipeline"
)

// after is the cluster once the decision is carried out: its nodes are gone,
// its claims are launched, and its pods are where they were planned. The world
// gives fleet and catalog. The snapshot itself is left as it is.
func after(w *pipeline.World, s *cluster.Snapshot, d *decision.Decision) (*cluster.Snapshot, error) {
	f := &future{w: w, homeless: map[string]*cluster.Pod{}}
	f.leave(s, d)
	for i := range d.Proposal.Claims {
		if err := f.launch(s, &d.Proposal.Claims[i]); err != nil {
			return nil, err
		}
	}
	for _, pl := range d.Proposal.Placements {
		if n := f.node(pl.Node); n != nil {
			n.Pods = append(n.Pods, f.pods(pl.Pods)...)
		}
	}
	out := *s
	out.Nodes, out.Pending = f.nodes, slices.Collect(maps.Values(f.homeless))
	// The recorded digest of the old snapshot says nothing of this one.
	return out.Seal(), nil
}

// future is a snapshot under construction.
type future struct {
	w     *pipeline.World
	nodes []*cluster.Node
	// homeless are the pods that have no node.
	homeless map[string]*cluster.Pod
}

// leave takes the decision's nodes away and makes their pods homeless, as far
// as they live on.
func (f *future) leave(s *cluster.Snapshot, d *decision.Decision) {
	going := map[string]bool{}
	for _, n := range d.Proposal.Nodes {
		going[n.Claim] = true
	}
	for _, pod := range s.Pending {
		f.homeless[pod.Key()] = pod
	}
	for _, n := range s.Nodes {
		gone := n.Claim != nil && going[n.Claim.Name]
		c := *n
		c.Pods = nil
		for _, pod := range n.Pods {
			switch {
			case (gone || n.Deleting && d.Kind == decision.Provision) && pod.Reschedulable():
				// A provision plans for the pods of nodes that are going, too.
				f.homeless[pod.Key()] = pod
			case !gone:
				c.Pods = append(c.Pods, pod)
			}
		}
		if !gone {
			f.nodes = append(f.nodes, &c)
		}
	}
}

func (f *future) node(key string) *cluster.Node {
	i := slices.IndexFunc(f.nodes, func(n *cluster.Node) bool { return n.Key() == key })
	if i < 0 {
		return nil
	}
	return f.nodes[i]
}

// pods takes the pods of the groups out of the homeless.
func (f *future) pods(groups []decision.PodGroup) []*cluster.Pod {
	var out []*cluster.Pod
	for _, g := range groups {
		for _, name := range g.Names {
			key := g.Namespace + "/" + name
			if pod := f.homeless[key]; pod != nil {
				out = append(out, pod)
				delete(f.homeless, key)
			}
		}
	}
	return out
}

// launch adds a node that is on its way.
func (f *future) launch(s *cluster.Snapshot, c *decision.Claim) error {
	types, err := f.w.InstanceTypes(c.NodeClass)
	if err != nil {
		return fmt.Errorf("claim %s: %w", c.Name, err)
	}
	claim := &cluster.Claim{
		Name: c.Name, NodePool: c.NodePool, NodeClass: c.NodeClass, Created: s.Time, Labels: map[string]string{},
		Requests: c.Requests, InstanceType: c.InstanceType, Zone: c.Zone, CapacityType: c.CapacityType, Price: c.Price,
		Conditions: cluster.Conditions{Launched: true, LaunchedAt: s.Time},
	}
	for _, t := range types {
		if t.Name == c.InstanceType {
			maps.Copy(claim.Labels, t.Requirements.Labels())
			claim.Capacity, claim.Allocatable = t.Capacity, t.Allocatable
		}
	}
	if pool := f.w.Fleet.NodePool(c.NodePool); pool != nil {
		maps.Copy(claim.Labels, pool.Spec.Template.Labels)
		claim.Taints, claim.StartupTaints = pool.Spec.Template.Spec.Taints, pool.Spec.Template.Spec.StartupTaints
	}
	maps.Copy(claim.Labels, c.Requirements.Labels())
	claim.Labels[karpv1.NodePoolLabelKey] = c.NodePool
	// Where the claim could be of several, the plan counts on the cheapest.
	for _, key := range []string{"node.kubernetes.io/instance-type", "topology.kubernetes.io/zone", karpv1.CapacityTypeLabelKey} {
		delete(claim.Labels, key)
	}
	n := &cluster.Node{Claim: claim, Pods: f.pods(c.Pods)}
	f.nodes = append(f.nodes, n)
	return nil
}
