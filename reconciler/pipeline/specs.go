package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/policy"
	"github.com/reeve-project/reeve/reconciler/port"
)

// RuleSpec is the rule of findings that come from reading a fleet and not from
// a policy: CUE errors, missing references, bounds.
const RuleSpec = "REEVE-SPEC-001"

// pull reads the tip of the spec branch and judges it if it is new. Whatever
// is wrong with it, the last good fleet stays.
func (p *Pipeline) pull(ctx context.Context, now time.Time) error {
	if !p.woken.Swap(false) && !p.pulled.IsZero() && now.Sub(p.pulled) < p.opts.PullInterval {
		return nil
	}
	head, err := p.Specs.Head(ctx)
	if err != nil {
		p.woken.Store(true)
		return fmt.Errorf("spec branch: %w (the accepted fleet stays in force)", err)
	}
	p.pulled = now
	if head == p.head {
		return nil
	}
	src, err := p.Specs.Source(ctx, head)
	if err != nil {
		return fmt.Errorf("spec commit %s: %w", head, err)
	}
	j, err := JudgeCommit(ctx, p.candidate(src, now))
	if err != nil {
		return fmt.Errorf("spec commit %s: %w", head, err)
	}
	if j.Decision.Verdict.Allowed || !p.known(now, j.Decision) {
		if err := p.recordSpec(ctx, now, src, j); err != nil {
			return fmt.Errorf("record: %w", err)
		}
	}
	p.head = head
	return nil
}

// Candidate is a spec commit under judgement, and what is in force before it.
type Candidate struct {
	// Cluster is the name of the cluster.
	Cluster string
	Source  *port.Source
	Now     time.Time
	// Load evaluates the source.
	Load func(context.Context, *port.Source) (*fleet.Fleet, error)
	// Previous and its Judge are nil at the first commit.
	Previous *fleet.Fleet
	Judge    *policy.Engine
	// Policies, when set, are all Rego that judges for the commit, as the
	// ledger recorded it; else it is the shipped files with those of Source.
	Policies map[string][]byte
	// Given tells of failures that depend on the machine, when a record is
	// replayed; nil otherwise.
	Given Given
}

func (p *Pipeline) candidate(src *port.Source, now time.Time) Candidate {
	return Candidate{Cluster: p.opts.Cluster, Source: src, Now: now, Load: p.Specs.Load, Previous: p.fleet, Judge: p.judge}
}

// Given returns how a policy failed when a decision was recorded; see
// policy.Options.
type Given = func(evaluationID string) (policy.Failure, bool)

// Judgement is what became of a spec commit. Fleet and Judge are set when it
// was accepted.
type Judgement struct {
	Decision *decision.Decision
	Fleet    *fleet.Fleet
	Judge    *policy.Engine
	// Files are the policies of the commit, shipped ones included.
	Files map[string][]byte
	// Loaded and Own are the fleet and the policies of the commit also when it
	// was refused; nil where they could not be read.
	Loaded *fleet.Fleet
	Own    *policy.Engine
}

// JudgeCommit evaluates a spec commit and lets two sets of policies judge it:
// those in force and its own. Both must allow it, so that a commit cannot
// loosen the rule that would have stopped it. An error means that no judgement
// was possible now; a bad commit is a reject and not an error.
func JudgeCommit(ctx context.Context, c Candidate) (*Judgement, error) {
	d := &decision.Decision{
		Kind: decision.Accept, Cluster: c.Cluster, Mode: fleet.Enforce, Time: c.Now, Engine: decision.CurrentEngine(),
		Proposal: decision.Proposal{Reason: "new commit on " + c.Source.Branch, Spec: &decision.SpecChange{
			Branch: c.Source.Branch, Commit: c.Source.Commit, Tree: c.Source.Tree,
			Author: c.Source.Author, Subject: oneLine(c.Source.Subject), Forced: c.Source.Forced,
		}},
		Inputs: decision.Inputs{SpecCommit: c.Source.Commit},
	}
	if c.Previous != nil {
		d.Proposal.Spec.Previous = c.Previous.Commit
	}
	j := &Judgement{Decision: d}
	if err := j.load(ctx, c); err != nil {
		return nil, err
	}
	if j.Fleet != nil {
		if err := j.judge(ctx, c); err != nil {
			return nil, err
		}
	}
	j.conclude()
	return j, d.Seal()
}

