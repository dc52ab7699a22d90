# METADATA
# title: Nodes of other controllers
# description: |
#   Leaves nodes alone that another controller manages, whatever a NodeClaim says
#   of them. Off unless data.policy.coexistence.enabled is true.
# schemas:
#   - input: schema.decision
package reeve.decision.foreign_nodes

import data.reeve.spec.coexistence

# METADATA
# title: The node belongs to another controller
# description: |
#   A node with a label of managed node groups, EKS Auto Mode, eksctl, kOps or one
#   of data.policy.coexistence.keys is neither removed nor replaced to save money
#   or because it has drifted or expired, and not adopted. What is already
#   happening to it is not held back.
# custom:
#   id: REEVE-COEX-004
#   severity: error
#   remediation: |
#     Find out whose node it is: remove its NodeClaim, or take the node out of the
#     other controller and the label off it.
deny contains finding if {
	coexistence.on
	input.kind in {"consolidate", "drift", "expire", "static", "adopt"}
	some removed in input.proposal.nodes
	some node in input.nodes
	node.name == removed.name
	keys := {key | some key, _ in node.labels; coexistence.controller(key)}
	count(keys) > 0
	key := min(keys)
	finding := {
		"msg": sprintf("%s says that it is a node of %s", [key, coexistence.controller(key)]),
		"resource": sprintf("Node/%s", [node.name]),
		"path": ["policy", "coexistence"],
	}
}
