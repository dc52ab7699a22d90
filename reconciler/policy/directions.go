package policy

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/reeve-project/reeve/reconciler/resources"
)

// direction says whether a setting became looser. The settings are those of
// the shipped policies (schemas/policy.cue).
type direction func(before, after any) bool

// directions are the settings of which it can be told. Any other that changes
// may have become looser.
var directions = map[string]map[string]direction{
	"amiPinning": {
		"enabled": turnedOff, "environments": shrank, "maxAgeDays": raised,
		"allow": func(a, b any) bool { return len(words(a)) > 0 && (len(words(b)) == 0 || shrank(b, a)) },
	},
	"instanceTypes": {
		"enabled": turnedOff, "exclude": shrank, "excludeSizes": shrank, "excludeFamilies": shrank,
		"gpu": func(a, b any) bool { return gpuRank(b) < gpuRank(a) },
	},
	"controllerPlacement": {"enabled": turnedOff},
	"nodePoolLimits":      {"enabled": turnedOff, "resources": shrankFrom("cpu")},
	"expireAfter":         {"enabled": turnedOff, "min": shortened, "max": lengthened},
	"interruptionQueue":   {"enabled": turnedOff},
	"freeze":              {"enabled": turnedOff, "kinds": shrankFrom("consolidate", "drift", "expire")},
	"windows":             {"enabled": turnedOff, "kinds": shrankFrom("consolidate", "drift", "expire"), "allow": grew, "emptyAnytime": turnedOn},
	"priceCeilings":       {"enabled": turnedOff, "node": raised, "nodePool": raised, "fleet": raised},
	// One of both bounds is enough, so to add one may loosen the other.
	"minimumSaving":    {"enabled": turnedOff, "perHour": loweredOrNew, "percent": loweredOrNew},
	"coolDown":         {"enabled": turnedOff, "minutes": lowered, "consolidateAfter": shortened},
	"coexistence":      {"enabled": turnedOff, "keys": shrank, "discovery": grew},
	"tags":             {"enabled": turnedOff},
	"instanceMetadata": {"enabled": turnedOff, "maxHops": func(a, b any) bool { return a == nil || raised(a, b) }},
	"volumeEncryption": {"enabled": turnedOff},
	"guard":            {"enabled": turnedOff},
	"conftest":         {"namespaces": shrank},
}

func turnedOff(_, after any) bool { return after != true }

func turnedOn(_, after any) bool { return after == true }

// shrank says whether the list lost a word.
func shrank(before, after any) bool { return !containsAll(words(after), words(before)) }

// shrankFrom is shrank for a list with a default.
func shrankFrom(defaults ...any) direction {
	or := func(v any) any {
		if v == nil {
			return defaults
		}
		return v
	}
	return func(before, after any) bool { return shrank(or(before), or(after)) }
}

// grew says whether the list was given a word, or an element that it did not
// have before.
func grew(before, after any) bool { return shrank(after, before) }

// words are the elements of a list as texts; objects are written with their
// keys sorted.
func words(v any) []string {
	list, _ := v.([]any)
	var out []string
	for _, e := range list {
		out = append(out, fmt.Sprint(e))
	}
	return out
}

// raised says whether an upper bound went up or away. What cannot be compared
// may have.
func raised(before, after any) bool {
	if before == nil {
		return false
	}
	a, ok1 := amountOf(before)
	b, ok2 := amountOf(after)
	return !ok1 || !ok2 || b > a
}

// lowered says whether a lower bound went down or away.
func lowered(before, after any) bool {
	if before == nil {
		return false
	}
	a, ok1 := amountOf(before)
	b, ok2 := amountOf(after)
	return !ok1 || !ok2 || b < a
}

// loweredOrNew is for a bound beside another, one of which is enough.
func loweredOrNew(before, after any) bool { return before == nil || lowered(before, after) }

// amountOf reads a number with at most nine decimals in billionths.
func amountOf(v any) (resources.Price, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	amount, err := resources.ParsePrice(n.String())
	return amount, err == nil
}

// lengthened says whether the longest time that is allowed went up or away.
func lengthened(before, after any) bool { return before != nil && compareDurations(before, after) <= 0 }

// shortened says whether the shortest time that is allowed went down or away.
func shortened(before, after any) bool { return before != nil && compareDurations(after, before) <= 0 }

// compareDurations is how much the first is longer than the second; zero when
// they cannot be compared.
func compareDurations(a, b any) time.Duration {
	x, err1 := time.ParseDuration(fmt.Sprint(a))
	y, err2 := time.ParseDuration(fmt.Sprint(b))
	if err1 != nil || err2 != nil {
		return 0
	}
	return x - y
}

// gpuRank orders the words of instanceTypes.gpu by how strict they are.
func gpuRank(v any) int { return slices.Index([]string{"allow", "on-request", "never"}, fmt.Sprint(v)) }
