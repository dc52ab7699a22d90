package lifecycle

import (
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/cluster"
)

const (
	// MinDrainTime is how long a node is drained at least: a pod may be bound
	// to it just before the scheduler sees the taint.
	MinDrainTime = 5 * time.Second
	// StuckAfter is how long past its grace period a pod that does not end is
	// still waited for.
	StuckAfter = time.Minute
	// shortestGrace is the least that a pod is deleted with: with none the API
	// server would forget it while its containers may still run.
	shortestGrace = time.Second
)

// Drain says what comes next in emptying a node that is being deleted, as
// Karpenter does it (pkg/controllers/node/termination/terminator). No pod is in
// two of its lists, and a pod in none of them is not waited for.
type Drain struct {
	// Evict are the pods that the eviction API is to be asked for: those of the
	// first tier that is not gone yet. The tiers are what is neither critical
	// nor a daemon, daemons, critical pods, critical daemons.
	Evict []*cluster.Pod
	// Delete are the pods that are deleted past their budgets and
	// do-not-disrupt, because the node's termination grace period ends.
	Delete []ForcedDeletion
	// Waiting are pods that are only waited for: they are about to end, are
	// protected by do-not-disrupt, or are of a later tier.
	Waiting []*cluster.Pod
	// Drained says that nobody is left to wait for, or that the termination
	// grace period is over: then Delete may still name pods.
	Drained bool
	// Until is when the answer may next change by itself; zero if only the
	// pods change it.
	Until time.Time
}

// ForcedDeletion is a pod to be deleted with so much grace, in whole seconds.
type ForcedDeletion struct {
	Pod   *cluster.Pod
	Grace time.Duration
}

// NextDrain says what comes next in emptying the node at the instant. pods are
// those that the API server has on it now, without those that have ended.
//
// Not waited for are pods that tolerate the taint karpenter.sh/disrupted, static
// pods, pods that should have ended a minute ago, and pods that the scheduler
// only makes room for.
func NextDrain(node *cluster.Node, pods []*cluster.Pod, now time.Time) Drain {
	if node.Name == "" {
		return Drain{Drained: true}
	}
	d := drainer{now: now, deadline: TerminationDeadline(node)}
	earliest := node.DeletedAt.Add(MinDrainTime)
	if node.DeletedAt.IsZero() {
		// It was deleted after it was read.
		earliest = now.Add(MinDrainTime)
	}
	d.wake(earliest)
	d.wake(d.deadline)
	var tiers [4][]*cluster.Pod
	for _, p := range pods {
		if d.leaves(p) && !d.force(p) {
			tiers[tier(p)] = append(tiers[tier(p)], p)
		}
	}
	d.evict(tiers)
	left := len(d.out.Evict) + len(d.out.Delete) + len(d.out.Waiting)
	if !now.Before(earliest) && (left == 0 || d.over()) {
		d.out.Drained, d.out.Until = true, time.Time{}
	}
	return d.out
}

// TerminationDeadline is when the termination grace period of a node that is
// being deleted ends; zero if it never does. Karpenter's annotation
// karpenter.sh/nodeclaim-termination-timestamp wins over the claim's field, so
// that a deletion that Karpenter began ends when it promised.
func TerminationDeadline(n *cluster.Node) time.Time {
	if n.Claim == nil {
		return time.Time{}
	}
	if at, err := time.Parse(time.RFC3339, n.Claim.Annotations[karpv1.NodeClaimTerminationTimestampAnnotationKey]); err == nil {
		return at.UTC()
	}
	if n.Claim.TerminationGracePeriod == nil || n.DeletedAt.IsZero() {
		return time.Time{}
	}
	return n.DeletedAt.Add(time.Duration(*n.Claim.TerminationGracePeriod))
}

type drainer struct {
	now      time.Time
	deadline time.Time
	out      Drain
}

// wake has the answer looked at again at the instant, unless it has passed.
func (d *drainer) wake(at time.Time) {
	if at.After(d.now) && (d.out.Until.IsZero() || at.Before(d.out.Until)) {
		d.out.Until = at
	}
}

// over says whether the node's termination grace period has ended.
func (d *drainer) over() bool { return !d.deadline.IsZero() && !d.now.Before(d.deadline) }

// disrupted is the taint of a node that is being removed.
var disrupted = corev1.Taint{Key: karpv1.DisruptedTaintKey, Effect: corev1.TaintEffectNoSchedule}

// leaves says whether the pod has to leave before the node is drained. Once the
// grace period of the node is over, nobody waits for what ends already.
func (d *drainer) leaves(p *cluster.Pod) bool {
	if p.Preempting || p.Static() || p.Tolerates(disrupted) {
		return false
	}
	if !p.Terminating || p.Deadline.IsZero() {
		return !p.Terminating || !d.over()
	}
	stuck := p.Deadline.Add(StuckAfter)
	d.wake(stuck)
	return d.now.Before(stuck) && !d.over()
}

// force lists the pod for deletion if it has to go now to have the whole of its
// grace period before that of the node ends, and says whether it did. A pod that
// is ending already is cut short if it would outlive the node.
func (d *drainer) force(p *cluster.Pod) bool {
	if d.deadline.IsZero() || p.Terminating && !p.Deadline.After(d.deadline) {
		return false
	}
	at := d.deadline.Add(-gracePeriod(p))
	d.wake(at)
	if d.now.Before(at) {
		return false
	}
	left := d.deadline.Sub(d.now).Truncate(time.Second)
	d.out.Delete = append(d.out.Delete, ForcedDeletion{Pod: p, Grace: max(left, shortestGrace)})
	return true
}

func gracePeriod(p *cluster.Pod) time.Duration {
	if s := p.Shape.GracePeriodSeconds; s != nil {
		// What is longer than a duration can be is as long as one can be.
		return time.Duration(min(max(*s, 0), int64(math.MaxInt64/time.Second))) * time.Second
	}
	return corev1.DefaultTerminationGracePeriodSeconds * time.Second
}

// evict lists the pods of the first tier that is not gone for eviction, and the
// others as waited for.
func (d *drainer) evict(tiers [4][]*cluster.Pod) {
	first := d.firstForced()
	for i, pods := range tiers {
		if len(pods) > 0 {
			first = min(first, i)
		}
		for _, p := range pods {
			until, _ := p.ProtectedUntil()
			protected := d.now.Before(until)
			if i == first && !p.Terminating && !protected {
				d.out.Evict = append(d.out.Evict, p)
				continue
			}
			d.out.Waiting = append(d.out.Waiting, p)
			if i == first && until.Before(cluster.Forever) {
				d.wake(until)
			}
		}
	}
}

// firstForced is the lowest tier of the pods that are being deleted: they are
// not gone yet.
func (d *drainer) firstForced() int {
	first := 4
	for _, f := range d.out.Delete {
		first = min(first, tier(f.Pod))
	}
	return first
}

// tier is which of Karpenter's four tiers the pod belongs to.
func tier(p *cluster.Pod) int {
	out := 0
	if p.Critical() {
		out = 2
	}
	if p.Daemon() {
		out++
	}
	return out
}

// Vanished says whether nothing is left of the node of a deleted claim to drain
// or terminate: EC2 does not know the instance any more, and no kubelet says
// otherwise. After Reeve has terminated the instance itself, EC2's word is
// enough.
func Vanished(n *cluster.Node) bool {
	if n.Claim == nil || n.Claim.InstanceState != cluster.InstanceGone && n.Claim.InstanceState != "terminated" {
		return false
	}
	return n.Name == "" || !n.Ready || n.Claim.Conditions.InstanceTerminating
}
