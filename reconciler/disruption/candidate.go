package disruption

import (
	"cmp"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/resources"
)

// Candidate is a node that may be disrupted.
type Candidate struct {
	// Node itself.
	Node *cluster.Node
	// NodePool it belongs to.
	NodePool *karpv1.NodePool
	// Type of its instance, nil when the catalog does not know it.
	Type *catalog.InstanceType
	// Price it has now: that of its offering in the catalog, else that of its
	// launch.
	Price resources.Price
	// CostMilli is what disrupting it costs, in thousandths: one, and for each
	// pod that has to move its eviction cost, if that is above zero (Karpenter:
	// RescheduleDisruptionCost).
	CostMilli int64
	// Pods that have to move, sorted by key.
	Pods []*cluster.Pod
}

// Empty says that nothing on the node costs anything to disrupt.
func (c *Candidate) Empty() bool { return c.CostMilli <= baseCost }

// pass is one search for a command.
type pass struct {
	in         Input
	now        time.Time
	pdbs       *podBudgets
	candidates []*Candidate // that may be disrupted, ranked
	blocked    []Blocked
	balance    *balance
	tries      *tries
}

func newPass(in Input) (*pass, error) {
	if in.Snapshot == nil || in.Fleet == nil {
		return nil, errors.New("disruption: a snapshot and a fleet are needed")
	}
	p := &pass{in: in, now: in.Snapshot.Time, pdbs: newPodBudgets(in.Snapshot)}
	for _, n := range in.Snapshot.Nodes {
		if c := p.candidate(n); c != nil {
			p.candidates = append(p.candidates, c)
		}
	}
	slices.SortStableFunc(p.candidates, compareCandidates)
	p.balance = p.newBalance()
	return p, nil
}

// compareCandidates puts the highest price for its disruption first, then the
// cheaper node, then names.
func compareCandidates(a, b *Candidate) int {
	return cmp.Or(
		compareProducts(int64(b.Price), a.CostMilli, int64(a.Price), b.CostMilli),
		cmp.Compare(a.Price, b.Price), cmp.Compare(a.Node.Key(), b.Node.Key()))
}

// compareProducts compares a*b with c*d, none of which is below zero.
func compareProducts(a, b, c, d int64) int {
	h1, l1 := bits.Mul64(uint64(a), uint64(b))
	h2, l2 := bits.Mul64(uint64(c), uint64(d))
	return cmp.Or(cmp.Compare(h1, h2), cmp.Compare(l1, l2))
}

// candidate is nil when the node must not be disrupted now, which is noted
// (Karpenter: disruption/types.go, NewCandidate).
func (p *pass) candidate(n *cluster.Node) *Candidate {
	if n.Claim == nil {
		return nil
	}
	if why := p.undisruptable(n); why != "" {
		p.block(n, EventBlocked, why)
		return nil
	}
	name := n.Claim.NodePool
	np := p.in.Fleet.NodePool(name)
	types := p.typesOf(np)
	if len(types) == 0 {
		p.block(n, EventBlocked, fmt.Sprintf("NodePool not found (NodePool=%s)", name))
		return nil
	}
	if why := p.podsBlock(n); why != "" {
		p.block(n, EventBlocked, why)
		return nil
	}
	if rule := p.in.Denied[n.Key()]; rule != "" {
		p.block(n, EventBlocked, "Policy forbids removing the node: "+rule)
		return nil
	}
	c := &Candidate{Node: n, NodePool: np}
	for _, it := range types {
		if it.Name == n.Claim.InstanceType {
			c.Type = it
		}
	}
	c.Price = priceOf(n.Claim, c.Type)
	for _, pod := range n.Pods {
		if reschedulable(pod) {
			c.Pods = append(c.Pods, pod)
		}
	}
	c.CostMilli = rescheduleCost(c.Pods)
	return c
}

func (p *pass) typesOf(np *karpv1.NodePool) []*catalog.InstanceType {
	if np == nil || np.Spec.Template.Spec.NodeClassRef == nil {
		return nil
	}
	return p.in.Types[np.Spec.Template.Spec.NodeClassRef.Name]
}

func priceOf(c *cluster.Claim, it *catalog.InstanceType) resources.Price {
	if it != nil {
		for _, o := range it.Offerings {
			if o.Zone == c.Zone && o.CapacityType == c.CapacityType {
				return o.Price
			}
		}
	}
	return max(c.Price, 0)
}

