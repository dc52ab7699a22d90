// Package cluster holds the snapshot: everything about the cluster that a
// decision depends on, as one immutable value.
//
// A snapshot is read once a pass and written to the ledger with the decisions
// it led to, so that replay sees what the engine saw. All its lists are sorted;
// nothing in it may change after Seal.
package cluster

import (
	"cmp"
	"slices"
	"time"

	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/resources"
)

// Snapshot is the cluster at one instant.
type Snapshot struct {
	// Time of the pass that read it. It is the only clock of the engine and
	// of the policies.
	Time time.Time
	// Nodes are all nodes, and the NodeClaims that have no node yet. Sorted
	// by Key.
	Nodes []*Node
	// Pending are the pods that wait for room, sorted by Key: those a node
	// could help (SEMANTICS: provisionable).
	Pending []*Pod
	// DaemonSets are sorted by namespace and name.
	DaemonSets []*DaemonSet
	// NodeClasses carry the status (subnets, security groups, AMIs,
	// conditions) that the cloud resolved. Sorted by name; spec is empty.
	NodeClasses []*NodeClassStatus
	// Unavailable are offerings that EC2 had no capacity for a short while
	// ago. Sorted.
	Unavailable []Unavailable
	// Budgets are the PodDisruptionBudgets, sorted by Key.
	Budgets []*PodDisruptionBudget
	// Interruptions are messages about instances of ours that no decision has
	// answered yet, sorted by time and message.
	Interruptions []Interruption
	// Orphans are instances of the cluster that belong to no NodeClaim, sorted
	// by id.
	Orphans []Instance
	// Recent are decisions of the last hour, oldest first.
	Recent []Recent
	// Controller is where Reeve itself runs, as far as that is known.
	Controller Controller
}

// Controller is where a replica of Reeve runs.
type Controller struct {
	// Namespace and Pod name its pod.
	Namespace string `json:"namespace,omitempty"`
	Pod       string `json:"pod,omitempty"`
	// Node is the Kubernetes node it runs on.
	Node string `json:"node,omitempty"`
}

// NodeClassStatus is what the cloud resolved for an EC2NodeClass.
type NodeClassStatus struct {
	Name   string                   `json:"name"`
	Status ec2v1.EC2NodeClassStatus `json:"status"`
}

// Unavailable is an offering that must not be asked for until an instant
// (three minutes after EC2 refused it; AWS.md section 4).
type Unavailable struct {
	InstanceType string    `json:"instanceType"`
	Zone         string    `json:"zone"`
	CapacityType string    `json:"capacityType"`
	Until        time.Time `json:"until"`
}

// Recent is the short form of an earlier decision, for policies that limit
// rates and for the suppression of repeats.
type Recent struct {
	ID          string    `json:"id"`
	Kind        string    `json:"kind"`
	Time        time.Time `json:"time"`
	Allowed     bool      `json:"allowed"`
	NodePool    string    `json:"nodePool,omitempty"`
	Fingerprint string    `json:"fingerprint"`
	// Nodes is how many nodes it adds or removes.
	Nodes int `json:"nodes"`
	// Repeats counts how often the same proposal came again unrecorded.
	Repeats int `json:"repeats,omitempty"`
}

