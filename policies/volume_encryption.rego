# METADATA
# title: Encryption of volumes
# description: |
#   Asks for encrypted volumes. Off unless
#   data.policy.volumeEncryption.enabled is true.
# schemas:
#   - input: schema.spec
package reeve.spec.volume_encryption

settings := data.policy.volumeEncryption

# METADATA
# title: A volume is not encrypted
# description: |
#   Every EBS volume of spec.blockDeviceMappings of an EC2NodeClass says encrypted:
#   true. An EC2NodeClass without blockDeviceMappings has those of its AMI family,
#   which are encrypted, but for amiFamily Custom: it has those of the image, of
#   which nothing is known here.
# custom:
#   id: REEVE-EBS-001
#   severity: error
#   remediation: "Set encrypted: true in ebs of the block device mapping."
deny contains finding if {
	settings.enabled == true
	some name, class in input.fleet.nodeClasses
	some index, mapping in class.spec.blockDeviceMappings
	object.get(mapping, ["ebs", "encrypted"], false) != true
	finding := {
		"msg": sprintf("the volume %v of EC2NodeClass %q is not encrypted", [object.get(mapping, "deviceName", index), name]),
		"resource": sprintf("EC2NodeClass/%s", [name]),
		"path": ["nodeClasses", name, "spec", "blockDeviceMappings", format_int(index, 10), "ebs", "encrypted"],
	}
}

# METADATA
# title: The volumes are those of the image
# description: |
#   An EC2NodeClass with amiFamily Custom names its volumes in
#   spec.blockDeviceMappings, so that it can be seen that they are encrypted.
# custom:
#   id: REEVE-EBS-002
#   severity: error
#   remediation: "List the volumes in spec.blockDeviceMappings, with encrypted: true."
deny contains finding if {
	settings.enabled == true
	some name, class in input.fleet.nodeClasses
	class.spec.amiFamily == "Custom"
	count(object.get(class.spec, "blockDeviceMappings", [])) == 0
	finding := {
		"msg": sprintf("EC2NodeClass %q has the volumes of its image, and whether they are encrypted is not known", [name]),
		"resource": sprintf("EC2NodeClass/%s", [name]),
		"path": ["nodeClasses", name, "spec", "amiFamily"],
	}
}
