package policy

import (
	"github.com/reeve-project/reeve/reconciler/decision"
)

// Diff is what differs between two fleets and the policies that judge them.
type Diff struct {
	// Resources are the objects and settings that differ: "NodePool/default"
	// with the fields below it.
	Resources []decision.Change `json:"resources"`
	// Policies are the rules, data and exceptions that differ.
	Policies []PolicyChange `json:"policies"`
}

// PolicyChange is a difference of policies.
type PolicyChange struct {
	decision.Change
	// Loosened says that what was a violation before may pass now.
	Loosened bool `json:"loosened"`
}
