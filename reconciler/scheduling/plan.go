package scheduling

import (
	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/requirements"
	"github.com/reeve-project/reeve/reconciler/resources"
)

// MaxLaunchable is the largest number of instance types a claim offers to the
// cloud (AWS provider: pkg/providers/instance, MaxInstanceTypes).
const MaxLaunchable = 60

// Input is everything a plan depends on.
type Input struct {
	// Snapshot of the cluster, sealed.
	Snapshot *cluster.Snapshot
	// Fleet in force.
	Fleet *fleet.Fleet
	// Types by EC2NodeClass name as the catalog resolved them. A class that is
	// missing is not ready.
	Types map[string][]*catalog.InstanceType
	// NotReady says why a class has no types.
	NotReady map[string]string
	// Exclusions are what policy took out of the choice so far.
	Exclusions Exclusions
}

// Exclusions narrow the choice; they grow from round to round of propose and
// judge.
type Exclusions struct {
	// Offerings by NodePool.
	Offerings map[string][]OfferingExclusion
	// Pods is, by NodePool, the rule that keeps the pod of that key
	// ("namespace/name") off the pool.
	Pods map[string]map[string]string
}

// OfferingExclusion takes offerings out of the choice. Empty members stand for
// all.
type OfferingExclusion struct {
	// Type is the instance type.
	Type string
	// Zone is the name of the zone.
	Zone string
	// CapacityType is "spot", "on-demand" or "reserved".
	CapacityType string
	// Rule is the id of the rule that excludes them.
	Rule string
}

// Plan says where the pending pods go. Claims, placements and unplaced pods
// together hold each pending pod exactly once. It shares memory with its input
// and with itself: readers must not change it.
type Plan struct {
	// Claims are the nodes to create, in the order of their NodePools, the
	// dearest first.
	Claims []*Claim
	// Placements are pods that fit on nodes that exist or are on their way,
	// sorted by node.
	Placements []Placement
	// Unplaced are pods that stay pending, by reason.
	Unplaced []Unplaced
	// Steps is the effort spent, the same on every machine.
	Steps int64
	// Shapes is the number of kinds of pods that were told apart.
	Shapes int
	// Solver names the algorithms that gave the plan.
	Solver string
}

// Cost is the price of all new nodes at their planned offerings.
func (p *Plan) Cost() resources.Price {
	var sum resources.Price
	for _, c := range p.Claims {
		sum += c.Offering.Price
	}
	return sum
}

// Claim is a node to create.
type Claim struct {
	NodePool  string
	NodeClass string
	// Requirements of the NodePool's template (its labels included) together
	// with those of the pods.
	Requirements requirements.Set
	// Types that the cloud may choose from, cheapest first, at most
	// MaxLaunchable. Each of them holds Requests.
	Types []*catalog.InstanceType
	// InstanceType and Offering are the cheapest choice, which the plan counts
	// on.
	InstanceType string
	Offering     catalog.Offering
	// Requests is the sum of pods and daemons, Daemons the daemons' part on
	// the planned type.
	Requests resources.List
	Daemons  resources.List
	Pods     []*cluster.Pod
	// Filters tell how the types of the class became Types.
	Filters []Filter
	// Cheapest are the best offerings, at most five.
	Cheapest []Choice
}

// Filter is one step from the catalog to the launchable types.
type Filter struct {
	// By names the step.
	By string
	// Left is how many types passed.
	Left int
}

// The steps of Filter, in their order. A step that a claim does not need (no
// policy, no limits, no spot price to compare) is left out.
const (
	FilterCatalog      = "catalog"
	FilterRequirements = "NodePool requirements"
	FilterPods         = "pod requirements"
	FilterPolicy       = "policy"
	FilterOfferings    = "offerings"
	FilterLimits       = "limits"
	FilterResources    = "resources"
	FilterExotic       = "exotic"
	FilterSpotPrice    = "spot price"
	FilterCheapest     = "cheapest 60"
)

// Choice is an offering of an instance type.
type Choice struct {
	InstanceType string
	Offering     catalog.Offering
}

// Placement is pods that go to one node.
type Placement struct {
	// Node is the key of the node.
	Node string
	Pods []*cluster.Pod
}

// Unplaced is pods that stay pending for one reason.
type Unplaced struct {
	// Reason is one of the constants.
	Reason string
	// Message is the reason in full, per NodePool.
	Message string
	// Rules are the policy rules that keep them pending, sorted.
	Rules []string
	Pods  []*cluster.Pod
}

// The reasons why a pod stays pending. When NodePools differ it is the reason
// of the pool that came nearest to taking the pod.
const (
	// ReasonUnhandled is a hard rule that the engine does not handle yet.
	ReasonUnhandled = "constraint-unhandled"
	// ReasonInvalid is a selector that Kubernetes would not accept either.
	ReasonInvalid = "invalid-pod"
	// ReasonNoPool is a fleet without any NodePool.
	ReasonNoPool = "no-nodepool"
	// ReasonNotReady is a NodePool that takes no new nodes now.
	ReasonNotReady = "nodepool-not-ready"
	// ReasonPolicy is a rule of the policies.
	ReasonPolicy = "policy"
	// ReasonTaints is a taint that the pod does not tolerate.
	ReasonTaints = "taints"
	// ReasonRequirements is labels that the NodePool cannot give.
	ReasonRequirements = "requirements"
	// ReasonResources is a request that no instance type can hold.
	ReasonResources = "resources"
	// ReasonOfferings is types that fit but cannot be launched now.
	ReasonOfferings = "offerings"
	// ReasonMinValues is a minValues that cannot be reached with the pod.
	ReasonMinValues = "min-values"
	// ReasonLimits is a limit of the NodePool.
	ReasonLimits = "limits"
)
