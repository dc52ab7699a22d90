# METADATA
# title: Controller placement
# description: |
#   Keeps Reeve's controller off the nodes that it manages: a controller that
#   removes the node it runs on stops in the middle of what it does.
#   Settings: data.policy.controllerPlacement.
# schemas:
#   - input: schema.decision
package reeve.decision.controller_placement

settings := data.policy.controllerPlacement

on if settings.enabled == true

default namespace := "kube-system"

namespace := settings.namespace

default labels := {"app.kubernetes.io/name": "reeve"}

labels := settings.labels

# METADATA
# title: No node is made for the controller's own pods
# description: |
#   The controller runs on nodes that it does not manage, such as a managed node
#   group or Fargate. A node made for it would have to be removed by itself.
# custom:
#   id: REEVE-CTRL-001
#   severity: error
#   remediation: |
#     Give the controller a node selector or affinity for nodes that Reeve does
#     not manage, and room there.
deny contains finding if {
	on
	input.kind in {"provision", "static"}
	some claim in input.proposal.claims
	some group in claim.pods
	is_controller(group)
	some name in group.names
	finding := {
		"msg": sprintf("NodePool %q would make a node for the controller's own pod", [claim.nodePool]),
		"resource": sprintf("Pod/%s/%s", [group.namespace, name]),
		"path": ["policy", "controllerPlacement"],
	}
}

# METADATA
# title: The node that the controller runs on is not removed
# description: |
#   Holds for what can wait: consolidation, drift, expiry and static scale-down.
#   An interruption or a deletion by a person takes the node anyway, and a node
#   under repair runs nothing any more.
# custom:
#   id: REEVE-CTRL-002
#   severity: error
#   remediation: |
#     Move the controller to a node that Reeve does not manage; the node is then
#     free to go.
deny contains finding if {
	on
	input.kind in {"consolidate", "drift", "expire", "static"}
	some node in input.proposal.nodes
	runs_controller(node)
	finding := {
		"msg": "the controller runs on this node",
		"resource": sprintf("Node/%s", [node.name]),
		"path": ["policy", "controllerPlacement"],
	}
}

runs_controller(node) if {
	some group in node.pods
	is_controller(group)
}

runs_controller(node) if {
	node.name != ""
	node.name == input.controller.node
}

is_controller(group) if {
	group.namespace == namespace
	found := input.shapes[group.shape].labels
	every key, value in labels {
		found[key] == value
	}
}
