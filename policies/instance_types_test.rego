package reeve.offering.instance_types_test

import data.reeve.offering.instance_types

type(family, size, more) := {
	"name": sprintf("%s.%s", [family, size]),
	"labels": object.union(
		{
			"karpenter.k8s.aws/instance-family": family,
			"karpenter.k8s.aws/instance-size": size,
			"karpenter.k8s.aws/instance-category": substring(family, 0, 1),
			"node.kubernetes.io/instance-type": sprintf("%s.%s", [family, size]),
		},
		more,
	),
}

all := [
	type("m6g", "large", {}),
	type("m6g", "16xlarge", {}),
	type("m6gd", "16xlarge", {}),
	type("c5a", "2xlarge", {}),
	type("g5", "xlarge", {"karpenter.k8s.aws/instance-gpu-count": "1", "karpenter.k8s.aws/instance-gpu-name": "a10g"}),
	type("inf2", "xlarge", {"karpenter.k8s.aws/instance-accelerator-count": "1", "karpenter.k8s.aws/instance-accelerator-name": "inferentia2"}),
]

types := {t.name: t | some t in all}

judge(requirements, settings) := judge_pool({"spec": {"template": {"spec": {"requirements": requirements}}}}, settings)

judge_pool(pool, settings) := found if {
	found := instance_types.exclude with input as {"nodePool": pool, "instanceTypes": types}
		with data.policy.instanceTypes as object.union({"enabled": true, "gpu": "allow"}, settings)
}

excluded(found) := {t | some f in found; some t in f.instanceTypes}

test_nothing_is_excluded_by_default if count(judge([], {})) == 0

test_types_are_excluded_by_name_and_pattern if {
	found := judge([], {"exclude": ["c5a.2xlarge", "m6g*.16xlarge", "x1.32xlarge"]})
	found == {
		{"msg": `excluded by "c5a.2xlarge"`, "instanceTypes": {"c5a.2xlarge"}, "path": ["policy", "instanceTypes", "exclude", "0"]},
		{"msg": `excluded by "m6g*.16xlarge"`, "instanceTypes": {"m6g.16xlarge", "m6gd.16xlarge"}, "path": ["policy", "instanceTypes", "exclude", "1"]},
	}
}

test_a_star_stands_for_any_characters if {
	excluded(judge([], {"exclude": ["m6g*"]})) == {"m6g.large", "m6g.16xlarge", "m6gd.16xlarge"}
	excluded(judge([], {"exclude": ["m6g.*"]})) == {"m6g.large", "m6g.16xlarge"}
	excluded(judge([], {"exclude": ["*"]})) == object.keys(types)
}

test_sizes_are_excluded if {
	found := judge([], {"excludeSizes": ["16xlarge", "nano"]})
	found == {{
		"msg": `the size "16xlarge" is excluded`,
		"instanceTypes": {"m6g.16xlarge", "m6gd.16xlarge"},
		"path": ["policy", "instanceTypes", "excludeSizes", "0"],
	}}
}

test_families_are_excluded if {
	found := judge([], {"excludeFamilies": ["m6g", "t2"]})
	found == {{
		"msg": `the family "m6g" is excluded`,
		"instanceTypes": {"m6g.large", "m6g.16xlarge"},
		"path": ["policy", "instanceTypes", "excludeFamilies", "0"],
	}}
}

test_accelerators_are_excluded_unless_asked_for if {
	found := judge([{"key": "karpenter.k8s.aws/instance-category", "operator": "In", "values": ["c", "m"]}], {"gpu": "on-request"})
	found == {{
		"msg": "types with GPUs or other accelerators are used only when the NodePool asks for them",
		"instanceTypes": {"g5.xlarge", "inf2.xlarge"},
		"path": ["policy", "instanceTypes", "gpu"],
	}}
}

test_a_requirement_on_gpus_asks_for_them if {
	requirement := {"key": "karpenter.k8s.aws/instance-gpu-count", "operator": "Gt", "values": ["0"]}
	excluded(judge([requirement], {"gpu": "on-request"})) == {"inf2.xlarge"}
}

test_a_requirement_on_accelerators_asks_for_them if {
	requirement := {"key": "karpenter.k8s.aws/instance-accelerator-name", "operator": "Exists"}
	excluded(judge([requirement], {"gpu": "on-request"})) == {"g5.xlarge"}
}

test_naming_the_category_family_or_type_asks_for_it if {
	every requirement in [
		{"key": "karpenter.k8s.aws/instance-category", "operator": "In", "values": ["g", "c"]},
		{"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": ["g5"]},
		{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["g5.xlarge"]},
	] {
		excluded(judge([requirement], {"gpu": "on-request"})) == {"inf2.xlarge"}
	}
}

test_ruling_accelerators_out_does_not_ask_for_them if {
	every operator in ["DoesNotExist", "NotIn"] {
		requirement := {"key": "karpenter.k8s.aws/instance-gpu-name", "operator": operator, "values": ["t4"]}
		excluded(judge([requirement], {"gpu": "on-request"})) == {"g5.xlarge", "inf2.xlarge"}
	}
}

test_a_label_of_the_template_asks_too if {
	pool := {"spec": {"template": {"metadata": {"labels": {"karpenter.k8s.aws/instance-family": "g5"}}, "spec": {}}}}
	excluded(judge_pool(pool, {"gpu": "on-request"})) == {"inf2.xlarge"}
}

test_every_label_that_can_ask_is_read if {
	asking := {
		"node.kubernetes.io/instance-type": "g5.xlarge",
		"karpenter.k8s.aws/instance-family": "g5",
		"karpenter.k8s.aws/instance-category": "g",
		"karpenter.k8s.aws/instance-gpu-name": "a10g",
		"karpenter.k8s.aws/instance-gpu-manufacturer": "nvidia",
		"karpenter.k8s.aws/instance-gpu-count": "1",
		"karpenter.k8s.aws/instance-gpu-memory": "24576",
		"karpenter.k8s.aws/instance-accelerator-name": "inferentia2",
		"karpenter.k8s.aws/instance-accelerator-manufacturer": "aws",
		"karpenter.k8s.aws/instance-accelerator-count": "1",
	}
	pool := {"spec": {"template": {"metadata": {"labels": object.union(asking, {"team": "red"})}}}}
	instance_types.labels == asking with input as {"nodePool": pool}
}

test_never_means_never if {
	found := judge([{"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": ["g5"]}], {"gpu": "never"})
	excluded(found) == {"g5.xlarge", "inf2.xlarge"}
	{f.msg | some f in found} == {"types with GPUs or other accelerators are never used"}
}

test_nothing_is_excluded_when_the_policy_is_off if {
	count(judge([], {"enabled": false, "gpu": "never", "exclude": ["*"], "excludeSizes": ["large"], "excludeFamilies": ["c5a"]})) == 0
}

test_nothing_is_excluded_without_settings if {
	found := instance_types.exclude with input as {"nodePool": {}, "instanceTypes": types} with data.policy as {}
	count(found) == 0
}
