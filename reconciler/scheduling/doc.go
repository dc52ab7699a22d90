// Package scheduling plans where pending pods go: onto nodes that exist, onto
// nodes that are on their way, and onto new nodes of the fleet's NodePools.
//
// Solve is a pure function: no clock, no I/O, no randomness, no map order. The
// same input gives the same plan on every machine, which is what lets a
// recorded decision be replayed. Effort is counted in steps and never in time.
//
// Where a pod may go follows Karpenter 1.14 (SEMANTICS: pkg/controllers/
// provisioning): requests, node selector and required node affinity, taints,
// host ports, daemon overhead per NodePool and group of instance types, weight
// and limits of NodePools, available offerings. What it does better:
//
//   - Price. Karpenter opens a node and grows it until no type fits any more;
//     here the cheapest set of nodes is searched for: exactly for pods of one
//     shape and for small batches, by price-guided filling otherwise.
//   - Limits are exact within one plan, limits.nodes included, whichever of a
//     claim's launchable types the cloud picks.
//   - The terms of required node affinity are alternatives on existing nodes,
//     as they are for kube-scheduler; on new nodes they are tried in order.
//
// Preferred (soft) rules are not looked at: preferred affinity,
// ScheduleAnyway spread and PreferNoSchedule taints neither create nodes nor
// keep pods from sharing one. Hard rules that are not handled yet leave the
// pod pending under ReasonUnhandled with the rule's name; no pod is ever
// placed against a rule that was not understood. These are required pod
// affinity, required pod anti-affinity over anything but the host name,
// DoNotSchedule topology spread, volumes and resource claims.
//
// Floats appear only in the files whose numbers steer the search; every
// product in them is rounded by an explicit conversion, since a compiler may
// fuse a multiplication with an addition and processors then disagree.
package scheduling