// Node is a node with its NodeClaim. Either may be missing: a node that is not
// ours has no claim, a claim that was only just launched has no node.
type Node struct {
	// Name of the Kubernetes node; empty until the claim has registered.
	Name string `json:"name,omitempty"`
	// ProviderID is "aws:///<zone>/<instance id>".
	ProviderID string `json:"providerID,omitempty"`
	// Claim is nil for a node that is not ours.
	Claim       *Claim            `json:"claim,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Taints      []corev1.Taint    `json:"taints,omitempty"`
	Capacity    resources.List    `json:"capacity,omitempty"`
	Allocatable resources.List    `json:"allocatable,omitempty"`
	Ready       bool              `json:"ready"`
	// Deleting says that the node or its claim has a deletion timestamp.
	Deleting bool `json:"deleting,omitempty"`
	// DeletedAt is when the claim, or without one the node, was deleted.
	DeletedAt time.Time `json:"deletedAt,omitzero"`
	// Removing is the id of the open decision that removes the node. Until it
	// is over no other may choose the node, nor count on it.
	Removing string `json:"removing,omitempty"`
	// Pods bound to the node, sorted by Key.
	Pods []*Pod `json:"-"`
	// Nominated are keys of pending pods that an open decision planned for
	// this node. The engine keeps them there while they fit.
	Nominated []string `json:"nominated,omitempty"`
	// Held are the reasons for which the node is left alone for a while, since
	// an attempt for that reason came to nothing a short while ago. Sorted.
	Held []Hold `json:"held,omitempty"`
}

// Hold keeps a node from being disrupted for one reason until an instant.
type Hold struct {
	// Reason is Karpenter's: "Empty", "Underutilized", "Drifted".
	Reason string    `json:"reason"`
	Until  time.Time `json:"until"`
}

// HeldUntil is until when the node must be left alone for the reason; zero when
// it need not be at that instant.
func (n *Node) HeldUntil(reason string, now time.Time) time.Time {
	for _, h := range n.Held {
		if h.Reason == reason && h.Until.After(now) {
			return h.Until
		}
	}
	return time.Time{}
}

// Key is the name the node is known by in records: the claim's if there is
// one, since that exists first and outlives the node.
func (n *Node) Key() string {
	if n.Claim != nil {
		return n.Claim.Name
	}
	return n.Name
}

// Initialized says whether the node takes pods on the strength of what it
// reports itself. A node that is not ours does once it is ready.
func (n *Node) Initialized() bool {
	if n.Claim == nil {
		return n.Ready
	}
	return n.Claim.Conditions.Initialized
}

// Claim is a NodeClaim.
type Claim struct {
	Name      string    `json:"name"`
	NodePool  string    `json:"nodePool"`
	NodeClass string    `json:"nodeClass"`
	Created   time.Time `json:"created"`
	// Decision that made the claim, and which of its claims it is. Empty for
	// a claim that was not ours.
	Decision string `json:"decision,omitempty"`
	Index    int    `json:"index"`
	// Labels and Annotations are those of the NodeClaim, hashes included.
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	// Requests is what the claim was made for, daemons included.
	Requests      resources.List `json:"requests,omitempty"`
	Taints        []corev1.Taint `json:"taints,omitempty"`
	StartupTaints []corev1.Taint `json:"startupTaints,omitempty"`
	// InstanceType, Zone, CapacityType, ImageID and ProviderID are known from
	// the launch on.
	InstanceType string          `json:"instanceType,omitempty"`
	Zone         string          `json:"zone,omitempty"`
	CapacityType string          `json:"capacityType,omitempty"`
	ImageID      string          `json:"imageID,omitempty"`
	ProviderID   string          `json:"providerID,omitempty"`
	Price        resources.Price `json:"price"`
	Capacity     resources.List  `json:"capacity,omitempty"`
	Allocatable  resources.List  `json:"allocatable,omitempty"`
	Conditions   Conditions      `json:"conditions"`
	// Deleting says that the claim itself, and not only its node, was deleted.
	Deleting bool `json:"deleting,omitempty"`
	// LastPodEvent is when a pod was last bound to the node, became terminal or
	// began to terminate; DaemonSet pods do not count. Zero if none has.
	LastPodEvent time.Time `json:"lastPodEvent,omitzero"`
	// TerminationGracePeriod is how long after its deletion the node may be
	// drained; nil is for ever.
	TerminationGracePeriod *fleet.Duration `json:"terminationGracePeriod,omitempty"`
	// InstanceState is EC2's word for the instance (pending, running,
	// shutting-down, terminated), or InstanceGone; empty while nobody has
	// looked.
	InstanceState string `json:"instanceState,omitempty"`
}

// InstanceGone is the state of an instance that EC2 does not know any more.
const InstanceGone = "gone"

// Instance is an EC2 instance that carries the cluster's tags.
type Instance struct {
	ID           string    `json:"id"`
	NodePool     string    `json:"nodePool,omitempty"`
	InstanceType string    `json:"instanceType,omitempty"`
	Zone         string    `json:"zone,omitempty"`
	CapacityType string    `json:"capacityType,omitempty"`
	Launched     time.Time `json:"launched,omitzero"`
	// Decision and Claim are those of its tags.
	Decision string `json:"decision,omitempty"`
	Claim    string `json:"claim,omitempty"`
}

// Interruption is a message that AWS takes, stops or will stop an instance.
type Interruption struct {
	// Kind is the detail-type of the EventBridge message, one of the constants.
	Kind string `json:"kind"`
	// Message is the id of the message.
	Message string `json:"message"`
	// Instance is the id of the instance it is about.
	Instance string `json:"instance"`
	// Time is when it was sent.
	Time time.Time `json:"time"`
	// Action is EC2's word for what happens: "terminate", "stop", or the state
	// that the instance has reached, or the event code of AWS Health.
	Action string `json:"action,omitempty"`
}

// The kinds of interruption: the detail-types of EventBridge (AWS.md section
// 7).
const (
	SpotInterruption        = "EC2 Spot Instance Interruption Warning"
	RebalanceRecommendation = "EC2 Instance Rebalance Recommendation"
	HealthEvent             = "AWS Health Event"
	StateChange             = "EC2 Instance State-change Notification"
	ReservationInterruption = "EC2 Capacity Reservation Instance Interruption Warning"
)

// PodDisruptionBudget is as much of a budget as evictions depend on.
type PodDisruptionBudget struct {
	Namespace string                `json:"namespace"`
	Name      string                `json:"name"`
	Selector  *metav1.LabelSelector `json:"selector,omitempty"`
	// Allowed is how many of its pods may be disrupted now.
	Allowed int32 `json:"allowed"`
	// AlwaysAllow says that pods that are not ready may be evicted whatever
	// Allowed is (unhealthyPodEvictionPolicy).
	AlwaysAllow bool `json:"alwaysAllow,omitempty"`
}

// Key is "namespace/name".
func (b *PodDisruptionBudget) Key() string { return b.Namespace + "/" + b.Name }

// Conditions are the conditions of a NodeClaim that Reeve acts on. The times
// are those of the transition to true, zero while it has not come.
type Conditions struct {
	Launched bool `json:"launched"`
	// LaunchFailed is why the launch was given up: "InsufficientCapacity: …".
	LaunchFailed  string    `json:"launchFailed,omitempty"`
	LaunchedAt    time.Time `json:"launchedAt,omitzero"`
	Registered    bool      `json:"registered"`
	RegisteredAt  time.Time `json:"registeredAt,omitzero"`
	Initialized   bool      `json:"initialized"`
	InitializedAt time.Time `json:"initializedAt,omitzero"`
	// Drained says that no pod is left that the termination waits for, and
	// InstanceTerminating that EC2 was told to terminate the instance.
	Drained             bool `json:"drained,omitempty"`
	InstanceTerminating bool `json:"instanceTerminating,omitempty"`
}

// DaemonSet is a DaemonSet with the shape its pods have.
type DaemonSet struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Shape     *Shape `json:"-"`
}

// Key is "namespace/name".
func (d *DaemonSet) Key() string { return d.Namespace + "/" + d.Name }

// Seal sorts every list and shares equal shapes between pods, so that two
// snapshots of the same cluster are the same value. Whoever builds a snapshot
// calls it once, before anyone reads it.
func (s *Snapshot) Seal() *Snapshot {
	slices.SortFunc(s.Nodes, compareNodes)
	slices.SortFunc(s.Pending, comparePods)
	slices.SortFunc(s.DaemonSets, func(a, b *DaemonSet) int { return cmp.Compare(a.Key(), b.Key()) })
	slices.SortFunc(s.NodeClasses, func(a, b *NodeClassStatus) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(s.Unavailable, func(a, b Unavailable) int {
		return cmp.Or(cmp.Compare(a.InstanceType, b.InstanceType), cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.CapacityType, b.CapacityType))
	})
	slices.SortFunc(s.Budgets, func(a, b *PodDisruptionBudget) int { return cmp.Compare(a.Key(), b.Key()) })
	slices.SortFunc(s.Interruptions, func(a, b Interruption) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Message, b.Message), cmp.Compare(a.Instance, b.Instance))
	})
	slices.SortFunc(s.Orphans, func(a, b Instance) int { return cmp.Compare(a.ID, b.ID) })
	shapes := map[string]*Shape{}
	share := func(sh *Shape) *Shape {
		if first, ok := shapes[sh.ID]; ok {
			return first
		}
		shapes[sh.ID] = sh
		return sh
	}
	for _, d := range s.DaemonSets {
		d.Shape = share(d.Shape)
	}
	for _, p := range s.Pending {
		p.Shape = share(p.Shape)
	}
	for _, n := range s.Nodes {
		slices.SortFunc(n.Pods, comparePods)
		slices.Sort(n.Nominated)
		slices.SortFunc(n.Held, func(a, b Hold) int { return cmp.Compare(a.Reason, b.Reason) })
		for _, p := range n.Pods {
			p.Shape = share(p.Shape)
		}
	}
	return s
}

// compareNodes puts a claim before a node that somebody has named like it.
func compareNodes(a, b *Node) int {
	rank := func(n *Node) int {
		if n.Claim != nil {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(a.Key(), b.Key()), cmp.Compare(rank(a), rank(b)))
}

// NodeOf is the node of the claim of that name, or nil. Unlike Node it never
// gives a node that is not ours and only has the name.
func (s *Snapshot) NodeOf(claim string) *Node {
	if n := s.Node(claim); n != nil && n.Claim != nil {
		return n
	}
	return nil
}

// Node is the node of that key, or nil. A claim is found before a node that is
// named like it.
func (s *Snapshot) Node(key string) *Node {
	i, found := slices.BinarySearchFunc(s.Nodes, key, func(n *Node, k string) int { return cmp.Compare(n.Key(), k) })
	if !found {
		return nil
	}
	return s.Nodes[i]
}

// NodeClass is the status of the EC2NodeClass of that name, or nil.
func (s *Snapshot) NodeClass(name string) *NodeClassStatus {
	i, found := slices.BinarySearchFunc(s.NodeClasses, name, func(c *NodeClassStatus, n string) int { return cmp.Compare(c.Name, n) })
	if !found {
		return nil
	}
	return s.NodeClasses[i]
}

func comparePods(a, b *Pod) int { return cmp.Compare(a.Key(), b.Key()) }

// DecisionAnnotation on a NodeClaim, and the tag of that name on an instance,
// hold the id of the decision that made it.
const DecisionAnnotation = "reeve.dev/decision"

// IndexAnnotation on a NodeClaim says which claim of the decision it is.
const IndexAnnotation = "reeve.dev/index"

// IsUnavailable says whether EC2 had no capacity for the offering a short while
// ago.
func (s *Snapshot) IsUnavailable(instanceType, zone, capacityType string) bool {
	return slices.ContainsFunc(s.Unavailable, func(u Unavailable) bool {
		return u.InstanceType == instanceType && u.Zone == zone && u.CapacityType == capacityType && u.Until.After(s.Time)
	})
}
