package reeve.decision.cool_down_test

import data.reeve.decision.cool_down

recent := [
	{"kind": "provision", "time": "2026-04-06T11:40:00Z", "allowed": true, "nodePool": "default", "nodes": 2},
	{"kind": "provision", "time": "2026-04-06T11:50:00Z", "allowed": true, "nodePool": "default", "nodes": 1},
	{"kind": "provision", "time": "2026-04-06T11:59:00Z", "allowed": false, "nodePool": "default", "nodes": 1},
	{"kind": "drift", "time": "2026-04-06T11:59:00Z", "allowed": true, "nodePool": "default", "nodes": 1},
	{"kind": "static", "time": "2026-04-06T11:00:00Z", "allowed": true, "nodePool": "fixed", "nodes": 1},
]

proposal := {"nodes": [
	{"name": "ip-1", "claim": "default-a", "nodePool": "default"},
	{"claim": "default-b", "nodePool": "default"},
	{"name": "ip-3", "claim": "fixed-a", "nodePool": "fixed"},
	{"name": "ip-4", "claim": "other-a", "nodePool": "other"},
]}

judge(kind, now, settings) := found if {
	found := cool_down.deny with input as {"kind": kind, "now": now, "recent": recent, "proposal": proposal}
		with data.policy.coolDown as object.union({"enabled": true, "minutes": 15}, settings)
}

test_a_nodepool_is_left_alone_after_it_was_given_nodes if {
	judge("consolidate", "2026-04-06T12:04:59Z", {}) == {
		{
			"msg": `NodePool "default" was given nodes at 2026-04-06T11:50:00Z and is left alone for 15 minutes`,
			"resource": "Node/ip-1", "path": ["policy", "coolDown"],
		},
		{
			"msg": `NodePool "default" was given nodes at 2026-04-06T11:50:00Z and is left alone for 15 minutes`,
			"resource": "NodeClaim/default-b", "path": ["policy", "coolDown"],
		},
	}
}

test_it_ends if count(judge("consolidate", "2026-04-06T12:05:00Z", {})) == 0

test_static_nodepools_cool_down_too if {
	found := judge("consolidate", "2026-04-06T11:50:00Z", {"minutes": 60})
	{f.resource | some f in found} == {"Node/ip-1", "NodeClaim/default-b", "Node/ip-3"}
}

test_other_removals_go_on if {
	every kind in ["drift", "expire", "interrupt"] {
		count(judge(kind, "2026-04-06T11:51:00Z", {})) == 0
	}
}

test_it_is_off_unless_switched_on if {
	count(judge("consolidate", "2026-04-06T11:51:00Z", {"enabled": false})) == 0
	found := cool_down.deny with input as {"kind": "consolidate", "now": "2026-04-06T11:51:00Z", "recent": recent, "proposal": proposal} with data.policy as {}
	count(found) == 0
}
