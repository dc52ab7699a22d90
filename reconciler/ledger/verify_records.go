package ledger

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/gitrepo"
)

func missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }

func isDecisionPath(p string) bool { return dayOf(p) != "" && isRecord(path.Base(p)) }

func isOutcomePath(p string) bool { return dayOf(p) != "" && strings.HasSuffix(p, outcomeSuffix) }

// decisions proves the decisions that the commit adds, and that none of the
// older ones has changed.
func (w *verifier) decisions(ctx context.Context, v *View, changes []gitrepo.Change) ([]*decision.Decision, error) {
	var added []*decision.Decision
	for _, c := range changes {
		switch {
		case !isDecisionPath(c.Path):
		case isAdded(c):
			d, err := w.decision(v, c)
			if err != nil {
				return nil, err
			}
			if d != nil {
				added = append(added, d)
				w.further(ctx, v, d)
			}
		case isRemoved(c):
			w.left(v, c.Path)
		default:
			w.problem(c.Path, "the decision was changed after it was recorded")
		}
	}
	w.trailers(v, added)
	return added, nil
}

func (w *verifier) further(ctx context.Context, v *View, d *decision.Decision) {
	for _, check := range w.checks {
		for _, msg := range check(ctx, Entry{Decision: d, View: v}) {
			w.problem(w.seen[d.ID].path, "%s", msg)
		}
	}
}

// decision proves one new decision.
func (w *verifier) decision(v *View, c gitrepo.Change) (*decision.Decision, error) {
	b, err := w.repo.Blob(c.To.Hash)
	if err != nil {
		return nil, err
	}
	d, _, err := v.record(c.Path)
	if err != nil {
		w.problem(c.Path, "%v", err)
		return nil, nil
	}
	if again, err := decision.Encode(d); err != nil || !bytes.Equal(again, b) {
		w.problem(c.Path, "the bytes are not those that the decision is written as")
	}
	if err := d.VerifyID(); err != nil {
		w.problem(c.Path, "%v", err)
	}
	if name, err := recordName(d); err != nil || name != path.Base(c.Path) || !strings.HasPrefix(c.Path, dayDir(d.Time)+"/"+d.Time.UTC().Format(hourFormat)+".") {
		w.problem(c.Path, "the path is not that of decision %s", d.ID)
	}
	for id, names := range d.Proposal.Lists {
		if decision.ListID(names) != id {
			w.problem(listPath(d.Time, id), "the list is not the one that decision %s refers to", d.ID)
		}
	}
	if old := w.seen[d.ID]; old != nil {
		if !old.left {
			w.problem(c.Path, "decision %s is recorded twice, first as %s", d.ID, old.path)
		}
		old.left, old.path = false, c.Path
		return nil, nil
	}
	s := &seen{path: c.Path, allowed: d.Verdict.Allowed, opens: opens(d), handover: d.Kind == decision.Handover, commit: w.res.Commits}
	for i := range d.Proposal.Claims {
		s.claims = append(s.claims, d.Proposal.Claims[i].Name)
	}
	w.seen[d.ID], w.byPath[c.Path] = s, d.ID
	if s.opens {
		w.open[d.ID] = true
	}
	return d, nil
}

// left proves that a decision that is taken out of the tip is in the record of
// its day.
func (w *verifier) left(v *View, p string) {
	id := w.byPath[p]
	if s := w.seen[id]; s != nil {
		s.left = true
	}
	days, err := v.days()
	if err != nil {
		w.problem(daysDir, "%v", err)
		return
	}
	rec, ok := days[dayOf(p)]
	if !ok {
		w.problem(p, "the decision was deleted: there is no record that its day has left the tip")
		return
	}
	for _, at := range append(slices.Clone(rec.Later), laterRecord{Commit: rec.Commit, Tree: rec.Tree}) {
		if w.in(at, p) {
			return
		}
	}
	w.problem(p, "the decision was deleted: no commit that %s/%s.json names has it", daysDir, rec.Day)
}

