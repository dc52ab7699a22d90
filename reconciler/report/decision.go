// Package report turns decisions and checks into text for people and machines.
// It computes nothing: what it prints is in the values it is given.
package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/reeve-project/reeve/reconciler/decision"
)

// printer writes lines and keeps the first error, so that its callers read as
// what they print.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = io.WriteString(p.w, printable(fmt.Sprintf(format, args...))+"\n")
	}
}

// printable replaces what steers a terminal: messages of policies and texts of
// the fleet may hold anything. What follows an end of line is indented, so that
// it cannot pass for a finding of its own.
func printable(s string) string {
	s = strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
	return strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n    ")
}

// Log writes one line for a decision: when, what, and what became of it.
func Log(w io.Writer, d *decision.Decision, o *decision.Outcome) error {
	p := &printer{w: w}
	p.line("%s  %s  %-11s  %s", d.ID, d.Time.Format(time.DateTime), Status(d, o), d.Summary)
	return p.err
}

// Status is how a decision stands, in a word: "denied", "observed", "open", or
// the state of its outcome.
func Status(d *decision.Decision, o *decision.Outcome) string {
	switch {
	case d.Kind == decision.Reject:
		return "rejected"
	case !d.Verdict.Allowed:
		return "denied"
	case d.Mode == "observe":
		return "observed"
	case o == nil || o.State == "":
		return "open"
	default:
		return string(o.State)
	}
}

// Decision writes all of a decision that a person needs to understand it.
func Decision(w io.Writer, d *decision.Decision, o *decision.Outcome) error {
	p := &printer{w: w}
	p.line("%s", d.Summary)
	p.line("")
	p.line("Decision     %s", d.ID)
	p.line("Time         %s", d.Time.Format(time.RFC3339Nano))
	p.line("Cluster      %s (%s)", d.Cluster, d.Mode)
	p.line("Status       %s", Status(d, o))
	p.line("Reason       %s", d.Proposal.Reason)
	if d.Inputs.SpecCommit != "" {
		p.line("Spec commit  %s", d.Inputs.SpecCommit)
	}
	if d.Inputs.Policies != "" {
		p.line("Policies     %s", d.Inputs.Policies)
	}
	if d.Repeats > 0 {
		p.line("Repeated     %s since it was last recorded", count(d.Repeats, "time", "times"))
	}
	p.spec(d.Proposal.Spec)
	p.claims(d)
	p.nodes(d.Proposal.Nodes)
	p.unplaced(d.Proposal.Unplaced)
	p.verdict(&d.Verdict)
	p.rounds(d.Rounds)
	p.outcome(o)
	return p.err
}

func (p *printer) spec(s *decision.SpecChange) {
	if s == nil {
		return
	}
	p.line("")
	p.line("Commit %s on %s: %s", s.Commit, s.Branch, s.Subject)
	if s.Author != "" {
		p.line("  by %s", s.Author)
	}
	if s.Forced {
		p.line("  the branch was rewritten: the commit in force before is no ancestor")
	}
	for _, c := range append(append([]decision.Change(nil), s.Changes...), s.Policies...) {
		p.line("  %s %s%s", c.Op, c.Resource, suffix(": ", strings.Join(c.Fields, ", ")))
	}
}

func (p *printer) claims(d *decision.Decision) {
	claims := d.Proposal.Claims
	if len(claims) == 0 {
		return
	}
	p.line("")
	p.line("Nodes to create, %s in all", d.Proposal.Cost)
	for i := range claims {
		c := &claims[i]
		p.line("  %s: %s %s %s, %s, pods: %d (%s)", cmp.Or(c.Name, fmt.Sprintf("claim %d", c.Index)),
			c.InstanceType, c.Zone, c.CapacityType, c.Price, c.PodCount(), c.Requests)
		if len(c.Cheapest) > 1 {
			var alt []string
			for _, o := range c.Cheapest[1:] {
				alt = append(alt, fmt.Sprintf("%s %s %s", o.InstanceType, o.Zone, o.Price))
			}
			p.line("    next best: %s", strings.Join(alt, "; "))
		}
		if len(c.Filters) > 0 {
			var steps []string
			for _, f := range c.Filters {
				steps = append(steps, fmt.Sprintf("%s: %d", f.By, f.Left))
			}
			p.line("    types left after %s", strings.Join(steps, ", "))
		}
		p.pods(c.Pods)
	}
}

func (p *printer) nodes(nodes []decision.Node) {
	if len(nodes) == 0 {
		return
	}
	p.line("")
	p.line("Nodes to remove")
	for _, n := range nodes {
		p.line("  %s: %s %s %s, %s%s", cmp.Or(n.Claim, n.Name), n.InstanceType, n.Zone, n.CapacityType, n.Price, suffix(": ", n.Detail))
		p.pods(n.Pods)
	}
}

