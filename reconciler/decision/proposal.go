package decision

import (
	"time"

	"github.com/reeve-project/reeve/reconciler/requirements"
	"github.com/reeve-project/reeve/reconciler/resources"
)

// Proposal is what the engine wants to do. A provision proposal is one per
// NodePool and pass; a disruption proposal is one command. Members that do not
// apply to the kind are empty.
type Proposal struct {
	// NodePool the proposal is for, if it is for one.
	NodePool string `json:"nodePool,omitempty"`
	// Reason it was made: "5 pods pending".
	Reason string `json:"reason"`
	// Method of a consolidation: "empty", "single" or "multi".
	Method string `json:"method,omitempty"`
	// Claims are the nodes to create.
	Claims []Claim `json:"claims,omitempty"`
	// Nodes are the nodes it is about: those to remove, repair or adopt, or
	// that are interrupted.
	Nodes []Node `json:"nodes,omitempty"`
	// Placements are pods that find room on nodes that exist.
	Placements []Placement `json:"placements,omitempty"`
	// Unplaced are pods that stay pending, with why.
	Unplaced []Unplaced `json:"unplaced,omitempty"`
	// Instances are what a reclaim terminates.
	Instances []Instance `json:"instances,omitempty"`
	// Spec is the change of specs of an accept, reject or revert.
	Spec *SpecChange `json:"spec,omitempty"`
	// Handover is the change of leader.
	Handover *Leader `json:"handover,omitempty"`
	// Budgets are the disruption budgets that bounded the proposal.
	Budgets []Budget `json:"budgets,omitempty"`
	// Interruption is the message that an interrupt answers.
	Interruption *Interruption `json:"interruption,omitempty"`
	// Cost is what the proposal adds to the price of the fleet; negative for
	// a saving.
	Cost resources.Price `json:"cost"`
	// Search is the effort spent, counted in steps so that it is the same on
	// every machine.
	Search *Search `json:"search,omitempty"`
	// Lists hold the names of the type sets that are referred to by digest.
	// The ledger keeps them as files of their own.
	Lists map[string][]string `json:"-"`
}

// Claim is a node to create.
type Claim struct {
	// Index in the proposal.
	Index int `json:"index"`
	// Name of the NodeClaim. It follows from the decision's id and so is no
	// part of what the id is computed from.
	Name string `json:"name,omitempty"`
	// Group: claims of one group have the same launch input and are launched
	// by one call.
	Group     int    `json:"group"`
	NodePool  string `json:"nodePool"`
	NodeClass string `json:"nodeClass"`
	// InstanceType, Zone, CapacityType and Price are the cheapest offering,
	// which the plan counts on.
	InstanceType string          `json:"instanceType"`
	Zone         string          `json:"zone"`
	CapacityType string          `json:"capacityType"`
	Price        resources.Price `json:"price"`
	// Launchable are the types that EC2 may choose from, at most 60.
	Launchable TypeSet `json:"launchable"`
	// Cheapest are the best offerings, so that a reader sees what the choice
	// was between.
	Cheapest []Offering `json:"cheapest,omitempty"`
	// Filters tell how the catalog became the launchable types.
	Filters []Filter `json:"filters,omitempty"`
	// Requirements of the NodeClaim.
	Requirements requirements.Set `json:"requirements"`
	// Requests is the sum of pods and daemons.
	Requests resources.List `json:"requests"`
	// Daemons is the part of Requests that daemons need.
	Daemons resources.List `json:"daemons,omitempty"`
	Pods    []PodGroup     `json:"pods"`
}

// PodCount is the number of pods planned for the claim.
func (c *Claim) PodCount() int { return countPods(c.Pods) }

func countPods(groups []PodGroup) int {
	n := 0
	for _, g := range groups {
		n += len(g.Names)
	}
	return n
}

// Offering is an instance type in a zone at a price.
type Offering struct {
	InstanceType string          `json:"instanceType"`
	Zone         string          `json:"zone"`
	CapacityType string          `json:"capacityType"`
	Price        resources.Price `json:"price"`
}

// Filter is one step from the catalog to the launchable types.
type Filter struct {
	// By names the step: "NodePool requirements", "policy", "resources",
	// "offerings", "exotic", "cheapest 60".
	By string `json:"by"`
	// Left is how many types passed.
	Left int `json:"left"`
}

// PodGroup is pods of one shape and namespace.
type PodGroup struct {
	// Shape is the id of the pod shape; its content is in the ledger.
	Shape     string `json:"shape"`
	Namespace string `json:"namespace"`
	// Names are sorted.
	Names []string `json:"names"`
}

