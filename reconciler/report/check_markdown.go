package report

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// CheckMarker is the first line of a check in Markdown. It cannot be seen; who
// posts the check as a comment finds the one to update by it.
const CheckMarker = "<!-- reeve check -->"

// MaxMarkdown is how many characters a comment may have on GitHub.
const MaxMarkdown = 65_536

// CheckMarkdown writes the check as a comment for a pull request. It has at most
// MaxMarkdown characters; what is more is cut off and the comment says so.
func CheckMarkdown(w io.Writer, c *Check) error {
	m := &markdown{}
	m.line(CheckMarker)
	m.line("## Reeve check: %s", md(c.verdict()))
	m.line("")
	m.line("%s", md(c.title()))
	for i := range c.Clusters {
		m.cluster(c, &c.Clusters[i])
	}
	for _, name := range c.Removed {
		m.line("")
		m.line("The cluster %s is **removed**.", code(name))
	}
	_, err := io.WriteString(w, truncate(m.String(), MaxMarkdown))
	return err
}

// markdown is a text that grows.
type markdown struct{ strings.Builder }

func (m *markdown) line(format string, args ...any) {
	fmt.Fprintf(m, format, args...)
	m.WriteByte('\n')
}

// heading begins a part.
func (m *markdown) heading(depth int, text string) {
	m.line("")
	m.line("%s %s", strings.Repeat("#", depth), text)
	m.line("")
}

// table writes rows of cells that are Markdown already.
func (m *markdown) table(head []string, rows [][]string) {
	m.line("| %s |", strings.Join(head, " | "))
	m.line("|%s", strings.Repeat(" --- |", len(head)))
	for _, r := range rows {
		m.line("| %s |", strings.Join(r, " | "))
	}
}

func (m *markdown) cluster(c *Check, cc *ClusterCheck) {
	m.heading(3, "Cluster "+code(cc.Cluster))
	m.line("%s, %s, %s", count(cc.NodePools, "NodePool", "NodePools"), count(cc.NodeClasses, "EC2NodeClass", "EC2NodeClasses"), count(cc.Policies, "policy", "policies"))
	all := c.findings()
	first := true
	for i := range all {
		if all[i].cluster != cc.Cluster {
			continue
		}
		if first {
			m.line("")
			first = false
		}
		m.finding(&all[i])
	}
	m.change(cc)
	m.impact(cc.Impact)
	m.exclusions(cc)
}

func (m *markdown) impact(i *Impact) {
	if i == nil {
		return
	}
	m.line("")
	_ = ImpactMarkdown(m, i) // a strings.Builder takes all
}

func (m *markdown) finding(f *found) {
	word := string(f.level)
	if f.level == levelNote {
		word = "excepted"
	}
	where := ""
	if f.placed() {
		where = " " + code(fmt.Sprintf("%s:%d:%d", f.file, f.line, f.column))
	}
	m.line("- **%s**%s **%s** %s", word, where, md(f.Rule), md(f.text()))
	for _, l := range f.lines() {
		m.line("  <br>%s", md(l))
	}
}

func (m *markdown) change(cc *ClusterCheck) {
	ch := cc.Change
	if ch == nil {
		return
	}
	if len(ch.Fixed) > 0 {
		m.heading(4, "Fixed")
		for _, f := range ch.Fixed {
			m.line("- **%s** %s%s", md(f.Rule), md(f.Message), suffix(" ", parenthesis(md(f.Resource))))
		}
	}
	m.fields(ch.Fields)
	m.policies(ch.Policies)
	m.choices(ch.Choices)
	if len(ch.Budgets) > 0 {
		m.line("")
		m.line("#### Disruption budgets that change, as they will be")
		for i := range ch.Budgets {
			m.week(&ch.Budgets[i])
		}
	}
}

func (m *markdown) fields(fields []FieldChange) {
	if len(fields) == 0 {
		return
	}
	m.heading(4, "What changes for nodes")
	var rows [][]string
	for i := range fields {
		f := &fields[i]
		what, from, to := f.Op, "", ""
		if f.Field != "" {
			a, b := f.values()
			what, from, to = code(f.Field), code(a), code(b)
		}
		effect := string(f.Effect)
		if f.Effect == Replaces || f.Effect == ReplacesOutside {
			effect = "**" + effect + "**"
		}
		rows = append(rows, []string{md(f.Resource), what, from, to, effect + suffix(": ", md(f.Why))})
	}
	m.table([]string{"object", "field", "from", "to", "effect"}, rows)
}

