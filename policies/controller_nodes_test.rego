package reeve.spec.controller_nodes_test

import data.reeve.spec.controller_nodes

judge(template, settings) := found if {
	found := controller_nodes.deny with input as {"fleet": {"nodePools": {"default": {"spec": {"template": template}}}}}
		with data.policy.controllerPlacement as object.union({"enabled": true}, settings)
}

labels := {"nodeLabels": {"role": "system", "zone": "a"}}

test_nodes_that_look_like_the_controllers_are_refused if {
	judge({"metadata": {"labels": {"role": "system", "zone": "a", "x": "y"}}}, labels) == {{
		"msg": `nodes of NodePool "default" have the labels by which the controller chooses its node, such as role`,
		"resource": "NodePool/default",
		"path": ["nodePools", "default", "spec", "template", "metadata", "labels", "role"],
	}}
}

test_other_nodes_pass if {
	count(judge({"metadata": {"labels": {"role": "system", "zone": "b"}}}, labels)) == 0
	count(judge({"metadata": {"labels": {"role": "system"}}}, labels)) == 0
	count(judge({}, labels)) == 0
}

test_without_labels_nothing_is_refused if {
	count(judge({"metadata": {"labels": {"role": "system"}}}, {})) == 0
	count(judge({}, {"nodeLabels": {}})) == 0
}

test_nothing_is_refused_when_the_policy_is_off if {
	count(judge({"metadata": {"labels": {"role": "system", "zone": "a"}}}, object.union(labels, {"enabled": false}))) == 0
	found := controller_nodes.deny with input as {"fleet": {"nodePools": {"default": {"spec": {}}}}} with data.policy as {}
	count(found) == 0
}
