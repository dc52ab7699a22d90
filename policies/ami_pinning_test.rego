package reeve.spec.ami_pinning_test

import data.reeve.spec.ami_pinning

fleet(environment, terms) := {
	"cluster": {"environment": environment},
	"nodeClasses": {"default": {"spec": {"amiSelectorTerms": terms}}},
}

judge(environment, terms, settings) := found if {
	found := ami_pinning.deny with input as {"fleet": fleet(environment, terms), "now": "2026-05-01T00:00:00Z"}
		with data.policy.amiPinning as object.union({"enabled": true}, settings)
}

path(index, field) := ["nodeClasses", "default", "spec", "amiSelectorTerms", index, field]

test_a_moving_alias_is_refused_in_production if {
	found := judge("production", [{"alias": "al2023@latest"}], {})
	found == {{
		"msg": `the image "al2023@latest" changes by itself; in environment "production" pin an alias with a version or an AMI id`,
		"resource": "EC2NodeClass/default",
		"path": path("0", "alias"),
	}}
}

test_images_chosen_by_name_tags_or_parameter_are_refused_in_production if {
	found := judge("production", [{"name": "golden-*", "owner": "self"}, {"tags": {"a": "b"}}, {"ssmParameter": "/x"}], {})
	{f.path | some f in found} == {path("0", "name"), path("1", "tags"), path("2", "ssmParameter")}
	every f in found {
		startswith(f.msg, "an image selected by")
	}
}

test_pinned_images_pass if {
	count(judge("production", [{"alias": "al2023@v20260318"}, {"alias": "bottlerocket@v1.20.3"}, {"id": "ami-0123456789abcdef0"}], {})) == 0
}

test_other_environments_may_use_moving_images if {
	count(judge("staging", [{"alias": "al2023@latest"}], {})) == 0
	count(judge("staging", [{"alias": "al2023@latest"}], {"environments": ["staging"]})) == 1
}

test_nothing_is_said_when_the_policy_is_off if {
	count(judge("production", [{"alias": "al2023@latest"}], {"enabled": false, "allow": ["x@v1"], "maxAgeDays": 1})) == 0
}

test_nothing_is_said_without_settings if {
	found := ami_pinning.deny with input as {"fleet": fleet("production", [{"alias": "al2023@latest"}]), "now": "2026-05-01T00:00:00Z"}
		with data.policy as {}
	count(found) == 0
}

test_only_listed_images_pass if {
	settings := {"allow": ["al2023@v20260318", "ami-1"]}
	count(judge("production", [{"alias": "al2023@v20260318"}, {"id": "ami-1"}], settings)) == 0
	found := judge("production", [{"alias": "al2023@v20260401"}, {"id": "ami-2"}], settings)
	{f.msg | some f in found} == {
		`the image "al2023@v20260401" is not one of the 2 allowed images`,
		`the image "ami-2" is not one of the 2 allowed images`,
	}
}

test_the_list_holds_everywhere_and_repeats_no_finding if {
	settings := {"allow": ["al2023@v20260318"]}
	staging := judge("staging", [{"alias": "al2023@latest"}, {"tags": {"a": "b"}}], settings)
	{f.msg | some f in staging} == {
		`the image "al2023@latest" is not one of the 1 allowed images`,
		"an image selected by tags is not one of the 1 allowed images",
	}
	count(judge("production", [{"alias": "al2023@latest"}], settings)) == 1
}

test_old_images_are_refused if {
	found := judge("staging", [{"alias": "al2023@v20260318"}], {"maxAgeDays": 30})
	found == {{
		"msg": `the image "al2023@v20260318" is older than 30 days`,
		"resource": "EC2NodeClass/default",
		"path": path("0", "alias"),
	}}
}

test_an_image_may_be_as_old_as_the_limit if {
	# From 18 March to 1 May are 44 days.
	count(judge("production", [{"alias": "al2023@v20260318"}], {"maxAgeDays": 44})) == 0
	count(judge("production", [{"alias": "al2023@v20260318"}], {"maxAgeDays": 43})) == 1
}

test_versions_that_are_no_dates_have_no_age if {
	count(judge("production", [{"alias": "bottlerocket@v1.20.3"}, {"id": "ami-1"}], {"maxAgeDays": 1})) == 0
}

test_a_date_that_is_none_is_no_error if {
	count(judge("production", [{"alias": "al2023@v20260231"}, {"alias": "al2023@v99999999"}], {"maxAgeDays": 3650})) == 0
}
