package report

import (
	"io"
	"strings"
	"time"
	"unicode"

	"github.com/reeve-project/reeve/reconciler/decision"
)

// PlanMarkdown writes the plan for a comment on a pull request.
func PlanMarkdown(w io.Writer, p *Plan) error {
	m := &printer{w: w}
	m.line("### Plan for %s", mdCode(p.Cluster))
	m.line("")
	m.line("%s %s: %s of the fleet, %s, %s, %s. %s", "At", p.Time.UTC().Format(time.RFC3339),
		count(p.Seen.Nodes, "node", "nodes"), count(p.Seen.Others, "other", "others"),
		count(p.Seen.Bound, "bound pod", "bound pods"), count(p.Seen.Pending, "pending pod", "pending pods"), costLine(p.Before, p.After))
	m.markdownSteps(p.Steps)
	if len(p.Staying) > 0 {
		m.line("")
		m.line("Nodes that stay:")
		m.line("")
		for _, s := range p.Staying {
			m.line("- %s: %s", mdCode(few(s.Nodes)), mdText(s.Message))
		}
	}
	m.line("")
	m.line("<details><summary>Assumed</summary>")
	m.line("")
	for _, a := range p.Assumptions {
		m.line("- %s", mdText(a))
	}
	m.line("")
	m.line("</details>")
	return m.err
}

// markdownSteps is a table of the decisions, and what was objected to below.
func (p *printer) markdownSteps(steps []PlanStep) {
	p.line("")
	if len(steps) == 0 {
		p.line("Nothing to launch and nothing to remove.")
		return
	}
	p.line("| When | Decision | Cost | Policy |")
	p.line("| --- | --- | ---: | --- |")
	for i := range steps {
		s := &steps[i]
		when, verdict := "now", "allowed"
		if s.Later {
			when = "then"
		}
		switch {
		case !s.Allowed && len(s.Violations) > 0:
			verdict = "denied by " + strings.Join(ruleIDs(s), ", ")
		case len(s.Pending) > 0:
			verdict = "pods stay pending"
		}
		p.line("| %s | %s | %s | %s |", when, mdText(s.Summary), s.Cost, mdText(verdict))
	}
	p.line("")
	for i := range steps {
		p.markdownDetails(&steps[i])
	}
}

func ruleIDs(s *PlanStep) []string {
	var out []string
	for _, f := range s.Violations {
		out = append(out, f.Rule)
	}
	return out
}

func (p *printer) markdownDetails(s *PlanStep) {
	for _, u := range s.Pending {
		var pods []string
		for _, g := range u.Pods {
			pods = append(pods, podGroup(g))
		}
		p.line("- pending: %s: %s", mdCode(strings.Join(pods, "; ")), mdText(u.Message))
	}
	for _, f := range s.Violations {
		p.line("- **%s** denies: %s%s", mdText(f.Rule), mdText(f.Message), suffix(" at ", mdPosition(f)))
	}
	for _, f := range s.Warnings {
		p.line("- %s warns: %s%s", mdText(f.Rule), mdText(f.Message), suffix(" at ", mdPosition(f)))
	}
}

func mdPosition(f decision.Finding) string {
	if f.Position == nil {
		return ""
	}
	return mdCode(f.Position.String())
}

// mdCode is text in backquotes, which nothing in it ends.
func mdCode(s string) string { return "`" + strings.ReplaceAll(mdLine(s), "`", "'") + "`" }

// mdText is text in which nothing is taken for markup.
func mdText(s string) string {
	var b strings.Builder
	for _, r := range mdLine(s) {
		if strings.ContainsRune("\\`*_{}[]<>#|~&@", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// mdLine is text without line ends and control characters.
func mdLine(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
}
