package reeve.decision.controller_placement_test

import data.reeve.decision.controller_placement

shapes := {
	"reeve-a": {"labels": {"app.kubernetes.io/name": "reeve", "app.kubernetes.io/instance": "reeve"}},
	"web-b": {"labels": {"app": "web"}},
	"bare-c": {},
}

judge(kind, proposal, settings) := judge_at(kind, proposal, settings, {})

judge_at(kind, proposal, settings, controller) := found if {
	found := controller_placement.deny with input as {"kind": kind, "proposal": proposal, "shapes": shapes, "controller": controller}
		with data.policy.controllerPlacement as object.union({"enabled": true}, settings)
}

pods(shape, namespace, names) := {"shape": shape, "namespace": namespace, "names": names}

claim(groups) := {"claims": [{"index": 0, "nodePool": "default", "pods": groups}]}

node(groups) := {"nodes": [{"name": "ip-10-0-0-1", "claim": "default-aaaa", "pods": groups}]}

test_no_node_is_made_for_the_controllers_own_pods if {
	found := judge("provision", claim([pods("reeve-a", "kube-system", ["reeve-1", "reeve-2"]), pods("web-b", "default", ["web-1"])]), {})
	found == {
		{
			"msg": `NodePool "default" would make a node for the controller's own pod`,
			"resource": "Pod/kube-system/reeve-1",
			"path": ["policy", "controllerPlacement"],
		},
		{
			"msg": `NodePool "default" would make a node for the controller's own pod`,
			"resource": "Pod/kube-system/reeve-2",
			"path": ["policy", "controllerPlacement"],
		},
	}
}

test_pods_in_other_namespaces_or_with_other_labels_are_not_the_controllers if {
	count(judge("provision", claim([pods("reeve-a", "default", ["reeve-1"]), pods("web-b", "kube-system", ["web-1"]), pods("bare-c", "kube-system", ["c-1"])]), {})) == 0
}

test_namespace_and_labels_can_be_chosen if {
	settings := {"namespace": "default", "labels": {"app": "web"}}
	count(judge("static", claim([pods("web-b", "default", ["web-1"])]), settings)) == 1
	count(judge("static", claim([pods("reeve-a", "kube-system", ["reeve-1"])]), settings)) == 0
}

test_the_node_that_the_controller_runs_on_stays if {
	every kind in ["consolidate", "drift", "expire", "static"] {
		found := judge(kind, node([pods("reeve-a", "kube-system", ["reeve-1"])]), {})
		found == {{
			"msg": "the controller runs on this node",
			"resource": "Node/ip-10-0-0-1",
			"path": ["policy", "controllerPlacement"],
		}}
	}
}

test_the_node_is_known_by_name_too if {
	count(judge_at("consolidate", node([]), {}, {"node": "ip-10-0-0-1"})) == 1
	count(judge_at("consolidate", {"nodes": [{"name": "ip-10-0-0-1"}]}, {}, {"node": "ip-10-0-0-1"})) == 1
	count(judge_at("consolidate", node([]), {}, {"node": "ip-10-0-0-2"})) == 0
}

test_other_nodes_may_go if {
	count(judge("consolidate", node([pods("web-b", "default", ["web-1"])]), {})) == 0
}

test_what_cannot_wait_is_not_held_up if {
	every kind in ["interrupt", "repair", "delete", "liveness", "reclaim"] {
		count(judge(kind, node([pods("reeve-a", "kube-system", ["reeve-1"])]), {})) == 0
	}
}

test_nothing_is_said_when_the_policy_is_off if {
	count(judge("provision", claim([pods("reeve-a", "kube-system", ["reeve-1"])]), {"enabled": false})) == 0
	count(judge_at("drift", node([]), {"enabled": false}, {"node": "ip-10-0-0-1"})) == 0
}
