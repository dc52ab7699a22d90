package reeve.spec.nodepool_limits_test

import data.reeve.spec.nodepool_limits

judge(spec, settings) := found if {
	found := nodepool_limits.deny with input as {"fleet": {"nodePools": {"default": {"spec": spec}}}}
		with data.policy.nodePoolLimits as settings
}

test_a_nodepool_without_a_limit_is_refused if {
	judge({}, {"enabled": true}) == {{
		"msg": `NodePool "default" has no limit of cpu`,
		"resource": "NodePool/default",
		"path": ["nodePools", "default", "spec", "limits"],
	}}
}

test_each_listed_resource_needs_one if {
	found := judge({"limits": {"cpu": "100"}}, {"enabled": true, "resources": ["cpu", "memory", "nodes"]})
	{f.msg | some f in found} == {`NodePool "default" has no limit of memory`, `NodePool "default" has no limit of nodes`}
}

test_a_limit_satisfies if count(judge({"limits": {"cpu": "100"}}, {"enabled": true})) == 0

test_replicas_are_a_limit if count(judge({"replicas": 3}, {"enabled": true})) == 0

test_it_is_off_unless_switched_on if {
	count(judge({}, {"enabled": false})) == 0
	count(judge({}, {})) == 0
}
