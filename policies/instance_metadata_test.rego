package reeve.spec.instance_metadata_test

import data.reeve.spec.instance_metadata

judge(spec, settings) := found if {
	found := instance_metadata.deny with input as {"fleet": {"nodeClasses": {"default": {"spec": spec}}}}
		with data.policy.instanceMetadata as object.union({"enabled": true}, settings)
}

test_metadata_without_a_token_is_refused if {
	judge({"metadataOptions": {"httpEndpoint": "enabled", "httpTokens": "optional", "httpPutResponseHopLimit": 1}}, {}) == {{
		"msg": `nodes of EC2NodeClass "default" answer IMDSv1, which asks for no token`,
		"resource": "EC2NodeClass/default",
		"path": ["nodeClasses", "default", "spec", "metadataOptions", "httpTokens"],
	}}
}

test_metadata_that_goes_too_far_is_refused if {
	options := {"metadataOptions": {"httpTokens": "required", "httpPutResponseHopLimit": 2}}
	judge(options, {}) == {{
		"msg": `metadata of nodes of EC2NodeClass "default" goes 2 hops, more than the 1 allowed`,
		"resource": "EC2NodeClass/default",
		"path": ["nodeClasses", "default", "spec", "metadataOptions", "httpPutResponseHopLimit"],
	}}
	count(judge(options, {"maxHops": 2})) == 0
}

test_what_the_crd_fills_in_passes if {
	count(judge({}, {})) == 0
	count(judge({"metadataOptions": {"httpTokens": "required"}}, {})) == 0
}

test_metadata_that_is_switched_off_passes if {
	count(judge({"metadataOptions": {"httpEndpoint": "disabled", "httpTokens": "optional", "httpPutResponseHopLimit": 9}}, {})) == 0
}

test_it_is_off_unless_switched_on if {
	count(judge({"metadataOptions": {"httpTokens": "optional"}}, {"enabled": false})) == 0
	found := instance_metadata.deny with input as {"fleet": {"nodeClasses": {"default": {"spec": {"metadataOptions": {"httpTokens": "optional"}}}}}}
		with data.policy as {}
	count(found) == 0
}
