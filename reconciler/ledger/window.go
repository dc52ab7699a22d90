package ledger

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/reeve-project/reeve/reconciler/port"
)

// dayRecord is days/<day>.json: where a day is that has left the tip.
type dayRecord struct {
	Version string `json:"version"`
	Day     string `json:"day"`
	// Commit is the last whose tip had the whole day, and Tree the id of the
	// day's folder there.
	Commit string `json:"commit"`
	Tree   string `json:"tree"`
	// Decisions is their number, Kinds how many of each kind.
	Decisions int            `json:"decisions"`
	Kinds     map[string]int `json:"kinds"`
	// Later are commits with the outcomes that came after that.
	Later []laterRecord `json:"later,omitempty"`
}

type laterRecord struct {
	Commit string `json:"commit"`
	Tree   string `json:"tree"`
}

// planWindow takes days out of the tip that are older than the window; open
// decisions of theirs stay with what they refer to. A day's record names a
// commit, so this waits until everything is pushed: the ids of commits that are
// not pushed may still change.
func (l *Ledger) planWindow(p *plan, e port.Entry) error {
	cutoff := e.Time.Add(-l.opts.Window).UTC().Format(dayFormat)
	if l.tip != l.base || l.tip.IsZero() {
		return nil
	}
	for _, day := range slices.Sorted(maps.Keys(l.mem.inTip)) {
		if day >= cutoff {
			continue
		}
		if err := l.trim(p, day); err != nil {
			return fmt.Errorf("take %s out of the tip: %w", day, err)
		}
	}
	return nil
}

func (l *Ledger) trim(p *plan, day string) error {
	v, err := newView(l.repo, l.tip)
	if err != nil {
		return err
	}
	dir := decisionsDir + "/" + day
	tree, there, err := v.tree(dir)
	if err != nil || !there {
		delete(l.mem.inTip, day)
		return err
	}
	keep := l.stays(p, day)
	removed, err := l.sweep(p, v, dir, keep)
	if err != nil || !removed {
		return err
	}
	rec, err := l.dayRecord(v, day, tree)
	if err != nil {
		return err
	}
	p.days = append(p.days, trimmedDay{record: rec, gone: len(keep) == 0})
	return p.setJSON(daysDir+"/"+day+recordSuffix, rec)
}

// trimmedDay is a day that a plan takes out of the tip.
type trimmedDay struct {
	record dayRecord
	gone   bool
}

// stays are the files of a day that open decisions need.
func (l *Ledger) stays(p *plan, day string) map[string]bool {
	keep := map[string]bool{}
	for _, r := range l.mem.open {
		if dayOf(r.path) != day {
			continue
		}
		keep[r.path], keep[outcomePath(r.path)] = true, true
		for _, id := range listIDs(r.decision) {
			keep[listPath(r.decision.Time, id)] = true
		}
	}
	// A file that this very plan writes stays too.
	for _, o := range p.ops {
		if !o.remove && dayOf(o.path) == day {
			keep[o.path] = true
		}
	}
	return keep
}

// sweep removes the other files of a day.
func (l *Ledger) sweep(p *plan, v *View, dir string, keep map[string]bool) (removed bool, err error) {
	if len(keep) == 0 {
		p.remove(dir)
		return true, nil
	}
	files, err := v.blobs(dir)
	if err != nil {
		return false, err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !keep[name] {
			p.remove(name)
			removed = true
		}
	}
	return removed, nil
}

// dayRecord is the record of a day as it stands in the tip, or what follows an
// earlier record of it.
func (l *Ledger) dayRecord(v *View, day, tree string) (dayRecord, error) {
	if rec, again := l.mem.days[day]; again {
		rec.Later = append(slices.Clone(rec.Later), laterRecord{Commit: l.tip.String(), Tree: tree})
		return rec, nil
	}
	rec := dayRecord{Version: recordVersion, Day: day, Commit: l.tip.String(), Tree: tree, Kinds: map[string]int{}}
	paths, err := v.records(day)
	for _, p := range paths {
		rec.Decisions++
		rec.Kinds[recordKind(p[strings.LastIndexByte(p, '/')+1:])]++
	}
	return rec, err
}

// left notes the days that a plan has taken out of the tip.
func (m *memory) left(days []trimmedDay) {
	for _, t := range days {
		m.days[t.record.Day] = t.record
		if !t.gone {
			continue
		}
		delete(m.inTip, t.record.Day)
		delete(m.rows, t.record.Day)
		maps.DeleteFunc(m.lists, func(p string, _ bool) bool { return dayOf(p) == t.record.Day })
	}
}
