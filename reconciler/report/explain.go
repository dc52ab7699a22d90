package report

import (
	"encoding/json"
	"io"
	"time"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/resources"
)

// Searched says what an explanation was looked up in.
type Searched struct {
	// Branch is the decision branch, Decisions how many it has.
	Branch    string `json:"branch"`
	Decisions int    `json:"decisions"`
	// Missing are the days that a shallow clone does not have.
	Missing []string `json:"missing,omitempty"`
	// State is the instant of the last recorded state of the cluster, zero if
	// there is none.
	State time.Time `json:"state,omitzero"`
}

// Act is the head of a decision as explanations refer to it.
type Act struct {
	Decision string        `json:"decision"`
	Kind     decision.Kind `json:"kind"`
	// Method of a consolidation: "empty", "single" or "multi".
	Method string    `json:"method,omitempty"`
	Time   time.Time `json:"time"`
	// Status is the word of Status.
	Status  string `json:"status"`
	Summary string `json:"summary"`
	Reason  string `json:"reason"`
	// SpecCommit, SpecSubject and SpecAuthor are the commit in force; subject
	// and author only where the record was read from its own commit.
	SpecCommit  string `json:"specCommit,omitempty"`
	SpecSubject string `json:"specSubject,omitempty"`
	SpecAuthor  string `json:"specAuthor,omitempty"`
	// Policies is the digest of all Rego that judged.
	Policies string `json:"policies,omitempty"`
}

// Arrival is why a node came: the decision with the claim that it was made for.
type Arrival struct {
	Act   Act            `json:"act"`
	Claim decision.Claim `json:"claim"`
	// Choice is how the catalog became the choice.
	Choice Choice `json:"choice"`
	// Replaces are the nodes that the decision removes for it.
	Replaces []string `json:"replaces,omitempty"`
	// Warnings are what policy remarked and let pass.
	Warnings []decision.Finding `json:"warnings,omitempty"`
	// Rounds are the objections that were answered before.
	Rounds []decision.Round `json:"rounds,omitempty"`
	// Steps are the steps of its outcome, launch included.
	Steps []decision.Step `json:"steps,omitempty"`
}

// Choice is how the catalog became what EC2 might launch.
type Choice struct {
	Steps []ChoiceStep `json:"steps,omitempty"`
	// Note says why examples are missing from some step on.
	Note string `json:"note,omitempty"`
	// Alternatives are the next best types.
	Alternatives []Alternative `json:"alternatives,omitempty"`
}

// ChoiceStep is one step from the catalog to the launchable types.
type ChoiceStep struct {
	// By names the step, as a decision's filters do.
	By string `json:"by"`
	// Left is how many types passed, Removed how many did not.
	Left    int `json:"left"`
	Removed int `json:"removed"`
	// Known says that what was removed was worked out again from the recorded
	// inputs and agrees with Left. Without it the members below are empty.
	Known bool `json:"known"`
	// Cheaper counts those removed that cost less than what was chosen.
	Cheaper int `json:"cheaper,omitempty"`
	// Examples are the cheapest that were removed and cost less than what was
	// chosen.
	Examples []Removed `json:"examples,omitempty"`
	// Rules are the policy rules that removed them.
	Rules []string `json:"rules,omitempty"`
}

// Removed is an instance type that a step took out.
type Removed struct {
	InstanceType string `json:"instanceType"`
	// Price of its cheapest offering in the zones and capacity types asked for.
	Price resources.Price `json:"price"`
	// Why it was taken out.
	Why string `json:"why,omitempty"`
}

// Alternative is an offering that was not counted on, and what it costs more.
type Alternative struct {
	Offering decision.Offering `json:"offering"`
	More     resources.Price   `json:"more"`
}

// Departure is a decision about a node that exists: it removes, repairs or
// adopts it, or tried to.
type Departure struct {
	Act  Act           `json:"act"`
	Node decision.Node `json:"node"`
	// Together are the other nodes of the decision.
	Together []string `json:"together,omitempty"`
	// Budgets are those that bounded it.
	Budgets []decision.Budget `json:"budgets,omitempty"`
	// Saving is what the whole decision takes off the price of the fleet;
	// negative if it adds.
	Saving resources.Price `json:"saving"`
	// Replacements are the nodes that come instead.
	Replacements []Replacement `json:"replacements,omitempty"`
	// Moves are where its pods find room on nodes that exist.
	Moves        []decision.Placement   `json:"moves,omitempty"`
	Interruption *decision.Interruption `json:"interruption,omitempty"`
	// Verdict is the first judgement, when it was proposed.
	Verdict decision.Verdict `json:"verdict"`
	// Second is the judgement after the validation wait, nil if there was none.
	Second *Judgement      `json:"second,omitempty"`
	Steps  []decision.Step `json:"steps,omitempty"`
}

// Replacement is a node that comes instead of another.
type Replacement struct {
	Claim string `json:"claim"`
	decision.Offering
}

