package disruption

import (
	"fmt"
	"slices"
	"time"

	"github.com/robfig/cron/v3"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// Reasons are the reasons that disruption budgets restrict, in Karpenter's
// words.
func Reasons() []string {
	return []string{ReasonUnderutilized, ReasonEmpty, ReasonDrifted}
}

// BudgetChanges are the instants in [from, to) at which a budget of the
// NodePool may begin or cease to be active, and from itself, sorted: between two
// of them Allowed gives the same answer for the same number of nodes. It fails
// for a budget that cannot be read.
func BudgetChanges(pool *karpv1.NodePool, from, to time.Time) ([]time.Time, error) {
	from, to = from.UTC(), to.UTC()
	out := []time.Time{from}
	for i := range pool.Spec.Disruption.Budgets {
		b := &pool.Spec.Disruption.Budgets[i]
		if b.Schedule == nil || b.Duration == nil {
			continue
		}
		schedule, err := parseSchedule(*b.Schedule)
		if err != nil {
			return nil, fmt.Errorf("NodePool %q: disruption budget %d: %w", pool.Name, i+1, err)
		}
		// A window that opened before may close in the interval.
		for hit := schedule.Next(from.Add(-b.Duration.Duration - time.Second)); !hit.IsZero() && hit.Before(to); hit = schedule.Next(hit) {
			for _, at := range []time.Time{hit, hit.Add(b.Duration.Duration)} {
				if at.After(from) && at.Before(to) {
					out = append(out, at)
				}
			}
		}
	}
	slices.SortFunc(out, time.Time.Compare)
	return slices.CompactFunc(out, time.Time.Equal), nil
}

// parseSchedule reads a cron expression in UTC, as Karpenter does.
func parseSchedule(text string) (cron.Schedule, error) {
	schedule, err := cron.ParseStandard("TZ=UTC " + text)
	if err != nil {
		return nil, fmt.Errorf("schedule %q: %w", text, err)
	}
	return schedule, nil
}
