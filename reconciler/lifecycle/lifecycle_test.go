package lifecycle

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/resources"
)

var t0 = time.Date(2026, 4, 6, 12, 0, 0, 0, time.UTC)

const providerID = "aws:///ap-northeast-2a/i-1"

// claimed is a claim one step after the other.
func claimed(edit ...func(*cluster.Node)) *cluster.Node {
	n := &cluster.Node{Claim: &cluster.Claim{Name: "default-abc", Created: t0, Requests: resources.List{"cpu": 5150, "pods": 7}}}
	for _, e := range edit {
		e(n)
	}
	return n
}

func launched(n *cluster.Node) {
	n.ProviderID, n.Claim.ProviderID = providerID, providerID
	n.Claim.Conditions.Launched, n.Claim.Conditions.LaunchedAt = true, t0.Add(time.Second)
}

func joined(n *cluster.Node) {
	launched(n)
	n.Name = "ip-1"
	n.Taints = []corev1.Taint{karpv1.UnregisteredNoExecuteTaint}
}

func registered(n *cluster.Node) {
	joined(n)
	n.Taints = nil
	n.Ready = true
	n.Claim.Conditions.Registered = true
	n.Allocatable = resources.List{"cpu": 7910, "pods": 58}
}

func deleting(n *cluster.Node) { n.Deleting, n.DeletedAt = true, t0 }

func drained(n *cluster.Node) { n.Claim.Conditions.Drained = true }

func gone(n *cluster.Node) { n.Claim.InstanceState = cluster.InstanceGone }

