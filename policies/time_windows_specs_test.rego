package reeve.spec.time_windows_test

import data.reeve.spec.time_windows

judge(previous, now, settings) := found if {
	found := time_windows.deny with input as {"previous": previous, "now": now, "diff": {"resources": [
		{"op": "change", "resource": "NodePool/default", "fields": ["spec.limits.cpu"]},
		{"op": "remove", "resource": "EC2NodeClass/old"},
		{"op": "change", "resource": "Cluster/blue", "fields": ["judge.deadline"]},
	]}}
		with data.policy.windows as object.union({"enabled": true, "allow": [{"start": "20:00"}]}, settings)
}

accept := {"kinds": ["drift", "accept"]}

test_specs_change_in_the_window_only if {
	judge({}, "2026-04-06T12:00:00Z", accept) == {
		{"msg": "specs change in the time windows only: every day 20:00-24:00, UTC", "resource": "NodePool/default", "path": ["nodePools", "default"]},
		{"msg": "specs change in the time windows only: every day 20:00-24:00, UTC", "resource": "EC2NodeClass/old", "path": ["nodeClasses", "old"]},
	}
	count(judge({}, "2026-04-06T20:00:00Z", accept)) == 0
}

test_the_first_commit_is_taken_at_any_time if count(judge(null, "2026-04-06T12:00:00Z", accept)) == 0

test_commits_are_taken_at_any_time_unless_accept_is_named if {
	count(judge({}, "2026-04-06T12:00:00Z", {})) == 0
	count(judge({}, "2026-04-06T12:00:00Z", {"enabled": false, "kinds": ["accept"]})) == 0
}
