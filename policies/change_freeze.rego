# METADATA
# title: Change freeze
# description: |
#   Holds back what is not urgent until a day. Nodes for pending pods and what
#   follows from interruptions go on unless their kinds are listed.
#   Off unless data.policy.freeze.enabled is true.
# schemas:
#   - input: schema.decision
package reeve.decision.change_freeze

settings := data.policy.freeze

default kinds := ["consolidate", "drift", "expire"]

kinds := settings.kinds

# METADATA
# title: A change freeze is on
# description: |
#   data.policy.freeze.until is a date, meaning the start of that day in UTC, or
#   an instant in UTC (2026-01-07T08:00:00Z). Without it, or when it is written
#   otherwise, the freeze has no end.
# custom:
#   id: REEVE-FREEZE-001
#   severity: error
#   remediation: Wait for the end of the freeze, or change data.policy.freeze.
deny contains finding if {
	settings.enabled == true
	input.kind in kinds
	not over
	finding := {
		"msg": sprintf("decisions of kind %s are frozen until %s%s", [input.kind, until, reason]),
		"path": ["policy", "freeze"],
	}
}

# Dates and instants in UTC are in order as texts.
over if {
	regex.match(`^[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}:[0-9]{2}Z)?$`, settings.until)
	input.now >= settings.until
}

default until := "further notice"

until := settings.until

default reason := ""

reason := sprintf(": %s", [settings.reason])