func (p *printer) unplaced(us []decision.Unplaced) {
	if len(us) == 0 {
		return
	}
	p.line("")
	p.line("Pods that stay pending")
	for _, u := range us {
		p.line("  %s%s: %s", u.Reason, suffix(" by ", strings.Join(u.Rules, ", ")), u.Message)
		p.pods(u.Pods)
	}
}

// lineNames is how many names are worth a line.
const lineNames = 5

// few are the first names and how many more there are, which are at least two:
// to say that there is one more takes no less room than its name.
func few(names []string) string {
	if len(names) <= lineNames+1 {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:lineNames], ", "), len(names)-lineNames)
}

func (p *printer) pods(groups []decision.PodGroup) {
	for _, g := range groups {
		p.line("    %s", podGroup(g))
	}
}

func podGroup(g decision.PodGroup) string { return g.Namespace + ": " + few(g.Names) }

func (p *printer) verdict(v *decision.Verdict) {
	p.line("")
	if v.Allowed {
		p.line("Verdict: allowed")
	} else {
		p.line("Verdict: denied")
	}
	for _, f := range v.Violations {
		p.finding("denied by", f)
	}
	for _, f := range v.Warnings {
		p.finding("warning", f)
	}
	for _, x := range v.Exclusions {
		p.line("  excluded by %s: %s%s: %s", x.Rule, choices(x), suffix(" in NodePool ", x.NodePool), x.Message)
	}
}

// choices are what an exclusion takes out: types, or only some of their
// offerings.
func choices(x decision.Exclusion) string {
	return types(x.Types) + suffix(" as ", x.CapacityType) + suffix(" in ", x.Zone)
}

func types(t decision.TypeSet) string {
	if t.List == "" {
		return few(t.Names)
	}
	return fmt.Sprintf("%s (inputs/lists/%s.json)", count(t.Count, "type", "types"), t.List)
}

func (p *printer) finding(what string, f decision.Finding) {
	p.line("  %s %s: %s%s", what, f.Rule, f.Message, suffix(" ", parenthesis(f.Resource)))
	if f.Position != nil {
		p.line("    at %s", f.Position)
	}
	if f.Remediation != "" {
		p.line("    %s", f.Remediation)
	}
	if e := f.Exception; e != nil {
		p.line("    allowed until %s by %s: %s", e.Expires.Format(time.DateOnly), e.Owner, e.Reason)
	}
}

func (p *printer) rounds(rounds []decision.Round) {
	for i, r := range rounds {
		p.line("")
		p.line("Round %d was objected to: %s", i+1, r.Summary)
		for _, f := range r.Denied {
			p.finding("denied by", f)
		}
		for _, x := range r.Excluded {
			p.line("  excluded by %s: %s: %s", x.Rule, choices(x), x.Message)
		}
	}
}

func (p *printer) outcome(o *decision.Outcome) {
	if o == nil || len(o.Steps) == 0 {
		return
	}
	p.line("")
	p.line("Outcome: %s%s", o.State, suffix(", ", unpushed(o)))
	var table strings.Builder
	tw := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	for _, s := range o.Steps {
		what := cmp.Or(s.Claim, s.Node, s.Instance)
		detail := ""
		if s.Price != nil {
			detail = fmt.Sprintf("%s %s %s %s %s", s.Instance, s.InstanceType, s.Zone, s.CapacityType, s.Price)
		} else if s.Claim != "" && s.Node != "" {
			detail = s.Node
		}
		fmt.Fprintf(tw, "  %s\t%s\t%s\t%s\n", s.Time.Format(time.TimeOnly), s.State, what, strings.TrimSpace(detail+" "+s.Message))
	}
	tw.Flush() // a Builder takes everything
	for line := range strings.Lines(table.String()) {
		p.line("%s", strings.TrimRight(line, " \n")) // cells before an empty one are padded
	}
}

func unpushed(o *decision.Outcome) string {
	if o.Unpushed {
		return "acted on before the record was pushed"
	}
	return ""
}

// suffix is the text with the separator before it, or nothing.
func suffix(sep, s string) string {
	if s == "" {
		return ""
	}
	return sep + s
}

func parenthesis(s string) string {
	if s == "" {
		return ""
	}
	return "(" + s + ")"
}

// JSON writes a decision with its outcome as indented JSON.
func JSON(w io.Writer, d *decision.Decision, o *decision.Outcome) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(struct {
		Decision *decision.Decision `json:"decision"`
		Outcome  *decision.Outcome  `json:"outcome,omitempty"`
	}{d, o})
}
