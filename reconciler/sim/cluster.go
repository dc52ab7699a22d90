package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/lifecycle"
	"github.com/reeve-project/reeve/reconciler/port"
)

// Cluster is the World's API server as a port.Cluster.
type Cluster struct {
	world *World
	// onCreate is told of every claim right before it is created, onEvict of
	// every pod right after its eviction, as it was before, onDelete of every
	// pod right before it is deleted past its budgets.
	onCreate []func(*karpv1.NodeClaim)
	onEvict  []func(*corev1.Pod)
	onDelete []func(*corev1.Pod, time.Duration)
}

var _ port.Cluster = (*Cluster)(nil)

// NewCluster is the port to the cluster of the world.
func NewCluster(w *World) *Cluster { return &Cluster{world: w} }

// write does a call of the port, with the API's errors turned into the port's.
func (c *Cluster) write(ctx context.Context, op, subject string, do func() error) error {
	return c.world.call(ctx, "cluster", op, subject, func() error { return translate(op, subject, do()) })
}

// translate makes of the API's error what the pipeline understands.
func translate(op, subject string, err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%s %s: %w", op, subject, port.ErrNotFound)
	case apierrors.IsTooManyRequests(err):
		return fmt.Errorf("%s %s: %w: %v", op, subject, port.ErrBlocked, err)
	default:
		return fmt.Errorf("%s %s: %w", op, subject, err)
	}
}

// gone makes success of an object that is not there.
func gone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// Snapshot reads nodes, claims, pods and daemonsets.
func (c *Cluster) Snapshot(ctx context.Context) (*cluster.Snapshot, error) {
	var out *cluster.Snapshot
	err := c.write(ctx, "Snapshot", "", func() error {
		out = c.world.snapshot()
		return nil
	})
	return out, err
}

// CreateClaim creates the NodeClaim with Karpenter's finalizer and conditions,
// owned by its NodePool object, which has to be there.
// The claim of another decision under the same name is a terminal error.
func (c *Cluster) CreateClaim(ctx context.Context, claim *karpv1.NodeClaim) error {
	return c.write(ctx, "CreateClaim", claim.Name, func() error {
		a := c.world.API
		have, err := Get[*karpv1.NodeClaim](a, claim.Name)
		switch {
		case err == nil && sameOrigin(have, claim):
			return nil
		case err == nil:
			return port.Terminal(fmt.Errorf("another decision made a NodeClaim of that name: %q", have.Annotations[cluster.DecisionAnnotation]))
		}
		pool, err := Get[*karpv1.NodePool](a, claim.Labels[karpv1.NodePoolLabelKey])
		if err != nil {
			return fmt.Errorf("the claim's label %s: %w", karpv1.NodePoolLabelKey, err)
		}
		for _, f := range c.onCreate {
			f(claim)
		}
		nc := claim.DeepCopy()
		nc.OwnerReferences = []metav1.OwnerReference{{APIVersion: "karpenter.sh/v1", Kind: string(KindNodePool), Name: pool.Name, UID: pool.UID, BlockOwnerDeletion: new(true)}}
		if !slices.Contains(nc.Finalizers, karpv1.TerminationFinalizer) {
			nc.Finalizers = append(nc.Finalizers, karpv1.TerminationFinalizer)
		}
		for _, kind := range []string{karpv1.ConditionTypeLaunched, karpv1.ConditionTypeRegistered, karpv1.ConditionTypeInitialized} {
			lifecycle.SetCondition(nc, kind, metav1.ConditionUnknown, "AwaitingReconciliation", "", a.stamp().Time)
		}
		return a.Create(actorReeve, nc)
	})
}

func sameOrigin(a, b *karpv1.NodeClaim) bool {
	return a.Annotations[cluster.DecisionAnnotation] == b.Annotations[cluster.DecisionAnnotation] &&
		a.Annotations[cluster.IndexAnnotation] == b.Annotations[cluster.IndexAnnotation]
}

// MarkLaunched writes what was launched into the claim: status, labels (the
// claim's own win) and price. A claim that has another instance already is a
// terminal error.
func (c *Cluster) MarkLaunched(ctx context.Context, claim string, in port.Instance) error {
	return c.write(ctx, "MarkLaunched", claim, func() error {
		have, err := Get[*karpv1.NodeClaim](c.world.API, claim)
		if err != nil {
			return err
		}
		if id := have.Status.ProviderID; id != "" {
			if id == in.ProviderID {
				return nil
			}
			return port.Terminal(fmt.Errorf("the claim has instance %s already and cannot have %s too", id, in.ProviderID))
		}
		return Update(c.world.API, actorReeve, claim, "launched", func(nc *karpv1.NodeClaim) error {
			own := nc.Labels
			nc.Labels = maps.Clone(in.Labels)
			if nc.Labels == nil {
				nc.Labels = map[string]string{}
			}
			maps.Copy(nc.Labels, own)
			nc.Annotations = with(nc.Annotations, lifecycle.PriceAnnotation, in.Price.Decimal())
			nc.Status.ProviderID, nc.Status.ImageID = in.ProviderID, in.ImageID
			nc.Status.Capacity, nc.Status.Allocatable = in.Capacity.Kubernetes(), in.Allocatable.Kubernetes()
			lifecycle.SetCondition(nc, karpv1.ConditionTypeLaunched, metav1.ConditionTrue, "", "", c.world.API.stamp().Time)
			return nil
		})
	})
}