func TestNextActionOfAClaim(t *testing.T) {
	gpu := func(n *cluster.Node) { n.Claim.Requests = resources.List{"cpu": 1, "nvidia.com/gpu": 1} }
	cni := corev1.Taint{Key: "cni", Value: "pending", Effect: corev1.TaintEffectNoSchedule}
	one := Evidence{Nodes: []string{"ip-1"}}
	tests := []struct {
		name  string
		node  *cluster.Node
		with  Evidence
		after time.Duration
		want  Step
	}{
		{"a node that is not ours is left alone", &cluster.Node{Name: "managed"}, one, 0, Step{Action: Done}},
		{"a new claim is launched", claimed(), Evidence{}, time.Second,
			Step{Action: Launch, Claim: "default-abc", Deadline: t0.Add(5 * time.Minute)}},
		{"it is launched again just before the time-out", claimed(), Evidence{}, 5*time.Minute - 1,
			Step{Action: Launch, Claim: "default-abc", Deadline: t0.Add(5 * time.Minute)}},
		{"without instance it times out after five minutes", claimed(), Evidence{}, 5 * time.Minute,
			Step{Action: TimeOut, Claim: "default-abc", Reason: "launch_timeout", Message: "no instance was launched within 5m0s"}},
		{"a claim whose launch failed is given up at once", claimed(func(n *cluster.Node) {
			n.Claim.Conditions.LaunchFailed = "InsufficientCapacity: EC2 has no m5.large: none at all"
		}), Evidence{}, time.Second,
			Step{Action: GiveUp, Claim: "default-abc", Reason: "InsufficientCapacity", Message: "EC2 has no m5.large: none at all"}},
		{"a launched claim waits for its node", claimed(launched), Evidence{}, time.Minute,
			Step{Action: Wait, Claim: "default-abc", Reason: "NodeNotFound", Deadline: t0.Add(15 * time.Minute),
				Message: "no node with the provider id aws:///ap-northeast-2a/i-1 has joined"}},
		{"without node it times out after fifteen minutes", claimed(launched), Evidence{}, 15 * time.Minute,
			Step{Action: TimeOut, Claim: "default-abc", Reason: "registration_timeout",
				Message: "no node registered within 15m0s: no node with the provider id aws:///ap-northeast-2a/i-1 has joined"}},
		{"two nodes with one provider id are not registered", claimed(launched), Evidence{Nodes: []string{"ip-1", "ip-2"}}, 0,
			Step{Action: Wait, Claim: "default-abc", Reason: "MultipleNodesFound", Deadline: t0.Add(15 * time.Minute),
				Message: "the provider id aws:///ap-northeast-2a/i-1 is that of ip-1 and ip-2"}},
		{"a node that has joined is registered before it is ready", claimed(joined), one, time.Minute,
			Step{Action: Register, Claim: "default-abc", Node: "ip-1"}},
		{"a node that joins at the last moment is registered", claimed(joined), one, 16 * time.Minute,
			Step{Action: Register, Claim: "default-abc", Node: "ip-1"}},
		{"a complete node is initialized", claimed(registered), one, time.Minute,
			Step{Action: Initialize, Claim: "default-abc", Node: "ip-1"}},
		{"a node that is not ready waits without time-out", claimed(registered, func(n *cluster.Node) { n.Ready = false }), one, 24 * time.Hour,
			Step{Action: Wait, Claim: "default-abc", Node: "ip-1", Reason: "NodeNotReady", Message: "the node is not ready"}},
		{"a startup taint is waited for whatever its value", claimed(registered, func(n *cluster.Node) {
			n.Claim.StartupTaints = []corev1.Taint{cni}
			n.Taints = []corev1.Taint{{Key: "cni", Value: "other", Effect: corev1.TaintEffectNoSchedule}}
		}), one, 0, Step{Action: Wait, Claim: "default-abc", Node: "ip-1", Reason: "StartupTaintsExist",
			Message: "startup taint cni=other:NoSchedule is still there"}},
		{"a taint that nobody announced does not hold it up", claimed(registered, func(n *cluster.Node) { n.Taints = []corev1.Taint{cni} }), one, 0,
			Step{Action: Initialize, Claim: "default-abc", Node: "ip-1"}},
		{"an ephemeral taint is waited for", claimed(registered, func(n *cluster.Node) {
			n.Taints = []corev1.Taint{{Key: "readiness.k8s.io/net", Effect: corev1.TaintEffectNoSchedule}}
		}), one, 0, Step{Action: Wait, Claim: "default-abc", Node: "ip-1", Reason: "KnownEphemeralTaintsExist",
			Message: "taint readiness.k8s.io/net:NoSchedule is still there"}},
		{"a device that no plugin registered yet is waited for", claimed(registered, gpu), one, 0,
			Step{Action: Wait, Claim: "default-abc", Node: "ip-1", Reason: "ResourceNotRegistered", Message: "the node does not offer nvidia.com/gpu yet"}},
		{"a node that vanished before it was initialized is waited for", claimed(registered), Evidence{}, 0,
			Step{Action: Wait, Claim: "default-abc", Node: "ip-1", Reason: "NodeNotFound", Message: "the node is gone"}},
		{"an initialized node is done", claimed(registered, func(n *cluster.Node) { n.Claim.Conditions.Initialized = true }), one, 0,
			Step{Action: Done, Claim: "default-abc", Node: "ip-1"}},
		{"a deleted claim that has not registered is terminated without drain", claimed(joined, deleting), one, time.Hour,
			Step{Action: Terminate, Claim: "default-abc", Node: "ip-1"}},
		{"a deleted claim without node is terminated", claimed(launched, deleting), Evidence{}, time.Hour,
			Step{Action: Terminate, Claim: "default-abc"}},
		{"a deleted claim that was never launched is let go", claimed(deleting), Evidence{}, time.Second,
			Step{Action: Finalize, Claim: "default-abc"}},
		{"the node of a deleted claim is drained first", claimed(registered, deleting), one, time.Hour,
			Step{Action: Evacuate, Claim: "default-abc", Node: "ip-1"}},
		{"a drained node is terminated", claimed(registered, deleting, drained), one, time.Hour,
			Step{Action: Terminate, Claim: "default-abc", Node: "ip-1"}},
		{"a node whose instance somebody else ended is let go without drain", claimed(registered, deleting, gone, func(n *cluster.Node) { n.Ready = false }), one, time.Hour,
			Step{Action: Finalize, Claim: "default-abc", Node: "ip-1"}},
		{"an instance that is terminated is as good as gone", claimed(registered, deleting, func(n *cluster.Node) { n.Ready, n.Claim.InstanceState = false, "terminated" }), one, time.Hour,
			Step{Action: Finalize, Claim: "default-abc", Node: "ip-1"}},
		{"not while it shuts down", claimed(registered, deleting, func(n *cluster.Node) { n.Ready, n.Claim.InstanceState = false, "shutting-down" }), one, time.Hour,
			Step{Action: Evacuate, Claim: "default-abc", Node: "ip-1"}},
		{"not while a kubelet reports", claimed(registered, deleting, gone), one, time.Hour,
			Step{Action: Evacuate, Claim: "default-abc", Node: "ip-1"}},
		{"unless the instance was terminated by us", claimed(registered, deleting, drained, gone, func(n *cluster.Node) { n.Claim.Conditions.InstanceTerminating = true }), one, time.Hour,
			Step{Action: Finalize, Claim: "default-abc", Node: "ip-1"}},
		{"a deleted claim whose instance and node are gone is let go", claimed(launched, deleting, gone), Evidence{}, time.Hour,
			Step{Action: Finalize, Claim: "default-abc"}},
		{"nothing is let go that nobody deleted", claimed(registered, gone, func(n *cluster.Node) { n.Claim.Conditions.Initialized, n.Ready = true, false }), one, time.Hour,
			Step{Action: Done, Claim: "default-abc", Node: "ip-1"}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Next(tc.node, tc.with, t0.Add(tc.after))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheEvidenceIsReadFromTheSnapshot(t *testing.T) {
	twice := claimed(func(n *cluster.Node) {
		n.Claim.Name = "default-twice"
		launched(n)
		n.ProviderID, n.Claim.ProviderID = "aws:///a/i-9", "aws:///a/i-9"
	})
	fresh := claimed(func(n *cluster.Node) { n.Claim.Name = "default-new" })
	managed := &cluster.Node{Name: "ip-9", ProviderID: "aws:///a/i-9"}
	one := claimed(joined)
	s := (&cluster.Snapshot{Nodes: []*cluster.Node{managed, one, fresh, twice, {Name: "ip-8", ProviderID: "aws:///a/i-9"}, {Name: "bare"}}}).Seal()
	for node, want := range map[*cluster.Node][]string{one: {"ip-1"}, fresh: nil, twice: {"ip-8", "ip-9"}, managed: nil} {
		if diff := cmp.Diff(Evidence{Nodes: want}, EvidenceOf(s, node)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", node.Key(), diff)
		}
	}
}

func TestEphemeralTaintsAreKarpenters(t *testing.T) {
	tests := []struct {
		taint string
		want  bool
	}{
		{"node.kubernetes.io/not-ready:NoSchedule", true},
		{"node.kubernetes.io/not-ready:NoExecute", true},
		{"node.kubernetes.io/not-ready:PreferNoSchedule", false},
		{"node.kubernetes.io/unreachable:NoSchedule", true},
		{"node.kubernetes.io/unreachable:NoExecute", false},
		{"node.cloudprovider.kubernetes.io/uninitialized:NoSchedule", true},
		{"karpenter.sh/unregistered:NoExecute", true},
		{"karpenter.sh/unregistered:NoSchedule", false},
		{"readiness.k8s.io/x:NoExecute", true},
		{"karpenter.sh/disrupted:NoSchedule", false},
	}
	for _, tc := range tests {
		if got := IsEphemeral(taint(tc.taint)); got != tc.want {
			t.Errorf("%s: %v", tc.taint, got)
		}
	}
}
