package reeve.spec.required_tags_test

import data.reeve.spec.required_tags

judge(spec, settings) := found if {
	found := required_tags.deny with input as {"fleet": {"nodeClasses": {"default": {"spec": spec}}}}
		with data.policy.tags as object.union({"enabled": true}, settings)
}

both := {"required": {"team": [], "cost-center": ["CC-*", "shared"]}}

test_missing_tags_are_refused if {
	judge({}, both) == {
		{"msg": `EC2NodeClass "default" has no tag "team"`, "resource": "EC2NodeClass/default", "path": ["nodeClasses", "default", "spec", "tags"]},
		{
			"msg": `EC2NodeClass "default" has no tag "cost-center": want "CC-*" or "shared"`,
			"resource": "EC2NodeClass/default", "path": ["nodeClasses", "default", "spec", "tags"],
		},
	}
}

test_other_values_are_refused if {
	judge({"tags": {"team": "web", "cost-center": "4711"}}, both) == {{
		"msg": `the tag "cost-center" is "4711": want "CC-*" or "shared"`,
		"resource": "EC2NodeClass/default",
		"path": ["nodeClasses", "default", "spec", "tags", "cost-center"],
	}}
}

test_tags_as_asked_for_pass if {
	count(judge({"tags": {"team": "", "cost-center": "CC-4711"}}, both)) == 0
	count(judge({"tags": {"team": "web", "cost-center": "shared"}}, both)) == 0
}

test_it_is_off_unless_switched_on if {
	count(judge({}, object.union(both, {"enabled": false}))) == 0
	count(judge({}, {})) == 0
	found := required_tags.deny with input as {"fleet": {"nodeClasses": {"default": {"spec": {}}}}} with data.policy as {}
	count(found) == 0
}