// undisruptable is why a node of ours may not be disrupted, apart from its pods
// (Karpenter: ValidateNodeDisruptable).
func (p *pass) undisruptable(n *cluster.Node) string {
	switch {
	case n.Name == "":
		return "Nodeclaim does not have an associated node"
	case !n.Initialized():
		return "Node isn't initialized"
	case isRemoved(n):
		return "Node is deleting or marked for deletion"
	case len(n.Nominated) > 0 || slices.ContainsFunc(n.Pods, func(pod *cluster.Pod) bool { return pod.Preempting }):
		return "Node is nominated for a pending pod"
	case n.Annotations[karpv1.DoNotDisruptAnnotationKey] == "true":
		return fmt.Sprintf("Disruption is blocked through the %q annotation", karpv1.DoNotDisruptAnnotationKey)
	case n.Labels[karpv1.NodePoolLabelKey] == "":
		return fmt.Sprintf("Node doesn't have required label (label=%s)", karpv1.NodePoolLabelKey)
	default:
		return ""
	}
}

// podsBlock is why the pods of a node do not let it be disrupted. Annotations
// of pods that cannot be read are noted on the way.
func (p *pass) podsBlock(n *cluster.Node) string {
	for _, pod := range n.Pods {
		if why := unreadable(pod); why != "" {
			p.block(n, EventInvalidAnnotation, why)
		}
		if doNotDisrupt(pod, p.now) {
			return fmt.Sprintf("Pod has %q annotation (Pod=%s)", karpv1.DoNotDisruptAnnotationKey, pod.Key())
		}
	}
	for _, pod := range n.Pods {
		if why := p.pdbs.blocks(pod, p.now); why != "" {
			return why
		}
	}
	return ""
}

// settles is when consolidateAfter has passed since the last pod event of the
// node; false while that is turned off.
func settles(np *karpv1.NodePool, n *cluster.Node) (time.Time, bool) {
	after := np.Spec.Disruption.ConsolidateAfter.Duration
	if after == nil {
		return time.Time{}, false
	}
	since := n.Claim.Conditions.InitializedAt
	if n.Claim.LastPodEvent.After(since) {
		since = n.Claim.LastPodEvent
	}
	return since.Add(*after), true
}

// unconsolidatable is why the candidate may not be removed for the reason to
// save money, empty when it may (Karpenter: consolidation.go, ShouldDisrupt).
func (p *pass) unconsolidatable(c *Candidate, reason string) string {
	until, on := settles(c.NodePool, c.Node)
	held := c.Node.HeldUntil(reason, p.now)
	switch {
	case c.NodePool.Spec.Replicas != nil:
		return fmt.Sprintf("NodePool %q is static", c.NodePool.Name)
	case !on:
		return fmt.Sprintf("NodePool %q has consolidation disabled", c.NodePool.Name)
	case until.After(p.now):
		return fmt.Sprintf("NodePool %q waits consolidateAfter since the last pod event, until %s", c.NodePool.Name, until.UTC().Format(time.RFC3339))
	case !held.IsZero():
		return fmt.Sprintf("An attempt to remove it for reason %s came to nothing; the next one waits until %s", reason, held.UTC().Format(time.RFC3339))
	default:
		return ""
	}
}

// underutilizable is why the candidate may not be removed for lack of use.
func (p *pass) underutilizable(c *Candidate) string {
	switch {
	case c.Type == nil:
		return fmt.Sprintf("Instance Type %q not found", c.Node.Claim.InstanceType)
	case c.Node.Labels[karpv1.CapacityTypeLabelKey] == "":
		return fmt.Sprintf("Node does not have label %q", karpv1.CapacityTypeLabelKey)
	case c.Node.Labels[corev1.LabelTopologyZone] == "":
		return fmt.Sprintf("Node does not have label %q", corev1.LabelTopologyZone)
	}
	if why := p.unconsolidatable(c, ReasonUnderutilized); why != "" {
		return why
	}
	if c.NodePool.Spec.Disruption.ConsolidationPolicy == karpv1.ConsolidationPolicyWhenEmpty {
		return fmt.Sprintf("NodePool %q has consolidation policy WhenEmpty, but node is not empty", c.NodePool.Name)
	}
	return ""
}
