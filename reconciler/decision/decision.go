package decision

import (
	"encoding/json"
	"time"

	"github.com/reeve-project/reeve/reconciler/fleet"
)

// Version is the format of decisions and outcomes. A reader refuses what it
// does not know rather than guess.
const Version = "ledger.reeve.dev/v1"

// EngineVersion is raised when any answer of the engine may change. Replay
// compares only what the same engine version decided.
const EngineVersion = 1

// Decision is a proposal with the verdict on it and all it depended on. It is
// immutable once sealed.
type Decision struct {
	// Version of the format.
	Version string `json:"version"`
	// ID is the time and a digest of everything else; see Seal.
	ID   string `json:"id,omitempty"`
	Kind Kind   `json:"kind"`
	// Cluster the decision is for.
	Cluster string `json:"cluster"`
	// Mode: in observe nothing is acted on.
	Mode fleet.Mode `json:"mode"`
	// Time of the pass, UTC, in milliseconds.
	Time time.Time `json:"time"`
	// Summary is the decision in one line, as in the commit's subject.
	Summary  string   `json:"summary"`
	Verdict  Verdict  `json:"verdict"`
	Proposal Proposal `json:"proposal"`
	// Rounds is how propose and judge came to an agreement: one entry for
	// each time the policies objected and the engine was asked again.
	Rounds []Round `json:"rounds,omitempty"`
	// Evaluations are the policy evaluations, each in the shape of an OPA
	// decision log event.
	Evaluations []Evaluation `json:"evaluations,omitempty"`
	Inputs      Inputs       `json:"inputs"`
	Engine      Engine       `json:"engine"`
	// Fingerprint is the same for a proposal that comes again for the same
	// reasons; see Fingerprint.
	Fingerprint string `json:"fingerprint"`
	// Repeats counts how often the same proposal came again since it was last
	// recorded.
	Repeats int `json:"repeats,omitempty"`
}

// Inputs are digests of what the decision depended on. The things themselves
// are in the tree of the commit that records it.
type Inputs struct {
	// SpecCommit is the commit of the fleet repository in force, hexadecimal.
	SpecCommit string `json:"specCommit,omitempty"`
	// Fleet is the digest of the rendered fleet.
	Fleet string `json:"fleet,omitempty"`
	// Policies is the digest of all Rego that judged.
	Policies string `json:"policies,omitempty"`
	// Types and Prices are digests of the catalog.
	Types  string `json:"types,omitempty"`
	Prices string `json:"prices,omitempty"`
	// State is the digest of the snapshot.
	State string `json:"state,omitempty"`
}

// Engine names the versions that computed the decision.
type Engine struct {
	Version int    `json:"version"`
	OPA     string `json:"opa"`
	CUE     string `json:"cue"`
}

// Verdict is what policy says of a proposal.
type Verdict struct {
	// Allowed says whether what is left of the proposal may be done.
	Allowed    bool        `json:"allowed"`
	Violations []Finding   `json:"violations,omitempty"`
	Warnings   []Finding   `json:"warnings,omitempty"`
	Exclusions []Exclusion `json:"exclusions,omitempty"`
}

// Finding is one objection of a rule.
type Finding struct {
	// Rule is the id from the rule's annotation, or its Rego path.
	Rule     string `json:"rule"`
	Severity string `json:"severity,omitempty"`
	Title    string `json:"title,omitempty"`
	Message  string `json:"message"`
	// Resource the finding is about: "EC2NodeClass/default", "Pod/ns/name",
	// "NodeClaim/0" (the index in the proposal). Empty: the whole proposal.
	Resource string `json:"resource,omitempty"`
	// Path of the field in the fleet.
	Path fleet.Path `json:"path,omitempty"`
	// Position of that field.
	Position *fleet.Position `json:"position,omitempty"`
	// Remediation is what to do about it.
	Remediation string `json:"remediation,omitempty"`
	// Source is where the rule stands: file:line of the Rego.
	Source string `json:"source,omitempty"`
	// Exception that lets the finding pass, if one does. It then is a
	// warning.
	Exception *fleet.Exception `json:"exception,omitempty"`
	// Cause is set when the finding stands for a failure of the policy and
	// not for a rule's word.
	Cause Cause `json:"cause,omitempty"`
}

// Cause is why a policy gave no verdict.
type Cause string

// The causes.
const (
	// CauseError is an error that comes again with the same inputs.
	CauseError Cause = "error"
	// CauseDeadline depends on the machine; replay takes it as given.
	CauseDeadline Cause = "deadline"
	// CauseLimit is a bound of memory or time on reading a fleet; replay
	// takes it as given.
	CauseLimit Cause = "limit"
)

// Reproducible says whether the same inputs give the same cause anywhere.
func (c Cause) Reproducible() bool { return c != CauseDeadline && c != CauseLimit }

// Exclusion narrows the choice of offerings.
type Exclusion struct {
	Rule    string `json:"rule"`
	Message string `json:"message"`
	// NodePool the exclusion holds for.
	NodePool string `json:"nodePool,omitempty"`
	// Types that are excluded.
	Types TypeSet `json:"types"`
	// Zone and CapacityType narrow it; empty means all.
	Zone         string          `json:"zone,omitempty"`
	CapacityType string          `json:"capacityType,omitempty"`
	Position     *fleet.Position `json:"position,omitempty"`
}

// Round is one objection that was answered with another proposal.
type Round struct {
	// NodePool whose proposal was objected to.
	NodePool string `json:"nodePool,omitempty"`
	// Summary of that proposal.
	Summary string `json:"summary"`
	// Denied and Excluded are what the next proposal had to respect.
	Denied   []Finding   `json:"denied,omitempty"`
	Excluded []Exclusion `json:"excluded,omitempty"`
}

// Evaluation is one policy evaluation in the shape of OPA's decision log event
// (EventV1, v1/plugins/logs), without metrics and with the time of the pass.
type Evaluation struct {
	Labels     map[string]string `json:"labels"`
	DecisionID string            `json:"decision_id"`
	Bundles    map[string]Bundle `json:"bundles,omitempty"`
	// Path of the query: "reeve/decision".
	Path string `json:"path"`
	// Input is left out of the record, since the tree of the commit holds
	// everything it was made from; Erased says so.
	Input     json.RawMessage  `json:"input,omitempty"`
	Result    json.RawMessage  `json:"result,omitempty"`
	Erased    []string         `json:"erased,omitempty"`
	Timestamp time.Time        `json:"timestamp"`
	Custom    EvaluationCustom `json:"custom"`
}

// Bundle is the revision of a set of policies.
type Bundle struct {
	Revision string `json:"revision"`
}

// EvaluationCustom is what Reeve adds to OPA's event.
type EvaluationCustom struct {
	// Stage is "spec", "offering" or "decision".
	Stage string `json:"stage"`
	// Round counts from zero.
	Round int `json:"round"`
	// NodePool of an offering evaluation.
	NodePool string `json:"nodePool,omitempty"`
	// InputDigest is SHA-256 of the canonical input.
	InputDigest string `json:"inputDigest"`
	// Cause and Error are set when there was no result.
	Cause Cause  `json:"cause,omitempty"`
	Error string `json:"error,omitempty"`
}

// TypeSet is a set of instance types. A long one is kept once in the ledger,
// under List, and referred to.
type TypeSet struct {
	Count int `json:"count"`
	// Names are sorted; left out when List is set.
	Names []string `json:"names,omitempty"`
	// List is the digest that the names are stored under.
	List string `json:"list,omitempty"`
}
