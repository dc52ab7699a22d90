package spec

import (
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// checkNodeClaim applies the rules of NodeClaims, which are those of a
// NodePool's template but for one: a claim names its pool.
func checkNodeClaim(c node, add adder) {
	spec := c.get("spec")
	checkDuration(spec.get("expireAfter"), add)
	checkDuration(spec.get("terminationGracePeriod"), add)
	checkTaints(spec, add)
	for _, l := range spec.get("resources", "requests").fields() {
		checkQuantity(l, add)
	}
	for _, r := range spec.get("requirements").items() {
		if r.get("key").str() != karpv1.NodePoolLabelKey {
			checkKey(r, add)
		}
		checkValues(r, add)
	}
}