// Node is a node to remove.
type Node struct {
	// Name of the Kubernetes node, empty if it never joined.
	Name         string          `json:"name,omitempty"`
	Claim        string          `json:"claim,omitempty"`
	NodePool     string          `json:"nodePool,omitempty"`
	InstanceType string          `json:"instanceType,omitempty"`
	Zone         string          `json:"zone,omitempty"`
	CapacityType string          `json:"capacityType,omitempty"`
	ProviderID   string          `json:"providerID,omitempty"`
	Price        resources.Price `json:"price"`
	Pods         []PodGroup      `json:"pods,omitempty"`
	// Cost of disruption, in thousandths (Karpenter's RescheduleDisruptionCost).
	DisruptionCostMilli int64 `json:"disruptionCostMilli,omitempty"`
	// Detail is why this node: "AMIDrift", "AWS Health event".
	Detail string `json:"detail,omitempty"`
}

// Placement is pods that go to a node that exists or is on its way.
type Placement struct {
	// Node is the key of the node: the claim's name if it has one.
	Node string     `json:"node"`
	Pods []PodGroup `json:"pods"`
}

// Unplaced is pods that stay pending for one reason.
type Unplaced struct {
	// Reason is a constant of package scheduling: "constraint-unhandled".
	Reason string `json:"reason"`
	// Message is the reason in full.
	Message string `json:"message"`
	// Rules are the policy rules that keep them pending, if any do.
	Rules []string   `json:"rules,omitempty"`
	Pods  []PodGroup `json:"pods"`
}

// Instance is an EC2 instance.
type Instance struct {
	ID           string `json:"id"`
	InstanceType string `json:"instanceType"`
	Zone         string `json:"zone"`
	CapacityType string `json:"capacityType"`
	Claim        string `json:"claim,omitempty"`
	Decision     string `json:"decision,omitempty"`
}

// SpecChange is a commit of the fleet repository under judgement.
type SpecChange struct {
	Branch string `json:"branch"`
	// Previous is the accepted commit, empty at the first.
	Previous string `json:"previous,omitempty"`
	Commit   string `json:"commit"`
	// Tree is the Git object id of the commit's root tree.
	Tree    string `json:"tree"`
	Author  string `json:"author,omitempty"`
	Subject string `json:"subject,omitempty"`
	// Forced says that Previous is no ancestor of Commit.
	Forced bool `json:"forced,omitempty"`
	// Changes are the objects that differ.
	Changes []Change `json:"changes,omitempty"`
	// Policies are the rules, data and exceptions that differ.
	Policies []Change `json:"policies,omitempty"`
	// NodePools and NodeClasses are how many the commit has.
	NodePools   int `json:"nodePools"`
	NodeClasses int `json:"nodeClasses"`
}

// Change is one difference between two fleets.
type Change struct {
	// Op is "add", "remove" or "change".
	Op string `json:"op"`
	// Resource is "NodePool/default", or a file of policies, or a rule.
	Resource string `json:"resource"`
	// Fields are the paths below the resource that differ.
	Fields []string `json:"fields,omitempty"`
	// From and To are the values of a single field as JSON, where a revert
	// says what it undid.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
}

// Budget is what a NodePool's disruption budgets allowed for one reason.
type Budget struct {
	NodePool string `json:"nodePool"`
	// Reason is Karpenter's: "Underutilized", "Empty", "Drifted".
	Reason string `json:"reason"`
	// Allowed is the least that an active budget allows, InUse how many nodes
	// count against it already. Unlimited says that none restricts the reason.
	Allowed   int  `json:"allowed"`
	InUse     int  `json:"inUse"`
	Unlimited bool `json:"unlimited,omitempty"`
}

// Interruption is a message that AWS takes, stops or will stop an instance.
type Interruption struct {
	// Kind is the detail-type of the EventBridge message.
	Kind string `json:"kind"`
	// Message is its id, Instance what it is about, Time when it was sent.
	Message  string    `json:"message"`
	Instance string    `json:"instance"`
	Time     time.Time `json:"time"`
	// Action is EC2's word for what will happen: "terminate".
	Action string `json:"action,omitempty"`
}

// Leader is a change of leader.
type Leader struct {
	Epoch    int64  `json:"epoch"`
	Previous int64  `json:"previous"`
	Identity string `json:"identity"`
}

// Search is the effort of the engine.
type Search struct {
	// Steps are units of work.
	Steps int64 `json:"steps"`
	// Pods and Shapes are the size of the problem.
	Pods   int `json:"pods"`
	Shapes int `json:"shapes"`
	// Solver names the algorithm that gave the plan.
	Solver string `json:"solver,omitempty"`
}
