# METADATA
# title: Price ceilings of NodePools and the fleet
# description: |
#   Bounds what a NodePool, and all of them together, may cost by the hour. Off
#   unless data.policy.priceCeilings.enabled is true. The cost is that of the
#   nodes there are, at the prices of their offerings, without those that are
#   being removed. Only new nodes for pending pods and for the replicas of static
#   NodePools are held back: what replaces a node may always be made.
# schemas:
#   - input: schema.decision
package reeve.decision.spend_ceilings

settings := data.policy.priceCeilings

adds if {
	settings.enabled == true
	input.kind in {"provision", "static"}
}

# METADATA
# title: The NodePool would cost too much
# description: |
#   The nodes of a NodePool may cost data.policy.priceCeilings.nodePool USD per
#   hour together. A NodePool that nodePools lists with a nodePool of its own has
#   that ceiling instead. New nodes are allowed one after the other as long as
#   they fit below it; the pods of the others stay pending.
# custom:
#   id: REEVE-PRICE-002
#   severity: error
#   remediation: Scale down what runs on the NodePool, or raise data.policy.priceCeilings.
deny contains finding if {
	adds
	some claim in input.proposal.claims
	ceiling := pool_ceiling(claim.nodePool)
	now := object.get(input.costs.nodePools, claim.nodePool, 0)
	exceeds(now, pool_claims(claim), ceiling.usd)
	finding := {
		"msg": sprintf("NodePool %q costs $%v/h and may cost $%v/h: there is no room for a node of $%v/h", [claim.nodePool, now, ceiling.usd, claim.price]),
		"resource": sprintf("NodeClaim/%d", [claim.index]),
		"path": ceiling.path,
	}
}

# METADATA
# title: The fleet would cost too much
# description: |
#   The nodes of all NodePools may cost data.policy.priceCeilings.fleet USD per
#   hour together. NodePools that grow in the same pass are judged one by one,
#   each by what there is before the pass.
# custom:
#   id: REEVE-PRICE-003
#   severity: error
#   remediation: Scale down what runs in the cluster, or raise data.policy.priceCeilings.fleet.
deny contains finding if {
	adds
	some claim in input.proposal.claims
	exceeds(input.costs.fleet, all_claims(claim), settings.fleet)
	finding := {
		"msg": sprintf("the fleet costs $%v/h and may cost $%v/h: there is no room for a node of $%v/h", [input.costs.fleet, settings.fleet, claim.price]),
		"resource": sprintf("NodeClaim/%d", [claim.index]),
		"path": ["policy", "priceCeilings", "fleet"],
	}
}

pool_ceiling(pool) := {"usd": usd, "path": ["policy", "priceCeilings", "nodePools", pool, "nodePool"]} if {
	usd := settings.nodePools[pool].nodePool
}

pool_ceiling(pool) := {"usd": settings.nodePool, "path": ["policy", "priceCeilings", "nodePool"]} if {
	not settings.nodePools[pool].nodePool
}

# The claim with those before it, of its NodePool and of all.
pool_claims(claim) := [c.price |
	some c in input.proposal.claims
	c.nodePool == claim.nodePool
	c.index <= claim.index
]

all_claims(claim) := [c.price | some c in input.proposal.claims; c.index <= claim.index]

# Amounts are added up in billionths of a dollar, which are whole numbers: sums
# of fractions would be a hair off, and refuse what just fits.
exceeds(now, prices, ceiling) if nano(now) + sum([nano(p) | some p in prices]) > nano(ceiling)

nano(usd) := round(usd * 1000000000)