// MarkLaunchFailed sets Launched to False with the reason. A claim that has an
// instance is a terminal error.
func (c *Cluster) MarkLaunchFailed(ctx context.Context, claim, reason, message string) error {
	return c.write(ctx, "MarkLaunchFailed", claim, func() error {
		return Update(c.world.API, actorReeve, claim, "launch failed", func(nc *karpv1.NodeClaim) error {
			if nc.Status.ProviderID != "" {
				return port.Terminal(fmt.Errorf("the claim has instance %s", nc.Status.ProviderID))
			}
			lifecycle.SetCondition(nc, karpv1.ConditionTypeLaunched, metav1.ConditionFalse, reason, message, c.world.API.stamp().Time)
			return nil
		})
	})
}

// pair is the claim and its node. The node has to be the claim's.
func (c *Cluster) pair(claim, node string) (*karpv1.NodeClaim, *corev1.Node, error) {
	nc, err := Get[*karpv1.NodeClaim](c.world.API, claim)
	if err != nil {
		return nil, nil, err
	}
	n, err := Get[*corev1.Node](c.world.API, node)
	if err != nil {
		return nil, nil, err
	}
	if n.Spec.ProviderID != nc.Status.ProviderID || n.Spec.ProviderID == "" {
		return nil, nil, port.Terminal(fmt.Errorf("node %s runs on %q and the claim's instance is %q", node, n.Spec.ProviderID, nc.Status.ProviderID))
	}
	return nc, n, nil
}

// Register gives the node what the claim says, and the claim the condition.
func (c *Cluster) Register(ctx context.Context, claim, node string) error {
	return c.pairWrite(ctx, "Register", claim, node, karpv1.ConditionTypeRegistered, lifecycle.SyncRegistered)
}

// Initialize labels the node and gives the claim the condition.
func (c *Cluster) Initialize(ctx context.Context, claim, node string) error {
	return c.pairWrite(ctx, "Initialize", claim, node, karpv1.ConditionTypeInitialized, func(n *corev1.Node, _ *karpv1.NodeClaim) { lifecycle.SyncInitialized(n) })
}

// pairWrite edits the node and then the condition of the claim: two writes,
// between which a controller can die.
func (c *Cluster) pairWrite(ctx context.Context, op, claim, node, condition string, edit func(*corev1.Node, *karpv1.NodeClaim)) error {
	err := c.write(ctx, op, claim, func() error {
		nc, _, err := c.pair(claim, node)
		if err != nil {
			return err
		}
		return Update(c.world.API, actorReeve, node, op, func(n *corev1.Node) error { edit(n, nc); return nil })
	})
	if err != nil {
		return err
	}
	return c.write(ctx, op+"/claim", claim, func() error {
		return Update(c.world.API, actorReeve, claim, op, func(nc *karpv1.NodeClaim) error {
			nc.Status.NodeName = node
			lifecycle.SetCondition(nc, condition, metav1.ConditionTrue, "", "", c.world.API.stamp().Time)
			return nil
		})
	})
}

// DeleteClaim deletes the NodeClaim; its finalizer keeps it until Finalize.
func (c *Cluster) DeleteClaim(ctx context.Context, claim string) error {
	return c.write(ctx, "DeleteClaim", claim, func() error {
		return gone(Delete[*karpv1.NodeClaim](c.world.API, actorReeve, claim, nil))
	})
}