// load evaluates the commit and compiles its policies. What its author has to
// mend becomes violations.
func (j *Judgement) load(ctx context.Context, c Candidate) error {
	d := j.Decision
	bundle, err := c.bundle()
	if err != nil {
		return j.violate(err)
	}
	j.Files = bundle(nil).Files()
	// The policies do not depend on the fleet until their data comes in.
	compiled := make(chan *policy.Compiled, 1)
	go func() { compiled <- policy.Compile(bundle(nil)) }()
	f, err := c.Load(ctx, c.Source)
	if err != nil {
		return j.violate(err)
	}
	f.Commit = c.Source.Commit
	j.Loaded = f
	d.Mode = f.Cluster.Mode
	d.Inputs.Fleet = decision.Digest(f.Document)
	d.Proposal.Spec.NodePools, d.Proposal.Spec.NodeClasses = len(f.NodePools), len(f.NodeClasses)
	if branch := f.Cluster.Ledger.Branch; branch != "" && branch == c.Source.Branch {
		at, _ := f.Positions.Find(fleet.Path{"cluster", "ledger", "branch"})
		d.Verdict.Violations = append(d.Verdict.Violations, decision.Finding{
			Rule: RuleSpec, Severity: "error", Path: fleet.Path{"cluster", "ledger", "branch"}, Position: &at,
			Message:     fmt.Sprintf("decisions would be written to %q, the branch that specs are read from", branch),
			Remediation: "leave cluster.ledger.branch out, or name a branch of its own",
		})
	}
	for _, r := range fleet.Transition(c.Previous, f) {
		d.Verdict.Violations = append(d.Verdict.Violations, remark(f, r, "error", "The specs cannot follow those in force"))
	}
	for _, r := range f.Warnings {
		d.Verdict.Warnings = append(d.Verdict.Warnings, remark(f, r, "warning", "The specs are likely not meant like this"))
	}
	judge, err := (<-compiled).Engine(bundle(f.Policy), policy.Options{Given: c.Given})
	if err != nil {
		return j.violate(err)
	}
	j.Files = judge.Bundle().Files()
	d.Inputs.Policies = judge.Digest()
	j.Fleet, j.Judge, j.Own = f, judge, judge
	return nil
}

// remark is a remark about a fleet as a finding.
func remark(f *fleet.Fleet, r fleet.Remark, severity, title string) decision.Finding {
	out := decision.Finding{
		Rule: RuleSpec, Severity: severity, Title: title, Message: r.Message,
		Resource: r.Path.Resource(), Path: r.Path, Remediation: r.Hint,
	}
	if at, ok := f.Positions.Find(r.Path); ok {
		out.Position = &at
	}
	return out
}

// bundle makes the policies of the commit with the data of its fleet.
func (c Candidate) bundle() (func(data json.RawMessage) policy.Bundle, error) {
	if c.Policies != nil {
		return func(data json.RawMessage) policy.Bundle { return policy.RecordedBundle(c.Policies, data) }, nil
	}
	rego, err := PolicyFiles(c.Source.Files)
	if err != nil {
		return nil, err
	}
	return func(data json.RawMessage) policy.Bundle { return policy.NewBundle(rego, data) }, nil
}

// violate takes an error for violations if it knows what the author has to
// mend, and gives it back otherwise.
func (j *Judgement) violate(err error) error {
	found := port.Findings(err)
	if len(found) == 0 {
		return err
	}
	for i := range found {
		if found[i].Rule == "" {
			found[i].Rule = RuleSpec
		}
	}
	j.Decision.Verdict.Violations = append(j.Decision.Verdict.Violations, found...)
	return nil
}

// judge asks the policies in force and those of the commit.
func (j *Judgement) judge(ctx context.Context, c Candidate) error {
	d := j.Decision
	var before policy.Bundle
	if c.Judge != nil {
		before = c.Judge.Bundle()
	}
	diff, err := policy.NewDiff(c.Previous, j.Fleet, before, j.Judge.Bundle())
	if err != nil {
		return err
	}
	d.Proposal.Spec.Changes, d.Proposal.Spec.Policies = diff.Resources, diff.PolicyChanges()
	input := policy.NewSpecInput(j.Fleet, c.Previous, diff, c.Now)
	for _, q := range j.judges(c) {
		res, err := q.engine.Spec(ctx, policy.Case{Fleet: q.fleet, Now: c.Now, Former: q.former}, input)
		if err != nil {
			return err
		}
		d.Verdict.Violations = append(d.Verdict.Violations, res.Violations...)
		d.Verdict.Warnings = append(d.Verdict.Warnings, res.Warnings...)
		d.Evaluations = append(d.Evaluations, res.Evaluation)
	}
	d.Verdict.Violations, d.Verdict.Warnings = distinct(d.Verdict.Violations), distinct(d.Verdict.Warnings)
	return nil
}

// question is a set of policies and the fleet whose exceptions hold for it.
type question struct {
	engine *policy.Engine
	fleet  *fleet.Fleet
	// former says that the exceptions are those in force.
	former bool
}

// judges are those who must allow the commit. For the policies in force only
// the exceptions in force hold: a commit that could bring its own would be its
// own judge.
func (j *Judgement) judges(c Candidate) []question {
	out := []question{{engine: j.Judge, fleet: j.Fleet}}
	if c.Judge != nil {
		before := *j.Fleet
		before.Exceptions = c.Previous.Exceptions
		out = append(out, question{engine: c.Judge, fleet: &before, former: true})
	}
	return out
}

