package lifecycle

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/resources"
)

// PriceAnnotation on a NodeClaim is the price of what was launched for it, in
// USD per hour.
const PriceAnnotation = "reeve.dev/price"

// FromNodeClaim takes from a NodeClaim of the API what decisions depend on. An
// annotation of ours that does not parse counts as missing: whoever may annotate
// one claim must not be able to stop the decisions about all.
func FromNodeClaim(nc *karpv1.NodeClaim) *cluster.Claim {
	out := &cluster.Claim{
		Name:          nc.Name,
		NodePool:      nc.Labels[karpv1.NodePoolLabelKey],
		Created:       nc.CreationTimestamp.UTC(),
		Decision:      nc.Annotations[cluster.DecisionAnnotation],
		Labels:        nc.Labels,
		Annotations:   nc.Annotations,
		Requests:      resources.From(nc.Spec.Resources.Requests),
		Taints:        nc.Spec.Taints,
		StartupTaints: nc.Spec.StartupTaints,
		ImageID:       nc.Status.ImageID,
		ProviderID:    nc.Status.ProviderID,
		Capacity:      resources.From(nc.Status.Capacity),
		Allocatable:   resources.From(nc.Status.Allocatable),
		Conditions:    conditions(nc),
	}
	out.Deleting = nc.DeletionTimestamp != nil
	if !nc.Status.LastPodEventTime.IsZero() {
		out.LastPodEvent = nc.Status.LastPodEventTime.UTC()
	}
	if d := nc.Spec.TerminationGracePeriod; d != nil {
		out.TerminationGracePeriod = new(fleet.Duration(d.Duration))
	}
	if ref := nc.Spec.NodeClassRef; ref != nil {
		out.NodeClass = ref.Name
	}
	if nc.Status.ProviderID != "" {
		// Before the launch these labels say what was asked for.
		out.InstanceType = nc.Labels[corev1.LabelInstanceTypeStable]
		out.Zone = nc.Labels[corev1.LabelTopologyZone]
		out.CapacityType = nc.Labels[karpv1.CapacityTypeLabelKey]
	}
	if index, err := strconv.Atoi(nc.Annotations[cluster.IndexAnnotation]); err == nil {
		out.Index = index
	}
	if price, err := resources.ParsePrice(nc.Annotations[PriceAnnotation]); err == nil && price > 0 {
		out.Price = price
	}
	return out
}

func conditions(nc *karpv1.NodeClaim) cluster.Conditions {
	at := func(kind string) (bool, time.Time) {
		for _, c := range nc.Status.Conditions {
			if c.Type == kind && c.Status == metav1.ConditionTrue {
				return true, c.LastTransitionTime.UTC()
			}
		}
		return false, time.Time{}
	}
	var out cluster.Conditions
	for _, c := range nc.Status.Conditions {
		if c.Type == karpv1.ConditionTypeLaunched && c.Status == metav1.ConditionFalse {
			out.LaunchFailed = c.Reason + ": " + c.Message
		}
	}
	out.Launched, out.LaunchedAt = at(karpv1.ConditionTypeLaunched)
	out.Registered, out.RegisteredAt = at(karpv1.ConditionTypeRegistered)
	out.Initialized, out.InitializedAt = at(karpv1.ConditionTypeInitialized)
	out.Drained, _ = at(karpv1.ConditionTypeDrained)
	out.InstanceTerminating, _ = at(karpv1.ConditionTypeInstanceTerminating)
	return out
}

// SetCondition sets a condition of the claim at the instant, and Ready, which
// is true once Launched, Registered and Initialized are. The transition time
// moves only when the status changes. Karpenter's own setter reads the wall
// clock, which a simulation must not.
func SetCondition(nc *karpv1.NodeClaim, kind string, value metav1.ConditionStatus, reason, message string, now time.Time) {
	put(nc, kind, value, reason, message, now)
	ready := metav1.ConditionTrue
	for _, k := range []string{karpv1.ConditionTypeLaunched, karpv1.ConditionTypeRegistered, karpv1.ConditionTypeInitialized} {
		if statusOf(nc, k) != metav1.ConditionTrue {
			ready = metav1.ConditionUnknown
		}
	}
	reason, message = status.ConditionReady, ""
	if ready != metav1.ConditionTrue {
		reason, message = "ReconcilingDependents", "not launched, registered and initialized yet"
	}
	put(nc, status.ConditionReady, ready, reason, message, now)
}

func put(nc *karpv1.NodeClaim, kind string, value metav1.ConditionStatus, reason, message string, now time.Time) {
	c := status.Condition{Type: kind, Status: value, Reason: cmp.Or(reason, kind), Message: message,
		ObservedGeneration: nc.Generation, LastTransitionTime: metav1.NewTime(now)}
	i := slices.IndexFunc(nc.Status.Conditions, func(o status.Condition) bool { return o.Type == kind })
	if i < 0 {
		nc.Status.Conditions = append(nc.Status.Conditions, c)
		return
	}
	if old := nc.Status.Conditions[i]; old.Status == value {
		c.LastTransitionTime = old.LastTransitionTime
	}
	nc.Status.Conditions[i] = c
}

func statusOf(nc *karpv1.NodeClaim, kind string) metav1.ConditionStatus {
	for _, c := range nc.Status.Conditions {
		if c.Type == kind {
			return c.Status
		}
	}
	return metav1.ConditionUnknown
}
