package report

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/resources"
)

// lineWidth is how wide an explanation gets, in runes, unless a word is wider.
const lineWidth = 96

// wrap writes a paragraph: the first line begins with lead, the others with as
// many blanks.
func (p *printer) wrap(lead, format string, args ...any) {
	indent := strings.Repeat(" ", utf8.RuneCountInString(lead))
	line, empty := lead, true
	for _, word := range strings.Fields(fmt.Sprintf(format, args...)) {
		if !empty && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > lineWidth {
			p.line("%s", line)
			line, empty = indent, true
		}
		if !empty {
			line += " "
		}
		line, empty = line+word, false
	}
	p.line("%s", strings.TrimRight(line, " "))
}

// table writes rows of cells below one another.
func (p *printer) table(rows [][]string) {
	var b strings.Builder
	tw := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		fmt.Fprintln(tw, strings.Join(r, "\t"))
	}
	tw.Flush() // a Builder takes everything
	for line := range strings.Lines(b.String()) {
		p.line("%s", strings.TrimRight(line, " \n"))
	}
}

// ExplainDecision writes one decision as a story.
func ExplainDecision(w io.Writer, s *DecisionStory) error {
	p := &printer{w: w}
	d := s.Decision
	p.wrap("", "%s", d.Summary)
	p.line("")
	p.act(&s.Act, "")
	if d.Repeats > 0 {
		p.line("  Repeated     %s since it was last recorded", count(d.Repeats, "time", "times"))
	}
	p.spec(d.Proposal.Spec)
	for i := range s.Arrivals {
		a := &s.Arrivals[i]
		p.line("")
		p.wrap("", "New node %s: %s", a.Claim.Name, offeringText(claimOffering(&a.Claim)))
		p.arrival(a)
	}
	for i := range s.Departures {
		dep := &s.Departures[i]
		p.line("")
		p.wrap("", "Node %s: %s", cmp.Or(dep.Node.Claim, dep.Node.Name), offeringText(nodeOffering(&dep.Node)))
		if dep.Node.Detail != "" {
			p.wrap("  Why this     ", "%s", dep.Node.Detail)
		}
		p.podLines("  Pods         ", dep.Node.Pods)
		p.stepTable(dep.Steps)
	}
	if len(s.Departures) > 0 {
		p.line("")
		p.line("Bounds and effect")
		p.effect(&s.Departures[0], false)
		p.second(s.Departures[0].Second)
	}
	p.leftPending(d.Proposal.Unplaced)
	p.needs(s.Needs)
	p.line("")
	p.judged("Verdict", "", &d.Verdict)
	p.rounds(d.Rounds)
	if len(s.Arrivals)+len(s.Departures) == 0 {
		p.outcome(s.Outcome)
	}
	return p.err
}

// act writes the head of a decision; the indent stands before each line.
func (p *printer) act(a *Act, indent string) {
	p.line("%s  Decision     %s (%s)", indent, a.Decision, a.Status)
	p.line("%s  Time         %s", indent, a.Time.Format(time.RFC3339Nano))
	kind := string(a.Kind)
	if a.Method != "" {
		kind += ", " + a.Method
	}
	p.line("%s  Kind         %s", indent, kind)
	p.wrap(indent+"  Reason       ", "%s", a.Reason)
	if a.SpecCommit != "" {
		by := ""
		if a.SpecSubject != "" {
			by = suffix(" ", parenthesis(a.SpecSubject+suffix(", by ", a.SpecAuthor)))
		}
		p.wrap(indent+"  Spec commit  ", "%s%s", a.SpecCommit, by)
	}
	if a.Policies != "" {
		p.line("%s  Policies     %s", indent, a.Policies)
	}
}

func claimOffering(c *decision.Claim) decision.Offering {
	return decision.Offering{InstanceType: c.InstanceType, Zone: c.Zone, CapacityType: c.CapacityType, Price: c.Price}
}

func nodeOffering(n *decision.Node) decision.Offering {
	return decision.Offering{InstanceType: n.InstanceType, Zone: n.Zone, CapacityType: n.CapacityType, Price: n.Price}
}

func offeringText(o decision.Offering) string {
	return strings.Join(strings.Fields(fmt.Sprintf("%s %s %s, %s", o.InstanceType, o.Zone, o.CapacityType, o.Price)), " ")
}

