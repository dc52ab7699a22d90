package reeve.decision.minimum_saving_test

import data.reeve.decision.minimum_saving

judge(cost, settings) := judge_as("consolidate", "multi", cost, settings)

# The two nodes cost $0.50/h together.
judge_as(kind, method, cost, settings) := found if {
	proposal := {"method": method, "cost": cost, "nodes": [{"price": 0.344}, {"price": 0.156}]}
	found := minimum_saving.deny with input as {"kind": kind, "proposal": proposal}
		with data.policy.minimumSaving as object.union({"enabled": true}, settings)
}

test_it_has_to_save_so_much_an_hour if {
	count(judge(-0.05, {"perHour": 0.05})) == 0
	judge(-0.049999999, {"perHour": 0.05}) == {{
		"msg": "it saves $0.049999999/h and has to save $0.05/h",
		"path": ["policy", "minimumSaving"],
	}}
}

test_it_has_to_save_such_a_share if {
	count(judge(-0.05, {"percent": 10})) == 0
	found := judge(-0.049, {"percent": 10})
	{f.msg | some f in found} == {"it saves $0.049/h and has to save 10 % of what the nodes cost"}
}

test_one_of_both_is_enough if {
	count(judge(-0.1, {"perHour": 0.1, "percent": 50})) == 0
	count(judge(-0.05, {"perHour": 0.1, "percent": 10})) == 0
	found := judge(-0.04, {"perHour": 0.1, "percent": 10})
	{f.msg | some f in found} == {"it saves $0.04/h and has to save $0.1/h or 10 % of what the nodes cost"}
}

test_what_costs_more_saves_nothing if {
	found := judge(0.02, {"percent": 10})
	{f.msg | some f in found} == {"it saves nothing and has to save 10 % of what the nodes cost"}
}

test_empty_nodes_may_always_go if count(judge_as("consolidate", "empty", -0.01, {"perHour": 1})) == 0

test_other_kinds_need_not_save if {
	every kind in ["provision", "drift", "expire", "interrupt"] {
		count(judge_as(kind, "", 0.3, {"perHour": 1, "percent": 90})) == 0
	}
}

test_without_a_bound_nothing_is_denied if count(judge(-0.001, {})) == 0

test_it_is_off_unless_switched_on if {
	count(judge(-0.001, {"enabled": false, "perHour": 1})) == 0
	found := minimum_saving.deny with input as {"kind": "consolidate", "proposal": {"method": "single", "cost": 0, "nodes": []}} with data.policy as {}
	count(found) == 0
}
