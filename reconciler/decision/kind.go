// Package decision holds what Reeve decides as immutable values: the proposal
// of the engine, the verdict of the policies, the digests of everything both
// depended on, and the outcome. Its encoding is the format of the ledger.
package decision

import "slices"

// Kind says what a decision is about.
type Kind string

// The kinds of decision. The words are those of DESIGN.md section 2.
const (
	Accept      Kind = "accept"      // a spec commit becomes the fleet
	Reject      Kind = "reject"      // a spec commit is refused
	Revert      Kind = "revert"      // a hand edit of a spec object is undone
	Provision   Kind = "provision"   // nodes for pending pods
	Static      Kind = "static"      // nodes for a NodePool with replicas
	Consolidate Kind = "consolidate" // empty or wasteful nodes go
	Drift       Kind = "drift"       // a node no longer is as its spec says
	Expire      Kind = "expire"      // a node is too old
	Interrupt   Kind = "interrupt"   // AWS takes or stops an instance
	Repair      Kind = "repair"      // a node is unhealthy
	Liveness    Kind = "liveness"    // a claim did not become a node in time
	Delete      Kind = "delete"      // a person deleted the claim or node
	Reclaim     Kind = "reclaim"     // an instance belongs to no claim
	Adopt       Kind = "adopt"       // a claim that was not ours is taken over
	Handover    Kind = "handover"    // a new leader begins
)

// Kinds are all kinds in the order of DESIGN.md.
func Kinds() []Kind {
	return []Kind{Accept, Reject, Revert, Provision, Static, Consolidate, Drift, Expire,
		Interrupt, Repair, Liveness, Delete, Reclaim, Adopt, Handover}
}

// Valid says whether the kind is known.
func (k Kind) Valid() bool { return slices.Contains(Kinds(), k) }

// HasOutcome says whether an allowed decision of the kind leads to an outcome.
// A rejected commit changes nothing, so there is nothing to wait for.
func (k Kind) HasOutcome() bool { return k != Reject }

// FailsOpen says whether decisions of the kind go ahead by default when a
// policy gives no verdict: the node is lost anyway (DESIGN.md section 6).
func (k Kind) FailsOpen() bool { return k == Interrupt || k == Reclaim }

// State is how far an allowed decision has come.
type State string

// The states of an outcome.
const (
	Claimed     State = "claimed"     // the NodeClaim exists
	Launched    State = "launched"    // the instance exists
	Registered  State = "registered"  // the node has joined
	Initialized State = "initialized" // the node is ready for pods
	Tainted     State = "tainted"     // the node takes no new pods
	Drained     State = "drained"     // its pods are gone
	Terminated  State = "terminated"  // the instance is gone
	Failed      State = "failed"      // it could not be done; the message says why
	Dropped     State = "dropped"     // the world changed before it was done
	Abandoned   State = "abandoned"   // a later leader found it too old to begin
	Applied     State = "applied"     // specs, reverts, adoptions and handovers: done
)

// Final says whether nothing more is to come for what reached the state.
func (s State) Final() bool {
	switch s {
	case Initialized, Terminated, Failed, Dropped, Abandoned, Applied:
		return true
	default:
		return false
	}
}

// Valid says whether the state is known.
func (s State) Valid() bool {
	switch s {
	case Claimed, Launched, Registered, Initialized, Tainted, Drained, Terminated, Failed, Dropped, Abandoned, Applied:
		return true
	default:
		return false
	}
}
