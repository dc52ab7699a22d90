# METADATA
# title: Change freeze of specs
# description: |
#   Refuses commits that change NodePools and EC2NodeClasses during a change
#   freeze. Off unless data.policy.freeze.enabled is true and its kinds name
#   "accept".
# schemas:
#   - input: schema.spec
package reeve.spec.change_freeze

import data.reeve.decision.change_freeze

# METADATA
# title: The specs change during a change freeze
# description: |
#   Holds for NodePools and EC2NodeClasses that a commit adds, changes or
#   removes. Settings, policy data and exceptions may change: that is how a
#   freeze ends early.
# custom:
#   id: REEVE-FREEZE-002
#   severity: error
#   remediation: |
#     Wait for the end of the freeze, or give the object an exception in a
#     commit before this one.
deny contains finding if {
	change_freeze.settings.enabled == true
	"accept" in change_freeze.kinds
	input.previous != null
	not change_freeze.over
	some change in input.diff.resources
	kind := fields[split(change.resource, "/")[0]]
	finding := {
		"msg": sprintf("specs are frozen until %s%s", [change_freeze.until, change_freeze.reason]),
		"resource": change.resource,
		"path": [kind, split(change.resource, "/")[1]],
	}
}

fields := {"NodePool": "nodePools", "EC2NodeClass": "nodeClasses"}
