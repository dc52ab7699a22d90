# METADATA
# title: Price ceilings of nodes
# description: |
#   Keeps offerings that are too dear out of every NodePool before anything is
#   planned. Off unless data.policy.priceCeilings.enabled is true.
# schemas:
#   - input: schema.offering
package reeve.offering.price_ceilings

settings := data.policy.priceCeilings

# METADATA
# scope: document
# title: The node would be too dear
# description: |
#   No offering that costs more than data.policy.priceCeilings.node USD per hour
#   is used. A NodePool that nodePools lists with a node of its own has that
#   ceiling instead. An on-demand price may be above the ceiling while the spot
#   price of the same type is below it.
# custom:
#   id: REEVE-PRICE-001
#   severity: error
#   remediation: Use smaller types, or raise data.policy.priceCeilings.
exclude contains choice if {
	settings.enabled == true
	limit := ceiling.usd
	some kind in capacity_types
	types := {name | some name, type in input.instanceTypes; type.prices[kind].min > limit}
	count(types) > 0
	choice := {"msg": message, "instanceTypes": types, "capacityType": kind, "path": ceiling.path}
}

# Types that are too dear in some zones only, which are few: most prices are the
# same in all of them.
exclude contains choice if {
	settings.enabled == true
	limit := ceiling.usd
	some kind in capacity_types
	partly := {name |
		some name, type in input.instanceTypes
		type.prices[kind].max > limit
		type.prices[kind].min <= limit
	}
	some zone in {offering.zone | some name in partly; some offering in input.instanceTypes[name].offerings}
	types := {name |
		some name in partly
		some offering in input.instanceTypes[name].offerings
		offering.zone == zone
		offering.capacityType == kind
		offering.price > limit
	}
	count(types) > 0
	choice := {"msg": message, "instanceTypes": types, "zone": zone, "capacityType": kind, "path": ceiling.path}
}

capacity_types := ["on-demand", "reserved", "spot"]

message := sprintf("a node may cost $%v/h at most", [ceiling.usd])

default own := {}

own := settings.nodePools[input.nodePool.metadata.name]

ceiling := {"usd": own.node, "path": ["policy", "priceCeilings", "nodePools", input.nodePool.metadata.name, "node"]}

ceiling := {"usd": settings.node, "path": ["policy", "priceCeilings", "node"]} if not own.node
