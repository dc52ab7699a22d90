package ledger

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/gitrepo"
)

// pushedKey is the key of the spool that tells what was pushed last.
const pushedKey = "pushed"

// entryPrefix begins the keys of entries; the rest sorts in their order.
const entryPrefix = "entry-"

// pushedRecord is what stands under pushedKey.
type pushedRecord struct {
	Branch    string `json:"branch"`
	Commit    string `json:"commit"`
	Epoch     int64  `json:"epoch"`
	Decisions int    `json:"decisions"`
}

// The spool is a small object of the cluster. Above spoolFull bytes the
// cluster's state is left out of further entries: the decisions and outcomes
// are what a new leader cannot do without.
const spoolFull = 512 << 10

// spoolEntry is a commit that is not pushed yet, as the changes it makes.
type spoolEntry struct {
	Version  string    `json:"version"`
	Cluster  string    `json:"cluster"`
	Epoch    int64     `json:"epoch"`
	Time     time.Time `json:"time"`
	Message  string    `json:"message"`
	Handover bool      `json:"handover,omitempty"`
	// Decisions are the ids in it.
	Decisions []string  `json:"decisions,omitempty"`
	Ops       []spoolOp `json:"ops"`
	// Lean says that state and catalog were left out.
	Lean bool `json:"lean,omitempty"`

	ops  []op
	key  string
	size int
}

// spoolOp is an op as JSON. Text is what compresses well; Bytes is for files
// that are not UTF-8.
type spoolOp struct {
	Path   string `json:"path"`
	Text   string `json:"text,omitempty"`
	Bytes  []byte `json:"bytes,omitempty"`
	Tree   string `json:"tree,omitempty"`
	Remove bool   `json:"remove,omitempty"`
}

func (e *spoolEntry) encode() ([]byte, error) {
	e.Ops = nil
	for _, o := range e.ops {
		if e.Lean && isCompared(o.path) && o.path != leaderFile && !strings.HasPrefix(o.path, policiesDir) {
			continue
		}
		s := spoolOp{Path: o.path, Tree: o.tree, Remove: o.remove}
		if utf8.Valid(o.content) {
			s.Text = string(o.content)
		} else {
			s.Bytes = o.content
		}
		e.Ops = append(e.Ops, s)
	}
	b, err := encodeJSON(e, "")
	e.Ops = nil
	if err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	_, err = z.Write(b)
	err = errors.Join(err, z.Close())
	return buf.Bytes(), err
}

// maxEntry bounds what one entry may unpack to.
const maxEntry = 64 << 20

func decodeEntry(key string, b []byte) (*spoolEntry, error) {
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(io.LimitReader(z, maxEntry))
	if err != nil {
		return nil, err
	}
	e := &spoolEntry{}
	if err := json.Unmarshal(raw, e); err != nil {
		return nil, err
	}
	if e.Version != decision.Version {
		return nil, fmt.Errorf("%w %q: this release reads %q", decision.ErrVersion, e.Version, decision.Version)
	}
	for _, s := range e.Ops {
		o := op{path: s.Path, content: s.Bytes, tree: s.Tree, remove: s.Remove}
		if s.Text != "" {
			o.content = []byte(s.Text)
		}
		e.ops = append(e.ops, o)
	}
	e.Ops, e.key, e.size = nil, key, len(b)
	return e, nil
}

// spool makes an entry durable.
func (l *Ledger) spool(ctx context.Context, e *spoolEntry) error {
	e.Lean = l.lean
	b, err := e.encode()
	if err == nil && l.spooled+len(b) > spoolFull && !e.Lean {
		e.Lean = true
		b, err = e.encode()
	}
	if err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	e.key, e.size = fmt.Sprintf("%s%010d-%010d", entryPrefix, l.epoch, l.seq), len(b)
	if err := l.opts.Spool.Put(ctx, e.key, b); err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	l.seq++
	l.spooled += len(b)
	l.lean = e.Lean
	return nil
}

