# METADATA
# title: Coexistence
# description: |
#   Refuses NodePools and EC2NodeClasses that another controller manages too, or
#   whose nodes another controller would take for its own: two that manage the
#   same thing undo each other's work. Off unless
#   data.policy.coexistence.enabled is true.
# schemas:
#   - input: schema.spec
package reeve.spec.coexistence

settings := data.policy.coexistence

on if settings.enabled == true

# METADATA
# title: The object belongs to another tool
# description: |
#   Labels and annotations of Argo CD, Flux and Helm on a NodePool or
#   EC2NodeClass say that one of them applies it. It would undo what Reeve
#   applies, and remove the object when it finds it in no chart. They often come
#   along when objects are copied from a cluster.
# custom:
#   id: REEVE-COEX-001
#   severity: error
#   remediation: |
#     Take the label or annotation out of the fleet, and the object out of the
#     other tool without letting that delete it.
deny contains finding if {
	on
	some object_ in objects
	some field in ["labels", "annotations"]
	some key, value in object_.value.metadata[field]
	owner := tool(key, value)
	finding := {
		"msg": sprintf("%s says that %s manages the object", [key, owner]),
		"resource": object_.resource,
		"path": array.concat(object_.path, ["metadata", field, key]),
	}
}

objects contains {"resource": sprintf("NodePool/%s", [name]), "path": ["nodePools", name], "value": pool} if {
	some name, pool in input.fleet.nodePools
}

objects contains {"resource": sprintf("EC2NodeClass/%s", [name]), "path": ["nodeClasses", name], "value": class} if {
	some name, class in input.fleet.nodeClasses
}

tool(key, _) := tools[key]

tool(key, value) := value if {
	key == "app.kubernetes.io/managed-by"
	value != "reeve"
}

tools := {
	"argocd.argoproj.io/instance": "Argo CD",
	"argocd.argoproj.io/tracking-id": "Argo CD",
	"helm.toolkit.fluxcd.io/name": "Flux",
	"kustomize.toolkit.fluxcd.io/name": "Flux",
	"meta.helm.sh/release-name": "Helm",
}

# METADATA
# title: The nodes look like those of another controller
# description: |
#   Labels of nodes and tags of instances by which managed node groups, EKS Auto
#   Mode, eksctl, kOps and the Cluster Autoscaler know what is theirs. A NodePool
#   neither gives nor asks for such a label, and an EC2NodeClass sets no such tag.
#   data.policy.coexistence.keys lists more of them.
# custom:
#   id: REEVE-COEX-002
#   severity: error
#   remediation: Leave the key to the controller whose it is, and choose one of your own.
deny contains finding if {
	on
	some use in uses
	owner := controller(use.key)
	finding := {
		"msg": sprintf("%s is for nodes of %s", [use.key, owner]),
		"resource": use.resource,
		"path": use.path,
	}
}

uses contains {"key": key, "resource": sprintf("NodePool/%s", [name]), "path": ["nodePools", name, "spec", "template", "metadata", "labels", key]} if {
	some name, pool in input.fleet.nodePools
	some key, _ in pool.spec.template.metadata.labels
}

uses contains {
	"key": requirement.key, "resource": sprintf("NodePool/%s", [name]),
	"path": ["nodePools", name, "spec", "template", "spec", "requirements", format_int(index, 10), "key"],
} if {
	some name, pool in input.fleet.nodePools
	some index, requirement in pool.spec.template.spec.requirements
	not requirement.operator in {"DoesNotExist", "NotIn"}
}

uses contains {"key": key, "resource": sprintf("EC2NodeClass/%s", [name]), "path": ["nodeClasses", name, "spec", "tags", key]} if {
	some name, class in input.fleet.nodeClasses
	some key, _ in class.spec.tags
}

controller(key) := owner if {
	some prefix, owner in prefixes
	startswith(key, prefix)
}

controller(key) := "another controller" if {
	key in object.get(settings, "keys", [])
	not known(key)
}

known(key) if {
	some prefix, _ in prefixes
	startswith(key, prefix)
}

prefixes := {
	"eks.amazonaws.com/": "EKS, which are managed node groups and Auto Mode",
	"eks:nodegroup-name": "managed node groups",
	"alpha.eksctl.io/": "eksctl",
	"kops.k8s.io/": "kOps",
	"k8s.io/cluster-autoscaler/": "the Cluster Autoscaler",
	"aws:autoscaling:": "Auto Scaling groups",
}

# METADATA
# title: The EC2NodeClass discovers what belongs to another cluster
# description: |
#   Subnets, security groups and images are found by tags. A tag
#   karpenter.sh/discovery with another value than the name of the cluster, or a
#   tag kubernetes.io/cluster/<name> of another cluster, most often comes from a
#   copied file: the nodes would be in a network where they cannot join, or share
#   it with the nodes of another controller. data.policy.coexistence.discovery
#   lists other values that are right, such as the name of a shared VPC.
# custom:
#   id: REEVE-COEX-003
#   severity: error
#   remediation: |
#     Write the name of this cluster, or add the value to
#     data.policy.coexistence.discovery.
deny contains finding if {
	on
	some name, class in input.fleet.nodeClasses
	some field in ["subnetSelectorTerms", "securityGroupSelectorTerms", "amiSelectorTerms", "capacityReservationSelectorTerms"]
	some index, term in class.spec[field]
	some key, value in term.tags
	other := discovered(key, value)
	not other in array.concat([own_name, "*"], object.get(settings, "discovery", []))
	finding := {
		"msg": sprintf("%s finds what belongs to %q, and this is cluster %q", [field, other, own_name]),
		"resource": sprintf("EC2NodeClass/%s", [name]),
		"path": ["nodeClasses", name, "spec", field, format_int(index, 10), "tags", key],
	}
}

own_name := input.fleet.cluster.name

discovered(key, value) := value if key == "karpenter.sh/discovery"

discovered(key, _) := trim_prefix(key, "kubernetes.io/cluster/") if startswith(key, "kubernetes.io/cluster/")
