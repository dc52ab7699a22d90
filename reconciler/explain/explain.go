// Package explain answers why: why a node came and why this one, why it went,
// and where a pod stands. It reads the decision branch alone. What the records
// do not hold as such, the types that a choice left out, it works out again from
// the inputs that stand beside the record, and shows only where the result
// agrees with the record.
package explain

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/gitrepo"
	"github.com/reeve-project/reeve/reconciler/ledger"
	"github.com/reeve-project/reeve/reconciler/port"
	"github.com/reeve-project/reeve/reconciler/replay"
	"github.com/reeve-project/reeve/reconciler/report"
)

// history is a decision branch that questions are put to.
type history struct {
	branch   *ledger.Branch
	archive  *ledger.Archive // opened by the first search
	searched report.Searched
	// tip is the last recorded state, nil if there is none.
	tip *cluster.Snapshot
	// at are entries that were located in the history, by id.
	at       map[string]ledger.Entry
	replayer *replay.Replayer
}

func open(ctx context.Context, src ledger.Source) (*history, error) {
	b, err := src.Open(ctx)
	if err != nil {
		return nil, err
	}
	h := &history{branch: b, searched: report.Searched{Branch: b.Name}, at: map[string]ledger.Entry{}, replayer: replay.NewReplayer()}
	head, err := b.Head()
	if err != nil {
		return nil, err
	}
	h.tip, err = head.Snapshot()
	if errors.Is(err, fs.ErrNotExist) {
		h.tip, err = nil, nil
	}
	if h.tip != nil {
		h.searched.State = h.tip.Time
	}
	return h, err
}

// naming are the decisions whose record or outcome has one of the terms in it,
// oldest first.
func (h *history) naming(ctx context.Context, terms ...string) ([]port.Record, error) {
	var out []port.Record
	err := h.search(ctx, func(record, outcome []byte) bool {
		return slices.ContainsFunc(terms, func(t string) bool {
			return bytes.Contains(record, []byte(t)) || bytes.Contains(outcome, []byte(t))
		})
	}, func(r port.Record) error {
		out = append(out, r)
		return nil
	})
	slices.Reverse(out)
	return out, err
}

// newest are the last decisions, newest first.
func (h *history) newest(ctx context.Context, most int) ([]port.Record, error) {
	var out []port.Record
	err := h.search(ctx, func(_, _ []byte) bool { return true }, func(r port.Record) error {
		if out = append(out, r); len(out) == most {
			return fs.SkipAll
		}
		return nil
	})
	return out, err
}

func (h *history) search(ctx context.Context, want func(record, outcome []byte) bool, fn func(port.Record) error) error {
	if h.archive == nil {
		var err error
		if h.archive, err = h.branch.Archive(); err != nil {
			return err
		}
		h.searched.Decisions, h.searched.Missing = h.archive.Len(), h.archive.Missing
	}
	return h.archive.Search(ctx, want, fn)
}

// locate finds the commits that record the decisions.
func (h *history) locate(ctx context.Context, ids ...string) error {
	ids = slices.DeleteFunc(slices.Clone(ids), func(id string) bool { _, ok := h.at[id]; return ok })
	found, err := h.branch.Recorded(ctx, ids...)
	for id, e := range found {
		h.at[id] = e
	}
	return err
}

// act is the head of a decision, with the subject of the commit in force if the
// decision has been located.
func (h *history) act(d *decision.Decision, o *decision.Outcome) (report.Act, error) {
	a := report.Act{
		Decision: d.ID, Kind: d.Kind, Method: d.Proposal.Method, Time: d.Time, Status: report.Status(d, o),
		Summary: d.Summary, Reason: d.Proposal.Reason, SpecCommit: d.Inputs.SpecCommit, Policies: d.Inputs.Policies,
	}
	e, ok := h.at[d.ID]
	if !ok {
		return a, nil
	}
	src, err := e.View.Accepted()
	if err == nil && src != nil && src.Commit == a.SpecCommit {
		a.SpecSubject, a.SpecAuthor = src.Subject, src.Author
	}
	return a, err
}

// actOf is the head of a decision as it stands for one of its nodes: what a
// command makes and what it removes come to an end by themselves.
func (h *history) actOf(d *decision.Decision, o *decision.Outcome, names ...string) (report.Act, error) {
	a, err := h.act(d, o)
	if own := steps(o, names...); len(own) > 0 {
		a.Status = string(own[len(own)-1].State)
	}
	return a, err
}

// mostCandidates is how many decisions an ambiguous name lists.
const mostCandidates = 10

// Decision explains the decision whose id contains the part, or the newest of
// all when part is "latest". It fails with gitrepo.ErrNotFound if there is none
// and with ledger.ErrAmbiguous, naming the candidates, if there are several.
func Decision(ctx context.Context, src ledger.Source, part string) (*report.DecisionStory, error) {
	h, err := open(ctx, src)
	if err != nil {
		return nil, err
	}
	e, err := h.find(ctx, part)
	if err != nil {
		return nil, err
	}
	h.at[e.Decision.ID] = e
	r := port.Record{Decision: e.Decision, Outcome: e.Outcome}
	out := &report.DecisionStory{Decision: e.Decision, Outcome: e.Outcome, Needs: needs(r.Decision, "")}
	if out.Act, err = h.act(r.Decision, r.Outcome); err != nil {
		return nil, err
	}
	ch := h.chooser(ctx, r.Decision)
	for i := range r.Decision.Proposal.Claims {
		a, err := h.arrival(r, i, ch)
		if err != nil {
			return nil, err
		}
		out.Arrivals = append(out.Arrivals, *a)
	}
	for i := range r.Decision.Proposal.Nodes {
		d, err := h.departure(r, r.Decision.Proposal.Nodes[i])
		if err != nil {
			return nil, err
		}
		out.Departures = append(out.Departures, *d)
	}
	return out, nil
}

func (h *history) find(ctx context.Context, part string) (ledger.Entry, error) {
	var found []ledger.Entry
	want := func(id string, _ decision.Kind) bool {
		return part == ledger.Latest || part != "" && strings.Contains(id, part)
	}
	err := h.branch.Entries(ctx, want, func(e ledger.Entry) error {
		found = append(found, e)
		if part == ledger.Latest || e.Decision.ID == part || len(found) > mostCandidates {
			return fs.SkipAll
		}
		return nil
	})
	switch {
	case err != nil:
		return ledger.Entry{}, err
	case len(found) == 0 && part == ledger.Latest:
		return ledger.Entry{}, fmt.Errorf("branch %s holds no decisions: %w", h.branch.Name, gitrepo.ErrNotFound)
	case len(found) == 0:
		return ledger.Entry{}, fmt.Errorf("decision %q on branch %s: %w: reeve log lists the decisions", part, h.branch.Name, gitrepo.ErrNotFound)
	case len(found) == 1 || found[len(found)-1].Decision.ID == part:
		return found[len(found)-1], nil
	}
	var b strings.Builder
	for i, e := range found {
		if i == mostCandidates {
			b.WriteString("\n  and more")
			break
		}
		fmt.Fprintf(&b, "\n  %s  %s", e.Decision.ID, e.Decision.Summary)
	}
	return ledger.Entry{}, fmt.Errorf("%q %w:%s", part, ledger.ErrAmbiguous, b.String())
}
