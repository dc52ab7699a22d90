# Three rules of a platform team, written once. conftest runs them on the
# rendered documents, and reeve check does the same.
package main

import rego.v1

deny contains msg if {
	input.kind == "NodePool"
	not input.spec.limits.cpu
	msg := sprintf("NodePool %s: spec.limits.cpu is missing", [input.metadata.name])
}

deny contains msg if {
	input.kind == "EC2NodeClass"
	some term in input.spec.amiSelectorTerms
	endswith(term.alias, "@latest")
	msg := sprintf("EC2NodeClass %s: %s changes by itself", [input.metadata.name, term.alias])
}

deny contains msg if {
	input.kind == "NodePool"
	input.spec.template.spec.expireAfter == "Never"
	msg := sprintf("NodePool %s: nodes never expire", [input.metadata.name])
}
