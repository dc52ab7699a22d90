# METADATA
# title: Nodes of the controller
# description: |
#   Keeps NodePools from making nodes that the controller's own node selector
#   would choose. Off unless data.policy.controllerPlacement has nodeLabels.
# schemas:
#   - input: schema.spec
package reeve.spec.controller_nodes

settings := data.policy.controllerPlacement

# METADATA
# title: The NodePool makes nodes that look like the controller's
# description: |
#   data.policy.controllerPlacement.nodeLabels are the labels by which the
#   controller's pods choose their node, such as those of a managed node group.
#   No NodePool gives its nodes all of them.
# custom:
#   id: REEVE-CTRL-003
#   severity: error
#   remediation: |
#     Take the labels out of spec.template.metadata.labels of the NodePool, or
#     give the controller a node selector of its own.
deny contains finding if {
	settings.enabled == true
	count(settings.nodeLabels) > 0
	some name, pool in input.fleet.nodePools
	found := object.get(pool.spec, ["template", "metadata", "labels"], {})
	every key, value in settings.nodeLabels {
		found[key] == value
	}
	key := min(object.keys(settings.nodeLabels))
	finding := {
		"msg": sprintf("nodes of NodePool %q have the labels by which the controller chooses its node, such as %s", [name, key]),
		"resource": sprintf("NodePool/%s", [name]),
		"path": ["nodePools", name, "spec", "template", "metadata", "labels", key],
	}
}
