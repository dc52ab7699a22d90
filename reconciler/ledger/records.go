package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/port"
)

func (l *Ledger) planDecisions(p *plan, e port.Entry) error {
	for _, d := range e.Decisions {
		b, err := decision.Encode(d)
		if err != nil {
			return err
		}
		name, err := recordName(d)
		if err != nil {
			return err
		}
		dir, err := l.place(p, d.Time)
		if err != nil {
			return err
		}
		p.placed[d.ID] = dir + "/" + name
		p.set(dir+"/"+name, b)
		if opens(d) {
			p.set(openDir+"/"+d.ID, []byte(dir+"/"+name+"\n"))
		}
		if err := l.planLists(p, d); err != nil {
			return err
		}
	}
	return nil
}

// place is the block for the next decision of that time.
func (l *Ledger) place(p *plan, t time.Time) (string, error) {
	hour := dayDir(t) + "/" + t.UTC().Format(hourFormat)
	if p.block.hour != hour {
		b, err := l.lastBlock(t)
		if err != nil {
			return "", err
		}
		p.block = b
	}
	if p.block.used == blockSize {
		p.block.n, p.block.used = p.block.n+1, 0
	}
	p.block.used++
	return blockDir(t, p.block.n), nil
}

// lastBlock counts what stands in the hour already.
func (l *Ledger) lastBlock(t time.Time) (block, error) {
	b := block{hour: dayDir(t) + "/" + t.UTC().Format(hourFormat)}
	entries, err := l.ed.List(dayDir(t))
	if err != nil {
		return b, err
	}
	hour := t.UTC().Format(hourFormat) + "."
	for _, e := range entries {
		if n := 0; isBlock(e.Name) && strings.HasPrefix(e.Name, hour) {
			if _, err := fmt.Sscanf(e.Name[3:], "%d", &n); err == nil {
				b.n = max(b.n, n)
			}
		}
	}
	if entries, err = l.ed.List(blockDir(t, b.n)); err != nil {
		return b, err
	}
	for _, e := range entries {
		if isRecord(e.Name) {
			b.used++
		}
	}
	return b, nil
}

// planLists keeps the lists of type names that the decision refers to, once a
// day.
func (l *Ledger) planLists(p *plan, d *decision.Decision) error {
	for _, id := range listIDs(d) {
		names, ok := d.Proposal.Lists[id]
		if !ok {
			return fmt.Errorf("decision %s refers to the type list %s, which is not given", d.ID, id)
		}
		if decision.ListID(names) != id {
			return fmt.Errorf("decision %s: type list %s has another content", d.ID, id)
		}
		path := listPath(d.Time, id)
		if !l.mem.lists[path] && !slices.ContainsFunc(p.ops, func(o op) bool { return o.path == path }) {
			p.set(path, []byte(strings.Join(names, "\n")+"\n"))
		}
	}
	return nil
}

// listIDs are the lists that a decision refers to, sorted.
func listIDs(d *decision.Decision) []string {
	set := map[string]bool{}
	add := func(t decision.TypeSet) {
		if t.List != "" {
			set[t.List] = true
		}
	}
	for i := range d.Proposal.Claims {
		add(d.Proposal.Claims[i].Launchable)
	}
	for _, x := range d.Verdict.Exclusions {
		add(x.Types)
	}
	for _, r := range d.Rounds {
		for _, x := range r.Excluded {
			add(x.Types)
		}
	}
	return slices.Sorted(maps.Keys(set))
}

func (l *Ledger) planOutcomes(p *plan, e port.Entry) error {
	for _, o := range e.Outcomes {
		record, err := l.recordOf(p, o, e.Decisions)
		if err != nil {
			return err
		}
		if open := l.mem.open[o.Decision]; open != nil {
			p.msg.about[o.Decision] = open.decision.Summary
		} else {
			p.msg.about[o.Decision] = "handover"
		}
		b, err := decision.EncodeOutcome(o)
		if err != nil {
			return err
		}
		p.set(outcomePath(record), b)
		if o.Final && l.mem.open[o.Decision] != nil {
			p.remove(openDir + "/" + o.Decision)
		}
	}
	return nil
}

// recordOf is the path of the decision that an outcome belongs to. It must have
// been recorded before: nothing is done before its decision is written.
func (l *Ledger) recordOf(p *plan, o *decision.Outcome, now []*decision.Decision) (string, error) {
	if open := l.mem.open[o.Decision]; open != nil {
		grows, err := continues(open.outcome, o)
		if err == nil && !grows {
			err = fmt.Errorf("outcome of %s does not begin with the steps that are recorded: an outcome only grows", o.Decision)
		}
		if err != nil {
			return "", err
		}
		return open.path, nil
	}
	for _, d := range now {
		if d.ID == o.Decision && d.Kind == decision.Handover {
			return p.placed[d.ID], nil
		}
	}
	return "", fmt.Errorf("outcome of %s: there is no open decision of that id in the ledger: a decision is recorded before it is acted on", o.Decision)
}

// continues says whether an outcome begins with the steps of an earlier one.
func continues(before, after *decision.Outcome) (bool, error) {
	if len(after.Steps) < len(before.Steps) {
		return false, nil
	}
	a, errA := encodeJSON(before.Steps, "")
	b, errB := encodeJSON(after.Steps[:len(before.Steps)], "")
	return len(before.Steps) == 0 || bytes.Equal(a, b), errors.Join(errA, errB)
}
