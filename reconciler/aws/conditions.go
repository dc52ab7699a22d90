package aws

import (
	"slices"
	"strings"
	"time"

	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"github.com/awslabs/operatorpkg/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// condition is what a condition last was, to know when it changed.
type condition struct {
	status  metav1.ConditionStatus
	changed metav1.Time
}

// judged is the state of one part as a condition: True when reason is empty.
type judged struct {
	kind            string
	good            bool
	unknown         bool
	reason, message string
}

func judge[T any](kind string, p *resolved[T]) judged {
	return judged{kind: kind, good: p.good, unknown: p.reason == reasonPending, reason: p.reason, message: p.message}
}

// conditionsOf are the class's conditions: one for each part, and Ready, which
// sums them up. A condition that is True has its type for its reason, as
// Karpenter's have.
func (s *classState) conditionsOf(class *ec2v1.EC2NodeClass, now time.Time) []status.Condition {
	parts := []judged{
		judge(ec2v1.ConditionTypeSubnetsReady, &s.subnets), judge(ec2v1.ConditionTypeSecurityGroupsReady, &s.groups),
		judge(ec2v1.ConditionTypeAMIsReady, &s.amis), judge(ec2v1.ConditionTypeInstanceProfileReady, &s.profile),
		judge(ec2v1.ConditionTypeValidationSucceeded, &s.validation),
	}
	var bad []string
	ready := judged{kind: status.ConditionReady, good: true, unknown: true}
	for _, p := range parts {
		if !p.good {
			ready.good = false
			ready.unknown = ready.unknown && p.unknown
			bad = append(bad, p.kind)
		}
	}
	if !ready.good {
		ready.reason, ready.message = "UnhealthyDependents", "not ready: "+strings.Join(bad, ", ")+"; see these conditions"
	}
	parts = append(parts, ready)
	out := make([]status.Condition, len(parts))
	for i, p := range parts {
		out[i] = s.conditionOf(class, p, now)
	}
	return out
}

// conditionOf keeps the time at which the condition changed last. A class that
// comes with a status, such as one in the cluster, brings those times.
func (s *classState) conditionOf(class *ec2v1.EC2NodeClass, p judged, now time.Time) status.Condition {
	out := status.Condition{Type: p.kind, Status: metav1.ConditionTrue, Reason: p.kind, ObservedGeneration: class.Generation}
	if !p.good {
		out.Status, out.Reason, out.Message = metav1.ConditionFalse, p.reason, p.message
		if p.unknown {
			out.Status = metav1.ConditionUnknown
		}
	}
	before, ok := s.conditions[p.kind]
	if !ok {
		if i := slices.IndexFunc(class.Status.Conditions, func(c status.Condition) bool { return c.Type == p.kind }); i >= 0 {
			before, ok = condition{class.Status.Conditions[i].Status, class.Status.Conditions[i].LastTransitionTime}, true
		}
	}
	if !ok || before.status != out.Status {
		before = condition{out.Status, metav1.NewTime(now.UTC().Truncate(time.Second))}
	}
	if s.conditions == nil {
		s.conditions = map[string]condition{}
	}
	s.conditions[p.kind] = before
	out.LastTransitionTime = before.changed
	return out
}
