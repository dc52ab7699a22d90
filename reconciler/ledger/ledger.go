package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/gitrepo"
	"github.com/reeve-project/reeve/reconciler/port"
)

// Defaults of Options.
const (
	DefaultPushInterval = 10 * time.Second
	DefaultWindow       = 7 * 24 * time.Hour
)

// Options of a writer.
type Options struct {
	// Cluster whose decisions these are.
	Cluster string
	// Branch; "reeve/<cluster>" when empty.
	Branch string
	// Repo is the repository of the decision branch. The Ledger needs it for
	// itself: it forgets what it has pushed.
	Repo *gitrepo.Repo
	// Specs is where the trees of accepted fleets are copied from. It may be
	// another repository and must be another Repo. Nil when the trees are in
	// Repo already.
	Specs *gitrepo.Repo
	// Spool keeps what is not pushed yet.
	Spool port.Spool
	// PushInterval is the least time between two pushes that are not forced.
	PushInterval time.Duration
	// Window is how long decisions stay in the tip of the branch.
	Window time.Duration
	// SkipCI adds "[skip ci]" to the commits.
	SkipCI bool
	// Name and Email of the commits.
	Name, Email string
	// Signer signs the commits, when given.
	Signer gitrepo.Signer
}

// Ledger writes a decision branch. It is a port.Ledger and may be used by many
// goroutines.
type Ledger struct {
	opts  Options
	repo  *gitrepo.Repo
	epoch int64

	pushing sync.Mutex // held over a whole push; before mu

	mu       sync.Mutex
	ed       *gitrepo.Editor
	base     gitrepo.Hash // what the remote has
	tip      gitrepo.Hash // what is appended
	unpushed []commit     // from base to tip
	leader   leaderRecord
	mem      memory
	seq      int64
	led      bool     // the handover is pushed: later changes by others are a conflict
	spooled  int      // bytes in the spool
	lean     bool     // the spool is nearly full: states are left out of it
	kept     int      // commits since memory was freed
	done     []commit // pushed, and perhaps still in the spool
	lastPush time.Time
	stopped  error
}

var _ port.Ledger = (*Ledger)(nil)

// commit is one that is not pushed yet.
type commit struct {
	hash      gitrepo.Hash
	key       string // in the spool
	time      time.Time
	decisions int
	// entry is what the spool holds. It can be made again on another tip as
	// long as nothing but a handover and an earlier leader's entries are
	// unpushed.
	entry     *spoolEntry
	beginning bool
}

// Open reads the decision branch and whatever an earlier leader has left in
// the spool. A branch that does not exist is made by the first Push. The epoch
// of the writer is one above that of the branch; it begins with a handover
// decision, which the caller appends and pushes.
//
// Errors: port.ErrConflict when the branch is not a ledger of this cluster or
// has lost what was pushed before; a port.WaitError when the remote cannot be
// reached.
func Open(ctx context.Context, o Options, now time.Time) (*Ledger, error) {
	o.Branch = cmp.Or(o.Branch, "reeve/"+o.Cluster)
	o.PushInterval = cmp.Or(o.PushInterval, DefaultPushInterval)
	o.Window = cmp.Or(o.Window, DefaultWindow)
	o.Name, o.Email = cmp.Or(o.Name, "Reeve"), cmp.Or(o.Email, "reeve@"+o.Cluster+".invalid")
	if o.Cluster == "" || o.Repo == nil || o.Spool == nil || o.Repo == o.Specs {
		return nil, errors.New("a ledger needs a cluster's name, a spool, and a repository that nothing else uses")
	}
	l := &Ledger{opts: o, repo: o.Repo, lastPush: now}
	tip, err := l.fetch(ctx)
	if err != nil {
		return nil, err
	}
	entries, last, err := l.readSpool(ctx)
	if err != nil {
		return nil, err
	}
	if err := l.load(tip, now); err != nil {
		return nil, err
	}
	if err := l.notLost(last); err != nil {
		return nil, err
	}
	l.epoch = l.leader.Epoch + 1
	for _, e := range entries {
		l.epoch = max(l.epoch, e.Epoch+1)
	}
	if err := l.begin(ctx, entries); err != nil {
		return nil, err
	}
	// A handover that is refused reads the branch again, so memory is freed
	// only once it is pushed.
	l.kept = forgetAfter
	return l, nil
}

// begin makes the entries on the tip that was loaded and that it lacks.
func (l *Ledger) begin(ctx context.Context, entries []*spoolEntry) error {
	l.base, l.unpushed = l.tip, nil
	for _, e := range entries {
		if err := l.again(ctx, e); err != nil {
			return fmt.Errorf("spool entry %s: %w", e.key, err)
		}
	}
	return nil
}

// fetch is the tip of the branch on the remote, zero when there is none.
func (l *Ledger) fetch(ctx context.Context) (gitrepo.Hash, error) {
	heads, err := l.repo.Fetch(ctx, l.opts.Branch, 1)
	if errors.Is(err, gitrepo.ErrBranchMissing) {
		return gitrepo.Hash{}, nil
	}
	if err != nil {
		return gitrepo.Hash{}, l.later(err)
	}
	return heads.New, nil
}

// later marks an error of the remote as one to wait for.
func (l *Ledger) later(err error) error {
	if errors.Is(err, gitrepo.ErrUnreachable) || errors.Is(err, gitrepo.ErrAuth) || errors.Is(err, gitrepo.ErrRepositoryMissing) {
		return port.RetryAfter(fmt.Errorf("ledger: %w", err), l.opts.PushInterval)
	}
	return fmt.Errorf("ledger: %w", err)
}

// conflict is an error that a person has to resolve on the branch.
func (l *Ledger) conflict(format string, args ...any) error {
	return fmt.Errorf("%w: branch %s of %s %s", port.ErrConflict, l.opts.Branch, l.repo.Name(), fmt.Sprintf(format, args...))
}

