// Package policy judges fleets and proposals with Rego, in three stages: the
// spec of a fleet, the offerings that a NodePool may use, and each decision
// before anything is done.
//
// # Rules
//
// A rule is a set named deny, warn or exclude in the package of its stage
// (reeve.spec, reeve.offering, reeve.decision) or in any package below it. Its
// elements are objects {msg, resource, path, ...} or plain strings. Rules of
// package main (deny, violation, warn and exception, also with a suffix), and
// of packages that data.policy.conftest.namespaces lists, judge each NodePool
// and EC2NodeClass by itself, as conftest would.
//
// Each body of a rule is evaluated under a name of its own, which is added to
// the module when it is loaded. So every finding is known to come from one body
// at one place, and has the id, severity, title and remediation of the
// annotations there, or of the document, the package or a package above.
//
// # Verdicts
//
// Policies fail closed: an error, a missed deadline or an undefined rule is a
// violation, except for the decision kinds that a fleet lets go ahead. Given
// the same policies, input and time the verdict is the same on every machine;
// what is not, the deadline, is kept in the evaluation, and Options.Given hands
// it back when a decision is replayed.
package policy

import (
	"time"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/fleet"
)

// Stage is one of the three stages of judgement.
type Stage string

// The stages, in the order in which a fleet meets them.
const (
	StageSpec     Stage = "spec"
	StageOffering Stage = "offering"
	StageDecision Stage = "decision"
)

// stages are all stages.
var stages = []Stage{StageSpec, StageOffering, StageDecision}

// Ids of the findings that the engine makes itself.
const (
	// RuleCompile is the id of what keeps policies from being loaded.
	RuleCompile = "REEVE-REGO-001"
	// RuleVersion is the id of the warning about a file in the syntax before
	// Rego v1.
	RuleVersion = "REEVE-REGO-002"
	// RuleVerdict is the id of a finding that stands for a missing verdict.
	RuleVerdict = "REEVE-REGO-003"
	// RuleStrict is the id of the warning about rules for conftest that strict
	// mode would refuse.
	RuleStrict = "REEVE-REGO-004"
	// RuleNamespace is the id of the warning about a namespace of conftest that
	// no file is of.
	RuleNamespace = "REEVE-REGO-005"
	// RuleException is the id of the warning about an expired exception.
	RuleException = "REEVE-EXC-001"
	// RuleExceptionRule is the id of the warning about an exception to a rule
	// that there is not.
	RuleExceptionRule = "REEVE-EXC-002"
	// RuleExceptionResource is the id of the warning about an exception for an
	// object that is not in the fleet.
	RuleExceptionResource = "REEVE-EXC-003"
)

// Case is what a judgement is about and when: it gives findings their positions
// and exceptions, and evaluations their time.
type Case struct {
	// Fleet whose positions, exceptions and judge settings hold. In the spec
	// stage it is the fleet under judgement. May be nil.
	Fleet *fleet.Fleet
	// Now is the time of the pass.
	Now time.Time
	// Round counts from zero how often the proposal was judged before.
	Round int
	// Former says that the exceptions of the fleet are those of the fleet
	// before, as for the policies in force that judge a commit: nothing is said
	// of exceptions themselves then, which the commit may have put right.
	Former bool
}

// Result is what one stage says.
type Result struct {
	// Violations, Warnings and Exclusions are sorted.
	Violations []decision.Finding
	Warnings   []decision.Finding
	Exclusions []decision.Exclusion
	// Lists hold the names of the type sets in Exclusions that are referred to
	// by digest. They belong into Proposal.Lists.
	Lists map[string][]string
	// Evaluation is the record of it.
	Evaluation decision.Evaluation
}

// Verdict is the result as a decision records it. It is allowed when nothing
// is violated.
func (r Result) Verdict() decision.Verdict {
	return decision.Verdict{
		Allowed:    len(r.Violations) == 0,
		Violations: r.Violations,
		Warnings:   r.Warnings,
		Exclusions: r.Exclusions,
	}
}

// Failure is a recorded failure of a policy to give a verdict.
type Failure struct {
	Cause decision.Cause
	Error string
}

// Options are the optional settings of an Engine.
type Options struct {
	// Version of Reeve, for the labels of evaluations.
	Version string
	// Deadline of one evaluation where the case has no fleet that sets one; 5 s
	// when zero.
	Deadline time.Duration
	// Memory is by how many bytes the heap of the process may grow during one
	// evaluation; 512 MiB when zero.
	Memory uint64
	// Given returns how the evaluation of that id failed when it was recorded.
	// It is asked before each evaluation when a decision is replayed; what it
	// returns is taken instead of evaluating. May be nil.
	Given func(evaluationID string) (Failure, bool)
}

const defaultDeadline = 5 * time.Second
