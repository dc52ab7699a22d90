package ledger

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/port"
)

// dayTable is the summary of a day.
type dayTable struct {
	rows    map[string]*row // by decision
	changed bool            // since it was written
}

// row is a decision in a summary.
type row struct {
	time    time.Time
	kind    decision.Kind
	subject string
	summary string
	verdict string
	outcome string
}

func newRow(d *decision.Decision, o *decision.Outcome) *row {
	r := &row{time: d.Time, kind: d.Kind, subject: d.Subject(), summary: d.Summary, verdict: verdictWord(d)}
	switch {
	case o != nil:
		r.outcome = outcomeWord(o)
	case opens(d):
		r.outcome = "open"
	case d.Mode == fleet.Observe:
		r.outcome = "observed"
	}
	return r
}

func outcomeWord(o *decision.Outcome) string {
	if o.Final {
		return string(o.State)
	}
	return string(o.State) + " …"
}

// planSummaries writes README.md and the tables of days with the first commit
// after an hour has turned, and not with every commit: they would be most of
// what is pushed.
func (l *Ledger) planSummaries(p *plan, e port.Entry) error {
	if hourOf(e.Time) != l.mem.hour {
		leader := l.leader
		if p.leader != nil {
			leader = *p.leader
		}
		l.summaries(p, e.Time, l.mem.preview(p), leader)
	}
	return nil
}

func hourOf(t time.Time) string { return t.UTC().Format(dayFormat + " " + hourFormat) }

func (l *Ledger) summaries(p *plan, now time.Time, m *memory, leader leaderRecord) {
	p.summed = true
	p.set(readmeFile, l.readme(now, m, leader))
	for _, day := range slices.Sorted(maps.Keys(m.rows)) {
		if table := m.rows[day]; table.changed && m.inTip[day] {
			p.set(decisionsDir+"/"+day+"/"+summaryFile, table.markdown(day))
		}
	}
}

// preview is the part of memory that summaries are made from, as it will be
// with the plan.
func (m *memory) preview(p *plan) *memory {
	out := &memory{open: maps.Clone(m.open), inTip: maps.Clone(m.inTip), rows: map[string]*dayTable{}, total: m.total, lists: map[string]bool{}, days: map[string]dayRecord{}}
	for day, t := range m.rows {
		out.rows[day] = &dayTable{rows: maps.Clone(t.rows), changed: t.changed}
	}
	out.left(p.days)
	for _, d := range p.msg.decisions {
		out.decided(d, p.placed[d.ID])
	}
	for _, o := range p.msg.outcomes {
		out.advanced(o)
	}
	return out
}

// summed notes that the summaries were written, and drops the tables of days
// that cannot change any more.
func (m *memory) summed(now time.Time) {
	m.hour, m.stale = hourOf(now), false
	open := map[string]bool{}
	for _, r := range m.open {
		open[dayOf(r.path)] = true
	}
	yesterday := now.UTC().AddDate(0, 0, -1).Format(dayFormat)
	for day, table := range m.rows {
		table.changed = false
		if day < yesterday && !open[day] {
			delete(m.rows, day)
		}
	}
}

func (t *dayTable) markdown(day string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Decisions of %s\n\nTimes are UTC.\n\n| time | kind | about | decision | verdict | outcome |\n| --- | --- | --- | --- | --- | --- |\n", day)
	for _, id := range slices.Sorted(maps.Keys(t.rows)) {
		r := t.rows[id]
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", r.time.UTC().Format("15:04:05.000"), r.kind, cell(r.subject), cell(r.summary), r.verdict, r.outcome)
	}
	return b.Bytes()
}

// cell keeps text inside its cell of a Markdown table.
func cell(s string) string {
	s = strings.NewReplacer("\\", "\\\\", "|", "\\|", "<", "&lt;").Replace(oneLine(s))
	if s == "" {
		return "-"
	}
	return s
}

func (l *Ledger) readme(now time.Time, m *memory, leader leaderRecord) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `# Decisions of cluster %s

Reeve writes this branch: every decision about the nodes of the cluster, what
policy said of it, what became of it, and everything it depended on. Nobody else
should write to the folders below; other files are left alone.

| where | what |
| --- | --- |
| decisions/ | the decisions of the last %s, a folder per day with a SUMMARY.md |
| days/ | where the days are that have left the tip; history keeps them |
| open/ | decisions that are not finished |
| state/ | the cluster as the last decision saw it |
| inputs/ | the accepted fleet, the policies and the prices |

| | |
| --- | --- |
| format | %s |
| epoch | %d |
| leader | %s |
| decisions ever | %d |
| open | %d |
| as of | %s |

    reeve log                list decisions
    reeve show DECISION      show one in full
    reeve verify             prove that the branch is whole and unchanged
    reeve replay DECISION    make a decision again from the record
`, l.opts.Cluster, days(l.opts.Window), decision.Version, leader.Epoch, orDash(leader.Identity), m.total, len(m.open), now.UTC().Format(time.RFC3339))
	return b.Bytes()
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func days(d time.Duration) string {
	if n := int(d.Hours() / 24); n > 1 {
		return fmt.Sprintf("%d days", n)
	}
	return d.String()
}