// Finalize deletes the claim's node, and lets both go. The claim has to be
// deleted already: letting go of a live one would leak its instance.
func (c *Cluster) Finalize(ctx context.Context, claim string) error {
	nc, err := Get[*karpv1.NodeClaim](c.world.API, claim)
	if err == nil && nc.DeletionTimestamp == nil {
		return port.Terminal(fmt.Errorf("Finalize %s: the claim is not being deleted", claim))
	}
	err = c.write(ctx, "Finalize", claim, func() error {
		if err != nil {
			return gone(err)
		}
		for _, n := range List[*corev1.Node](c.world.API) {
			if n.Spec.ProviderID == "" || n.Spec.ProviderID != nc.Status.ProviderID {
				continue
			}
			if err := c.letGoOfNode(n); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || nc == nil {
		return err
	}
	return c.write(ctx, "Finalize/claim", claim, func() error {
		return gone(Update(c.world.API, actorReeve, claim, "finalize", func(nc *karpv1.NodeClaim) error {
			nc.Finalizers = without(nc.Finalizers)
			return nil
		}))
	})
}

func (c *Cluster) letGoOfNode(n *corev1.Node) error {
	if err := gone(Delete[*corev1.Node](c.world.API, actorReeve, n.Name, nil)); err != nil {
		return err
	}
	return gone(Update(c.world.API, actorReeve, n.Name, "finalize", func(n *corev1.Node) error {
		n.Finalizers = without(n.Finalizers)
		return nil
	}))
}

func without(finalizers []string) []string {
	return slices.DeleteFunc(finalizers, func(f string) bool { return f == karpv1.TerminationFinalizer })
}

// Taint adds the taint to the node unless one with its key and effect is there.
func (c *Cluster) Taint(ctx context.Context, node string, taint corev1.Taint) error {
	return c.retaint(ctx, "Taint", node, taint, true, setTaint)
}

// Untaint removes the taint with that key and effect.
func (c *Cluster) Untaint(ctx context.Context, node string, taint corev1.Taint) error {
	return c.retaint(ctx, "Untaint", node, taint, false, removeTaint)
}

func (c *Cluster) retaint(ctx context.Context, op, node string, taint corev1.Taint, want bool, edit func(*corev1.Node, corev1.Taint)) error {
	return c.write(ctx, op, node, func() error {
		n, err := Get[*corev1.Node](c.world.API, node)
		if err != nil || hasTaint(n, taint) == want {
			return err
		}
		return Update(c.world.API, actorReeve, node, op+" "+taint.ToString(), func(n *corev1.Node) error { edit(n, taint); return nil })
	})
}

// Label sets a label of the node.
func (c *Cluster) Label(ctx context.Context, node, key, value string) error {
	return c.write(ctx, "Label", node, func() error {
		n, err := Get[*corev1.Node](c.world.API, node)
		if err != nil || n.Labels[key] == value {
			return err
		}
		return Update(c.world.API, actorReeve, node, "label "+key, func(n *corev1.Node) error { n.Labels = with(n.Labels, key, value); return nil })
	})
}

// SetCondition sets a condition of the claim. One that it has is not written
// again.
func (c *Cluster) SetCondition(ctx context.Context, claim string, cond port.Condition) error {
	return c.write(ctx, "SetCondition", claim, func() error {
		have, err := Get[*karpv1.NodeClaim](c.world.API, claim)
		if err != nil {
			return err
		}
		status := metav1.ConditionFalse
		if cond.True {
			status = metav1.ConditionTrue
		}
		for _, o := range have.Status.Conditions {
			if o.Type == cond.Type && o.Status == status && o.Reason == cmp.Or(cond.Reason, cond.Type) && o.Message == cond.Message {
				return nil
			}
		}
		return Update(c.world.API, actorReeve, claim, cond.Type, func(nc *karpv1.NodeClaim) error {
			lifecycle.SetCondition(nc, cond.Type, status, cond.Reason, cond.Message, c.world.API.stamp().Time)
			return nil
		})
	})
}

// DeletePod deletes the pod past its budgets, with so much grace.
func (c *Cluster) DeletePod(ctx context.Context, pod *cluster.Pod, grace time.Duration) error {
	return c.write(ctx, "DeletePod", pod.Key(), func() error {
		have, err := Get[*corev1.Pod](c.world.API, pod.Key())
		if err != nil || string(have.UID) != pod.UID {
			return gone(err)
		}
		for _, f := range c.onDelete {
			f(have, grace)
		}
		return gone(Delete[*corev1.Pod](c.world.API, actorReeve, pod.Key(), new(int64(grace.Seconds()))))
	})
}

// Pods are the pods on the node that have not ended, sorted by key.
func (c *Cluster) Pods(ctx context.Context, node string) ([]*cluster.Pod, error) {
	var out []*cluster.Pod
	err := c.write(ctx, "Pods", node, func() error {
		sets := c.world.daemonSets()
		for _, p := range List[*corev1.Pod](c.world.API) {
			if p.Spec.NodeName == node && !terminal(p) {
				out = append(out, podValue(p, sets))
			}
		}
		return nil
	})
	return out, err
}

// Evict asks for the eviction of the pod. One that is gone, or whose name
// another pod has by now, is success.
func (c *Cluster) Evict(ctx context.Context, pod *cluster.Pod) error {
	return c.write(ctx, "Evict", pod.Key(), func() error {
		have, err := Get[*corev1.Pod](c.world.API, pod.Key())
		if err != nil || string(have.UID) != pod.UID {
			return gone(err)
		}
		err = c.world.evict(actorReeve, pod.Key())
		if apierrors.IsInternalError(err) {
			// Not now, and not before somebody mends the budgets.
			return errors.Join(port.ErrBlocked, err)
		}
		if err == nil && have.DeletionTimestamp == nil {
			for _, f := range c.onEvict {
				f(have)
			}
		}
		return err
	})
}

// Event records the event; see API.Events.
func (c *Cluster) Event(_ context.Context, resource string, warning bool, reason, message string) {
	c.world.API.record(resource, warning, reason, message)
}
