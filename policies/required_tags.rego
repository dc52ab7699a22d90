# METADATA
# title: Required tags
# description: |
#   Asks every EC2NodeClass for the tags by which instances and volumes are
#   accounted for. Off unless data.policy.tags.enabled is true.
# schemas:
#   - input: schema.spec
package reeve.spec.required_tags

settings := data.policy.tags

default required := {}

required := settings.required if settings.enabled == true

# METADATA
# title: A tag is missing
# description: spec.tags of an EC2NodeClass has every key of data.policy.tags.required.
# custom:
#   id: REEVE-TAG-001
#   severity: error
#   remediation: Add the tag to spec.tags of the EC2NodeClass.
deny contains finding if {
	some name, class in input.fleet.nodeClasses
	some key, values in required
	not is_set(class, key)
	finding := {
		"msg": sprintf("EC2NodeClass %q has no tag %q%s", [name, key, choice(values)]),
		"resource": sprintf("EC2NodeClass/%s", [name]),
		"path": ["nodeClasses", name, "spec", "tags"],
	}
}

# METADATA
# title: A tag has a value that is not allowed
# description: |
#   Where data.policy.tags.required lists values for a key, the tag has one of
#   them. In a value * stands for any characters.
# custom:
#   id: REEVE-TAG-002
#   severity: error
#   remediation: Use one of the values of data.policy.tags.required.
deny contains finding if {
	some name, class in input.fleet.nodeClasses
	some key, values in required
	value := class.spec.tags[key]
	count(values) > 0
	not allowed(value, values)
	finding := {
		"msg": sprintf("the tag %q is %q%s", [key, value, choice(values)]),
		"resource": sprintf("EC2NodeClass/%s", [name]),
		"path": ["nodeClasses", name, "spec", "tags", key],
	}
}

is_set(class, key) if is_string(class.spec.tags[key])

allowed(value, values) if {
	some pattern in values
	glob.match(pattern, null, value)
}

choice(values) := "" if count(values) == 0

choice(values) := sprintf(": want %s", [concat(" or ", [sprintf("%q", [v]) | some v in values])]) if count(values) > 0
