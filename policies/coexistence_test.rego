package reeve.spec.coexistence_test

import data.reeve.spec.coexistence

judge(fleet, settings) := found if {
	found := coexistence.deny with input as {"fleet": object.union({"cluster": {"name": "blue"}}, fleet)}
		with data.policy.coexistence as object.union({"enabled": true}, settings)
}

pool(value) := {"nodePools": {"default": value}}

class(value) := {"nodeClasses": {"default": value}}

test_objects_of_other_tools_are_refused if {
	judge(
		pool({"metadata": {
			"labels": {"argocd.argoproj.io/instance": "karpenter", "team": "web"},
			"annotations": {"meta.helm.sh/release-name": "pools"},
		}}),
		{},
	) == {
		{
			"msg": "argocd.argoproj.io/instance says that Argo CD manages the object",
			"resource": "NodePool/default", "path": ["nodePools", "default", "metadata", "labels", "argocd.argoproj.io/instance"],
		},
		{
			"msg": "meta.helm.sh/release-name says that Helm manages the object",
			"resource": "NodePool/default", "path": ["nodePools", "default", "metadata", "annotations", "meta.helm.sh/release-name"],
		},
	}
}

test_managed_by_names_the_tool if {
	found := judge(class({"metadata": {"labels": {"app.kubernetes.io/managed-by": "Helm"}}}), {})
	{f.msg | some f in found} == {"app.kubernetes.io/managed-by says that Helm manages the object"}
	{f.resource | some f in found} == {"EC2NodeClass/default"}
	count(judge(class({"metadata": {"labels": {"app.kubernetes.io/managed-by": "reeve"}}}), {})) == 0
}

test_labels_of_other_controllers_are_neither_given_nor_asked_for if {
	judge(
		pool({"spec": {"template": {
			"metadata": {"labels": {"alpha.eksctl.io/nodegroup-name": "ng-1", "team": "web"}},
			"spec": {"requirements": [
				{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
				{"key": "eks.amazonaws.com/nodegroup", "operator": "In", "values": ["ng-1"]},
				{"key": "eks.amazonaws.com/compute-type", "operator": "DoesNotExist"},
			]},
		}}}),
		{},
	) == {
		{
			"msg": "alpha.eksctl.io/nodegroup-name is for nodes of eksctl",
			"resource": "NodePool/default", "path": ["nodePools", "default", "spec", "template", "metadata", "labels", "alpha.eksctl.io/nodegroup-name"],
		},
		{
			"msg": "eks.amazonaws.com/nodegroup is for nodes of EKS, which are managed node groups and Auto Mode",
			"resource": "NodePool/default", "path": ["nodePools", "default", "spec", "template", "spec", "requirements", "1", "key"],
		},
	}
}

test_tags_of_other_controllers_are_not_set if {
	judge(class({"spec": {"tags": {"k8s.io/cluster-autoscaler/blue": "owned", "team": "web"}}}), {}) == {{
		"msg": "k8s.io/cluster-autoscaler/blue is for nodes of the Cluster Autoscaler",
		"resource": "EC2NodeClass/default",
		"path": ["nodeClasses", "default", "spec", "tags", "k8s.io/cluster-autoscaler/blue"],
	}}
}

test_more_keys_can_be_listed if {
	keys := {"keys": ["example.com/legacy-pool", "kops.k8s.io/instancegroup"]}
	found := judge(class({"spec": {"tags": {"example.com/legacy-pool": "a", "kops.k8s.io/instancegroup": "b"}}}), keys)
	{f.msg | some f in found} == {
		"example.com/legacy-pool is for nodes of another controller",
		"kops.k8s.io/instancegroup is for nodes of kOps",
	}
	count(judge(class({"spec": {"tags": {"example.com/legacy-pool": "a"}}}), {})) == 0
}

terms(tags) := class({"spec": {"subnetSelectorTerms": [{"id": "subnet-1"}, {"tags": tags}]}})

test_what_belongs_to_another_cluster_is_refused if {
	judge(terms({"karpenter.sh/discovery": "green"}), {}) == {{
		"msg": `subnetSelectorTerms finds what belongs to "green", and this is cluster "blue"`,
		"resource": "EC2NodeClass/default",
		"path": ["nodeClasses", "default", "spec", "subnetSelectorTerms", "1", "tags", "karpenter.sh/discovery"],
	}}
	count(judge(terms({"kubernetes.io/cluster/green": "owned"}), {})) == 1
}

test_what_belongs_to_this_cluster_passes if {
	count(judge(terms({"karpenter.sh/discovery": "blue", "kubernetes.io/cluster/blue": "*", "tier": "private"}), {})) == 0
	count(judge(terms({"karpenter.sh/discovery": "*"}), {})) == 0
}

test_other_values_can_be_right if {
	count(judge(terms({"karpenter.sh/discovery": "shared-vpc"}), {"discovery": ["shared-vpc"]})) == 0
}

test_it_is_off_unless_switched_on if {
	wrong := {
		"nodePools": {"default": {"metadata": {"labels": {"argocd.argoproj.io/instance": "x"}}}},
		"nodeClasses": {"default": {"spec": {"tags": {"eks:nodegroup-name": "x"}, "subnetSelectorTerms": [{"tags": {"karpenter.sh/discovery": "green"}}]}}},
	}
	count(judge(wrong, {})) == 3
	count(judge(wrong, {"enabled": false})) == 0
	found := coexistence.deny with input as {"fleet": object.union({"cluster": {"name": "blue"}}, wrong)} with data.policy as {}
	count(found) == 0
}