// arrival writes why a node came, without the head of its decision.
func (p *printer) arrival(a *Arrival) {
	c := &a.Claim
	p.wrap("  For          ", "%s, %s with daemons", count(c.PodCount(), "pod", "pods"), c.Requests)
	p.podLines("               ", c.Pods)
	if len(a.Replaces) > 0 {
		p.wrap("  Replaces     ", "%s", few(a.Replaces))
	}
	p.choice(a)
	for _, f := range a.Warnings {
		p.found("  Warning of   ", f)
	}
	p.stepTable(a.Steps)
	p.launched(a)
}

func (p *printer) choice(a *Arrival) {
	if len(a.Choice.Steps) > 0 {
		p.line("")
		p.line("  Why %s: instance types left after each step, and cheaper ones that it removed", a.Claim.InstanceType)
	}
	width := 20
	for i := range a.Choice.Steps {
		width = max(width, len(a.Choice.Steps[i].By))
	}
	for i := range a.Choice.Steps {
		s := &a.Choice.Steps[i]
		p.wrap(fmt.Sprintf("    %-*s %5d  ", width, s.By, s.Left), "%s", stepText(s))
		for _, r := range s.Examples {
			p.wrap(strings.Repeat(" ", 34), "%s %s: %s", r.InstanceType, r.Price, r.Why)
		}
	}
	if a.Choice.Note != "" {
		p.wrap("    ", "Not all is told: %s.", a.Choice.Note)
	}
	if len(a.Choice.Alternatives) > 0 {
		p.line("  Next best")
	}
	var rows [][]string
	for _, alt := range a.Choice.Alternatives {
		o := alt.Offering
		rows = append(rows, []string{"    " + o.InstanceType, o.Zone, o.CapacityType, o.Price.String(), difference(alt.More)})
	}
	p.table(rows)
}

func difference(more resources.Price) string {
	switch {
	case more == 0:
		return "the same price"
	case more < 0:
		return (-more).String() + " less"
	default:
		return more.String() + " more"
	}
}

// stepText is what a step removed: "401 removed, 12 of them cheaper".
func stepText(s *ChoiceStep) string {
	if s.Removed == 0 {
		return ""
	}
	out := fmt.Sprintf("%d removed", s.Removed) + suffix(" by ", strings.Join(s.Rules, ", "))
	switch {
	case !s.Known:
		return out
	case s.Cheaper == 0:
		return out + ", none cheaper"
	case s.Cheaper > len(s.Examples):
		return fmt.Sprintf("%s, %d cheaper, the cheapest:", out, s.Cheaper)
	default:
		return fmt.Sprintf("%s, %d cheaper:", out, s.Cheaper)
	}
}

// launched says where EC2 launched another offering than the plan counted on.
func (p *printer) launched(a *Arrival) {
	for _, s := range a.Steps {
		if s.State != decision.Launched || s.Price == nil {
			continue
		}
		got := decision.Offering{InstanceType: s.InstanceType, Zone: s.Zone, CapacityType: s.CapacityType, Price: *s.Price}
		if plan := claimOffering(&a.Claim); got == plan {
			p.line("  EC2 launched what the plan counted on")
		} else {
			p.wrap("  ", "EC2 launched %s, where the plan counted on %s: %s", offeringText(got), offeringText(plan), difference(got.Price-plan.Price))
		}
	}
}

func (p *printer) podLines(lead string, groups []decision.PodGroup) {
	for _, g := range groups {
		p.wrap(lead, "%s", podGroup(g))
		lead = strings.Repeat(" ", utf8.RuneCountInString(lead))
	}
}

func (p *printer) stepTable(steps []decision.Step) {
	if len(steps) == 0 {
		return
	}
	p.line("  What happened")
	var rows [][]string
	for _, s := range steps {
		what := cmp.Or(s.Instance, s.Node) + " " + s.Message
		rows = append(rows, []string{"    " + s.Time.Format(time.DateTime), string(s.State), strings.Join(strings.Fields(what), " ")})
	}
	p.table(rows)
}

