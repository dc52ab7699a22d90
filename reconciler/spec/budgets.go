package spec

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// reasons are the reasons for which budgets limit disruption.
var reasons = []string{"Drifted", "Empty", "Underutilized"}

// checkBudget applies the rules of one disruption budget. Two of them only Reeve
// has: both faults pass Karpenter's CRD and are never meant.
func checkBudget(b node, add adder) {
	switch {
	case b.has("schedule") && !b.has("duration"):
		add(b.at("schedule"), "a schedule needs a duration", "say how long the budget holds after each start: duration: \"8h\"")
	case b.has("duration") && !b.has("schedule"):
		add(b.at("duration"), "a duration needs a schedule", "say when the budget starts to hold, as a cron line in UTC: schedule: \"0 9 * * mon-fri\"")
	}
	checkDuration(b.get("duration"), add)
	if list := b.get("reasons"); list.exists() && len(list.items()) == 0 {
		// Karpenter asks whether the list holds the reason; an empty one holds none.
		add(list.path, "the list of reasons is empty, so this budget limits nothing",
			"leave reasons out to limit every reason, or name some of "+strings.Join(reasons, ", "))
	}
	checkSchedule(b.get("schedule"), add)
}

// checkSchedule holds that a schedule that exists is one, and that it comes.
func checkSchedule(s node, add adder) {
	if !s.exists() {
		return
	}
	schedule, err := parseSchedule(s.str())
	if err != nil {
		add(s.path, fmt.Sprintf("%q is not a schedule: %v", s.str(), err), "write five fields: minute, hour, day of month, month, day of week (0-6 or sun-sat)")
		return
	}
	if schedule.Next(scheduleEpoch).IsZero() {
		// Karpenter takes the zero time for one that has passed: the budget
		// would hold at all times.
		add(s.path, fmt.Sprintf("%q names a date that never comes", s.str()), "no month is that long; write a day that exists, or leave schedule and duration out for a budget that always holds")
	}
}

// scheduleEpoch is where schedules are looked at from: any date would do from
// which the next 29 February is at most five years away, which is how far the
// cron library looks.
var scheduleEpoch = time.Date(2024, time.January, 1, 0, 0, 0, 0, time.UTC)

// parseSchedule reads a schedule as Karpenter does, always in UTC.
func parseSchedule(text string) (cron.Schedule, error) {
	if strings.HasPrefix(text, "TZ=") || strings.HasPrefix(text, "CRON_TZ=") {
		return nil, errors.New("budgets are in UTC and take no time zone")
	}
	return cron.ParseStandard("TZ=UTC " + text)
}

// warnBudgets says which reasons a pool's budgets leave without a limit while
// they limit others. A budget only ever restricts, and the default of 10% is
// gone as soon as there is a list, so leaving a reason out sets it free. Budgets
// that treat all reasons alike are taken to be meant, an empty list included.
func warnBudgets(list node, add adder) {
	always, sometimes := map[string]bool{}, map[string]bool{}
	for _, b := range list.items() {
		into := always
		if s := b.get("schedule"); s.exists() && !permanent(s.str(), b.get("duration").str()) {
			into = sometimes
		}
		for _, r := range limited(b) {
			into[r] = true
		}
	}
	var never, partly []string
	for _, r := range reasons {
		switch {
		case always[r]:
		case !sometimes[r]:
			never = append(never, r)
		default:
			partly = append(partly, r)
		}
	}
	if len(list.items()) == 0 {
		return
	}
	const hint = "a budget only restricts, and the default of 10% holds only without budgets: add one without reasons or schedule"
	if len(never) > 0 {
		add(list.path, "no budget limits "+strings.Join(never, " or ")+", so any number of nodes may go at once for it", hint)
	}
	if len(partly) > 0 && len(always) > 0 {
		add(list.path, "outside of the schedules no budget limits "+strings.Join(partly, " or ")+", unlike the other reasons", hint)
	}
}

// limited are the reasons that a budget limits.
func limited(b node) []string {
	if !b.get("reasons").exists() {
		return reasons
	}
	var out []string
	for _, r := range b.get("reasons").items() {
		out = append(out, r.str())
	}
	return out
}

// mostHits bounds how many starts of a schedule are looked at: those of a daily
// one in ten years.
const mostHits = 3660

// permanent says whether a budget with a schedule holds at all times: each of
// its windows reaches the next one.
func permanent(text, duration string) bool {
	schedule, err := parseSchedule(text)
	if err != nil {
		return false
	}
	length, err := time.ParseDuration(duration)
	if err != nil {
		return false
	}
	hit := schedule.Next(scheduleEpoch)
	for range mostHits {
		next := schedule.Next(hit)
		if next.IsZero() || next.Sub(hit) > length {
			return false
		}
		hit = next
	}
	return true
}

// warnSizes says which budgets have a number that Karpenter cannot read: it
// then allows no disruption at all. Its numbers have 32 bits.
func warnSizes(list node, add adder) {
	for _, b := range list.items() {
		n := b.get("nodes")
		digits := strings.TrimLeft(n.str(), "0")
		if strings.HasSuffix(digits, "%") || len(digits) < len(largest) || (len(digits) == len(largest) && digits <= largest) {
			continue
		}
		add(n.path, fmt.Sprintf("%q is more than a number of nodes can be, and Karpenter then allows no disruption at all", n.str()),
			"write at most "+largest+", or \"100%\" for all nodes")
	}
}

// largest is the largest number of 32 bits.
const largest = "2147483647"
