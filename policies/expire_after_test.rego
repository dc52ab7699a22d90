package reeve.spec.expire_after_test

import data.reeve.spec.expire_after

judge(lifetime, settings) := found if {
	found := expire_after.deny with input as {"fleet": {"nodePools": {"default": {"spec": {"template": {"spec": {"expireAfter": lifetime}}}}}}}
		with data.policy.expireAfter as object.union({"enabled": true}, settings)
}

path := ["nodePools", "default", "spec", "template", "spec", "expireAfter"]

test_too_long_is_refused if {
	judge("721h", {"max": "720h"}) == {{
		"msg": `nodes of NodePool "default" expire after 721h, more than the 720h allowed`,
		"resource": "NodePool/default",
		"path": path,
	}}
}

test_never_is_too_long if {
	count(judge("Never", {"max": "8760h"})) == 1
	count(judge("Never", {"max": "Never"})) == 0
	count(judge("720h", {"max": "Never"})) == 0
}

test_too_short_is_refused if {
	judge("30m", {"min": "1h"}) == {{
		"msg": `nodes of NodePool "default" expire after 30m, less than the 1h asked for`,
		"resource": "NodePool/default",
		"path": path,
	}}
	count(judge("Never", {"min": "1h"})) == 0
}

test_the_bounds_themselves_are_within if count(judge("60m", {"min": "1h", "max": "1h"})) == 0

test_it_is_off_unless_switched_on if count(judge("Never", {"enabled": false, "max": "1h"})) == 0

test_without_bounds_nothing_is_said if count(judge("Never", {})) == 0
