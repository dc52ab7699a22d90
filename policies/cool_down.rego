# METADATA
# title: Cool-down
# description: |
#   Leaves a NodePool alone for a while after it was given nodes, so that what
#   comes in bursts finds the nodes of the last one. Off unless
#   data.policy.coolDown.enabled is true.
# schemas:
#   - input: schema.decision
package reeve.decision.cool_down

settings := data.policy.coolDown

# METADATA
# title: The NodePool was given nodes a moment ago
# description: |
#   Nodes of a NodePool are not consolidated for data.policy.coolDown.minutes
#   after a decision to give it nodes, at most 60. Empty nodes stay too: they
#   are what the next burst needs.
# custom:
#   id: REEVE-COOL-001
#   severity: error
#   remediation: Nothing has to be done; it is proposed again. Lower data.policy.coolDown.minutes to wait less.
deny contains finding if {
	settings.enabled == true
	input.kind == "consolidate"
	some node in input.proposal.nodes
	given := latest[node.nodePool]
	end := time.parse_rfc3339_ns(given) + ((settings.minutes * 60) * 1000000000)
	time.parse_rfc3339_ns(input.now) < end
	finding := {
		"msg": sprintf("NodePool %q was given nodes at %s and is left alone for %d minutes", [node.nodePool, given, settings.minutes]),
		"resource": named(node),
		"path": ["policy", "coolDown"],
	}
}

# latest is when each NodePool was last given nodes. Times in UTC are in order
# as texts.
latest[pool] := max(times) if {
	some pool in {node.nodePool | some node in input.proposal.nodes}
	times := {recent.time |
		some recent in input.recent
		recent.kind in {"provision", "static"}
		recent.allowed
		recent.nodePool == pool
	}
	count(times) > 0
}

named(node) := sprintf("Node/%s", [node.name]) if node.name

named(node) := sprintf("NodeClaim/%s", [node.claim]) if not node.name
