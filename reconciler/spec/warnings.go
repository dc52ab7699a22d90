package spec

import (
	"fmt"

	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// warnFleet says what of a fleet is allowed and likely a mistake.
func warnFleet(root node, add adder) {
	for _, p := range root.get("nodePools").fields() {
		warnNodePool(p, add)
	}
}

func warnNodePool(p node, add adder) {
	budgets := p.get("spec", "disruption", "budgets")
	warnBudgets(budgets, add)
	warnSizes(budgets, add)
	for _, r := range p.get("spec", "template", "spec", "requirements").items() {
		warnValues(r, add)
	}
}

// warnValues says which values of a requirement cannot do what they seem to: the
// CRD counts them as they stand, the controller counts different ones, and of
// those that it knows all values of it leaves out the others.
func warnValues(r node, add adder) {
	if r.get("operator").str() != "In" {
		return
	}
	least, _ := r.get("minValues").integer()
	if n := distinctValues(r); int64(n) < least {
		add(r.at("minValues"), fmt.Sprintf("minValues is %d but only %d of the values are different, so no node can be made", least, n),
			"name as many different values, or lower minValues")
	}
	known, ok := karpv1.WellKnownValuesForRequirements[label(r)]
	if !ok {
		return
	}
	for _, v := range r.get("values").items() {
		if !known.Has(v.str()) {
			add(v.path, fmt.Sprintf("%q is no value of %s and is left out", v.str(), label(r)), "it takes "+enumerate(known))
		}
	}
}

// distinctValues is how many different values a requirement names.
func distinctValues(r node) int {
	seen := map[string]bool{}
	for _, v := range r.get("values").items() {
		seen[v.str()] = true
	}
	return len(seen)
}
