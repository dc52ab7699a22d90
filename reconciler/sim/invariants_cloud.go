package sim

import (
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/port"
)

// launchKey is what the instances of a launch group have in common: the values
// of their tags.
type launchKey struct{ decision, group string }

func keyOfTags(tags map[string]string) launchKey {
	return launchKey{tags[cluster.DecisionAnnotation], tags[port.GroupTag]}
}

// ask remembers for which claims instances were asked for.
func (i *Invariants) ask(req port.LaunchRequest) {
	key := keyOfTags(req.Tags)
	if i.asked[key] == nil {
		i.asked[key] = map[string]bool{}
	}
	for _, name := range req.Claims {
		i.asked[key][name] = true
	}
}

// checkInstances: an instance belongs to a claim, or is young, or is being
// reclaimed; and no claim has two. owner is the claim that names an instance,
// by provider id. Which claim the others are for nobody can say: there must be
// as many claims of their decision that wait. It gives the provider ids of those
// that have a claim or may have.
func (i *Invariants) checkInstances(owner map[string]string) map[string]bool {
	free, claimed := i.claimsWithoutInstance(), map[string]bool{}
	for id := range owner {
		claimed[id] = true
	}
	alive := map[launchKey]int{}
	for _, in := range i.cloud.list() {
		if in.State == stateShuttingDown {
			continue
		}
		key := keyOfTags(in.Tags)
		alive[key]++
		if want := len(i.asked[key]); alive[key] > want && want > 0 {
			i.add("launched-twice", "%d instances run for the %d claims of decision %q, group %q", alive[key], want, key.decision, key.group)
		}
		if owner[in.ProviderID] != "" {
			continue
		}
		if free[in.Decision] > 0 {
			free[in.Decision]--
			claimed[in.ProviderID] = true
			continue
		}
		if i.world.Clock.Since(in.Launched) > i.OrphanGrace && !i.removing(in.ID) {
			i.add("orphan", "instance %s of decision %q runs and no NodeClaim names it", in.ID, in.Decision)
		}
	}
	return claimed
}

// claimsWithoutInstance counts by decision the claims that name no instance.
func (i *Invariants) claimsWithoutInstance() map[string]int {
	out := map[string]int{}
	for _, nc := range List[*karpv1.NodeClaim](i.world.API) {
		if nc.Status.ProviderID == "" && nc.DeletionTimestamp == nil {
			out[nc.Annotations[cluster.DecisionAnnotation]]++
		}
	}
	return out
}

// removing says whether an open decision removes the subject.
func (i *Invariants) removing(subject string) bool {
	return i.Removing != nil && i.Removing()[subject]
}
