package reeve.decision.change_freeze_test

import data.reeve.decision.change_freeze

judge(kind, now, settings) := found if {
	found := change_freeze.deny with input as {"kind": kind, "now": now}
		with data.policy.freeze as object.union({"enabled": true}, settings)
}

test_what_is_not_urgent_waits if {
	every kind in ["consolidate", "drift", "expire"] {
		judge(kind, "2026-01-05T23:59:59Z", {"until": "2026-01-06", "reason": "holidays"}) == {{
			"msg": sprintf("decisions of kind %s are frozen until 2026-01-06: holidays", [kind]),
			"path": ["policy", "freeze"],
		}}
	}
}

test_what_is_urgent_goes_on if {
	every kind in ["provision", "interrupt", "repair", "delete"] {
		count(judge(kind, "2026-01-05T23:59:59Z", {"until": "2026-01-06"})) == 0
	}
}

test_other_kinds_can_be_listed if {
	count(judge("provision", "2026-01-05T23:59:59Z", {"until": "2026-01-06", "kinds": ["provision"]})) == 1
	count(judge("drift", "2026-01-05T23:59:59Z", {"until": "2026-01-06", "kinds": ["provision"]})) == 0
}

test_it_ends if {
	count(judge("drift", "2026-01-06T00:00:00Z", {"until": "2026-01-06"})) == 0
	count(judge("drift", "2026-01-06T08:00:00Z", {"until": "2026-01-06T08:00:00Z"})) == 0
	count(judge("drift", "2026-01-06T07:59:59Z", {"until": "2026-01-06T08:00:00Z"})) == 1
}

test_without_an_end_it_goes_on if {
	judge("drift", "2026-01-06T00:00:00Z", {}) == {{"msg": "decisions of kind drift are frozen until further notice", "path": ["policy", "freeze"]}}
	count(judge("drift", "2026-01-06T00:00:00Z", {"until": "Epiphany"})) == 1
}

test_it_is_off_unless_switched_on if count(judge("drift", "2026-01-05T00:00:00Z", {"enabled": false, "until": "2026-01-06"})) == 0