// in says whether a path is in a commit of the chain under the tree that a
// day's record names.
func (w *verifier) in(at laterRecord, p string) bool {
	if !w.commits[at.Commit] {
		return false
	}
	h, err := gitrepo.ParseHash(at.Commit)
	if err != nil {
		return false
	}
	v, err := newView(w.repo, h)
	if err != nil {
		return false
	}
	tree, ok, err := v.tree(decisionsDir + "/" + dayOf(p))
	if err != nil || !ok || tree != at.Tree {
		return false
	}
	_, err = v.read(p)
	return err == nil
}

// trailers proves that the message names exactly the decisions of the commit.
func (w *verifier) trailers(v *View, added []*decision.Decision) {
	ids, kinds, verdicts := v.Decisions(), v.marks.all(trailerKind), v.marks.all(trailerVerdict)
	byID := map[string]*decision.Decision{}
	for _, d := range added {
		byID[d.ID] = d
	}
	for i, id := range ids {
		d := byID[id]
		delete(byID, id)
		switch {
		case d == nil:
			w.problem("", "the message names decision %s, which the commit does not record", id)
		case i >= len(kinds) || kinds[i] != string(d.Kind) || i >= len(verdicts) || verdicts[i] != verdictWord(d):
			w.problem("", "kind or verdict in the message are not those of decision %s", id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		w.problem(w.seen[id].path, "the message does not name decision %s", id)
	}
	if len(added) == 1 && v.Subject() != oneLine(added[0].Summary) {
		w.problem("", "the subject is not the summary of decision %s: %s", added[0].ID, oneLine(added[0].Summary))
	}
	for _, d := range added {
		if spec := v.marks.first(trailerSpec); d.Inputs.SpecCommit != "" && d.Inputs.SpecCommit != spec {
			w.problem(w.seen[d.ID].path, "the message names spec commit %s, the decision %s", spec, d.Inputs.SpecCommit)
		}
		if pol := v.marks.first(trailerPolicies); d.Inputs.Policies != "" && d.Inputs.Policies != pol {
			w.problem(w.seen[d.ID].path, "the message names policies %s, the decision %s", pol, d.Inputs.Policies)
		}
	}
}

// outcomes proves that every outcome follows a decision that was recorded
// before, and only grows.
func (w *verifier) outcomes(v *View, changes []gitrepo.Change) error {
	said := map[string]bool{}
	for _, line := range v.marks.all(trailerOutcome) {
		said[line] = true
	}
	for _, c := range changes {
		switch {
		case !isOutcomePath(c.Path):
			continue
		case isRemoved(c):
			w.outcomeLeft(c.Path)
			continue
		}
		w.res.Outcomes++
		b, err := w.repo.Blob(c.To.Hash)
		if err != nil {
			return err
		}
		o, err := decision.DecodeOutcome(b)
		if err != nil {
			w.problem(c.Path, "%v", err)
			continue
		}
		w.outcome(c, o)
		line := o.Decision + " " + string(o.State)
		if !said[line] {
			w.problem(c.Path, "the message does not say that decision %s is %s", o.Decision, o.State)
		}
		delete(said, line)
		if !isAdded(c) {
			if err := w.grows(c, o); err != nil {
				return err
			}
		}
	}
	for _, line := range slices.Sorted(maps.Keys(said)) {
		w.problem("", "the message names the outcome %q, which the commit does not record", line)
	}
	return nil
}

// outcomeLeft proves that an outcome leaves the tip together with its decision.
func (w *verifier) outcomeLeft(p string) {
	id := w.byPath[strings.TrimSuffix(p, outcomeSuffix)+recordSuffix]
	if s := w.seen[id]; s != nil && !s.left {
		w.problem(p, "the outcome was deleted, and its decision was not")
	}
}

func (w *verifier) outcome(c gitrepo.Change, o *decision.Outcome) {
	s := w.seen[o.Decision]
	switch {
	case s == nil:
		w.problem(c.Path, "outcome of %s, which is not recorded", o.Decision)
		return
	case outcomePath(s.path) != c.Path:
		w.problem(c.Path, "outcome of %s stands apart from its decision %s", o.Decision, s.path)
	case !s.allowed:
		w.problem(c.Path, "decision %s was denied and has an outcome", o.Decision)
	case s.commit == w.res.Commits && !s.handover:
		w.problem(c.Path, "decision %s was acted on before it was recorded: its outcome is in the same commit", o.Decision)
	case s.final:
		w.problem(c.Path, "the outcome of %s was final and has changed", o.Decision)
	}
	if o.Final {
		s.final = true
		delete(w.open, o.Decision)
	}
}

// grows proves that the steps that were recorded before are still there.
func (w *verifier) grows(c gitrepo.Change, o *decision.Outcome) error {
	b, err := w.repo.Blob(c.From.Hash)
	if err != nil {
		return err
	}
	before, err := decision.DecodeOutcome(b)
	if err != nil {
		return nil // said when it was written
	}
	ok, err := continues(before, o)
	if err == nil && !ok {
		w.problem(c.Path, "recorded steps of the outcome of %s were changed or removed", o.Decision)
	}
	return err
}

// claims proves that every NodeClaim in the state was decided before.
func (w *verifier) claims(v *View, changes []gitrepo.Change) error {
	for _, c := range changes {
		if !isNodeFile(c.Path) || isRemoved(c) {
			continue
		}
		b, err := w.repo.Blob(c.To.Hash)
		if err != nil {
			return err
		}
		claim, err := claimOf(b)
		if err != nil {
			w.problem(c.Path, "%v", err)
			continue
		}
		if claim == nil || claim.Decision == "" {
			continue // not ours
		}
		s := w.seen[claim.Decision]
		switch {
		case s == nil:
			w.problem(c.Path, "NodeClaim %s exists, and its decision %s is not recorded", claim.Name, claim.Decision)
		case s.commit == w.res.Commits:
			w.problem(c.Path, "NodeClaim %s existed before its decision %s was recorded", claim.Name, claim.Decision)
		case !s.allowed:
			w.problem(c.Path, "NodeClaim %s exists, and its decision %s was denied", claim.Name, claim.Decision)
		case !slices.Contains(s.claims, claim.Name):
			w.problem(c.Path, "decision %s has no claim %s", claim.Decision, claim.Name)
		}
	}
	return nil
}

// days proves the records of days that have left the tip.
func (w *verifier) days(v *View, changes []gitrepo.Change) error {
	for _, c := range changes {
		if !strings.HasPrefix(c.Path, daysDir+"/") {
			continue
		}
		if isRemoved(c) {
			w.problem(c.Path, "the record of a day was deleted")
			continue
		}
		b, err := w.repo.Blob(c.To.Hash)
		if err != nil {
			return err
		}
		var rec dayRecord
		if err := decodeJSON(b, &rec); err != nil {
			w.problem(c.Path, "%v", err)
			continue
		}
		n := 0
		for _, s := range w.seen {
			if dayOf(s.path) == rec.Day {
				n++
			}
		}
		if n < rec.Decisions {
			w.problem(c.Path, "the day had %d decisions, and %d are recorded", rec.Decisions, n)
		}
	}
	return nil
}

// openFiles proves that open/ is exactly the decisions without a final outcome.
func (w *verifier) openFiles(v *View, changes []gitrepo.Change) error {
	for _, c := range changes {
		id, below := strings.CutPrefix(c.Path, openDir+"/")
		if !below {
			continue
		}
		if isRemoved(c) {
			delete(w.inTree, id)
			continue
		}
		w.inTree[id] = true
		b, err := w.repo.Blob(c.To.Hash)
		if err != nil {
			return err
		}
		if s := w.seen[id]; s != nil && strings.TrimSpace(string(b)) != s.path {
			w.problem(c.Path, "names %q, and the decision is %s", strings.TrimSpace(string(b)), s.path)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(w.inTree)) {
		if !w.open[id] {
			w.problem(openDir+"/"+id, "the decision is not open: it is unknown, denied, or its outcome is final")
			delete(w.inTree, id)
		}
	}
	if len(w.inTree) == len(w.open) {
		return nil
	}
	for _, id := range slices.Sorted(maps.Keys(w.open)) {
		if !w.inTree[id] {
			w.problem(openDir+"/"+id, "decision %s has no final outcome and is not listed as open", id)
			w.inTree[id] = true // said once
		}
	}
	return nil
}
