# METADATA
# title: Interruption queue
# description: |
#   Lets NodePools buy spot capacity only where Reeve hears of interruptions
#   before they happen. Off unless data.policy.interruptionQueue.enabled is true.
# schemas:
#   - input: schema.spec
package reeve.spec.interruption_queue

settings := data.policy.interruptionQueue

# METADATA
# title: Spot capacity without an interruption queue
# description: |
#   EC2 takes a spot instance back two minutes after a warning, which comes by the
#   queue that cluster.interruptionQueue names. Without one, pods learn of it when
#   their node is gone. A NodePool that says nothing of karpenter.sh/capacity-type
#   may buy spot capacity.
# custom:
#   id: REEVE-SPOT-001
#   severity: error
#   remediation: |
#     Set cluster.interruptionQueue, or take spot out of the NodePool's requirement
#     of karpenter.sh/capacity-type.
deny contains finding if {
	settings.enabled == true
	not input.fleet.cluster.interruptionQueue
	some name, pool in input.fleet.nodePools
	every requirement in requirements(pool) {
		lets_in(requirement, "spot")
	}
	finding := {
		"msg": sprintf("NodePool %q may buy spot capacity and there is no interruption queue", [name]),
		"resource": sprintf("NodePool/%s", [name]),
		"path": array.concat(["nodePools", name, "spec", "template", "spec", "requirements"], place(pool)),
	}
}

key := "karpenter.sh/capacity-type"

# What a NodePool says of capacity types: in requirements and in a label.
requirements(pool) := array.concat(
	[r | some r in pool.spec.template.spec.requirements; r.key == key],
	[{"operator": "In", "values": [value]} | value := pool.spec.template.metadata.labels[key]],
)

lets_in(requirement, value) if {
	requirement.operator == "In"
	value in requirement.values
}

lets_in(requirement, value) if {
	requirement.operator == "NotIn"
	not value in requirement.values
}

lets_in(requirement, _) if requirement.operator == "Exists"

# The requirement that names spot, if one does.
default place(_) := []

place(pool) := [format_int(min(found), 10)] if {
	found := {i | some i, r in pool.spec.template.spec.requirements; r.key == key}
	count(found) > 0
}
