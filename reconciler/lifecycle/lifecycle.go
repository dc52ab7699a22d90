// Package lifecycle is the state machine of a NodeClaim: what has to be done
// next so that a claim becomes a node that takes pods.
//
// Everything here is a pure function of the snapshot. The conditions, their
// reasons and the time-outs are those of Karpenter v1.14.0
// (pkg/controllers/nodeclaim/lifecycle).
package lifecycle

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/cluster"
)

const (
	// LaunchTimeout is how long a claim may go without an instance.
	LaunchTimeout = 5 * time.Minute
	// RegistrationTimeout is how long a claim may go without a node. Both
	// clocks start with the claim. There is none for initialization: a node
	// that has joined may hold pods.
	RegistrationTimeout = 15 * time.Minute
)

// Action is what to do next about a claim.
type Action string

// The actions.
const (
	// Launch: ask the cloud for an instance.
	Launch Action = "launch"
	// Register: the node is there; give it what the claim says and let pods on.
	Register Action = "register"
	// Initialize: the node is complete; say so.
	Initialize Action = "initialize"
	// Wait: nothing can be done before somebody else acts.
	Wait Action = "wait"
	// TimeOut: the claim did not become a node in time and is to be deleted.
	TimeOut Action = "time out"
	// GiveUp: the launch has failed for good and the claim is to be deleted.
	GiveUp Action = "give up"
	// Evacuate: the claim is being deleted and its node is not drained; see
	// NextDrain.
	Evacuate Action = "drain"
	// Terminate: the claim is being deleted and no pod is left to wait for;
	// the instance is to be terminated.
	Terminate Action = "terminate"
	// Finalize: the claim is being deleted and it has no instance, or none any
	// more; the finalizers are to be removed.
	Finalize Action = "finalize"
	// Done: nothing is left to do.
	Done Action = "done"
)

// Reasons why a claim waits or is given up: those of Karpenter's conditions and
// metrics. A claim whose launch failed has the reason of that failure.
const (
	ReasonNodeNotFound          = "NodeNotFound"
	ReasonMultipleNodesFound    = "MultipleNodesFound"
	ReasonNodeNotReady          = "NodeNotReady"
	ReasonStartupTaintsExist    = "StartupTaintsExist"
	ReasonEphemeralTaintsExist  = "KnownEphemeralTaintsExist"
	ReasonResourceNotRegistered = "ResourceNotRegistered"
	ReasonLaunchTimeout         = "launch_timeout"
	ReasonInsufficientCapacity  = "InsufficientCapacity"
	ReasonNodeClassNotReady     = "NodeClassNotReady"
	ReasonLaunchFailed          = "LaunchFailed"
	ReasonRegistrationTimeout   = "registration_timeout"
)

// Evidence is what a claim's next action depends on besides the claim and its
// node.
type Evidence struct {
	// Nodes are the names of all nodes with the claim's provider id.
	Nodes []string
}

// Step is the next action with its reason.
type Step struct {
	Action Action
	// Claim is the name of the NodeClaim.
	Claim string
	// Node to register or initialize.
	Node string
	// Reason is set for Wait, TimeOut and GiveUp.
	Reason string
	// Message is the reason in full.
	Message string
	// Deadline is when a claim that keeps waiting times out; zero if never.
	Deadline time.Time
}

// EvidenceOf is the evidence of the snapshot about the node's claim. A claim
// without an instance has none.
func EvidenceOf(s *cluster.Snapshot, node *cluster.Node) Evidence {
	var e Evidence
	if node.Claim == nil || node.Claim.ProviderID == "" {
		return e
	}
	for _, n := range s.Nodes {
		if n.Name != "" && n.ProviderID == node.Claim.ProviderID {
			e.Nodes = append(e.Nodes, n.Name)
		}
	}
	slices.Sort(e.Nodes)
	return e
}

// Next is the next action for the claim of the node at the instant. A node
// without claim is not ours, and done.
func Next(n *cluster.Node, e Evidence, now time.Time) Step {
	switch {
	case n.Claim == nil:
		return Step{Action: Done}
	case n.Deleting:
		return Step{Action: ending(n), Claim: n.Claim.Name, Node: n.Name}
	case !n.Claim.Conditions.Launched:
		return launch(n.Claim, now)
	case !n.Claim.Conditions.Registered:
		return register(n, e, now)
	case !n.Claim.Conditions.Initialized:
		return initialize(n, e)
	default:
		return Step{Action: Done, Claim: n.Claim.Name, Node: n.Name}
	}
}

