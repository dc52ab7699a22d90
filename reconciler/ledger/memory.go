package ledger

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/gitrepo"
)

// recentFor is how long a decision counts as recent.
const recentFor = time.Hour

// memory is what the writer knows of its tip without reading the tree.
type memory struct {
	open     map[string]*openRecord
	recent   []cluster.Recent        // in order of time
	blobs    map[string]gitrepo.Hash // files of state, policies and catalog
	lists    map[string]bool         // paths of type lists
	fleet    string                  // tree of inputs/fleet
	proposed bool                    // inputs/proposed is in the tip
	accepted *acceptedRecord
	catalog  *catalog.Data // the value that inputs/catalog was written from
	block    block
	total    int                  // decisions ever
	days     map[string]dayRecord // days that have left the tip
	rows     map[string]*dayTable // days whose summary may still change
	inTip    map[string]bool      // days in the tip
	hour     string               // of the last summaries
	stale    bool                 // something is not in the summaries yet
}

// openRecord is a decision whose outcome is not final.
type openRecord struct {
	path     string
	decision *decision.Decision
	outcome  *decision.Outcome
}

// load reads the tip into memory.
func (l *Ledger) load(tip gitrepo.Hash, now time.Time) error {
	l.mem = memory{
		open: map[string]*openRecord{}, blobs: map[string]gitrepo.Hash{}, lists: map[string]bool{},
		days: map[string]dayRecord{}, rows: map[string]*dayTable{}, inTip: map[string]bool{}, stale: true,
	}
	l.leader, l.tip = leaderRecord{}, tip
	if err := l.edit(); err != nil {
		return err
	}
	if tip.IsZero() {
		return nil
	}
	view, err := newView(l.repo, tip)
	if err != nil {
		return err
	}
	if l.leader, err = view.leader(); err != nil {
		return l.conflict("is not a ledger (%v): choose another branch with cluster.ledger.branch, or move this one away", err)
	}
	if l.leader.Cluster != l.opts.Cluster {
		return l.conflict("is the ledger of cluster %q, and this is %q: every cluster needs a branch of its own", l.leader.Cluster, l.opts.Cluster)
	}
	for _, step := range []func(*View, time.Time) error{l.loadInputs, l.loadOpen, l.loadDays, l.loadRecent} {
		if err := step(view, now); err != nil {
			return fmt.Errorf("read branch %s at %s: %w", l.opts.Branch, tip, err)
		}
	}
	return nil
}

func (l *Ledger) loadInputs(v *View, _ time.Time) error {
	for _, dir := range []string{stateDir, policiesDir, CatalogDir} {
		files, err := v.blobs(dir)
		if err != nil {
			return err
		}
		maps.Copy(l.mem.blobs, files)
	}
	var err error
	if l.mem.accepted, err = v.accepted(); err != nil {
		return err
	}
	_, l.mem.proposed, err = v.tree(proposedDir)
	if err != nil {
		return err
	}
	l.mem.fleet, _, err = v.tree(fleetDir)
	return err
}

func (l *Ledger) loadOpen(v *View, _ time.Time) error {
	records, err := v.open()
	for _, r := range records {
		l.mem.open[r.decision.ID] = r
	}
	return err
}

// loadDays counts decisions and reads the days whose table may still change:
// those of today, yesterday and the open decisions.
func (l *Ledger) loadDays(v *View, now time.Time) error {
	days, err := v.days()
	if err != nil {
		return err
	}
	l.mem.days = days
	for _, d := range days {
		l.mem.total += d.Decisions
	}
	live := map[string]bool{now.UTC().Format(dayFormat): true, now.UTC().AddDate(0, 0, -1).Format(dayFormat): true}
	for _, r := range l.mem.open {
		live[dayOf(r.path)] = true
	}
	entries, err := v.list(decisionsDir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		l.mem.inTip[e.Name] = true
		paths, err := v.records(e.Name)
		if err != nil {
			return err
		}
		if _, left := days[e.Name]; !left {
			l.mem.total += len(paths)
		}
		if !live[e.Name] {
			continue
		}
		if err := l.loadDay(v, e.Name, paths); err != nil {
			return err
		}
	}
	return nil
}

func (l *Ledger) loadDay(v *View, day string, paths []string) error {
	table := &dayTable{rows: map[string]*row{}}
	l.mem.rows[day] = table
	for _, p := range paths {
		d, o, err := v.record(p)
		if err != nil {
			return err
		}
		table.rows[d.ID] = newRow(d, o)
	}
	lists, err := v.list(decisionsDir + "/" + day + "/" + listsDir)
	for _, e := range lists {
		l.mem.lists[decisionsDir+"/"+day+"/"+listsDir+"/"+e.Name] = true
	}
	return err
}

// loadRecent reads the decisions of the last hour before now, or before the
// spool's entries are made again.
func (l *Ledger) loadRecent(v *View, now time.Time) error {
	since := now.Add(-recentFor)
	for t := since.UTC().Truncate(time.Hour); !t.After(now); t = t.Add(time.Hour) {
		paths, err := v.recordsOfHour(t)
		if err != nil {
			return err
		}
		for _, p := range paths {
			d, _, err := v.record(p)
			if err != nil {
				return err
			}
			if d.Time.After(since) {
				l.mem.recent = append(l.mem.recent, short(d))
			}
		}
	}
	return nil
}