func (m *markdown) policies(changes []PolicyChange) {
	if len(changes) == 0 {
		return
	}
	m.heading(4, "Policies that change")
	for _, c := range changes {
		loosened := ""
		if c.Loosened {
			loosened = " **may let pass what was refused before**"
		}
		m.line("- %s %s%s%s", c.Op, md(c.Resource), suffix(": ", md(strings.Join(c.Fields, ", "))), loosened)
	}
}

func (m *markdown) choices(all []ChoiceChange) {
	var rows [][]string
	same := 0
	for i := range all {
		if !all[i].changed() {
			same++
			continue
		}
		cells := []string{md(all[i].NodePool)}
		for _, r := range all[i].rows() {
			cells = append(cells, md(r[1]))
		}
		rows = append(rows, cells)
	}
	if len(rows) == 0 {
		return
	}
	m.heading(4, "Instance types to choose from")
	m.table([]string{"NodePool", "types", "spot types", "on-demand from", "spot from", "minValues"}, rows)
	if same > 0 {
		m.line("")
		m.line("Of %s nothing of this changes.", count(same, "other NodePool", "other NodePools"))
	}
}

func (m *markdown) exclusions(cc *ClusterCheck) {
	if len(cc.Exclusions) == 0 {
		return
	}
	m.line("")
	m.line("<details><summary>Instance types that policies exclude</summary>")
	m.line("")
	for _, x := range cc.Exclusions {
		m.line("- NodePool %s, **%s**: %s: %s", md(x.NodePool), md(x.Rule), md(choices(x)), md(x.Message))
	}
	m.line("")
	m.line("</details>")
}

func (m *markdown) week(b *BudgetWeek) {
	m.line("")
	m.line("%s", md(b.title()))
	m.line("")
	var rows [][]string
	for _, r := range b.table() {
		rows = append(rows, []string{r.reason, r.days, r.hours, md(r.allowed)})
	}
	m.table([]string{"reason", "days", "hours", "allowed"}, rows)
	for i, gap := range b.Gaps() {
		if i == 0 {
			m.line("")
		}
		m.line("- %s", md(gap))
	}
}

// md is text that Markdown shows as it is: nothing in it but a bare URL is a link, an image, a
// mention, a table cell or HTML.
func md(s string) string {
	var b strings.Builder
	last := ' '
	for _, r := range clean(s) {
		switch {
		case r == '\n':
			b.WriteString("<br>")
		case r == '<':
			b.WriteString("&lt;")
		case r == '>':
			b.WriteString("&gt;")
		case r == '&':
			b.WriteString("&amp;")
		case r == '@' && !unicode.IsLetter(last) && !unicode.IsDigit(last):
			b.WriteString("@<!-- -->")
		case strings.ContainsRune("\\`*_{}[]#|~!", r):
			b.WriteByte('\\')
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
		last = r
	}
	return b.String()
}

// code is text as code, also within a table.
func code(s string) string {
	s = strings.ReplaceAll(clean(s), "\n", " ")
	s = strings.ReplaceAll(s, "`", "'")
	return "`" + strings.ReplaceAll(s, "|", "\\|") + "`"
}

// cutNote is what a comment ends with that was cut off.
const cutNote = "\nThe rest is left out: the comment would be longer than %d characters. Run `reeve check` to see all.\n"

// truncate cuts whole lines off the end, so that the text has at most so many
// characters. What a line opened is closed.
func truncate(s string, limit int) string {
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	const details = "<details>"
	note := fmt.Sprintf(cutNote, limit)
	room := limit - utf8.RuneCountInString(note) - len("\n</details>\n")
	kept, used := &strings.Builder{}, 0
	for line := range strings.Lines(s) {
		n := utf8.RuneCountInString(line)
		if used+n > room {
			break
		}
		kept.WriteString(line)
		used += n
	}
	text := kept.String()
	if strings.Count(text, details) > strings.Count(text, "</details>") {
		text += "\n</details>\n"
	}
	return text + note
}
