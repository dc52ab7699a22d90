package disruption

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/fleet"
)

// Budget is what a NodePool's disruption budgets allow for one reason.
type Budget struct {
	// NodePool by name.
	NodePool string
	// Reason is Karpenter's: "Underutilized", "Empty", "Drifted".
	Reason string
	// Allowed is the least that an active budget allows; without meaning when
	// Unlimited.
	Allowed int
	// InUse is how many nodes of the pool count against it already.
	InUse int
	// Unlimited says that no active budget restricts the reason.
	Unlimited bool
	// Invalid is why a budget cannot be read. Nothing is allowed then, for any
	// reason (Karpenter: MustGetAllowedDisruptions).
	Invalid string
}

// Left is how many more nodes may be disrupted.
func (b Budget) Left() int {
	if b.Unlimited {
		return math.MaxInt
	}
	return max(b.Allowed-b.InUse, 0)
}

// Allowed is what the budgets of a NodePool allow for a reason at an instant,
// when so many of its nodes count (see Budgets), before those in use are taken
// off. A budget only ever restricts: reasons that no active budget covers are
// unlimited. When a budget cannot be read the answer allows nothing and the
// error says which and why (Karpenter: GetAllowedDisruptionsByReason).
func Allowed(pool *karpv1.NodePool, reason string, counted int, now time.Time) (Budget, error) {
	out := Budget{NodePool: pool.Name, Reason: reason, Unlimited: true}
	var errs []error
	for i := range pool.Spec.Disruption.Budgets {
		b := &pool.Spec.Disruption.Budgets[i]
		n, active, err := allowedBy(b, counted, now)
		if err != nil {
			errs = append(errs, fmt.Errorf("NodePool %q: disruption budget %d: %w", pool.Name, i+1, err))
			continue
		}
		if !active || !covers(b, reason) {
			continue
		}
		if out.Unlimited || n < out.Allowed {
			out.Allowed = n
		}
		out.Unlimited = false
	}
	if err := errors.Join(errs...); err != nil {
		out.Allowed, out.Unlimited, out.Invalid = 0, false, err.Error()
		return out, err
	}
	return out, nil
}

// covers says whether a budget restricts the reason. A list of reasons that is
// there but empty covers none.
func covers(b *karpv1.Budget, reason string) bool {
	return b.Reasons == nil || slices.Contains(b.Reasons, karpv1.DisruptionReason(reason))
}

func allowedBy(b *karpv1.Budget, counted int, now time.Time) (n int, active bool, err error) {
	active, err = isActive(b, now)
	if err != nil || !active {
		return 0, active, err
	}
	n, err = scaled(b.Nodes, counted)
	return n, true, err
}

// isActive says whether the last hit of the schedule is at most the duration
// ago: windows are half-open. The test is Karpenter's, with its consequence
// that a schedule which never hits is always active.
func isActive(b *karpv1.Budget, now time.Time) (bool, error) {
	if b.Schedule == nil && b.Duration == nil {
		return true, nil
	}
	if b.Schedule == nil {
		return false, errors.New("it has a duration without a schedule; set both or neither")
	}
	schedule, err := parseSchedule(*b.Schedule)
	if err != nil {
		return false, err
	}
	var duration time.Duration
	if b.Duration != nil {
		duration = b.Duration.Duration
	}
	now = now.UTC()
	return !schedule.Next(now.Add(-duration)).After(now), nil
}

// scaled is a number of nodes, or a percentage of the counted ones rounded up.
func scaled(nodes string, counted int) (int, error) {
	text, percent := strings.CutSuffix(nodes, "%")
	n, err := strconv.Atoi(text)
	switch {
	case err != nil || n < 0:
		return 0, fmt.Errorf("nodes %q is neither a number nor a percentage", nodes)
	case !percent:
		return n, nil
	case n > 100:
		return 0, fmt.Errorf("nodes %q is more than all", nodes)
	default:
		return (counted*n + 99) / 100, nil
	}
}

// Budgets are what the budgets of each NodePool allow for a reason, sorted by
// name. Nodes count when they are managed, initialized and their instance is
// not being terminated yet; of these, nodes that are not ready or are being
// removed are in use, whatever they are removed for.
func Budgets(s *cluster.Snapshot, f *fleet.Fleet, reason string) []Budget {
	counted, inUse := map[string]int{}, map[string]int{}
	for _, n := range s.Nodes {
		if n.Claim == nil || !n.Initialized() || n.Claim.Conditions.InstanceTerminating {
			continue
		}
		counted[n.Claim.NodePool]++
		if !n.Ready || isRemoved(n) {
			inUse[n.Claim.NodePool]++
		}
	}
	out := make([]Budget, 0, len(f.NodePools))
	for _, np := range f.NodePools {
		// The error is in the budget, which allows nothing then.
		b, _ := Allowed(np, reason, counted[np.Name], s.Time)
		b.InUse = inUse[np.Name]
		out = append(out, b)
	}
	return out
}

func isRemoved(n *cluster.Node) bool { return n.Deleting || n.Removing != "" }