// effect writes what bounded a disruption and what comes of it.
func (p *printer) effect(d *Departure, together bool) {
	if i := d.Interruption; i != nil {
		p.wrap("  AWS said     ", "%s%s of %s at %s (message %s)", i.Kind, suffix(" to ", i.Action), i.Instance, i.Time.Format(time.DateTime), i.Message)
	}
	for _, b := range d.Budgets {
		p.wrap("  Budget       ", "%s", budgetText(b))
	}
	switch {
	case d.Saving > 0:
		p.line("  Saves        %s", d.Saving)
	case d.Saving < 0:
		p.line("  Adds         %s", -d.Saving)
	}
	if together && len(d.Together) > 0 {
		p.wrap("  Together     ", "with %s", few(d.Together))
	}
	for _, r := range d.Replacements {
		p.wrap("  Replaced by  ", "%s: %s", r.Claim, offeringText(r.Offering))
	}
	for _, m := range d.Moves {
		p.podLines("  Room on      "+m.Node+" for ", m.Pods)
	}
}

func budgetText(b decision.Budget) string {
	if b.Unlimited {
		return fmt.Sprintf("NodePool %s, %s: no budget bounds it", b.NodePool, b.Reason)
	}
	return fmt.Sprintf("NodePool %s, %s: %s allowed, %d in use already", b.NodePool, b.Reason, count(b.Allowed, "node", "nodes"), b.InUse)
}

func (p *printer) second(j *Judgement) {
	if j == nil {
		return
	}
	word := "allowed"
	if !j.Allowed {
		word = "denied"
	}
	p.line("  Second verdict, after the validation wait, at %s: %s", j.Time.Format(time.DateTime), word)
	for _, f := range j.Violations {
		p.found("    denied by ", f)
	}
}

// judged writes a verdict; the indent stands before each line.
func (p *printer) judged(what, indent string, v *decision.Verdict) {
	word := "allowed"
	if !v.Allowed {
		word = "denied"
	}
	p.line("%s%s: %s", indent, what, word)
	for _, f := range v.Violations {
		p.found(indent+"  denied by ", f)
	}
	for _, f := range v.Warnings {
		p.found(indent+"  warning of ", f)
	}
	for _, x := range v.Exclusions {
		p.wrap(indent+"  ", "excluded by %s%s: %s: %s", x.Rule, suffix(" in NodePool ", x.NodePool), choices(x), x.Message)
	}
}

// found writes a finding within the width of an explanation.
func (p *printer) found(lead string, f decision.Finding) {
	p.wrap(lead, "%s: %s%s", f.Rule, f.Message, suffix(" ", parenthesis(f.Resource)))
	indent := strings.Repeat(" ", utf8.RuneCountInString(lead))
	if f.Position != nil {
		p.line("%sat %s", indent, f.Position)
	}
	if f.Remediation != "" {
		p.wrap(indent, "%s", f.Remediation)
	}
	if e := f.Exception; e != nil {
		p.wrap(indent, "allowed until %s by %s: %s", e.Expires.Format(time.DateOnly), e.Owner, e.Reason)
	}
}

// leftPending lists pods that stay pending; what keeps them is told with what
// would have to change.
func (p *printer) leftPending(us []decision.Unplaced) {
	if len(us) == 0 {
		return
	}
	p.line("")
	p.line("Pods that stay pending")
	for _, u := range us {
		p.line("  %s%s", u.Reason, suffix(" by ", strings.Join(u.Rules, ", ")))
		p.podLines("    ", u.Pods)
	}
}

func (p *printer) needs(needs []Need) {
	if len(needs) == 0 {
		return
	}
	p.line("")
	p.line("What would have to change")
	for _, n := range needs {
		lead := "  "
		if n.NodePool != "" {
			lead = fmt.Sprintf("  NodePool %s ", n.NodePool)
		}
		p.wrap("  ", "%s%s", strings.TrimLeft(lead, " "), n.Obstacle)
		p.wrap("    → ", "%s", n.Remedy)
	}
}

// searched says what was looked through.
func (p *printer) searched(s *Searched) {
	p.line("")
	p.line("From %s of %s", count(s.Decisions, "decision", "decisions"), s.Branch)
	if len(s.Missing) > 0 {
		p.wrap("  ", "This clone is shallow: it lacks %s.", few(s.Missing))
	}
}
