package reeve.offering.price_ceilings_test

import data.reeve.offering.price_ceilings

types := {
	"c5a.large": {"prices": {"on-demand": {"min": 0.086, "max": 0.086}, "spot": {"min": 0.03, "max": 0.03}}, "offerings": [
		{"zone": "a", "capacityType": "on-demand", "price": 0.086},
		{"zone": "a", "capacityType": "spot", "price": 0.03},
	]},
	"c5a.24xlarge": {"prices": {"on-demand": {"min": 4.128, "max": 4.128}, "spot": {"min": 1.5, "max": 2.2}}, "offerings": [
		{"zone": "a", "capacityType": "on-demand", "price": 4.128},
		{"zone": "a", "capacityType": "spot", "price": 1.5},
		{"zone": "b", "capacityType": "on-demand", "price": 4.128},
		{"zone": "b", "capacityType": "spot", "price": 2.2},
	]},
	"m5.24xlarge": {"prices": {"on-demand": {"min": 5.664, "max": 5.664}}, "offerings": [{"zone": "a", "capacityType": "on-demand", "price": 5.664}]},
}

judge(settings) := found if {
	found := price_ceilings.exclude with input as {"nodePool": {"metadata": {"name": "default"}}, "instanceTypes": types}
		with data.policy.priceCeilings as object.union({"enabled": true}, settings)
}

test_what_is_too_dear_is_excluded if {
	judge({"node": 2}) == {
		{
			"msg": "a node may cost $2/h at most", "instanceTypes": {"c5a.24xlarge", "m5.24xlarge"},
			"capacityType": "on-demand", "path": ["policy", "priceCeilings", "node"],
		},
		{
			"msg": "a node may cost $2/h at most", "instanceTypes": {"c5a.24xlarge"},
			"zone": "b", "capacityType": "spot", "path": ["policy", "priceCeilings", "node"],
		},
	}
}

test_the_ceiling_itself_is_allowed if {
	count(judge({"node": 5.664})) == 0
	count(judge({"node": 5.663})) == 1
}

test_a_nodepool_may_have_a_ceiling_of_its_own if {
	count(judge({"node": 2, "nodePools": {"default": {"node": 6}}})) == 0
	count(judge({"node": 2, "nodePools": {"gpu": {"node": 6}}})) == 2
	found := judge({"nodePools": {"default": {"node": 5}}})
	{f.path | some f in found} == {["policy", "priceCeilings", "nodePools", "default", "node"]}
}

test_without_a_ceiling_for_nodes_nothing_is_excluded if {
	count(judge({})) == 0
	count(judge({"nodePool": 10, "nodePools": {"default": {"nodePool": 5}}})) == 0
}

test_it_is_off_unless_switched_on if {
	count(judge({"enabled": false, "node": 0.001})) == 0
	found := price_ceilings.exclude with input as {"nodePool": {"metadata": {"name": "default"}}, "instanceTypes": types} with data.policy as {}
	count(found) == 0
}
