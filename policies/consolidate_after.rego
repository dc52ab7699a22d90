# METADATA
# title: Cool-down in NodePools
# description: |
#   Keeps NodePools from being consolidated the moment something has moved. Off
#   unless data.policy.coolDown.enabled is true and it has a consolidateAfter.
# schemas:
#   - input: schema.spec
package reeve.spec.consolidate_after

settings := data.policy.coolDown

# METADATA
# title: The NodePool is consolidated too soon
# description: |
#   spec.disruption.consolidateAfter is at least
#   data.policy.coolDown.consolidateAfter, or "Never".
# custom:
#   id: REEVE-COOL-002
#   severity: error
#   remediation: Raise spec.disruption.consolidateAfter of the NodePool.
deny contains finding if {
	settings.enabled == true
	some name, pool in input.fleet.nodePools
	after := pool.spec.disruption.consolidateAfter
	after != "Never"
	time.parse_duration_ns(after) < time.parse_duration_ns(settings.consolidateAfter)
	finding := {
		"msg": sprintf("nodes of NodePool %q are consolidated after %s, sooner than the %s asked for", [name, after, settings.consolidateAfter]),
		"resource": sprintf("NodePool/%s", [name]),
		"path": ["nodePools", name, "spec", "disruption", "consolidateAfter"],
	}
}
