package cluster

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// Reschedulable says whether the pod needs room elsewhere when its node goes
// away (Karpenter, pkg/utils/pod, IsReschedulable): neither a daemon nor a
// static pod, and not about to end. A pod of a StatefulSet that is about to end
// counts, because its replacement can only be made once it is gone.
func (p *Pod) Reschedulable() bool {
	switch p.Shape.Owner.Kind {
	case ownerDaemonSet, ownerNode:
		return false
	case ownerStatefulSet:
		return true
	default:
		return !p.Terminating
	}
}

// Daemon says whether a DaemonSet made the pod.
func (p *Pod) Daemon() bool { return p.Shape.Owner.Kind == ownerDaemonSet }

// Static says whether the pod is the mirror of a static pod, which nobody but
// its kubelet can end.
func (p *Pod) Static() bool { return p.Shape.Owner.Kind == ownerNode }

// Critical says whether the pod belongs to one of the two priority classes that
// Kubernetes has for what a cluster cannot do without.
func (p *Pod) Critical() bool {
	return p.Shape.PriorityClass == "system-cluster-critical" || p.Shape.PriorityClass == "system-node-critical"
}

const (
	ownerDaemonSet   = "DaemonSet"
	ownerNode        = "Node"
	ownerStatefulSet = "StatefulSet"
)

// DoNotDisrupt says whether the annotation karpenter.sh/do-not-disrupt protects
// the pod at the instant: "true" always does, a duration does for so long after
// the pod started, and for as long as it has not. A value that is neither
// protects nothing, and problem says what is wrong with it. A pod that is about
// to end is not protected any more (Karpenter, pkg/utils/pod,
// IsDoNotDisruptActive).
func (p *Pod) DoNotDisrupt(now time.Time) (active bool, problem string) {
	until, problem := p.ProtectedUntil()
	return !until.IsZero() && now.Before(until), problem
}

// Forever is later than any instant that matters, and encodes in JSON.
var Forever = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// ProtectedUntil is when DoNotDisrupt ends by itself: zero if the pod is not
// protected, Forever if only a change of the pod ends it.
func (p *Pod) ProtectedUntil() (until time.Time, problem string) {
	value, ok := p.Shape.Annotations[karpv1.DoNotDisruptAnnotationKey]
	switch {
	case !ok || p.Terminating:
		return time.Time{}, ""
	case value == "true":
		return Forever, ""
	}
	d, err := time.ParseDuration(value)
	if err != nil || d <= 0 {
		return time.Time{}, fmt.Sprintf("annotation %s: %q protects nothing: it has to be \"true\" or a positive duration such as \"1h30m\"",
			karpv1.DoNotDisruptAnnotationKey, value)
	}
	if p.Started.IsZero() {
		return Forever, ""
	}
	return p.Started.Add(d), ""
}

// Tolerates says whether the pod tolerates the taint.
func (p *Pod) Tolerates(taint corev1.Taint) bool {
	for i := range p.Shape.Tolerations {
		if tolerates(&p.Shape.Tolerations[i], taint) {
			return true
		}
	}
	return false
}

// tolerates is the rule of the Kubernetes API: an empty effect stands for all,
// an empty key with Exists for all, and values are compared unless the operator
// is Exists. The comparing operators are behind a gate that is off by default.
func tolerates(t *corev1.Toleration, taint corev1.Taint) bool {
	if t.Effect != "" && t.Effect != taint.Effect {
		return false
	}
	switch t.Operator {
	case corev1.TolerationOpExists:
		return t.Key == "" || t.Key == taint.Key
	case corev1.TolerationOpEqual, "":
		return t.Key == taint.Key && t.Value == taint.Value
	default:
		return false
	}
}
