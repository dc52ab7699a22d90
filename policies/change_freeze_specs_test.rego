package reeve.spec.change_freeze_test

import data.reeve.spec.change_freeze

judge(previous, now, settings) := found if {
	found := change_freeze.deny with input as {"previous": previous, "now": now, "diff": {"resources": [
		{"op": "change", "resource": "NodePool/default", "fields": ["spec.limits.cpu"]},
		{"op": "add", "resource": "EC2NodeClass/new"},
		{"op": "change", "resource": "Cluster/blue", "fields": ["judge.deadline"]},
	]}}
		with data.policy.freeze as object.union({"enabled": true, "until": "2026-01-06", "reason": "holidays"}, settings)
}

accept := {"kinds": ["drift", "accept"]}

test_specs_stay_as_they_are_until_the_end if {
	judge({}, "2026-01-05T12:00:00Z", accept) == {
		{"msg": "specs are frozen until 2026-01-06: holidays", "resource": "NodePool/default", "path": ["nodePools", "default"]},
		{"msg": "specs are frozen until 2026-01-06: holidays", "resource": "EC2NodeClass/new", "path": ["nodeClasses", "new"]},
	}
	count(judge({}, "2026-01-06T00:00:00Z", accept)) == 0
}

test_the_first_commit_is_taken if count(judge(null, "2026-01-05T12:00:00Z", accept)) == 0

test_commits_are_taken_unless_accept_is_named if {
	count(judge({}, "2026-01-05T12:00:00Z", {})) == 0
	count(judge({}, "2026-01-05T12:00:00Z", object.union(accept, {"enabled": false}))) == 0
}
