# METADATA
# title: AMI pinning
# description: |
#   Says which machine images an EC2NodeClass may ask for. An image that moves,
#   such as al2023@latest, replaces nodes on a day that nobody chose.
#   Settings: data.policy.amiPinning.
# schemas:
#   - input: schema.spec
package reeve.spec.ami_pinning

settings := data.policy.amiPinning

on if settings.enabled == true

default environments := ["production"]

environments := settings.environments

allowed := {image | some image in object.get(settings, "allow", [])}

# Pinning is asked for in the environments that the fleet lists.
guarded if {
	on
	input.fleet.cluster.environment in environments
}

# Every selector term of every EC2NodeClass, with the field that it selects by.
terms contains term if {
	some name, class in input.fleet.nodeClasses
	some index, selector in class.spec.amiSelectorTerms
	fields := [field | some field in ["alias", "id", "name", "ssmParameter", "tags"]; selector[field]]
	term := {
		"resource": sprintf("EC2NodeClass/%s", [name]),
		"path": ["nodeClasses", name, "spec", "amiSelectorTerms", format_int(index, 10), fields[0]],
		"field": fields[0],
		"value": selector[fields[0]],
	}
}

pinned(term) if term.field == "id"

pinned(term) if {
	term.field == "alias"
	not endswith(term.value, "@latest")
}

listed(term) if {
	term.field in {"alias", "id"}
	term.value in allowed
}

# METADATA
# title: The image is not pinned
# description: |
#   In the guarded environments an image is named by an alias with a version or
#   by its id. Aliases ending in @latest, names, tags and SSM parameters choose
#   another image as soon as one appears.
# custom:
#   id: REEVE-AMI-001
#   severity: error
#   remediation: |
#     Name a version, such as al2023@v20260318, or an AMI id. Move to a newer
#     image by a commit of its own, so that the change can be seen and undone.
deny contains finding if {
	guarded
	some term in terms
	not pinned(term)
	finding := {
		"msg": sprintf("%s changes by itself; in environment %q pin an alias with a version or an AMI id", [shown(term), input.fleet.cluster.environment]),
		"resource": term.resource,
		"path": term.path,
	}
}

# METADATA
# title: The image is not on the list of allowed images
# description: |
#   When data.policy.amiPinning.allow lists images, no other may be used. In
#   the guarded environments an image that is not pinned is REEVE-AMI-001 only.
# custom:
#   id: REEVE-AMI-002
#   severity: error
#   remediation: Use an image of data.policy.amiPinning.allow, or add this one to it.
deny contains finding if {
	on
	count(allowed) > 0
	some term in terms
	not listed(term)
	not reported_unpinned(term)
	finding := {
		"msg": sprintf("%s is not one of the %d allowed images", [shown(term), count(allowed)]),
		"resource": term.resource,
		"path": term.path,
	}
}

reported_unpinned(term) if {
	guarded
	not pinned(term)
}

shown(term) := sprintf("the image %q", [term.value]) if term.field in {"alias", "id"}

shown(term) := sprintf("an image selected by %s", [term.field]) if not term.field in {"alias", "id"}

# METADATA
# title: The image is too old
# description: |
#   When data.policy.amiPinning.maxAgeDays is set, an alias whose version is a
#   date may not be older than that. Versions that are no dates, such as those
#   of Bottlerocket, are not judged.
# custom:
#   id: REEVE-AMI-003
#   severity: error
#   remediation: Move to a newer version of the image.
deny contains finding if {
	on
	some term in terms
	term.field == "alias"
	day := dated(term.value)
	day < oldest
	finding := {
		"msg": sprintf("the image %q is older than %d days", [term.value, settings.maxAgeDays]),
		"resource": term.resource,
		"path": term.path,
	}
}

# dated is the date in an alias as a number: 20260318 for al2023@v20260318.
dated(alias) := to_number(regex.find_all_string_submatch_n(`^[a-z0-9]+@v([0-9]{8})$`, alias, 1)[0][1])

# oldest is the first day that an image may be from, as such a number. Compared
# as numbers, dates need no calendar, so no odd version makes the rule fail.
oldest := ((date[0] * 10000) + (date[1] * 100)) + date[2] if {
	days := settings.maxAgeDays
	date := time.date(time.parse_rfc3339_ns(input.now) - ((((days * 24) * 60) * 60) * 1000000000))
}
