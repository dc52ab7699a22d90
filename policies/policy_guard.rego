# METADATA
# title: Guard of policies
# description: |
#   Refuses commits that loosen rules, so that nobody changes a rule and what it
#   forbids in one go. Off unless data.policy.guard.enabled is true. It works
#   because a commit is judged by the policies in force too: a commit that
#   switches the guard off is refused by the guard.
# schemas:
#   - input: schema.spec
package reeve.spec.policy_guard

settings := data.policy.guard

# METADATA
# title: The commit loosens policies
# description: |
#   A rule, a document that rules use, policy data or the kinds that go ahead
#   without a verdict may not be removed or loosened, and the environment by which
#   rules choose stays what it is. Exceptions may be made: they name an owner and
#   an end. To loosen a rule, make an exception to this one for it, such as for
#   "Policy/amiPinning", in a commit before.
# custom:
#   id: REEVE-GUARD-001
#   severity: error
#   remediation: |
#     Leave the rule as it is, or make an exception to REEVE-GUARD-001 for the
#     resource of this finding in a commit before this one.
deny contains finding if {
	settings.enabled == true
	some change in input.diff.policies
	change.loosened
	not startswith(change.resource, "Exception/")
	finding := {
		"msg": sprintf("%s %s, which may let pass what was refused", [verbs[change.op], described(change)]),
		"resource": change.resource,
		"path": place(change),
	}
}

verbs := {"add": "adds", "change": "changes", "remove": "removes"}

described(change) := sprintf("%s (%s)", [change.resource, concat(", ", change.fields)]) if count(object.get(change, "fields", [])) > 0

described(change) := change.resource if count(object.get(change, "fields", [])) == 0

# Policy data and settings have a place in the fleet; Rego has not.
default place(_) := ["policy", "guard"]

place(change) := array.concat(["policy", name], array.slice(split(change.fields[0], "."), 0, 1)) if {
	["Policy", name] = split(change.resource, "/")
	change.op == "change"
}

place(change) := ["cluster", "judge", "failOpen"] if change.resource == "Judge/failOpen"

place(change) := ["cluster", "environment"] if change.resource == "Judge/environment"
