package ledger

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/reeve-project/reeve/reconciler/decision"
)

// Trailers of the commits. Decision-Id, Kind and Verdict come once for each
// decision, in the same order.
const (
	trailerDecision = "Decision-Id"
	trailerKind     = "Kind"
	trailerVerdict  = "Verdict"
	trailerOutcome  = "Outcome" // "<decision> <state>"
	trailerSpec     = "Spec-Commit"
	trailerPolicies = "Policy-Digest"
	trailerEpoch    = "Epoch"
)

const (
	allowed = "allowed"
	denied  = "denied"
	skipCI  = "[skip ci]"
)

func verdictWord(d *decision.Decision) string {
	if d.Verdict.Allowed {
		return allowed
	}
	return denied
}

// message is what a commit says.
type message struct {
	decisions []*decision.Decision
	outcomes  []*decision.Outcome
	about     map[string]string // summaries of the decisions that outcomes belong to
	epoch     int64
	skipCI    bool
}

func (m *message) String() string {
	var b strings.Builder
	b.WriteString(m.subject() + "\n\n")
	if body := m.body(); len(body) > 0 {
		b.WriteString(strings.Join(body, "\n") + "\n\n")
	}
	if m.skipCI {
		b.WriteString(skipCI + "\n\n")
	}
	trailer := func(key, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%s: %s\n", key, oneLine(value))
		}
	}
	var spec, policies string
	for _, d := range m.decisions {
		trailer(trailerDecision, d.ID)
		trailer(trailerKind, string(d.Kind))
		trailer(trailerVerdict, verdictWord(d))
		if spec == "" {
			spec = d.Inputs.SpecCommit
		}
		if policies == "" {
			policies = d.Inputs.Policies
		}
	}
	for _, o := range m.outcomes {
		trailer(trailerOutcome, o.Decision+" "+string(o.State))
	}
	trailer(trailerSpec, spec)
	trailer(trailerPolicies, policies)
	trailer(trailerEpoch, strconv.FormatInt(m.epoch, 10))
	return b.String()
}

func (m *message) subject() string {
	switch {
	case len(m.decisions) == 1:
		return oneLine(m.decisions[0].Summary)
	case len(m.decisions) > 1:
		return fmt.Sprintf("%d decisions: %s", len(m.decisions), tally(m.decisions, func(d *decision.Decision) string { return string(d.Kind) }))
	case len(m.outcomes) == 1:
		o := m.outcomes[0]
		return oneLine(string(o.State) + ": " + m.about[o.Decision])
	case len(m.outcomes) > 0:
		return fmt.Sprintf("%d outcomes: %s", len(m.outcomes), tally(m.outcomes, func(o *decision.Outcome) string { return string(o.State) }))
	default:
		return "Summaries"
	}
}

// body lists what the subject only counts.
func (m *message) body() []string {
	var out []string
	for _, d := range m.decisions {
		indent := ""
		if len(m.decisions) > 1 {
			out = append(out, "* "+oneLine(d.Summary))
			indent = "  "
		}
		if names := nodeNames(d); names != "" {
			out = append(out, indent+names)
		}
	}
	if len(m.decisions) > 0 || len(m.outcomes) > 1 {
		for _, o := range m.outcomes {
			out = append(out, "* "+oneLine(string(o.State)+": "+m.about[o.Decision]))
		}
	}
	return out
}

// mostNamed is how many nodes of a decision a message names.
const mostNamed = 3

// nodeNames are the nodes that a decision is about, by NodeClaim where they have
// one; empty for a decision about none.
func nodeNames(d *decision.Decision) string {
	nodes := d.Proposal.Nodes
	var names []string
	for _, n := range nodes[:min(len(nodes), mostNamed)] {
		names = append(names, oneLine(cmp.Or(n.Claim, n.Name)))
	}
	s := strings.Join(names, ", ")
	switch more := len(nodes) - mostNamed; {
	case len(nodes) == 0:
		return ""
	case more > 0:
		return fmt.Sprintf("Nodes: %s and %d more", s, more)
	case len(nodes) == 1:
		return "Node: " + s
	}
	return "Nodes: " + s
}

// tally counts words in the order of their first use: "2 × drift, expire".
func tally[T any](all []T, word func(T) string) string {
	var order []string
	count := map[string]int{}
	for _, v := range all {
		w := word(v)
		if count[w] == 0 {
			order = append(order, w)
		}
		count[w]++
	}
	for i, w := range order {
		if count[w] > 1 {
			order[i] = fmt.Sprintf("%d × %s", count[w], w)
		}
	}
	return strings.Join(order, ", ")
}

// oneLine keeps text from breaking out of its line of the message.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(c rune) bool { return unicode.IsSpace(c) || unicode.IsControl(c) }), " ")
}

// trailers are the trailers of a commit message, in order.
type trailers [][2]string

func parseTrailers(msg string) trailers {
	parts := strings.Split(strings.TrimRight(msg, "\n"), "\n\n")
	if len(parts) < 2 {
		return nil
	}
	var out trailers
	for line := range strings.SplitSeq(parts[len(parts)-1], "\n") {
		key, value, ok := strings.Cut(line, ": ")
		if !ok {
			return nil
		}
		out = append(out, [2]string{key, value})
	}
	return out
}

func (t trailers) all(key string) []string {
	var out []string
	for _, kv := range t {
		if kv[0] == key {
			out = append(out, kv[1])
		}
	}
	return out
}

func (t trailers) first(key string) string {
	if all := t.all(key); len(all) > 0 {
		return all[0]
	}
	return ""
}

// epoch of the leader who wrote the commit; ok is false for a commit that is
// not the ledger's.
func (t trailers) epoch() (n int64, ok bool) {
	n, err := strconv.ParseInt(t.first(trailerEpoch), 10, 64)
	return n, err == nil && n > 0
}

// outcomes are the ids of the decisions whose outcome the commit advances.
func (t trailers) outcomes() []string {
	all := t.all(trailerOutcome)
	for i, v := range all {
		all[i], _, _ = strings.Cut(v, " ")
	}
	return all
}
