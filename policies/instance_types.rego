# METADATA
# title: Excluded instance types
# description: |
#   Keeps instance types out of a NodePool before anything is planned, so that
#   an excluded type never strands a pod that another type fits.
#   Settings: data.policy.instanceTypes.
# schemas:
#   - input: schema.offering
package reeve.offering.instance_types

settings := data.policy.instanceTypes

on if settings.enabled == true

names := object.keys(input.instanceTypes)

# METADATA
# title: The instance type is excluded
# custom:
#   id: REEVE-TYPE-001
#   severity: error
#   remediation: Use other types, or take the pattern out of data.policy.instanceTypes.exclude.
exclude contains choice if {
	on
	some i, pattern in settings.exclude
	types := matching(pattern)
	count(types) > 0
	choice := {
		"msg": sprintf("excluded by %q", [pattern]),
		"instanceTypes": types,
		"path": ["policy", "instanceTypes", "exclude", format_int(i, 10)],
	}
}

# A pattern without a wildcard is the name of a type: one lookup instead of a
# match against all.
matching(pattern) := {pattern | pattern in names} if not contains(pattern, "*")

matching(pattern) := {name |
	some name in names
	glob.match(pattern, null, name)
} if {
	contains(pattern, "*")
}

# METADATA
# title: The size of the instance type is excluded
# custom:
#   id: REEVE-TYPE-002
#   severity: error
#   remediation: Use other sizes, or take the size out of data.policy.instanceTypes.excludeSizes.
exclude contains choice if {
	on
	some i, size in settings.excludeSizes
	types := labelled("karpenter.k8s.aws/instance-size", size)
	count(types) > 0
	choice := {
		"msg": sprintf("the size %q is excluded", [size]),
		"instanceTypes": types,
		"path": ["policy", "instanceTypes", "excludeSizes", format_int(i, 10)],
	}
}

# METADATA
# title: The family of the instance type is excluded
# custom:
#   id: REEVE-TYPE-003
#   severity: error
#   remediation: Use other families, or take the family out of data.policy.instanceTypes.excludeFamilies.
exclude contains choice if {
	on
	some i, family in settings.excludeFamilies
	types := labelled("karpenter.k8s.aws/instance-family", family)
	count(types) > 0
	choice := {
		"msg": sprintf("the family %q is excluded", [family]),
		"instanceTypes": types,
		"path": ["policy", "instanceTypes", "excludeFamilies", format_int(i, 10)],
	}
}

labelled(key, value) := {name |
	some name, type in input.instanceTypes
	type.labels[key] == value
}

# METADATA
# title: The instance type has a GPU or another accelerator
# description: |
#   With data.policy.instanceTypes.gpu "never" no type with an accelerator is
#   used. With "on-request" one is used only where the requirements of the
#   NodePool ask for it: by a label of GPUs or accelerators, or by naming the
#   type, its family or its category.
# custom:
#   id: REEVE-TYPE-004
#   severity: error
#   remediation: |
#     Ask for accelerators in the requirements of the NodePool, for example
#     {key: "karpenter.k8s.aws/instance-gpu-count", operator: "Gt", values: ["0"]},
#     or set data.policy.instanceTypes.gpu.
exclude contains choice if {
	on
	not settings.gpu == "allow"
	types := {name | some name in accelerated; not asked_for(name)}
	count(types) > 0
	choice := {
		"msg": accelerator_message,
		"instanceTypes": types,
		"path": ["policy", "instanceTypes", "gpu"],
	}
}

accelerator_message := "types with GPUs or other accelerators are never used" if settings.gpu == "never"

accelerator_message := "types with GPUs or other accelerators are used only when the NodePool asks for them" if {
	not settings.gpu == "never"
}

accelerated contains name if {
	some name, type in input.instanceTypes
	some key in ["karpenter.k8s.aws/instance-gpu-count", "karpenter.k8s.aws/instance-accelerator-count"]
	type.labels[key]
}

asked_for(name) if {
	not settings.gpu == "never"
	some requirement in requirements
	asks(requirement, input.instanceTypes[name].labels)
}

# What a NodePool requires: its requirements and the labels of its template.
requirements contains requirement if some requirement in input.nodePool.spec.template.spec.requirements

requirements contains {"key": key, "operator": "In", "values": [value]} if some key, value in labels

# The labels that can ask, each by its name: the answer is worked out once for
# all NodePools that do not differ in what is read here.
labels["node.kubernetes.io/instance-type"] := input.nodePool.spec.template.metadata.labels["node.kubernetes.io/instance-type"]

labels["karpenter.k8s.aws/instance-family"] := input.nodePool.spec.template.metadata.labels["karpenter.k8s.aws/instance-family"]

labels["karpenter.k8s.aws/instance-category"] := input.nodePool.spec.template.metadata.labels["karpenter.k8s.aws/instance-category"]

labels["karpenter.k8s.aws/instance-gpu-name"] := input.nodePool.spec.template.metadata.labels["karpenter.k8s.aws/instance-gpu-name"]

labels["karpenter.k8s.aws/instance-gpu-manufacturer"] := input.nodePool.spec.template.metadata.labels["karpenter.k8s.aws/instance-gpu-manufacturer"]

labels["karpenter.k8s.aws/instance-gpu-count"] := input.nodePool.spec.template.metadata.labels["karpenter.k8s.aws/instance-gpu-count"]

labels["karpenter.k8s.aws/instance-gpu-memory"] := input.nodePool.spec.template.metadata.labels["karpenter.k8s.aws/instance-gpu-memory"]

labels["karpenter.k8s.aws/instance-accelerator-name"] := input.nodePool.spec.template.metadata.labels["karpenter.k8s.aws/instance-accelerator-name"]

labels["karpenter.k8s.aws/instance-accelerator-manufacturer"] := input.nodePool.spec.template.metadata.labels["karpenter.k8s.aws/instance-accelerator-manufacturer"]

labels["karpenter.k8s.aws/instance-accelerator-count"] := input.nodePool.spec.template.metadata.labels["karpenter.k8s.aws/instance-accelerator-count"]

naming := {
	"node.kubernetes.io/instance-type",
	"karpenter.k8s.aws/instance-family",
	"karpenter.k8s.aws/instance-category",
}

asks(requirement, labels) if {
	requirement.key in naming
	requirement.operator == "In"
	labels[requirement.key] in requirement.values
}

asks(requirement, labels) if {
	regex.match(`^karpenter\.k8s\.aws/instance-(gpu|accelerator)-`, requirement.key)
	not requirement.operator in {"DoesNotExist", "NotIn"}
	labels[requirement.key]
}
