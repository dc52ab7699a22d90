package reeve.decision.spend_ceilings_test

import data.reeve.decision.spend_ceilings

claims := [
	{"index": 0, "nodePool": "default", "price": 0.344},
	{"index": 1, "nodePool": "default", "price": 0.172},
	{"index": 2, "nodePool": "default", "price": 0.086},
]

costs := {"fleet": 1.1, "nodePools": {"default": 0.7, "gpu": 0.4}}

judge(kind, settings) := found if {
	found := spend_ceilings.deny with input as {"kind": kind, "proposal": {"claims": claims}, "costs": costs}
		with data.policy.priceCeilings as object.union({"enabled": true}, settings)
}

resources(found) := {f.resource | some f in found}

test_nodes_are_made_as_long_as_they_fit_the_nodepool if {
	# 0.7 + 0.344 + 0.172 is 1.216.
	found := judge("provision", {"nodePool": 1.216})
	found == {{
		"msg": `NodePool "default" costs $0.7/h and may cost $1.216/h: there is no room for a node of $0.086/h`,
		"resource": "NodeClaim/2",
		"path": ["policy", "priceCeilings", "nodePool"],
	}}
	resources(judge("provision", {"nodePool": 1.215})) == {"NodeClaim/1", "NodeClaim/2"}
	resources(judge("provision", {"nodePool": 1.302})) == set()
}

test_nodes_are_made_as_long_as_they_fit_the_fleet if {
	found := judge("static", {"fleet": 1.616})
	found == {{
		"msg": "the fleet costs $1.1/h and may cost $1.616/h: there is no room for a node of $0.086/h",
		"resource": "NodeClaim/2",
		"path": ["policy", "priceCeilings", "fleet"],
	}}
	resources(judge("static", {"fleet": 1.615})) == {"NodeClaim/1", "NodeClaim/2"}
	resources(judge("static", {"fleet": 1.702})) == set()
}

test_a_nodepool_may_have_a_ceiling_of_its_own if {
	count(judge("provision", {"nodePool": 0.1, "nodePools": {"default": {"nodePool": 2}}})) == 0
	found := judge("provision", {"nodePools": {"default": {"nodePool": 1}}})
	{f.path | some f in found} == {["policy", "priceCeilings", "nodePools", "default", "nodePool"]}
	count(found) == 3
	count(judge("provision", {"nodePool": 0.1, "nodePools": {"default": {"node": 2}}})) == 3
}

test_a_nodepool_without_nodes_costs_nothing if {
	found := spend_ceilings.deny with input as {
		"kind": "provision", "proposal": {"claims": [{"index": 0, "nodePool": "new", "price": 0.3}]}, "costs": costs,
	}
		with data.policy.priceCeilings as {"enabled": true, "nodePool": 0.2}
	{f.msg | some f in found} == {`NodePool "new" costs $0/h and may cost $0.2/h: there is no room for a node of $0.3/h`}
}

test_replacements_are_made_whatever_they_cost if {
	every kind in ["consolidate", "drift", "expire", "interrupt", "repair"] {
		count(judge(kind, {"nodePool": 0.1, "fleet": 0.1})) == 0
	}
}

test_it_is_off_unless_switched_on if {
	count(judge("provision", {"enabled": false, "nodePool": 0.1, "fleet": 0.1})) == 0
	count(judge("provision", {})) == 0
	found := spend_ceilings.deny with input as {"kind": "provision", "proposal": {"claims": claims}, "costs": costs} with data.policy as {}
	count(found) == 0
}
