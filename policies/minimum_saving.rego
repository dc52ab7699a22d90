# METADATA
# title: Minimum saving
# description: |
#   Leaves nodes where they are when moving their pods would save next to
#   nothing. Off unless data.policy.minimumSaving.enabled is true.
# schemas:
#   - input: schema.decision
package reeve.decision.minimum_saving

settings := data.policy.minimumSaving

# METADATA
# title: The consolidation saves too little
# description: |
#   A consolidation that moves pods has to save data.policy.minimumSaving.perHour
#   USD per hour, or data.policy.minimumSaving.percent of what the nodes cost
#   that it removes. Where both are set, one of them is enough. Empty nodes may
#   always go.
# custom:
#   id: REEVE-SAVE-001
#   severity: error
#   remediation: |
#     Nothing has to be done: the nodes stay until more can be saved. Lower
#     data.policy.minimumSaving to move pods for less.
deny contains finding if {
	settings.enabled == true
	input.kind == "consolidate"
	input.proposal.method != "empty"
	bounded
	not saves_amount
	not saves_share
	finding := {
		"msg": sprintf("it saves %s and has to save %s", [saving, wanted]),
		"path": ["policy", "minimumSaving"],
	}
}

bounded if settings.perHour

bounded if settings.percent

saved := 0 - nano(input.proposal.cost)

saves_amount if saved >= nano(settings.perHour)

# Compared by cross multiplication, which is exact.
saves_share if saved * 100 >= settings.percent * sum([nano(node.price) | some node in input.proposal.nodes])

nano(usd) := round(usd * 1000000000)

# The digits of the cost are shown as they are: a saving is a cost below zero.
saving := sprintf("$%s/h", [trim_prefix(sprintf("%v", [input.proposal.cost]), "-")]) if saved > 0

saving := "nothing" if saved <= 0

wanted := concat(" or ", array.concat(
	[sprintf("$%v/h", [usd]) | usd := settings.perHour],
	[sprintf("%v %% of what the nodes cost", [share]) | share := settings.percent],
))
