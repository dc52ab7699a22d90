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
	some zone, kinds in dear
	some kind, types in kinds
	choice := {
		"msg": sprintf("a node may cost $%v/h at most", [ceiling.usd]),
		"instanceTypes": types,
		"zone": zone,
		"capacityType": kind,
		"path": ceiling.path,
	}
}

# dear are the types above the ceiling by zone and capacity type.
dear[zone][kind] contains name if {
	limit := ceiling.usd
	some name, type in input.instanceTypes
	some offering in type.offerings
	offering.price > limit
	zone := offering.zone
	kind := offering.capacityType
}

default own := {}

own := settings.nodePools[input.nodePool.metadata.name]

ceiling := {"usd": own.node, "path": ["policy", "priceCeilings", "nodePools", input.nodePool.metadata.name, "node"]}

ceiling := {"usd": settings.node, "path": ["policy", "priceCeilings", "node"]} if not own.node