// Judgement is the second word of the policies on a disruption.
type Judgement struct {
	Time       time.Time          `json:"time"`
	Allowed    bool               `json:"allowed"`
	Violations []decision.Finding `json:"violations,omitempty"`
	// Evaluation is the id of the policy evaluation.
	Evaluation string `json:"evaluation,omitempty"`
}

// NodeStory is why a node came and why it went.
type NodeStory struct {
	Searched Searched `json:"searched"`
	// Claim, Name and Instance are its names as far as records tell.
	Claim    string `json:"claim,omitempty"`
	Name     string `json:"name,omitempty"`
	Instance string `json:"instance,omitempty"`
	NodePool string `json:"nodePool,omitempty"`
	// Offering is what it is, or was planned as.
	Offering decision.Offering `json:"offering"`
	// State is where it stands: "running" or "removing" in the last recorded
	// state, "removed", "not launched", or "unknown".
	State string `json:"state"`
	// Pods are on it in the last recorded state, DaemonSets' included.
	Pods []string `json:"pods,omitempty"`
	// Came is nil when no decision made it.
	Came *Arrival `json:"came,omitempty"`
	// Decisions about it, oldest first.
	Decisions []Departure `json:"decisions,omitempty"`
	// Joined are pods that later decisions planned for it.
	Joined []Joined `json:"joined,omitempty"`
	// Others are other claims that had the same node name.
	Others []string `json:"others,omitempty"`
}

// Joined is pods that a decision sends to a node that exists.
type Joined struct {
	Act  Act                 `json:"act"`
	Pods []decision.PodGroup `json:"pods"`
}

// PodStory is where a pod stands and how it came there.
type PodStory struct {
	Searched Searched `json:"searched"`
	// Pod is "namespace/name".
	Pod string `json:"pod"`
	// State is where it stands in the last recorded state: "running",
	// "pending", "gone", or "unknown" without one.
	State string `json:"state"`
	// Node is the key of the node that it is on.
	Node string `json:"node,omitempty"`
	// Created is when the pod was created, zero if no record tells.
	Created time.Time `json:"created,omitzero"`
	// Events are the decisions about it, oldest first.
	Events []PodEvent `json:"events,omitempty"`
	// Nodes are what became of the nodes that it was planned for.
	Nodes []Fate `json:"nodes,omitempty"`
	// Needs are what would have to change, for a pod that is pending.
	Needs []Need `json:"needs,omitempty"`
}

// The ways in which a decision is about a pod.
const (
	// PodClaim plans a new node for it.
	PodClaim = "new node"
	// PodNode plans it onto a node that exists or is on its way.
	PodNode = "existing node"
	// PodPending leaves it pending.
	PodPending = "pending"
	// PodRemoved removes the node that it is on.
	PodRemoved = "node removed"
)

// PodEvent is one decision about a pod.
type PodEvent struct {
	Act Act `json:"act"`
	// What is one of the constants.
	What string `json:"what"`
	// Node is the key of the node, where there is one.
	Node string `json:"node,omitempty"`
	// Offering is what the node was planned as, or is.
	Offering *decision.Offering `json:"offering,omitempty"`
	// Siblings are the pods that share the plan.
	Siblings []decision.PodGroup `json:"siblings,omitempty"`
	// Detail is why this node is removed.
	Detail string `json:"detail,omitempty"`
	// Unplaced is why it stays pending; its pods are left out.
	Unplaced *decision.Unplaced `json:"unplaced,omitempty"`
	// Repeats is how often the same came again since it was last recorded.
	Repeats int `json:"repeats,omitempty"`
}

// Fate is what became of a node.
type Fate struct {
	Node string `json:"node"`
	// Steps of the outcome that made it.
	Steps []decision.Step `json:"steps,omitempty"`
	// Removals are the decisions to remove it, oldest first.
	Removals []Act `json:"removals,omitempty"`
}

// Need is what would have to change for a pod that stays pending.
type Need struct {
	// NodePool it is about, if it is about one.
	NodePool string `json:"nodePool,omitempty"`
	// Obstacle is what keeps the pod off it.
	Obstacle string `json:"obstacle"`
	// Remedy is what would have to change.
	Remedy string `json:"remedy"`
}

// DecisionStory is one decision with all that explains it.
type DecisionStory struct {
	Act      Act                `json:"act"`
	Decision *decision.Decision `json:"record"`
	Outcome  *decision.Outcome  `json:"outcome,omitempty"`
	// Arrivals are the nodes that it makes, Departures those that it is about.
	Arrivals   []Arrival   `json:"arrivals,omitempty"`
	Departures []Departure `json:"departures,omitempty"`
	// Needs are what would have to change for the pods that stay pending.
	Needs []Need `json:"needs,omitempty"`
}

// ExplainJSON writes a story as indented JSON.
func ExplainJSON(w io.Writer, story any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(story)
}
