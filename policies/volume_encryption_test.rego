package reeve.spec.volume_encryption_test

import data.reeve.spec.volume_encryption

judge(spec, settings) := found if {
	found := volume_encryption.deny with input as {"fleet": {"nodeClasses": {"default": {"spec": spec}}}}
		with data.policy.volumeEncryption as object.union({"enabled": true}, settings)
}

plain := {"blockDeviceMappings": [
	{"deviceName": "/dev/xvda", "ebs": {"encrypted": true}},
	{"deviceName": "/dev/xvdb", "ebs": {"volumeSize": "20Gi"}},
	{"ebs": {"encrypted": false}},
]}

at(index) := ["nodeClasses", "default", "spec", "blockDeviceMappings", index, "ebs", "encrypted"]

test_volumes_that_are_not_encrypted_are_refused if {
	judge(plain, {}) == {
		{"msg": `the volume /dev/xvdb of EC2NodeClass "default" is not encrypted`, "resource": "EC2NodeClass/default", "path": at("1")},
		{"msg": `the volume 2 of EC2NodeClass "default" is not encrypted`, "resource": "EC2NodeClass/default", "path": at("2")},
	}
}

test_the_volumes_of_an_image_are_not_known if {
	custom := {"amiFamily": "Custom"}
	judge(custom, {}) == {{
		"msg": `EC2NodeClass "default" has the volumes of its image, and whether they are encrypted is not known`,
		"resource": "EC2NodeClass/default",
		"path": ["nodeClasses", "default", "spec", "amiFamily"],
	}}
	count(judge(object.union(custom, {"blockDeviceMappings": [{"ebs": {"encrypted": true}}]}), {})) == 0
}

test_the_volumes_of_an_ami_family_are_encrypted if count(judge({"amiFamily": "AL2023"}, {})) == 0

test_it_is_off_unless_switched_on if {
	count(judge(object.union(plain, {"amiFamily": "Custom"}), {"enabled": false})) == 0
	found := volume_encryption.deny with input as {"fleet": {"nodeClasses": {"default": {"spec": plain}}}} with data.policy as {}
	count(found) == 0
}
