package reeve.decision.foreign_nodes_test

import data.reeve.decision.foreign_nodes

nodes := [
	{"name": "ip-1", "labels": {"eks.amazonaws.com/nodegroup": "ng-1", "alpha.eksctl.io/nodegroup-name": "ng-1"}},
	{"name": "ip-2", "labels": {"karpenter.sh/nodepool": "default"}},
	{"name": "ip-3", "labels": {"eks.amazonaws.com/nodegroup": "ng-2"}},
]

judge(kind, settings) := found if {
	proposal := {"nodes": [{"name": "ip-1"}, {"name": "ip-2"}]}
	found := foreign_nodes.deny with input as {"kind": kind, "nodes": nodes, "proposal": proposal}
		with data.policy.coexistence as object.union({"enabled": true}, settings)
}

test_nodes_of_other_controllers_stay if {
	judge("consolidate", {}) == {{
		"msg": "alpha.eksctl.io/nodegroup-name says that it is a node of eksctl",
		"resource": "Node/ip-1",
		"path": ["policy", "coexistence"],
	}}
}

test_more_keys_can_be_listed if {
	found := judge("drift", {"keys": ["karpenter.sh/nodepool"]})
	{f.resource | some f in found} == {"Node/ip-1", "Node/ip-2"}
}

test_what_is_already_happening_goes_on if {
	every kind in ["interrupt", "repair", "delete", "liveness"] {
		count(judge(kind, {})) == 0
	}
}

test_it_is_off_unless_switched_on if count(judge("consolidate", {"enabled": false})) == 0
