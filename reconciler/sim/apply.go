package sim

import (
	"context"
	"fmt"
	"maps"

	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/fleet"
)

// Apply makes the NodePool and EC2NodeClass objects those of the fleet, one
// write for each that differs. Deleting a NodePool deletes its claims, as the
// garbage collector does it.
func (c *Cluster) Apply(ctx context.Context, f *fleet.Fleet) error {
	classes := func(to, from *ec2v1.EC2NodeClass) bool {
		changed := !equality.Semantic.DeepEqual(to.Spec, from.Spec)
		to.Spec = *from.Spec.DeepCopy()
		return changed
	}
	pools := func(to, from *karpv1.NodePool) bool {
		changed := !equality.Semantic.DeepEqual(to.Spec, from.Spec)
		to.Spec = *from.Spec.DeepCopy()
		return changed
	}
	// A NodePool never refers to a class that is not there yet, or no longer.
	if err := applyAll(ctx, c, f.NodeClasses, classes); err != nil {
		return err
	}
	if err := applyAll(ctx, c, f.NodePools, pools); err != nil {
		return err
	}
	if err := prune(ctx, c, f.NodePools); err != nil {
		return err
	}
	return prune(ctx, c, f.NodeClasses)
}

// applyAll creates what is missing and updates what differs. copySpec copies
// the spec and says whether it changed anything.
func applyAll[T Object](ctx context.Context, c *Cluster, want []T, copySpec func(to, from T) bool) error {
	for _, o := range want {
		key := KeyOf(o)
		err := c.write(ctx, "Apply", fmt.Sprintf("%s/%s", kindOf(o), key), func() error {
			have, err := Get[T](c.world.API, key)
			if isNotFound(err) {
				return c.world.API.Create(actorReeve, o)
			}
			trial := have.DeepCopyObject().(T)
			if !copySpec(trial, o) && maps.Equal(have.GetLabels(), o.GetLabels()) && maps.Equal(have.GetAnnotations(), o.GetAnnotations()) {
				return nil
			}
			return Update(c.world.API, actorReeve, key, "apply", func(to T) error {
				copySpec(to, o)
				to.SetLabels(o.GetLabels())
				to.SetAnnotations(o.GetAnnotations())
				to.SetGeneration(to.GetGeneration() + 1)
				return nil
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// prune deletes the objects of the kind that the fleet does not have.
func prune[T Object](ctx context.Context, c *Cluster, keep []T) error {
	wanted := map[string]bool{}
	for _, o := range keep {
		wanted[KeyOf(o)] = true
	}
	for _, o := range List[T](c.world.API) {
		key := KeyOf(o)
		if wanted[key] || o.GetDeletionTimestamp() != nil {
			continue
		}
		err := c.write(ctx, "Apply", fmt.Sprintf("%s/%s", kindOf(o), key), func() error {
			return gone(Delete[T](c.world.API, actorReeve, key, nil))
		})
		if err != nil {
			return err
		}
	}
	return nil
}
