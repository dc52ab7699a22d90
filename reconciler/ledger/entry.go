package ledger

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/gitrepo"
	"github.com/reeve-project/reeve/reconciler/port"
)

// op is one change of the tree: a file, a tree to graft, or a removal.
type op struct {
	path    string
	content []byte
	tree    string
	remove  bool
}

// plan is a commit before it is made.
type plan struct {
	time time.Time
	msg  message
	ops  []op
	// What changes in memory when the commit is made.
	leader   *leaderRecord
	accepted *acceptedRecord
	catalog  *catalog.Data
	block    block
	placed   map[string]string // paths of the decisions in the plan
	summed   bool              // README and SUMMARY are in it
	days     []trimmedDay
}

func (p *plan) set(path string, content []byte) {
	p.ops = append(p.ops, op{path: path, content: content})
}

func (p *plan) setJSON(path string, v any) error {
	b, err := encodeJSON(v, "  ")
	if err == nil {
		p.set(path, b)
	}
	return err
}

func (p *plan) remove(path string) { p.ops = append(p.ops, op{path: path, remove: true}) }

func (p *plan) graft(path, tree string) { p.ops = append(p.ops, op{path: path, tree: tree}) }

// block is where the next decision goes.
type block struct {
	hour string // directory of the day, a slash and the hour
	n    int
	used int
}

// leaderRecord is state/leader.json.
type leaderRecord struct {
	Version  string `json:"version"`
	Cluster  string `json:"cluster"`
	Epoch    int64  `json:"epoch"`
	Identity string `json:"identity"`
	// Decision is the handover.
	Decision string `json:"decision"`
	// Shards says that state/nodes has 256 directories. Absent until the first
	// snapshot.
	Shards *bool `json:"shards,omitempty"`
}

// acceptedRecord is inputs/accepted.json.
type acceptedRecord struct {
	Branch  string `json:"branch"`
	Commit  string `json:"commit"`
	Tree    string `json:"tree"`
	Author  string `json:"author,omitempty"`
	Subject string `json:"subject,omitempty"`
	// Decision that accepted it.
	Decision string `json:"decision"`
}

// opens says whether a decision waits for an outcome: its record has a file in
// open/ until the outcome is final. A handover is done by its own commit, and
// in observe mode nothing is done.
func opens(d *decision.Decision) bool {
	return d.Verdict.Allowed && d.Kind.HasOutcome() && d.Kind != decision.Handover && d.Mode != fleet.Observe
}