// Append implements port.Ledger.
func (l *Ledger) Append(ctx context.Context, e port.Entry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped != nil {
		return l.stopped
	}
	if len(e.Decisions) == 0 && len(e.Outcomes) == 0 {
		return nil
	}
	p, err := l.plan(e)
	if err != nil {
		return fmt.Errorf("append to the ledger: %w", err)
	}
	for _, o := range p.ops {
		if o.tree == "" {
			continue
		}
		if err := l.bring(o.tree); err != nil {
			return fmt.Errorf("append to the ledger: %w", err)
		}
	}
	if err := l.commit(ctx, p); err != nil {
		return fmt.Errorf("append to the ledger: %w", err)
	}
	return nil
}

// commit makes the commit of a plan and spools it. When it fails, nothing has
// changed.
func (l *Ledger) commit(ctx context.Context, p *plan) error {
	entry := &spoolEntry{Version: decision.Version, Cluster: l.opts.Cluster, Epoch: l.epoch, Time: p.time, Message: p.msg.String(), ops: p.ops}
	for _, d := range p.msg.decisions {
		entry.Decisions = append(entry.Decisions, d.ID)
		entry.Handover = entry.Handover || d.Kind == decision.Handover
	}
	hash, err := l.write(entry)
	if err != nil {
		return l.undo(err)
	}
	if err := l.spool(ctx, entry); err != nil {
		return l.undo(err)
	}
	l.add(hash, entry, entry.Handover)
	l.mem.commit(p)
	if p.leader != nil {
		l.leader = *p.leader
	}
	return nil
}

// write makes the commit of an entry without moving the tip.
func (l *Ledger) write(e *spoolEntry) (gitrepo.Hash, error) {
	if err := l.apply(e.ops); err != nil {
		return gitrepo.Hash{}, err
	}
	tree, err := l.ed.Write()
	if err != nil {
		return gitrepo.Hash{}, err
	}
	c := gitrepo.Commit{Tree: tree, Message: e.Message, Author: l.signature(e.Time), Committer: l.signature(e.Time)}
	if !l.tip.IsZero() {
		c.Parents = []gitrepo.Hash{l.tip}
	}
	return l.repo.WriteCommit(c, l.opts.Signer)
}

func (l *Ledger) signature(t time.Time) gitrepo.Signature {
	return gitrepo.Signature{Name: l.opts.Name, Email: l.opts.Email, When: t}
}

// undo takes the editor back to the tip.
func (l *Ledger) undo(cause error) error {
	if err := l.edit(); err != nil {
		l.stopped = fmt.Errorf("the ledger's tip cannot be read any more: %w", err)
	}
	return cause
}

func (l *Ledger) edit() error {
	var tree gitrepo.Hash
	var err error
	if !l.tip.IsZero() {
		if tree, err = l.repo.TreeID(l.tip); err != nil {
			return err
		}
	}
	l.ed, err = l.repo.Edit(tree)
	return err
}

func (l *Ledger) add(hash gitrepo.Hash, e *spoolEntry, beginning bool) {
	l.tip = hash
	l.kept++
	l.unpushed = append(l.unpushed, commit{hash: hash, key: e.key, time: e.Time, decisions: len(e.Decisions), entry: e, beginning: beginning})
}

// Open implements port.Ledger.
func (l *Ledger) Open() []port.Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]port.Record, 0, len(l.mem.open))
	for _, r := range l.mem.open {
		out = append(out, port.Record{Decision: r.decision, Outcome: r.outcome.Clone()})
	}
	slices.SortFunc(out, byID)
	return out
}

// Recent implements port.Ledger.
func (l *Ledger) Recent(now time.Time) []cluster.Recent {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []cluster.Recent
	for _, r := range l.mem.recent {
		if r.Time.After(now.Add(-recentFor)) && !r.Time.After(now) {
			out = append(out, r)
		}
	}
	return out
}

// Accepted implements port.Ledger.
func (l *Ledger) Accepted() (*port.Source, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.mem.accepted
	if a == nil {
		return nil, nil
	}
	h, err := gitrepo.ParseHash(a.Tree)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", acceptedFile, err)
	}
	if !l.repo.Has(h) {
		// It was lost with its branch before it was pushed; the log says so.
		return nil, nil
	}
	return &port.Source{Branch: a.Branch, Commit: a.Commit, Tree: a.Tree, Author: a.Author, Subject: a.Subject, Files: l.repo.FS(h)}, nil
}

// Epoch implements port.Ledger.
func (l *Ledger) Epoch() int64 { return l.epoch }

// Unpushed implements port.Ledger.
func (l *Ledger) Unpushed() (n int, since time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.unpushed {
		n += c.decisions
	}
	if len(l.unpushed) > 0 {
		since = l.unpushed[0].time
	}
	return n, since
}

// Branch is the name of the decision branch.
func (l *Ledger) Branch() string { return l.opts.Branch }

// Close writes the summaries of the current day and pushes everything. The
// Ledger must not be used afterwards.
func (l *Ledger) Close(ctx context.Context, now time.Time) error {
	if err := l.summarize(ctx, now); err != nil {
		return err
	}
	return l.Push(ctx, now, true)
}

func (l *Ledger) summarize(ctx context.Context, now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped != nil || l.tip.IsZero() || !l.mem.stale {
		return l.stopped
	}
	p := &plan{time: now, msg: message{epoch: l.epoch, skipCI: l.opts.SkipCI}, block: l.mem.block}
	l.summaries(p, now, &l.mem, l.leader)
	if err := l.commit(ctx, p); err != nil {
		return fmt.Errorf("summarize the ledger: %w", err)
	}
	return nil
}