// readSpool reads what an earlier leader has left.
func (l *Ledger) readSpool(ctx context.Context) ([]*spoolEntry, *pushedRecord, error) {
	keys, err := l.opts.Spool.List(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("spool: %w", err)
	}
	slices.Sort(keys)
	var out []*spoolEntry
	var last *pushedRecord
	for _, key := range keys {
		if key != pushedKey && !strings.HasPrefix(key, entryPrefix) {
			continue
		}
		b, err := l.opts.Spool.Get(ctx, key)
		if err != nil {
			return nil, nil, fmt.Errorf("spool key %s: %w", key, err)
		}
		if key == pushedKey {
			last = &pushedRecord{}
			err = json.Unmarshal(b, last)
		} else {
			var e *spoolEntry
			if e, err = decodeEntry(key, b); err == nil {
				out = append(out, e)
				l.spooled += len(b)
			}
		}
		if err != nil {
			return nil, nil, fmt.Errorf("spool key %s: %w", key, err)
		}
	}
	return out, last, nil
}

// again makes an earlier leader's entry on the tip, unless the tip has it.
func (l *Ledger) again(ctx context.Context, e *spoolEntry) error {
	if e.Cluster != l.opts.Cluster {
		return fmt.Errorf("it is of cluster %q, and this is %q", e.Cluster, l.opts.Cluster)
	}
	has, err := l.hasEntry(e)
	if err != nil {
		return err
	}
	redo := *e
	if !has && e.Epoch < l.leader.Epoch {
		if redo, err = l.late(e); err != nil {
			return err
		}
		has = len(redo.ops) == 0
	}
	if has {
		l.spooled -= e.size
		return l.opts.Spool.Delete(ctx, e.key)
	}
	l.fetchTrees(ctx, &redo)
	lost := len(redo.ops)
	redo.ops = slices.DeleteFunc(slices.Clone(redo.ops), func(o op) bool {
		// A fleet whose tree is lost with its branch cannot be put back. The
		// decisions about it still are.
		return o.tree != "" && l.bring(o.tree) != nil
	})
	if len(redo.ops) < lost {
		redo.Message = addNote(redo.Message, "The fleet's tree is lost: its branch was rewritten before this was pushed.")
	}
	if e.Lean {
		redo.Message = addNote(redo.Message, "The cluster's state is left out: it did not fit into the spool.")
	}
	hash, err := l.write(&redo)
	if err != nil {
		return l.undo(err)
	}
	l.add(hash, &redo, true)
	return l.remember(&redo)
}

// fetchTrees fetches the spec repository if the entry needs a fleet's tree that
// is not here. A new leader opens the ledger before anyone has fetched there.
// That it fails shows in what is then missing.
func (l *Ledger) fetchTrees(ctx context.Context, e *spoolEntry) {
	for _, o := range e.ops {
		if o.tree != "" && l.opts.Specs != nil && l.bring(o.tree) != nil {
			_ = l.opts.Specs.FetchAll(ctx)
			return
		}
	}
}

// late is what remains of an entry that a leader spooled after it had been
// relieved: the decisions and outcomes it may have acted on. State and inputs
// are the present leader's, and so are outcomes that have gone another way.
func (l *Ledger) late(e *spoolEntry) (spoolEntry, error) {
	redo := *e
	redo.ops = nil
	refused := map[string]bool{} // outcomes that are not taken
	for _, o := range e.ops {
		id, marker := strings.CutPrefix(o.path, openDir+"/")
		switch {
		case marker && refused[id], !marker && dayOf(o.path) == "", strings.HasSuffix(o.path, summaryFile):
			continue
		case strings.HasSuffix(o.path, outcomeSuffix):
			b, ok, err := l.ed.Read(o.path)
			if err != nil {
				return redo, err
			}
			if ok && !grown(b, o.content) {
				if out, err := decision.DecodeOutcome(o.content); err == nil {
					refused[out.Decision] = true
				}
				continue
			}
		}
		redo.ops = append(redo.ops, o)
	}
	redo.Message = addNote(replaceEpoch(e.Message, l.leader.Epoch), fmt.Sprintf("Recorded late: epoch %d had ended when this was decided.", e.Epoch))
	return redo, nil
}

func replaceEpoch(msg string, epoch int64) string {
	i := strings.LastIndex(msg, trailerEpoch+": ")
	if i < 0 {
		return msg
	}
	return fmt.Sprintf("%s%s: %d\n", msg[:i], trailerEpoch, epoch)
}

// addNote puts a paragraph before the trailers.
func addNote(msg, note string) string {
	i := strings.LastIndex(strings.TrimRight(msg, "\n"), "\n\n")
	if i < 0 {
		return msg + "\n\n" + note + "\n"
	}
	return msg[:i] + "\n\n" + note + msg[i:]
}

