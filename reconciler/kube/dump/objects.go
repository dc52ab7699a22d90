package dump

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// object takes one object, or counts it.
func (r *reader) object(raw json.RawMessage, h head, line int) error {
	if h.Kind == "" {
		return r.fault(line, "an object has no kind: give what kubectl -o yaml or -o json prints")
	}
	o := &r.out.Objects
	switch h {
	case head{"v1", "Pod"}:
		return take(r, raw, h, line, true, &o.Pods, checkPod)
	case head{"v1", "Node"}:
		return take(r, raw, h, line, false, &o.Nodes, checkNode)
	case head{"apps/v1", "DaemonSet"}:
		return take(r, raw, h, line, true, &o.DaemonSets, checkDaemonSet)
	case head{"policy/v1", "PodDisruptionBudget"}:
		return take(r, raw, h, line, true, &o.Budgets, nil)
	case head{"karpenter.sh/v1", "NodeClaim"}:
		return take(r, raw, h, line, false, &o.NodeClaims, checkNodeClaim)
	case head{"karpenter.k8s.aws/v1", "EC2NodeClass"}:
		return take(r, raw, h, line, false, &r.out.NodeClasses, nil)
	case head{"scheduling.k8s.io/v1", "PriorityClass"}:
		return take(r, raw, h, line, false, &o.PriorityClasses, nil)
	default:
		r.unused[strings.TrimSpace(h.Kind+" "+h.APIVersion)]++
		return nil
	}
}

// kubernetes is a pointer to an object of the API.
type kubernetes[T any] interface {
	*T
	metav1.Object
}

// take decodes an object, checks it and keeps it.
func take[T any, P kubernetes[T]](r *reader, raw json.RawMessage, h head, line int, namespaced bool, to *[]P, check func(P) error) error {
	if err := checkExponents(raw); err != nil {
		return r.fault(line, "%s: %w", nameOf(raw, h), err)
	}
	p := P(new(T))
	// As kubectl reads them: field names are told apart by their case.
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, p); err != nil {
		return r.fault(line, "%s cannot be read: %w", nameOf(raw, h), err)
	}
	if p.GetName() == "" {
		return r.fault(line, "a %s has no metadata.name", h.Kind)
	}
	key := p.GetName()
	switch {
	case namespaced && p.GetNamespace() == "":
		p.SetNamespace(metav1.NamespaceDefault)
		fallthrough
	case namespaced:
		key = p.GetNamespace() + "/" + key
	default:
		p.SetNamespace("")
	}
	if err := checkTimes(p, &r.out.Newest); err != nil {
		return r.fault(line, "%s %s: %w", h.Kind, key, err)
	}
	if check != nil {
		if err := check(p); err != nil {
			return r.fault(line, "%s %s: %w", h.Kind, key, err)
		}
	}
	id := h.Kind + " " + key
	if r.seen[id] {
		r.out.Twice++
		return nil
	}
	r.seen[id] = true
	*to = append(*to, p)
	return nil
}

// nameOf names an object that cannot be read as what it says it is.
func nameOf(raw json.RawMessage, h head) string {
	var o struct {
		Metadata struct {
			Name      string `json:"name"`
			Namespace string `json:"namespace"`
		} `json:"metadata"`
	}
	if json.Unmarshal(raw, &o) != nil || o.Metadata.Name == "" {
		return "a " + h.Kind
	}
	if o.Metadata.Namespace == "" {
		return h.Kind + " " + o.Metadata.Name
	}
	return h.Kind + " " + o.Metadata.Namespace + "/" + o.Metadata.Name
}

// unseen says whether somebody wrote the pod and no API server has seen it: it
// has neither status nor identity.
func unseen(p *corev1.Pod) bool {
	return p.UID == "" && p.Spec.NodeName == "" && reflect.DeepEqual(p.Status, corev1.PodStatus{})
}

// makePending gives the pod the condition of one that no node has room for.
func makePending(p *corev1.Pod) {
	p.Status.Phase = corev1.PodPending
	p.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
	}}
}

// earliest and latest bound the instants that are believed. Beyond them are
// years that not every format can write.
var (
	earliest = time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC)
)

// checkTimes looks at every instant that decisions depend on, and keeps the
// newest that has passed. A deletion may be due in the future.
func checkTimes(o metav1.Object, newest *time.Time) error {
	created := o.GetCreationTimestamp()
	times := []namedTime{{"metadata.creationTimestamp", &created}}
	switch o := o.(type) {
	case *corev1.Pod:
		times = append(times, namedTime{"status.startTime", o.Status.StartTime})
	case *karpv1.NodeClaim:
		times = append(times, namedTime{"status.lastPodEventTime", &o.Status.LastPodEventTime})
		for i := range o.Status.Conditions {
			times = append(times, namedTime{fmt.Sprintf("status.conditions[%d].lastTransitionTime", i), &o.Status.Conditions[i].LastTransitionTime})
		}
	case *corev1.Node:
		for i := range o.Status.Conditions {
			times = append(times, namedTime{fmt.Sprintf("status.conditions[%d].lastHeartbeatTime", i), &o.Status.Conditions[i].LastHeartbeatTime})
		}
	}
	for _, t := range append(times, namedTime{"metadata.deletionTimestamp", o.GetDeletionTimestamp()}) {
		if t.at.IsZero() {
			continue
		}
		if t.at.Time.Before(earliest) || t.at.Time.After(latest) {
			return fmt.Errorf("%s: %s is not an instant that a cluster can tell of", t.field, t.at.UTC().Format(time.RFC3339))
		}
		if t.field != "metadata.deletionTimestamp" && t.at.After(*newest) {
			*newest = t.at.UTC()
		}
	}
	return nil
}

type namedTime struct {
	field string
	at    *metav1.Time
}
