# METADATA
# title: Limits of NodePools
# description: |
#   Asks every NodePool for limits, so that a runaway workload cannot buy nodes
#   without end. Off unless data.policy.nodePoolLimits.enabled is true.
# schemas:
#   - input: schema.spec
package reeve.spec.nodepool_limits

settings := data.policy.nodePoolLimits

default resources := ["cpu"]

resources := settings.resources

# METADATA
# title: The NodePool has no limit
# description: |
#   Each resource of data.policy.nodePoolLimits.resources ("cpu" unless set)
#   needs a limit. A NodePool with replicas is limited by them.
# custom:
#   id: REEVE-LIMIT-001
#   severity: error
#   remediation: "Set spec.limits of the NodePool, for example cpu: 1000."
deny contains finding if {
	settings.enabled == true
	some name, pool in input.fleet.nodePools
	not pool.spec.replicas
	some resource in resources
	not pool.spec.limits[resource]
	finding := {
		"msg": sprintf("NodePool %q has no limit of %s", [name, resource]),
		"resource": sprintf("NodePool/%s", [name]),
		"path": ["nodePools", name, "spec", "limits"],
	}
}
