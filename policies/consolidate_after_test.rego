package reeve.spec.consolidate_after_test

import data.reeve.spec.consolidate_after

judge(after, settings) := found if {
	pools := {"default": {"spec": {"disruption": {"consolidateAfter": after}}}, "static": {"spec": {"replicas": 2}}}
	found := consolidate_after.deny with input as {"fleet": {"nodePools": pools}}
		with data.policy.coolDown as object.union({"enabled": true, "consolidateAfter": "5m"}, settings)
}

test_a_nodepool_that_is_consolidated_too_soon_is_refused if {
	judge("30s", {}) == {{
		"msg": `nodes of NodePool "default" are consolidated after 30s, sooner than the 5m asked for`,
		"resource": "NodePool/default",
		"path": ["nodePools", "default", "spec", "disruption", "consolidateAfter"],
	}}
}

test_waiting_long_enough_passes if {
	count(judge("5m", {})) == 0
	count(judge("1h", {})) == 0
	count(judge("Never", {})) == 0
}

test_it_is_off_unless_switched_on if {
	count(judge("0s", {"enabled": false})) == 0
	found := consolidate_after.deny with input as {"fleet": {"nodePools": {"default": {"spec": {"disruption": {"consolidateAfter": "0s"}}}}}}
		with data.policy as {"coolDown": {"enabled": true, "minutes": 5}}
	count(found) == 0
}
