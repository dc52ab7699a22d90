# METADATA
# title: Time windows of commits
# description: |
#   Takes commits that change NodePools and EC2NodeClasses in the time windows
#   only, since such a change may replace nodes. Off unless
#   data.policy.windows.enabled is true and its kinds name "accept".
# schemas:
#   - input: schema.spec
package reeve.spec.time_windows

import data.reeve.decision.time_windows

# METADATA
# title: The specs change outside of the time windows
# description: |
#   Holds for NodePools and EC2NodeClasses that a commit adds, changes or
#   removes. Settings, policy data and exceptions may change at any time.
# custom:
#   id: REEVE-WINDOW-002
#   severity: error
#   remediation: |
#     Merge in the next window, or give the object an exception in a commit
#     before this one.
deny contains finding if {
	"accept" in time_windows.kinds
	input.previous != null
	time_windows.closed("accept", input.now)
	some change in input.diff.resources
	kind := fields[split(change.resource, "/")[0]]
	finding := {
		"msg": sprintf("specs change in the time windows only: %s", [time_windows.shown("accept")]),
		"resource": change.resource,
		"path": [kind, split(change.resource, "/")[1]],
	}
}

fields := {"NodePool": "nodePools", "EC2NodeClass": "nodeClasses"}
