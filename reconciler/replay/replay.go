// Package replay makes decisions again from the ledger alone and compares them
// with the record, byte for byte. It is the pipeline's own propose and judge,
// fed from the tree of the commit that recorded the decision.
package replay

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/ledger"
	"github.com/reeve-project/reeve/reconciler/pipeline"
	"github.com/reeve-project/reeve/reconciler/policy"
)

// Verdict is how a replay ended.
type Verdict string

// The verdicts.
const (
	// Same: the same inputs gave the same bytes.
	Same Verdict = "same"
	// Mismatch: they gave others. Somebody changed the record, or a decision
	// depended on something that is not recorded.
	Mismatch Verdict = "mismatch"
	// NotComparable: another engine version made the decision.
	NotComparable Verdict = "not comparable"
)

// Result is the replay of one decision.
type Result struct {
	ID      string
	Summary string
	Verdict Verdict
	// Detail says where a mismatch begins, or which version to use.
	Detail string
}

// String is the result in one line.
func (r Result) String() string {
	s := fmt.Sprintf("%-14s  %s  %s", r.Verdict, r.ID, r.Summary)
	if r.Detail != "" {
		s += "\n    " + strings.ReplaceAll(r.Detail, "\n", "\n    ")
	}
	return s
}

// Summary counts the results of a run.
type Summary struct {
	Same, Mismatch, NotComparable int
}

// OK says whether no decision came out differently.
func (s Summary) OK() bool { return s.Mismatch == 0 }

// String is the summary in one line.
func (s Summary) String() string {
	return fmt.Sprintf("%d %s the same byte for byte, %d %s, %d %s made by another engine version",
		s.Same, word(s.Same, "decision is", "decisions are"), s.Mismatch, word(s.Mismatch, "differs", "differ"),
		s.NotComparable, word(s.NotComparable, "was", "were"))
}

