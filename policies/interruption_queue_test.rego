package reeve.spec.interruption_queue_test

import data.reeve.spec.interruption_queue

judge(cluster, template, settings) := found if {
	found := interruption_queue.deny with input as {"fleet": {"cluster": cluster, "nodePools": {"default": {"spec": {"template": template}}}}}
		with data.policy.interruptionQueue as object.union({"enabled": true}, settings)
}

# A template that says so much of capacity types, after something else.
template(requirements) := {"spec": {"requirements": array.concat([{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}], requirements)}}

capacity(operator, values) := template([{"key": "karpenter.sh/capacity-type", "operator": operator, "values": values}])

test_spot_needs_a_queue if {
	judge({"name": "blue"}, capacity("In", ["spot", "on-demand"]), {}) == {{
		"msg": `NodePool "default" may buy spot capacity and there is no interruption queue`,
		"resource": "NodePool/default",
		"path": ["nodePools", "default", "spec", "template", "spec", "requirements", "1"],
	}}
}

test_a_queue_is_enough if count(judge({"interruptionQueue": "blue"}, capacity("In", ["spot"]), {})) == 0

test_other_ways_to_let_spot_in if {
	count(judge({}, capacity("Exists", []), {})) == 1
	count(judge({}, capacity("NotIn", ["reserved"]), {})) == 1
	found := judge({}, template([]), {})
	{f.path | some f in found} == {["nodePools", "default", "spec", "template", "spec", "requirements"]}
	count(judge({}, {"metadata": {"labels": {"karpenter.sh/capacity-type": "spot"}}, "spec": {"requirements": []}}, {})) == 1
}

test_ways_to_keep_spot_out if {
	count(judge({}, capacity("In", ["on-demand", "reserved"]), {})) == 0
	count(judge({}, capacity("NotIn", ["spot"]), {})) == 0
	count(judge({}, capacity("DoesNotExist", []), {})) == 0
	count(judge({}, {"metadata": {"labels": {"karpenter.sh/capacity-type": "on-demand"}}, "spec": {"requirements": []}}, {})) == 0
}

test_it_is_off_unless_switched_on if {
	count(judge({}, capacity("In", ["spot"]), {"enabled": false})) == 0
	found := interruption_queue.deny with input as {"fleet": {"cluster": {}, "nodePools": {"default": {"spec": {"template": template([])}}}}}
		with data.policy as {}
	count(found) == 0
}
