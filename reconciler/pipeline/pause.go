package pipeline

import (
	"time"

	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"github.com/awslabs/operatorpkg/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// launchPause is how long nothing is planned with an EC2NodeClass after EC2
	// has refused to launch with it for a reason that no repetition mends. The
	// pods would be planned for, launched for and given up every few seconds
	// otherwise, and each time recorded.
	launchPause = time.Minute
	// launchAccepted is the condition that is not true meanwhile.
	launchAccepted = "LaunchAccepted"
)

// pause is why and until when nothing is launched with a class.
type pause struct {
	// commit of the fleet: another may have corrected the class.
	commit string
	until  time.Time
	why    string
}

// pauseClass begins a pause.
func (p *Pipeline) pauseClass(now time.Time, class, why string) {
	p.pauses[class] = pause{commit: p.fleet.Commit, until: now.Add(launchPause), why: why}
}

// notePause adds the condition to the status of a class that is paused. It is a
// part of the snapshot, so that the record says why pods wait.
func (p *Pipeline) notePause(now time.Time, class string, of *ec2v1.EC2NodeClassStatus) {
	s, ok := p.pauses[class]
	if !ok {
		return
	}
	if s.commit != p.fleet.Commit || !s.until.After(now) {
		delete(p.pauses, class)
		return
	}
	of.Conditions = append(of.Conditions[:len(of.Conditions):len(of.Conditions)], status.Condition{
		Type: launchAccepted, Status: metav1.ConditionFalse, Reason: "LaunchRefused", LastTransitionTime: metav1.NewTime(s.until.Add(-launchPause)),
		Message: s.why + "; it is tried again in a minute, or with the next commit",
	})
}