// hasEntry says whether the tip has what the entry writes. Entries are pushed
// in order, so the tip has either all of an entry or nothing of it.
func (l *Ledger) hasEntry(e *spoolEntry) (bool, error) {
	checked := false
	for _, o := range e.ops {
		if o.remove || o.tree != "" || dayOf(o.path) == "" || !strings.HasSuffix(o.path, recordSuffix) {
			continue
		}
		checked = true
		if l.mem.days[dayOf(o.path)].Day != "" {
			continue // pushed so long ago that the day has left the tip
		}
		b, ok, err := l.ed.Read(o.path)
		if err != nil {
			return false, err
		}
		if !ok {
			return false, nil
		}
		if strings.HasSuffix(o.path, outcomeSuffix) && !bytes.Equal(b, o.content) && !grown(o.content, b) {
			return false, nil
		}
	}
	return checked, nil
}

// grown says whether an outcome goes on from where another ends.
func grown(from, to []byte) bool {
	a, err := decision.DecodeOutcome(from)
	if err != nil {
		return false
	}
	b, err := decision.DecodeOutcome(to)
	if err != nil {
		return false
	}
	ok, err := continues(a, b)
	return ok && err == nil && len(b.Steps) > len(a.Steps)
}

// remember takes an entry over into memory as if it had been planned here.
func (l *Ledger) remember(e *spoolEntry) error {
	p := &plan{time: e.Time, placed: map[string]string{}}
	for _, o := range e.ops {
		if o.remove || !strings.HasSuffix(o.path, recordSuffix) {
			if o.remove && strings.HasPrefix(o.path, openDir+"/") {
				delete(l.mem.open, strings.TrimPrefix(o.path, openDir+"/"))
			}
			continue
		}
		var err error
		switch {
		case o.path == leaderFile:
			err = decodeJSON(o.content, &l.leader)
		case o.path == acceptedFile:
			p.accepted = &acceptedRecord{}
			err = decodeJSON(o.content, p.accepted)
		case strings.HasPrefix(o.path, daysDir+"/"):
			var rec dayRecord
			err = decodeJSON(o.content, &rec)
			p.days = append(p.days, trimmedDay{record: rec})
		case dayOf(o.path) != "" && strings.HasSuffix(o.path, outcomeSuffix):
			var out *decision.Outcome
			if out, err = decision.DecodeOutcome(o.content); err == nil {
				p.msg.outcomes = append(p.msg.outcomes, out)
			}
		case dayOf(o.path) != "":
			err = l.rememberDecision(p, o)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", o.path, err)
		}
	}
	p.ops = e.ops
	l.mem.commit(p)
	l.mem.block = block{}
	return nil
}

func (l *Ledger) rememberDecision(p *plan, o op) error {
	d, err := decision.Decode(o.content)
	if err != nil {
		return err
	}
	for _, id := range listIDs(d) {
		b, ok, err := l.ed.Read(listPath(d.Time, id))
		if err != nil || !ok {
			return fmt.Errorf("type list %s is not at hand: %w", id, errors.Join(err, gitrepo.ErrNotFound))
		}
		if d.Proposal.Lists == nil {
			d.Proposal.Lists = map[string][]string{}
		}
		d.Proposal.Lists[id] = strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	}
	p.placed[d.ID] = o.path
	p.msg.decisions = append(p.msg.decisions, d)
	return nil
}

// clean notes what was pushed and removes its entries from the spool. What
// fails here is made good by the next push: an entry that is pushed already is
// recognized.
func (l *Ledger) clean(ctx context.Context) error {
	rec, err := encodeJSON(pushedRecord{Branch: l.opts.Branch, Commit: l.base.String(), Epoch: l.leader.Epoch, Decisions: l.mem.total - l.pendingDecisions()}, "")
	if err != nil {
		return err
	}
	if err := l.opts.Spool.Put(ctx, pushedKey, rec); err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	for len(l.done) > 0 {
		if err := l.opts.Spool.Delete(ctx, l.done[0].key); err != nil {
			return fmt.Errorf("spool: %w", err)
		}
		l.spooled -= l.done[0].entry.size
		l.done = l.done[1:]
	}
	if len(l.unpushed) == 0 {
		l.lean = false
	}
	return nil
}

func (l *Ledger) pendingDecisions() int {
	n := 0
	for _, c := range l.unpushed {
		n += c.decisions
	}
	return n
}