// ending is what a claim that is being deleted needs next. A node that has not
// registered holds no pod that anybody waits for, and what was never launched
// need not be terminated.
func ending(n *cluster.Node) Action {
	c := n.Claim.Conditions
	switch {
	case n.Claim.ProviderID == "" || Vanished(n):
		return Finalize
	case n.Name != "" && c.Registered && !c.Drained:
		return Evacuate
	default:
		return Terminate
	}
}

func launch(c *cluster.Claim, now time.Time) Step {
	deadline := c.Created.Add(LaunchTimeout)
	switch {
	case c.Conditions.LaunchFailed != "":
		reason, message, _ := strings.Cut(c.Conditions.LaunchFailed, ": ")
		return Step{Action: GiveUp, Claim: c.Name, Reason: reason, Message: message}
	case !now.Before(deadline):
		return Step{Action: TimeOut, Claim: c.Name, Reason: ReasonLaunchTimeout,
			Message: fmt.Sprintf("no instance was launched within %s", LaunchTimeout)}
	default:
		return Step{Action: Launch, Claim: c.Name, Deadline: deadline}
	}
}

// register comes before the time-out: a node that joins in the last moment is
// worth more than the rule.
func register(n *cluster.Node, e Evidence, now time.Time) Step {
	out := Step{Action: Register, Claim: n.Claim.Name}
	switch len(e.Nodes) {
	case 1:
		out.Node = e.Nodes[0]
		return out
	case 0:
		out.Reason, out.Message = ReasonNodeNotFound, "no node with the provider id "+n.Claim.ProviderID+" has joined"
	default:
		out.Reason, out.Message = ReasonMultipleNodesFound,
			"the provider id "+n.Claim.ProviderID+" is that of "+strings.Join(e.Nodes, " and ")
	}
	deadline := n.Claim.Created.Add(RegistrationTimeout)
	if now.Before(deadline) {
		out.Action, out.Deadline = Wait, deadline
		return out
	}
	out.Action, out.Reason = TimeOut, ReasonRegistrationTimeout
	out.Message = fmt.Sprintf("no node registered within %s: %s", RegistrationTimeout, out.Message)
	return out
}

func initialize(n *cluster.Node, e Evidence) Step {
	out := Step{Action: Wait, Claim: n.Claim.Name, Node: n.Name}
	if len(e.Nodes) != 1 {
		out.Reason, out.Message = ReasonNodeNotFound, "the node is gone"
		return out
	}
	if !n.Ready {
		out.Reason, out.Message = ReasonNodeNotReady, "the node is not ready"
		return out
	}
	if t := firstTaint(n.Taints, func(t corev1.Taint) bool { return contains(n.Claim.StartupTaints, t) }); t != nil {
		out.Reason, out.Message = ReasonStartupTaintsExist, "startup taint "+t.ToString()+" is still there"
		return out
	}
	if t := firstTaint(n.Taints, IsEphemeral); t != nil {
		out.Reason, out.Message = ReasonEphemeralTaintsExist, "taint "+t.ToString()+" is still there"
		return out
	}
	for _, name := range n.Claim.Requests.Names() {
		if n.Claim.Requests[name] > 0 && n.Allocatable[name] == 0 {
			out.Reason, out.Message = ReasonResourceNotRegistered, "the node does not offer "+string(name)+" yet"
			return out
		}
	}
	out.Action = Initialize
	return out
}

func firstTaint(taints []corev1.Taint, match func(corev1.Taint) bool) *corev1.Taint {
	i := slices.IndexFunc(taints, match)
	if i < 0 {
		return nil
	}
	return &taints[i]
}

func contains(taints []corev1.Taint, t corev1.Taint) bool {
	return slices.ContainsFunc(taints, func(o corev1.Taint) bool { return o.MatchTaint(&t) })
}

// IsEphemeral says whether the taint goes away by itself while a node starts:
// Karpenter's known ephemeral taints (pkg/scheduling/taints.go).
func IsEphemeral(t corev1.Taint) bool {
	switch t.Key {
	case corev1.TaintNodeNotReady:
		return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
	case corev1.TaintNodeUnreachable, "node.cloudprovider.kubernetes.io/uninitialized":
		return t.Effect == corev1.TaintEffectNoSchedule
	case karpv1.UnregisteredTaintKey:
		return t.Effect == corev1.TaintEffectNoExecute
	default:
		return strings.HasPrefix(t.Key, "readiness.k8s.io/")
	}
}
