# METADATA
# title: Lifetime of nodes
# description: |
#   Keeps expireAfter of NodePools within bounds: nodes that live too long miss
#   security updates, and nodes that live too short disturb what runs on them.
#   Off unless data.policy.expireAfter.enabled is true.
# schemas:
#   - input: schema.spec
package reeve.spec.expire_after

settings := data.policy.expireAfter

lifetimes[name] := pool.spec.template.spec.expireAfter if some name, pool in input.fleet.nodePools

# METADATA
# title: Nodes live too long
# description: |
#   expireAfter may not be more than data.policy.expireAfter.max, nor "Never"
#   when there is one.
# custom:
#   id: REEVE-EXP-001
#   severity: error
#   remediation: Lower spec.template.spec.expireAfter of the NodePool.
deny contains finding if {
	settings.enabled == true
	some name, lifetime in lifetimes
	longer(lifetime, settings.max)
	finding := {
		"msg": sprintf("nodes of NodePool %q expire after %s, more than the %s allowed", [name, lifetime, settings.max]),
		"resource": sprintf("NodePool/%s", [name]),
		"path": ["nodePools", name, "spec", "template", "spec", "expireAfter"],
	}
}

# METADATA
# title: Nodes live too short
# description: expireAfter may not be less than data.policy.expireAfter.min.
# custom:
#   id: REEVE-EXP-002
#   severity: error
#   remediation: Raise spec.template.spec.expireAfter of the NodePool.
deny contains finding if {
	settings.enabled == true
	some name, lifetime in lifetimes
	longer(settings.min, lifetime)
	finding := {
		"msg": sprintf("nodes of NodePool %q expire after %s, less than the %s asked for", [name, lifetime, settings.min]),
		"resource": sprintf("NodePool/%s", [name]),
		"path": ["nodePools", name, "spec", "template", "spec", "expireAfter"],
	}
}

# longer compares durations; "Never" is longer than any.
longer(a, b) if {
	a == "Never"
	b != "Never"
}

longer(a, b) if {
	not "Never" in {a, b}
	time.parse_duration_ns(a) > time.parse_duration_ns(b)
}
