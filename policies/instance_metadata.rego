# METADATA
# title: Instance metadata
# description: |
#   Keeps the credentials of nodes from whatever can make a node send a request:
#   asks for IMDSv2 and bounds how far its answers go. Off unless
#   data.policy.instanceMetadata.enabled is true.
# schemas:
#   - input: schema.spec
package reeve.spec.instance_metadata

settings := data.policy.instanceMetadata

default max_hops := 1

max_hops := settings.maxHops

# The classes whose nodes answer at all. What is left out is what Karpenter's
# CRD fills in: endpoint enabled, tokens required, one hop.
answering[name] := options if {
	settings.enabled == true
	some name, class in input.fleet.nodeClasses
	options := object.get(class.spec, "metadataOptions", {})
	object.get(options, "httpEndpoint", "enabled") == "enabled"
}

# METADATA
# title: Instance metadata can be read without a token
# description: spec.metadataOptions.httpTokens of an EC2NodeClass is "required", which means IMDSv2.
# custom:
#   id: REEVE-IMDS-001
#   severity: error
#   remediation: 'Set spec.metadataOptions.httpTokens of the EC2NodeClass to "required".'
deny contains finding if {
	some name, options in answering
	object.get(options, "httpTokens", "required") != "required"
	finding := {
		"msg": sprintf("nodes of EC2NodeClass %q answer IMDSv1, which asks for no token", [name]),
		"resource": sprintf("EC2NodeClass/%s", [name]),
		"path": ["nodeClasses", name, "spec", "metadataOptions", "httpTokens"],
	}
}

# METADATA
# title: Instance metadata goes too far
# description: |
#   spec.metadataOptions.httpPutResponseHopLimit of an EC2NodeClass is at most
#   data.policy.instanceMetadata.maxHops, which is 1 unless set. With one hop pods
#   that do not use the network of the node cannot read its credentials.
# custom:
#   id: REEVE-IMDS-002
#   severity: error
#   remediation: Lower spec.metadataOptions.httpPutResponseHopLimit of the EC2NodeClass.
deny contains finding if {
	some name, options in answering
	hops := object.get(options, "httpPutResponseHopLimit", 1)
	hops > max_hops
	finding := {
		"msg": sprintf("metadata of nodes of EC2NodeClass %q goes %d hops, more than the %d allowed", [name, hops, max_hops]),
		"resource": sprintf("EC2NodeClass/%s", [name]),
		"path": ["nodeClasses", name, "spec", "metadataOptions", "httpPutResponseHopLimit"],
	}
}