// plan works out the commit of an entry. It changes nothing.
func (l *Ledger) plan(e port.Entry) (*plan, error) {
	p := &plan{
		time: e.Time, block: l.mem.block, placed: map[string]string{},
		msg: message{decisions: e.Decisions, outcomes: e.Outcomes, about: map[string]string{}, epoch: l.epoch, skipCI: l.opts.SkipCI},
	}
	if err := l.check(e); err != nil {
		return nil, err
	}
	if len(e.Outcomes) > 0 && l.leader.Epoch != l.epoch && !beginsEpoch(e) {
		return nil, fmt.Errorf("epoch %d begins with a handover", l.epoch)
	}
	steps := []func(*plan, port.Entry) error{l.planLeader, l.planState, l.planInputs, l.planProposed, l.planDecisions, l.planOutcomes, l.planWindow, l.planSummaries}
	for _, step := range steps {
		if err := step(p, e); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func beginsEpoch(e port.Entry) bool {
	return slices.ContainsFunc(e.Decisions, func(d *decision.Decision) bool { return d.Kind == decision.Handover })
}

// check refuses entries that would make a ledger that does not verify.
func (l *Ledger) check(e port.Entry) error {
	for _, d := range e.Decisions {
		if err := d.VerifyID(); err != nil {
			return err
		}
		if d.Cluster != l.opts.Cluster {
			return fmt.Errorf("decision %s is for cluster %q, and this is the ledger of %q", d.ID, d.Cluster, l.opts.Cluster)
		}
		spec := d.Kind == decision.Accept || d.Kind == decision.Reject
		if spec != (e.Proposed != nil) || spec && len(e.Decisions) > 1 {
			return fmt.Errorf("decision %s: an accept or reject has an entry of its own, with the proposed commit", d.ID)
		}
		if h := d.Proposal.Handover; d.Kind == decision.Handover && (h == nil || h.Epoch != l.epoch) {
			return fmt.Errorf("decision %s: this writer's epoch is %d", d.ID, l.epoch)
		} else if d.Kind != decision.Handover && l.leader.Epoch != l.epoch {
			return fmt.Errorf("decision %s: epoch %d begins with a handover", d.ID, l.epoch)
		}
	}
	return nil
}

func (l *Ledger) planLeader(p *plan, e port.Entry) error {
	next := l.leader
	for _, d := range e.Decisions {
		if h := d.Proposal.Handover; d.Kind == decision.Handover {
			next.Version, next.Cluster = decision.Version, l.opts.Cluster
			next.Epoch, next.Identity, next.Decision = h.Epoch, h.Identity, d.ID
		}
	}
	if e.Snapshot != nil && next.Shards == nil {
		sharded := len(e.Snapshot.Nodes) > shardAbove
		next.Shards = &sharded
	}
	if next == l.leader {
		return nil
	}
	p.leader = &next
	return p.setJSON(leaderFile, next)
}

func (l *Ledger) planState(p *plan, e port.Entry) error {
	if e.Snapshot == nil {
		return nil
	}
	shards := l.leader.Shards
	if p.leader != nil {
		shards = p.leader.Shards
	}
	files, err := encodeState(e.Snapshot, shards != nil && *shards)
	if err != nil {
		return err
	}
	l.replace(p, stateDir, files)
	return nil
}

// replace makes a directory hold exactly the files, except for those of the
// ledger itself. What is removed comes first: a directory may become a file.
func (l *Ledger) replace(p *plan, dir string, files map[string][]byte) {
	prefix := dir + "/"
	for _, name := range slices.Sorted(maps.Keys(l.mem.blobs)) {
		rest, below := strings.CutPrefix(name, prefix)
		if _, keep := files[rest]; below && !keep && name != leaderFile {
			p.remove(name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if l.mem.blobs[prefix+name] != gitrepo.BlobID(files[name]) {
			p.set(prefix+name, files[name])
		}
	}
}

// planInputs writes what is in force. The catalog is written with the first
// decision that used it: an unused price list is no input.
func (l *Ledger) planInputs(p *plan, e port.Entry) error {
	in := e.Inputs
	if e.Proposed != nil && e.Decisions[0].Kind == decision.Accept && e.Decisions[0].Verdict.Allowed {
		// Accepting is putting in force.
		in.FleetTree, in.Policies = e.Proposed.FleetTree, e.Proposed.Policies
		if err := p.accept(e.Decisions[0]); err != nil {
			return err
		}
	}
	if in.FleetTree != "" && in.FleetTree != l.mem.fleet {
		p.graft(fleetDir, in.FleetTree)
	}
	if in.Policies != nil {
		l.replace(p, policiesDir, in.Policies)
	}
	if in.Catalog != nil && in.Catalog != l.mem.catalog && usesCatalog(e.Decisions) {
		l.replace(p, CatalogDir, in.Catalog.Files())
		p.catalog = in.Catalog
	}
	return nil
}

func usesCatalog(ds []*decision.Decision) bool {
	return slices.ContainsFunc(ds, func(d *decision.Decision) bool { return d.Inputs.Types != "" || d.Inputs.Prices != "" })
}

func (p *plan) accept(d *decision.Decision) error {
	s := d.Proposal.Spec
	if s == nil {
		return fmt.Errorf("decision %s: an accept names a spec commit", d.ID)
	}
	p.accepted = &acceptedRecord{Branch: s.Branch, Commit: s.Commit, Tree: s.Tree, Author: s.Author, Subject: s.Subject, Decision: d.ID}
	return p.setJSON(acceptedFile, p.accepted)
}

// planProposed keeps what was judged in the commit of its accept or reject, and
// nowhere else.
func (l *Ledger) planProposed(p *plan, e port.Entry) error {
	if l.mem.proposed {
		p.remove(proposedDir)
	}
	if e.Proposed == nil {
		return nil
	}
	if e.Proposed.FleetTree != "" {
		p.graft(proposedDir+"/fleet", e.Proposed.FleetTree)
	}
	for _, name := range slices.Sorted(maps.Keys(e.Proposed.Policies)) {
		p.set(proposedDir+"/policies/"+name, e.Proposed.Policies[name])
	}
	return nil
}

// short is the short form of a decision, for policies and for repeats.
func short(d *decision.Decision) cluster.Recent {
	return cluster.Recent{
		ID: d.ID, Kind: string(d.Kind), Time: d.Time, Allowed: d.Verdict.Allowed, NodePool: d.Proposal.NodePool,
		Fingerprint: d.Fingerprint, Nodes: len(d.Proposal.Claims) + len(d.Proposal.Nodes), Repeats: d.Repeats,
	}
}

// apply makes the changes of a plan in the tree of the editor.
func (l *Ledger) apply(ops []op) error {
	for _, o := range ops {
		var err error
		switch {
		case o.remove:
			err = l.ed.Remove(o.path)
		case o.tree != "":
			var h gitrepo.Hash
			if h, err = gitrepo.ParseHash(o.tree); err == nil {
				err = l.ed.Graft(o.path, h)
			}
		default:
			err = l.ed.Set(o.path, o.content)
		}
		if err != nil {
			return fmt.Errorf("write the ledger: %w", err)
		}
	}
	return nil
}

// errNoTree says that a fleet's tree cannot be had.
var errNoTree = errors.New("the fleet's tree is neither in the ledger nor in the spec repository")

// bring makes a fleet's tree available in the ledger's repository.
func (l *Ledger) bring(tree string) error {
	h, err := gitrepo.ParseHash(tree)
	if err != nil {
		return err
	}
	if l.opts.Specs != nil {
		if _, err = l.repo.Copy(l.opts.Specs, h); err == nil {
			return nil
		}
	}
	if l.repo.Has(h) {
		return nil
	}
	return fmt.Errorf("tree %s: %w", tree, errors.Join(errNoTree, err))
}

// byID orders decisions as they are listed.
func byID(a, b port.Record) int { return cmp.Compare(a.Decision.ID, b.Decision.ID) }
