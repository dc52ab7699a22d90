package explain

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/report"
	"github.com/reeve-project/reeve/reconciler/scheduling"
)

// needs are what would have to change for the pods that a decision leaves
// pending, or for one of them if pod is not empty.
func needs(d *decision.Decision, pod string) []report.Need {
	var out []report.Need
	add := func(n report.Need) {
		if !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	for i := range d.Proposal.Unplaced {
		u := &d.Proposal.Unplaced[i]
		if pod != "" {
			namespace, name, _ := strings.Cut(pod, "/")
			if _, ok := without(u.Pods, namespace, name); !ok {
				continue
			}
		}
		for _, o := range obstacles(u.Message) {
			o.Remedy = remedy(d, u, o.Obstacle)
			add(o)
		}
	}
	return out
}

// perPool finds where the engine's message on one NodePool begins: the parts of
// a message are joined by "; ", and each begins with the NodePool's name.
var perPool = regexp.MustCompile(`(?:^|; )NodePool "([^"]+)" `)

// obstacles are what stands in the way, by NodePool as far as the message tells.
func obstacles(message string) []report.Need {
	at := perPool.FindAllStringSubmatchIndex(message, -1)
	if len(at) == 0 || at[0][0] != 0 {
		return []report.Need{{Obstacle: message}}
	}
	var out []report.Need
	for i, m := range at {
		end := len(message)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		out = append(out, report.Need{NodePool: message[m[2]:m[3]], Obstacle: message[m[1]:end]})
	}
	return out
}

// remedies are what helps against an obstacle, by the words that the engine
// names it with; the first that fits counts.
var remedies = []struct{ words, remedy string }{
	{"has taint ", "A toleration in the pod, or the NodePool without the taint."},
	{"does not meet the pod's requirements", "Other labels asked for in the pod's node selector or affinity, or given by the NodePool's requirements or labels."},
	{"has no instance type that meets", "A wider node selector or affinity in the pod, or wider requirements in the NodePool."},
	{"none with room for", "Smaller requests of the pod, or requirements of the NodePool that admit larger types."},
	{"none with an offering that can be launched now", "More zones, capacity types or types in the NodePool and its EC2NodeClass, or capacity at EC2: what EC2 refused is asked for again after 3 minutes."},
	{"is at its limits", "Higher spec.limits of the NodePool, or nodes of it that go."},
	{"minValues", "Lower minValues in the NodePool, or requirements that admit more types."},
	{"that is not ready", "An EC2NodeClass that resolves: see its status."},
	{"is static", "Another NodePool: this one makes no nodes for pods."},
	{"is being deleted", "Another NodePool: this one is going."},
	{"has requirements that cannot be read", "Requirements of the NodePool that are valid."},
}

// remedy is what would have to change. Where a rule stands in the way it is that
// rule's own word, if it has one.
func remedy(d *decision.Decision, u *decision.Unplaced, obstacle string) string {
	for _, rule := range u.Rules {
		if strings.Contains(obstacle, rule) {
			return ruleRemedy(d, rule)
		}
	}
	for _, r := range remedies {
		if strings.Contains(obstacle, r.words) {
			return r.remedy
		}
	}
	switch u.Reason {
	case scheduling.ReasonNoPool:
		return "A NodePool in the fleet."
	case scheduling.ReasonUnhandled:
		return "A pod without this constraint: this release does not plan for it."
	case scheduling.ReasonInvalid:
		return "A valid selector in the pod."
	case scheduling.ReasonPolicy:
		return ruleRemedy(d, strings.Join(u.Rules, ", "))
	default:
		return "See the reason."
	}
}

func ruleRemedy(d *decision.Decision, rule string) string {
	out := fmt.Sprintf("Another fleet or pod, so that %s lets it through, or an exception for the rule.", rule)
	for _, f := range d.Verdict.Violations {
		if f.Rule == rule && f.Remediation != "" {
			out = f.Remediation
		}
		if f.Rule == rule && f.Position != nil {
			return out + " The rule was set off at " + f.Position.String() + "."
		}
	}
	return out
}