func word(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// Run replays the decisions whose ids are given, or all of the branch, newest
// first, and calls fn for each. It fails if there is nothing to replay.
func Run(ctx context.Context, src ledger.Source, ids []string, fn func(Result) error) (Summary, error) {
	branch, err := src.Open(ctx)
	if err != nil {
		return Summary{}, err
	}
	r := NewReplayer()
	var sum Summary
	one := func(e ledger.Entry) error {
		res, err := r.Replay(ctx, e)
		if err != nil {
			return fmt.Errorf("decision %s: %w", e.Decision.ID, err)
		}
		sum.count(res.Verdict)
		return fn(res)
	}
	for _, id := range ids {
		e, err := branch.Find(ctx, id)
		if err != nil {
			return sum, err
		}
		if err := one(e); err != nil {
			return sum, err
		}
	}
	if len(ids) == 0 {
		if err := branch.Entries(ctx, nil, one); err != nil {
			return sum, err
		}
	}
	if sum == (Summary{}) {
		return sum, fmt.Errorf("branch %s holds no decisions", branch.Name)
	}
	return sum, nil
}

func (s *Summary) count(v Verdict) {
	switch v {
	case Same:
		s.Same++
	case NotComparable:
		s.NotComparable++
	default:
		s.Mismatch++
	}
}

// Replay makes the decision of the entry again. An error means that the record
// could not be read; a record that says something else is a Mismatch.
func (r *Replayer) Replay(ctx context.Context, e ledger.Entry) (Result, error) {
	d := e.Decision
	res := Result{ID: d.ID, Summary: d.Summary}
	if have := decision.CurrentEngine(); d.Engine != have {
		res.Verdict = NotComparable
		res.Detail = fmt.Sprintf("made by engine %d with OPA %s and CUE %s; this release has engine %d with OPA %s and CUE %s: use the release that made it",
			d.Engine.Version, d.Engine.OPA, d.Engine.CUE, have.Version, have.OPA, have.CUE)
		return res, nil
	}
	made, err := r.again(ctx, e)
	if err != nil {
		return res, err
	}
	want, err := decision.Encode(d)
	if err != nil {
		return res, err
	}
	res.Verdict, res.Detail, err = compare(want, made, d.ID)
	return res, err
}

// compare finds the decision among those that were made again.
func compare(want []byte, made []*decision.Decision, id string) (Verdict, string, error) {
	var nearest []byte
	for _, m := range made {
		got, err := decision.Encode(m)
		if err != nil {
			return "", "", err
		}
		if bytes.Equal(got, want) {
			return Same, "", nil
		}
		if nearest == nil || m.ID == id {
			nearest = got
		}
	}
	if nearest == nil {
		return Mismatch, "the same inputs lead to no such decision", nil
	}
	return Mismatch, firstDifference(want, nearest), nil
}

// firstDifference shows the first line that differs.
func firstDifference(want, got []byte) string {
	w, g := strings.Split(string(want), "\n"), strings.Split(string(got), "\n")
	for i := range max(len(w), len(g)) {
		var a, b string
		if i < len(w) {
			a = w[i]
		}
		if i < len(g) {
			b = g[i]
		}
		// The id differs whenever anything does; what differs is of interest.
		if a != b && !strings.Contains(a, `"id":`) && !strings.Contains(a, `"name":`) {
			return fmt.Sprintf("line %d\nrecord: %s\nreplay: %s", i+1, strings.TrimSpace(a), strings.TrimSpace(b))
		}
	}
	return "only ids differ"
}

// again makes the decisions of the pass that recorded the entry.
func (r *Replayer) again(ctx context.Context, e ledger.Entry) ([]*decision.Decision, error) {
	d := e.Decision
	switch d.Kind {
	case decision.Handover:
		h := d.Proposal.Handover
		if h == nil {
			return nil, errors.New("a handover without a leader")
		}
		m := pipeline.Handover(d.Cluster, h.Identity, h.Epoch, d.Time)
		return []*decision.Decision{m}, m.Seal()
	case decision.Accept, decision.Reject:
		return r.judgement(ctx, e)
	}
	w, err := r.world(ctx, e)
	if err != nil {
		return nil, err
	}
	// What a pass proposes hangs on the one decision only by what is handed to
	// it.
	alike := d.Repeats == 0 && !hasGiven(d)
	if made, ok := r.passed[d.Kind]; ok && alike {
		return made, nil
	}
	made, err := propose(ctx, w, d.Kind)
	if err == nil && alike {
		if r.passed == nil {
			r.passed = map[decision.Kind][]*decision.Decision{}
		}
		r.passed[d.Kind] = made
	}
	return made, err
}

// propose makes all decisions of the kind that the world leads to.
func propose(ctx context.Context, w *pipeline.World, k decision.Kind) ([]*decision.Decision, error) {
	switch k {
	case decision.Provision:
		return w.Provision(ctx)
	case decision.Liveness:
		return w.Liveness(ctx)
	case decision.Interrupt:
		return w.Interrupt(ctx)
	case decision.Delete:
		return w.Delete(ctx)
	case decision.Reclaim:
		return w.Reclaim(ctx)
	case decision.Consolidate:
		return w.Consolidate(ctx)
	default:
		return nil, fmt.Errorf("this release does not make decisions of kind %q", k)
	}
}

// given hands back failures that depended on the machine: a deadline that
// passed then need not pass now.
func given(d *decision.Decision) pipeline.Given {
	known := map[string]policy.Failure{}
	for _, ev := range d.Evaluations {
		if ev.Custom.Cause != "" && !ev.Custom.Cause.Reproducible() {
			known[ev.DecisionID] = policy.Failure{Cause: ev.Custom.Cause, Error: ev.Custom.Error}
		}
	}
	return func(id string) (policy.Failure, bool) {
		f, ok := known[id]
		return f, ok
	}
}

// hasGiven says whether a decision holds failures that depended on the machine.
func hasGiven(d *decision.Decision) bool {
	for _, ev := range d.Evaluations {
		if ev.Custom.Cause != "" && !ev.Custom.Cause.Reproducible() {
			return true
		}
	}
	return false
}

// limits are findings of a decision that stand for a bound on reading a fleet.
func limits(d *decision.Decision) []decision.Finding {
	var out []decision.Finding
	for _, f := range d.Verdict.Violations {
		if f.Cause == decision.CauseLimit {
			out = append(out, f)
		}
	}
	return out
}

// limitError stands in for a bound that was met when the record was made.
type limitError struct{ findings []decision.Finding }

func (e *limitError) Error() string {
	return cmp.Or(e.findings[0].Message, "a bound was met")
}

// Findings makes the error the rejection that it was.
func (e *limitError) Findings() []decision.Finding { return e.findings }
