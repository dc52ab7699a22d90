package reeve.decision.time_windows_test

import data.reeve.decision.time_windows

judge(kind, now, settings) := judge_method(kind, "single", now, settings)

judge_method(kind, method, now, settings) := found if {
	found := time_windows.deny with input as {"kind": kind, "now": now, "proposal": {"method": method}}
		with data.policy.windows as object.union({"enabled": true}, settings)
}

# 6 April 2026 is a Monday.
night := {"timeZone": "Asia/Seoul", "allow": [{"days": ["Mon", "Tue", "Wed", "Thu", "Fri"], "start": "22:00", "end": "05:30"}]}

open(now, settings) if count(judge("drift", now, settings)) == 0

test_it_waits_for_the_window if {
	judge("drift", "2026-04-06T12:59:59Z", night) == {{
		"msg": "decisions of kind drift are made in the time windows only: Mon Tue Wed Thu Fri 22:00-05:30, Asia/Seoul",
		"path": ["policy", "windows"],
	}}
}

test_the_window_is_in_the_named_time_zone if {
	# 13:00 UTC is 22:00 in Seoul.
	open("2026-04-06T13:00:00Z", night)
	not open("2026-04-06T22:00:00Z", night)
}

test_a_window_over_midnight_belongs_to_the_day_it_starts_on if {
	# Friday 22:00 to Saturday 05:30 in Seoul.
	open("2026-04-10T13:00:00Z", night)
	open("2026-04-10T20:29:59Z", night)
	not open("2026-04-10T20:30:00Z", night)

	# Sunday's night is none, so Monday's early hours are not either.
	not open("2026-04-05T13:00:00Z", night)
	not open("2026-04-05T20:00:00Z", night)
}

test_a_window_within_a_day if {
	day := {"allow": [{"start": "09:00", "end": "17:00"}]}
	open("2026-04-05T09:00:00Z", day)
	open("2026-04-05T16:59:59Z", day)
	not open("2026-04-05T08:59:59Z", day)
	not open("2026-04-05T17:00:00Z", day)
}

test_a_window_without_hours_is_the_whole_day if {
	weekend := {"allow": [{"days": ["Sat", "Sun"]}]}
	open("2026-04-05T00:00:00Z", weekend)
	open("2026-04-05T23:59:59Z", weekend)
	not open("2026-04-06T00:00:00Z", weekend)
	judge("drift", "2026-04-06T00:00:00Z", weekend)[_].msg == "decisions of kind drift are made in the time windows only: Sat Sun 00:00-24:00, UTC"
}

test_a_window_that_ends_when_it_starts_lasts_a_day if {
	noons := {"allow": [{"days": ["Mon"], "start": "12:00", "end": "12:00"}]}
	open("2026-04-06T12:00:00Z", noons)
	open("2026-04-07T11:59:59Z", noons)
	not open("2026-04-07T12:00:00Z", noons)
	not open("2026-04-06T11:59:59Z", noons)
}

test_days_follow_the_time_zone_over_the_change_of_the_clocks if {
	# On 29 March 2026 clocks in Berlin go from 02:00 to 03:00.
	berlin := {"timeZone": "Europe/Berlin", "allow": [{"days": ["Sun"], "start": "03:00", "end": "04:00"}]}
	not open("2026-03-29T00:59:59Z", berlin)
	open("2026-03-29T01:00:00Z", berlin)
	not open("2026-03-29T02:00:00Z", berlin)
}

test_a_window_may_be_for_some_kinds if {
	settings := {"allow": [{"start": "09:00", "end": "17:00", "kinds": ["drift"]}, {"start": "20:00"}]}
	count(judge("drift", "2026-04-06T10:00:00Z", settings)) == 0
	judge("expire", "2026-04-06T10:00:00Z", settings) == {{
		"msg": "decisions of kind expire are made in the time windows only: every day 20:00-24:00, UTC",
		"path": ["policy", "windows"],
	}}
	count(judge("expire", "2026-04-06T20:00:00Z", settings)) == 0
}

test_what_is_urgent_goes_on if {
	every kind in ["provision", "interrupt", "repair", "delete"] {
		count(judge(kind, "2026-04-06T12:00:00Z", night)) == 0
	}
	count(judge("provision", "2026-04-06T12:00:00Z", object.union(night, {"kinds": ["provision"]}))) == 1
}

test_empty_nodes_may_go_at_any_time_where_that_is_set if {
	settings := object.union(night, {"emptyAnytime": true})
	count(judge_method("consolidate", "empty", "2026-04-06T12:00:00Z", night)) == 1
	count(judge_method("consolidate", "empty", "2026-04-06T12:00:00Z", settings)) == 0
	count(judge_method("consolidate", "multi", "2026-04-06T12:00:00Z", settings)) == 1
	count(judge_method("drift", "", "2026-04-06T12:00:00Z", settings)) == 1
}

test_without_windows_nothing_is_allowed if {
	judge("drift", "2026-04-06T12:00:00Z", {}) == {{
		"msg": "decisions of kind drift are made in the time windows only: there is none",
		"path": ["policy", "windows"],
	}}
}

test_it_is_off_unless_switched_on if {
	count(judge("drift", "2026-04-06T12:00:00Z", {"enabled": false})) == 0
	found := time_windows.deny with input as {"kind": "drift", "now": "2026-04-06T12:00:00Z"} with data.policy as {}
	count(found) == 0
}