// commit takes over what a plan has written.
func (m *memory) commit(p *plan) {
	for _, o := range p.ops {
		m.note(o)
	}
	for _, d := range p.msg.decisions {
		m.decided(d, p.placed[d.ID])
	}
	for _, o := range p.msg.outcomes {
		m.advanced(o)
	}
	if n := len(p.msg.decisions); n > 0 {
		oldest := p.time.Add(-recentFor)
		m.recent = slices.DeleteFunc(m.recent, func(r cluster.Recent) bool { return !r.Time.After(oldest) })
	}
	m.left(p.days)
	m.block = p.block
	if p.accepted != nil {
		m.accepted = p.accepted
	}
	if p.catalog != nil {
		m.catalog = p.catalog
	}
	if p.summed {
		m.summed(p.time)
	} else if len(p.msg.decisions)+len(p.msg.outcomes) > 0 {
		m.stale = true
	}
}

// note remembers what an op has done to the files that are compared with the
// next entry.
func (m *memory) note(o op) {
	switch {
	case o.path == fleetDir:
		m.fleet = o.tree
	case o.path == proposedDir && o.remove:
		m.proposed = false
	case strings.HasPrefix(o.path, proposedDir+"/"):
		m.proposed = true
	case isCompared(o.path) && o.remove:
		delete(m.blobs, o.path)
	case isCompared(o.path):
		m.blobs[o.path] = gitrepo.BlobID(o.content)
	case strings.HasPrefix(o.path, decisionsDir+"/") && strings.HasSuffix(o.path, ".txt"):
		m.lists[o.path] = !o.remove
	}
}

func isCompared(path string) bool {
	for _, dir := range []string{stateDir, policiesDir, CatalogDir} {
		if strings.HasPrefix(path, dir+"/") {
			return true
		}
	}
	return false
}

func (m *memory) decided(d *decision.Decision, path string) {
	m.total++
	m.recent = append(m.recent, short(d))
	if opens(d) {
		m.open[d.ID] = &openRecord{path: path, decision: d, outcome: decision.NewOutcome(d.ID)}
	}
	day := dayOf(path)
	m.inTip[day] = true
	if m.rows[day] == nil {
		m.rows[day] = &dayTable{rows: map[string]*row{}}
	}
	m.rows[day].rows[d.ID] = newRow(d, nil)
	m.rows[day].changed = true
}

func (m *memory) advanced(o *decision.Outcome) {
	t, _, err := decision.ParseID(o.Decision)
	if err != nil {
		return // recordOf has refused it
	}
	if table := m.rows[t.Format(dayFormat)]; table != nil && table.rows[o.Decision] != nil {
		next := *table.rows[o.Decision]
		next.outcome = outcomeWord(o)
		table.rows[o.Decision], table.changed = &next, true
	}
	if r := m.open[o.Decision]; r != nil {
		m.open[o.Decision] = &openRecord{path: r.path, decision: r.decision, outcome: o.Clone()}
		if o.Final {
			delete(m.open, o.Decision)
		}
	}
}

// forget frees the memory of objects that are pushed, but for what the writer
// may read again. It does so only now and then, since it walks the tip.
func (l *Ledger) forget() {
	if l.tip.IsZero() {
		return
	}
	commits := []gitrepo.Hash{l.tip}
	for _, c := range l.unpushed {
		commits = append(commits, c.hash)
	}
	if !l.base.IsZero() {
		commits = append(commits, l.base)
	}
	keep := func(path string) bool {
		return strings.HasPrefix(path, inputsDir+"/") || strings.HasPrefix(path, daysDir+"/") || path == leaderFile
	}
	if len(l.unpushed) > 0 {
		keep = func(string) bool { return true }
	}
	// What cannot be freed stays: the ledger only gets larger.
	_ = l.repo.Forget(commits, keep)
	l.kept = 0
}

// notLost compares the branch with what was pushed last, as the spool
// remembers it: a branch that has lost decisions must not be written on as if
// nothing had happened. The number of decisions ever made only grows.
func (l *Ledger) notLost(last *pushedRecord) error {
	if last == nil || last.Branch != l.opts.Branch {
		return nil
	}
	how := fmt.Sprintf("Restore it from any clone with: git push %s %s:refs/heads/%s\nor delete the key %q of the spool to begin anew without it",
		l.repo.Name(), last.Commit, l.opts.Branch, pushedKey)
	if l.tip.IsZero() {
		return l.conflict("is gone, and %s with %d decisions was pushed to it. %s", last.Commit, last.Decisions, how)
	}
	if l.mem.total < last.Decisions || l.leader.Epoch < last.Epoch {
		return l.conflict("was rewritten: it has %d decisions and epoch %d, and %s with %d decisions and epoch %d was pushed to it. %s",
			l.mem.total, l.leader.Epoch, last.Commit, last.Decisions, last.Epoch, how)
	}
	return nil
}
