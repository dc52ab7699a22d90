package reeve.spec.policy_guard_test

import data.reeve.spec.policy_guard

judge(changes, settings) := found if {
	found := policy_guard.deny with input as {"diff": {"policies": changes}} with data.policy.guard as settings
}

on := {"enabled": true}

test_data_that_is_loosened_is_refused_at_its_place if {
	judge([{"op": "change", "resource": "Policy/amiPinning", "fields": ["environments", "maxAgeDays"], "loosened": true}], on) == {{
		"msg": "changes Policy/amiPinning (environments, maxAgeDays), which may let pass what was refused",
		"resource": "Policy/amiPinning",
		"path": ["policy", "amiPinning", "environments"],
	}}
}

test_a_member_of_a_member_is_found_by_the_first if {
	found := judge([{"op": "change", "resource": "Policy/priceCeilings", "fields": ["nodePools.gpu.node"], "loosened": true}], on)
	{f.path | some f in found} == {["policy", "priceCeilings", "nodePools"]}
}

test_what_is_removed_points_to_the_guard if {
	judge([{"op": "remove", "resource": "Rule/ACME-1", "loosened": true}, {"op": "remove", "resource": "Policy/freeze", "loosened": true}], on) == {
		{"msg": "removes Rule/ACME-1, which may let pass what was refused", "resource": "Rule/ACME-1", "path": ["policy", "guard"]},
		{"msg": "removes Policy/freeze, which may let pass what was refused", "resource": "Policy/freeze", "path": ["policy", "guard"]},
	}
}

test_kinds_that_go_ahead_without_a_verdict_are_guarded if {
	judge([{"op": "change", "resource": "Judge/failOpen", "loosened": true}], on) == {{
		"msg": "changes Judge/failOpen, which may let pass what was refused",
		"resource": "Judge/failOpen",
		"path": ["cluster", "judge", "failOpen"],
	}}
}

test_the_environment_is_guarded if {
	judge([{"op": "change", "resource": "Judge/environment", "loosened": true}], on) == {{
		"msg": "changes Judge/environment, which may let pass what was refused",
		"resource": "Judge/environment",
		"path": ["cluster", "environment"],
	}}
}

test_what_is_no_looser_passes if {
	count(judge([{"op": "add", "resource": "Rule/ACME-1", "loosened": false}, {"op": "change", "resource": "Policy/freeze", "fields": ["until"], "loosened": false}], on)) == 0
}

test_exceptions_may_be_made if {
	count(judge([{"op": "add", "resource": "Exception/REEVE-GUARD-001/Policy/amiPinning", "loosened": true}], on)) == 0
}

test_it_is_off_unless_switched_on if {
	count(judge([{"op": "remove", "resource": "Rule/ACME-1", "loosened": true}], {})) == 0
	count(judge([{"op": "remove", "resource": "Rule/ACME-1", "loosened": true}], {"enabled": false})) == 0
}