func (j *Judgement) conclude() {
	d := j.Decision
	d.Verdict.Allowed = len(d.Verdict.Violations) == 0
	if !d.Verdict.Allowed {
		d.Kind = decision.Reject
		j.Fleet, j.Judge = nil, nil
	}
	d.Summary = summarizeSpec(d)
}

// NewJudge makes the policy engine of a fleet: the shipped policies, those of
// the fleet repository, and the fleet's policy data.
func NewJudge(f *fleet.Fleet, rego map[string][]byte, given Given) (*policy.Engine, error) {
	return policy.New(policy.NewBundle(rego, f.Policy), policy.Options{Given: given})
}

const policiesDir = "policies"

var errIrregular = errors.New("symbolic links and submodules are not read")

// irregular says whether a path is neither a file nor a directory. The walk
// follows a link at its root only, so that is looked at again.
func irregular(files fs.FS, path string, e fs.DirEntry) bool {
	mode := e.Type()
	if path == policiesDir {
		if in, err := fs.Lstat(files, path); err == nil {
			mode = in.Mode().Type()
		}
	}
	return mode != 0 && mode != fs.ModeDir
}

// PolicyFiles are the Rego files of a fleet repository: everything below
// policies/ but tests.
func PolicyFiles(files fs.FS) (map[string][]byte, error) {
	out := map[string][]byte{}
	err := fs.WalkDir(files, policiesDir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist) && path == policiesDir:
			return fs.SkipAll
		case err != nil:
			return err
		case irregular(files, path, e):
			// To leave it out could loosen the rules, and what it points to is
			// no part of the commit.
			return &fs.PathError{Op: "read", Path: path, Err: errIrregular}
		case e.IsDir() || !strings.HasSuffix(path, ".rego") || strings.HasSuffix(path, "_test.rego"):
			return nil
		}
		b, err := readPolicy(files, path)
		out[path] = b
		return err
	})
	if err != nil {
		return nil, &treeError{err}
	}
	return out, nil
}

// maxPolicyFile bounds what is read of one file. It is more than all policies
// of a fleet may have together, which is checked when they are loaded.
const maxPolicyFile = 8 << 20

func readPolicy(files fs.FS, path string) ([]byte, error) {
	if strings.ContainsFunc(path, func(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) }) {
		return nil, &fs.PathError{Op: "read", Path: strconv.Quote(path), Err: errors.New("has characters in its name that cannot be printed")}
	}
	f, err := files.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxPolicyFile+1))
	if err == nil && len(b) > maxPolicyFile {
		err = &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("has more than %d bytes", maxPolicyFile)}
	}
	return b, err
}

// treeError is a tree that cannot be read as it is: a symlink or an odd name
// where Rego is expected. Its author has to mend it.
type treeError struct{ err error }

func (e *treeError) Error() string { return "policies: " + e.err.Error() }

func (e *treeError) Unwrap() error { return e.err }

// Findings makes the error one that rejects the commit.
func (e *treeError) Findings() []decision.Finding {
	f := decision.Finding{Rule: RuleSpec, Severity: "error", Message: e.Error(), Remediation: "keep only plain files below policies/"}
	var pe *fs.PathError
	if errors.As(e.err, &pe) {
		f.Position = &fleet.Position{File: pe.Path, Line: 1, Column: 1}
	}
	return []decision.Finding{f}
}

// load reads a source that was accepted before.
func (p *Pipeline) load(ctx context.Context, src *port.Source) (*fleet.Fleet, *policy.Engine, error) {
	rego, err := PolicyFiles(src.Files)
	if err != nil {
		return nil, nil, err
	}
	f, err := p.Specs.Load(ctx, src)
	if err != nil {
		return nil, nil, err
	}
	f.Commit = src.Commit
	judge, err := NewJudge(f, rego, nil)
	return f, judge, err
}

// recordSpec records the judgement in a commit of its own and, if it accepts,
// puts the fleet in force.
func (p *Pipeline) recordSpec(ctx context.Context, now time.Time, src *port.Source, j *Judgement) error {
	d := j.Decision
	in := p.inputs()
	if d.Verdict.Allowed {
		in.FleetTree, in.Policies = src.Tree, j.Files
	}
	err := p.Ledger.Append(ctx, port.Entry{
		Time: now, Decisions: []*decision.Decision{d}, Inputs: in,
		Proposed: &port.Proposed{FleetTree: src.Tree, Policies: j.Files},
	})
	if err != nil {
		return err
	}
	p.tell(Event{Time: now, Decision: d})
	if !d.Verdict.Allowed {
		p.Log.Warn("spec commit refused", "commit", src.Commit, "decision", d.ID)
		return nil
	}
	p.fleet, p.judge, p.source = j.Fleet, j.Judge, src
	if IsOpen(d) {
		p.open = append(p.open, &port.Record{Decision: d, Outcome: decision.NewOutcome(d.ID)})
	}
	return nil
}
