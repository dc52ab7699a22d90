package report

import (
	"encoding/json"
	"io"
	"time"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/resources"
)

// Plan is what would be launched and removed now, and what policy says of it.
type Plan struct {
	// Source is where the fleet was read: a directory, or a repository at a
	// commit. Commit is set in the latter case.
	Source  string `json:"source"`
	Commit  string `json:"commit,omitempty"`
	Cluster string `json:"cluster"`
	// Time is the instant that was planned for.
	Time time.Time `json:"time"`
	// Seen is the cluster that was planned on.
	Seen PlanSeen `json:"seen"`
	// Assumptions are what was taken for granted because it was not given.
	Assumptions []string `json:"assumptions"`
	// Unused are the kinds of objects that were given and that no plan depends
	// on.
	Unused []PlanUnused `json:"unused,omitempty"`
	// Steps are the decisions, in order.
	Steps []PlanStep `json:"steps"`
	// Fitting is how many pending pods find room on nodes that exist.
	Fitting int `json:"fitting"`
	// Staying is why nodes are not removed.
	Staying []PlanStaying `json:"staying,omitempty"`
	// Before is what the nodes of the fleet's NodePools cost, After what they
	// would when all steps are done.
	Before resources.Price `json:"before"`
	After  resources.Price `json:"after"`
}

// PlanSeen counts what a plan was made on.
type PlanSeen struct {
	// Nodes are those that a NodeClaim made, Others those that nothing here may
	// remove.
	Nodes  int `json:"nodes"`
	Others int `json:"others"`
	// Bound and Pending are pods.
	Bound   int `json:"bound"`
	Pending int `json:"pending"`
	// Waiting are pods that wait for something else than a node, by what.
	Waiting []PlanUnused `json:"waiting,omitempty"`
}

// PlanUnused is a number of things of a kind.
type PlanUnused struct {
	Kind  string `json:"kind"`
	Count int    `json:"count"`
}

// PlanStep is one decision of a plan.
type PlanStep struct {
	Kind decision.Kind `json:"kind"`
	// Summary is the decision in one line, as the ledger would have it.
	Summary  string `json:"summary"`
	NodePool string `json:"nodePool,omitempty"`
	// Reason is why it is proposed; Method is how a removal was found.
	Reason string `json:"reason"`
	Method string `json:"method,omitempty"`
	// Allowed is the verdict of policy.
	Allowed bool `json:"allowed"`
	// Later says that the step follows from those before it, if nothing else
	// changes; all others would be decided at once.
	Later bool `json:"later,omitempty"`
	// Launches are nodes to create, Removals nodes to remove.
	Launches []PlanLaunch    `json:"launches,omitempty"`
	Removals []decision.Node `json:"removals,omitempty"`
	// Placements are pods that find room on nodes that exist.
	Placements []decision.Placement `json:"placements,omitempty"`
	// Pending are pods that stay without a node.
	Pending []decision.Unplaced `json:"pending,omitempty"`
	// Cost is what the step adds to the price of the fleet, negative for a
	// saving.
	Cost       resources.Price      `json:"cost"`
	Violations []decision.Finding   `json:"violations,omitempty"`
	Warnings   []decision.Finding   `json:"warnings,omitempty"`
	Exclusions []decision.Exclusion `json:"exclusions,omitempty"`
}

// PlanLaunch is a node to create.
type PlanLaunch struct {
	NodePool     string          `json:"nodePool"`
	InstanceType string          `json:"instanceType"`
	Zone         string          `json:"zone"`
	CapacityType string          `json:"capacityType"`
	Price        resources.Price `json:"price"`
	// Choices is how many instance types EC2 may choose from.
	Choices int `json:"choices"`
	// NextBest are the offerings that would be next, cheapest first.
	NextBest []decision.Offering `json:"nextBest,omitempty"`
	// Filters tell how the catalog became the choices.
	Filters  []decision.Filter   `json:"filters,omitempty"`
	Requests resources.List      `json:"requests"`
	Pods     []decision.PodGroup `json:"pods"`
}

// PlanStaying is nodes that stay for one reason.
type PlanStaying struct {
	Message string `json:"message"`
	// Nodes are sorted.
	Nodes []string `json:"nodes"`
}

// OK says whether nothing is denied and no pod stays pending.
func (p *Plan) OK() bool { return !troubled(p.Steps) }

func troubled(steps []PlanStep) bool {
	for i := range steps {
		if !steps[i].Allowed || len(steps[i].Pending) > 0 {
			return true
		}
	}
	return false
}

// PlanJSON writes the plan as indented JSON.
func PlanJSON(w io.Writer, p *Plan) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(p)
}
