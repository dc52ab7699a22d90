// Package disruption decides which nodes to remove or to replace by cheaper
// ones, and how many at a time a NodePool's budgets allow.
//
// Propose is a pure function of the snapshot, the fleet and the catalog, and
// gives the next command: nodes to delete, with at most one node to make in
// their place. Rules are those of Karpenter 1.14 (pkg/controllers/disruption):
// who is a candidate, what disruption costs, empty nodes first, then several
// nodes at once, then single ones; a replacement has to be cheaper than what it
// replaces even at its dearest offering. Validate says what is left of a
// command after its waiting time.
//
// What it does better: where Karpenter looks only at the first so many nodes of
// a ranking, sets of nodes are searched for by what they save. The effort is
// counted in steps, never in time, and all sums are whole numbers, so that a
// replay finds the same.
package disruption
