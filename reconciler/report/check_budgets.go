package report

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// BudgetWeek is what the disruption budgets of a NodePool allow in one week.
type BudgetWeek struct {
	Cluster  string `json:"cluster"`
	NodePool string `json:"nodePool"`
	// From is the Monday at which the week begins, in UTC, as schedules are.
	From time.Time `json:"from"`
	// Nodes is the number of nodes that percentages were taken of; zero when
	// they are shown as they are.
	Nodes int `json:"nodes,omitempty"`
	// Reasons are in Karpenter's order.
	Reasons []BudgetReason `json:"reasons"`
}

// BudgetReason is what is allowed for one reason.
type BudgetReason struct {
	Reason string `json:"reason"`
	// Runs cover the week without a gap, each with another answer than the one
	// before.
	Runs []BudgetRun `json:"runs"`
}

// BudgetRun is a time in which the same is allowed.
type BudgetRun struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// Allowed is a number of nodes, a percentage, or both: "10%, at most 5". It
	// is "unlimited" when no active budget restricts the reason.
	Allowed string `json:"allowed"`
	// Unlimited says that no active budget restricts the reason.
	Unlimited bool `json:"unlimited,omitempty"`
}

// maxGaps is how many times of one reason are told.
const maxGaps = 5

// Gaps are sentences about the times in which a reason is unlimited: budgets
// only ever restrict, so that is seldom meant. Of each reason the first five
// are told, and how many more there are.
func (b *BudgetWeek) Gaps() []string {
	var out []string
	for _, r := range b.Reasons {
		n := 0
		for _, run := range r.Runs {
			if !run.Unlimited {
				continue
			}
			if n++; n <= maxGaps {
				out = append(out, fmt.Sprintf("%s is unlimited %s: no active budget covers it", r.Reason, b.when(run)))
			}
		}
		if n > maxGaps {
			out = append(out, fmt.Sprintf("%s is unlimited at %s of this week", r.Reason, count(n-maxGaps, "more time", "more times")))
		}
	}
	return out
}

// when names a time of the week.
func (b *BudgetWeek) when(run BudgetRun) string {
	end := b.From.AddDate(0, 0, 7)
	switch {
	case run.From.Equal(b.From) && run.To.Equal(end):
		return "all week"
	case run.From.Equal(b.From):
		return "until " + instant(run.To)
	case run.To.Equal(end):
		return "from " + instant(run.From) + " to the end of the week"
	case sameDay(run.From, run.To):
		return fmt.Sprintf("on %s–%s", instant(run.From), run.To.Format("15:04"))
	default:
		return fmt.Sprintf("from %s to %s", instant(run.From), instant(run.To))
	}
}

func instant(t time.Time) string { return t.Format("Monday 15:04") }

// sameDay says whether both are on one day; midnight ends a day.
func sameDay(from, to time.Time) bool {
	last := to.Add(-time.Nanosecond)
	return from.YearDay() == last.YearDay() && to.YearDay() == from.YearDay()
}

// span is a part of one day.
type span struct{ hours, allowed string }

// days are the spans of each day of the week.
func (b *BudgetWeek) days(r BudgetReason) [7][]span {
	var out [7][]span
	for d := range out {
		begin := b.From.AddDate(0, 0, d)
		end := begin.AddDate(0, 0, 1)
		for _, run := range r.Runs {
			if !run.To.After(begin) || !run.From.Before(end) {
				continue
			}
			from, to := begin, "24:00"
			if run.From.After(begin) {
				from = run.From
			}
			if run.To.Before(end) {
				to = run.To.Format("15:04")
			}
			out[d] = append(out[d], span{from.Format("15:04") + "–" + to, run.Allowed})
		}
	}
	return out
}

// row is a line of the week's table.
type row struct{ reason, days, hours, allowed string }

// table is the week with equal days and equal reasons told once.
func (b *BudgetWeek) table() []row {
	type part struct {
		reasons []string
		days    [7][]span
	}
	var parts []part
	for _, r := range b.Reasons {
		days := b.days(r)
		i := slices.IndexFunc(parts, func(p part) bool { return equalDays(p.days, days) })
		if i < 0 {
			parts = append(parts, part{days: days})
			i = len(parts) - 1
		}
		parts[i].reasons = append(parts[i].reasons, r.Reason)
	}
	var out []row
	for _, p := range parts {
		reason := strings.Join(p.reasons, ", ")
		for d := 0; d < 7; {
			next := d + 1
			for next < 7 && slices.Equal(p.days[d], p.days[next]) {
				next++
			}
			days := weekdays(b.From, d, next-1)
			for _, s := range p.days[d] {
				out = append(out, row{reason, days, s.hours, s.allowed})
				reason, days = "", ""
			}
			d = next
		}
	}
	return out
}

func equalDays(a, b [7][]span) bool {
	for d := range a {
		if !slices.Equal(a[d], b[d]) {
			return false
		}
	}
	return true
}

func weekdays(monday time.Time, first, last int) string {
	name := func(d int) string { return monday.AddDate(0, 0, d).Format("Mon") }
	if first == last {
		return name(first)
	}
	return name(first) + "–" + name(last)
}

// Title says whose week it is.
func (b *BudgetWeek) title() string {
	return fmt.Sprintf("%s: disruption budgets of NodePool %s in the week of %s, UTC%s", b.Cluster, b.NodePool,
		b.From.Format(time.DateOnly), suffix(", for ", nodes(b.Nodes)))
}

func nodes(n int) string {
	if n == 0 {
		return ""
	}
	return count(n, "node", "nodes")
}

func (p *printer) week(b *BudgetWeek) {
	p.line("%s", b.title())
	var text strings.Builder
	tw := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "  REASON\tDAYS\tHOURS\tALLOWED")
	for _, r := range b.table() {
		fmt.Fprintf(tw, "  %s\t%s\t%s\t%s\n", r.reason, r.days, r.hours, r.allowed)
	}
	tw.Flush()
	for line := range strings.Lines(text.String()) {
		p.line("%s", strings.TrimRight(line, " \n"))
	}
	for _, gap := range b.Gaps() {
		p.line("  %s", gap)
	}
}

// BudgetsText writes the weeks as tables, with equal days and hours told once.
func BudgetsText(w io.Writer, weeks []BudgetWeek) error {
	p := &printer{w: w}
	for i := range weeks {
		if i > 0 {
			p.line("")
		}
		p.week(&weeks[i])
	}
	return p.err
}

// BudgetsJSON writes the weeks as a list in indented JSON.
func BudgetsJSON(w io.Writer, weeks []BudgetWeek) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(append([]BudgetWeek{}, weeks...))
}

// BudgetsMarkdown writes the weeks as Markdown tables.
func BudgetsMarkdown(w io.Writer, weeks []BudgetWeek) error {
	m := &markdown{}
	for i := range weeks {
		m.week(&weeks[i])
	}
	_, err := io.WriteString(w, strings.TrimPrefix(m.String(), "\n"))
	return err
}

// WriteBudgets writes the weeks in the form of that name: text, markdown or
// json.
func WriteBudgets(w io.Writer, format string, weeks []BudgetWeek) error {
	switch format {
	case "text":
		return BudgetsText(w, weeks)
	case "markdown":
		return BudgetsMarkdown(w, weeks)
	case "json":
		return BudgetsJSON(w, weeks)
	default:
		return fmt.Errorf("format %q: want text, markdown or json", format)
	}
}
