package ledger

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/gitrepo"
	"github.com/reeve-project/reeve/reconciler/port"
)

// recordVersion is the format of the ledger's own records.
const recordVersion = decision.Version

// View is the ledger as it stands at one commit.
type View struct {
	repo   *gitrepo.Repo
	commit gitrepo.Commit
	marks  trailers
}

func newView(repo *gitrepo.Repo, commit gitrepo.Hash) (*View, error) {
	c, err := repo.ReadCommit(commit)
	if err != nil {
		return nil, err
	}
	return &View{repo: repo, commit: c, marks: parseTrailers(c.Message)}, nil
}

// Commit is the id of the commit.
func (v *View) Commit() string { return v.commit.Hash.String() }

// Time of the commit, in seconds.
func (v *View) Time() time.Time { return v.commit.Committer.When }

// Epoch of the leader who wrote the commit, zero if it is not the ledger's.
func (v *View) Epoch() int64 {
	n, _ := v.marks.epoch()
	return n
}

// Subject of the commit.
func (v *View) Subject() string { return v.commit.Subject() }

// Decisions are the ids of the decisions that the commit records.
func (v *View) Decisions() []string { return v.marks.all(trailerDecision) }

// Outcomes are the ids of the decisions whose outcome the commit advances.
func (v *View) Outcomes() []string { return v.marks.outcomes() }

// Parent is the ledger before the commit, nil for the first and behind a
// shallow border.
func (v *View) Parent() (*View, error) {
	if len(v.commit.Parents) == 0 || !v.repo.Has(v.commit.Parents[0]) {
		return nil, nil
	}
	return newView(v.repo, v.commit.Parents[0])
}

// Snapshot is the cluster's state that the last decisions up to the commit were
// made on. It fails with fs.ErrNotExist before the first.
func (v *View) Snapshot() (*cluster.Snapshot, error) {
	sub, err := fs.Sub(v.repo.FS(v.commit.Tree), stateDir)
	if err != nil {
		return nil, err
	}
	s, err := decodeState(sub)
	if err != nil {
		return nil, fmt.Errorf("state at commit %s: %w", v.Commit(), err)
	}
	return s, nil
}

// Accepted is the accepted spec commit with its tree, nil before the first.
func (v *View) Accepted() (*port.Source, error) {
	a, err := v.accepted()
	if err != nil || a == nil {
		return nil, err
	}
	files, tree, err := v.files(fleetDir)
	return &port.Source{Branch: a.Branch, Commit: a.Commit, Tree: tree, Author: a.Author, Subject: a.Subject, Files: files}, err
}

// Policies are the Rego files in force, by path.
func (v *View) Policies() (map[string][]byte, error) { return v.contents(policiesDir) }

// Proposed is the commit that an accept or reject has judged: the files of the
// proposed fleet and its policies. ok is false at every other commit.
func (v *View) Proposed() (files fs.FS, policies map[string][]byte, ok bool, err error) {
	if _, ok, err = v.tree(proposedDir); err != nil || !ok {
		return nil, nil, false, err
	}
	if files, _, err = v.files(ProposedFleetDir); err != nil {
		return nil, nil, false, err
	}
	policies, err = v.contents(proposedDir + "/policies")
	return files, policies, err == nil, err
}

// Catalog is the catalog that the last decisions up to the commit used. It
// fails with gitrepo.ErrNotFound before the first.
func (v *View) Catalog() (*catalog.Data, error) {
	data, err := catalog.FromFiles(func(name string) ([]byte, error) { return v.read(CatalogDir + "/" + name) })
	if err != nil {
		return nil, fmt.Errorf("catalog at commit %s: %w", v.Commit(), err)
	}
	return data, nil
}

// ID is the Git object id of a file or folder of the ledger at the commit, empty
// if there is none: equal ids are equal contents.
func (v *View) ID(name string) (string, error) {
	e, err := v.repo.Entry(v.commit.Tree, name)
	if errors.Is(err, gitrepo.ErrNotFound) {
		return "", nil
	}
	return e.Hash.String(), err
}

// Decision is a decision that is in the tree of the commit, with its outcome as
// it stands there; the outcome is nil if there is none yet.
func (v *View) Decision(id string) (*decision.Decision, *decision.Outcome, error) {
	p, err := v.find(id)
	if err != nil {
		return nil, nil, err
	}
	return v.record(p)
}

// Open are the decisions that are open at the commit, in order of id.
func (v *View) Open() ([]port.Record, error) {
	records, err := v.open()
	out := make([]port.Record, len(records))
	for i, r := range records {
		out[i] = port.Record{Decision: r.decision, Outcome: r.outcome}
	}
	slices.SortFunc(out, byID)
	return out, err
}

func (v *View) leader() (leaderRecord, error) {
	var rec leaderRecord
	b, err := v.read(leaderFile)
	if err != nil {
		return rec, err
	}
	if err := decodeJSON(b, &rec); err != nil {
		return rec, fmt.Errorf("%s: %w", leaderFile, err)
	}
	if rec.Version != recordVersion {
		return rec, fmt.Errorf("%s: %w %q: this release reads %q", leaderFile, decision.ErrVersion, rec.Version, recordVersion)
	}
	return rec, nil
}

func (v *View) accepted() (*acceptedRecord, error) {
	b, err := v.read(acceptedFile)
	if errors.Is(err, gitrepo.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var rec acceptedRecord
	if err := decodeJSON(b, &rec); err != nil {
		return nil, fmt.Errorf("%s: %w", acceptedFile, err)
	}
	return &rec, nil
}

func (v *View) open() ([]*openRecord, error) {
	entries, err := v.list(openDir)
	if err != nil {
		return nil, err
	}
	var out []*openRecord
	for _, e := range entries {
		b, err := v.repo.Blob(e.Hash)
		if err != nil {
			return nil, fmt.Errorf("%s/%s: %w", openDir, e.Name, err)
		}
		r := &openRecord{path: strings.TrimSpace(string(b))}
		if r.decision, r.outcome, err = v.record(r.path); err != nil {
			return nil, fmt.Errorf("%s/%s: %w", openDir, e.Name, err)
		}
		if r.outcome == nil {
			r.outcome = decision.NewOutcome(r.decision.ID)
		}
		out = append(out, r)
	}
	return out, nil
}

// days are the records of days that have left the tip.
func (v *View) days() (map[string]dayRecord, error) {
	entries, err := v.list(daysDir)
	out := map[string]dayRecord{}
	for _, e := range entries {
		b, err := v.repo.Blob(e.Hash)
		if err != nil {
			return nil, err
		}
		var rec dayRecord
		if err := decodeJSON(b, &rec); err != nil {
			return nil, fmt.Errorf("%s/%s: %w", daysDir, e.Name, err)
		}
		out[rec.Day] = rec
	}
	return out, err
}

// record reads a decision with its lists and its outcome.
func (v *View) record(p string) (*decision.Decision, *decision.Outcome, error) {
	b, err := v.read(p)
	if err != nil {
		return nil, nil, err
	}
	d, err := decision.Decode(b)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", p, err)
	}
	for _, id := range listIDs(d) {
		names, err := v.read(listPath(d.Time, id))
		if err != nil {
			return nil, nil, fmt.Errorf("%s: type list %s: %w", p, id, err)
		}
		if d.Proposal.Lists == nil {
			d.Proposal.Lists = map[string][]string{}
		}
		d.Proposal.Lists[id] = strings.Split(strings.TrimSuffix(string(names), "\n"), "\n")
	}
	b, err = v.read(outcomePath(p))
	if errors.Is(err, gitrepo.ErrNotFound) {
		return d, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	o, err := decision.DecodeOutcome(b)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", outcomePath(p), err)
	}
	return d, o, nil
}

// find is the path of a decision in the tree.
func (v *View) find(id string) (string, error) {
	t, stem, err := recordStem(id)
	if err != nil {
		return "", err
	}
	paths, err := v.recordsOfHour(t)
	if err != nil {
		return "", err
	}
	for _, p := range paths {
		if strings.HasPrefix(path.Base(p), stem) {
			return p, nil
		}
	}
	return "", fmt.Errorf("decision %s at commit %s: %w", id, v.Commit(), gitrepo.ErrNotFound)
}

// recordsOfHour are the paths of the decisions of an hour, sorted.
func (v *View) recordsOfHour(t time.Time) ([]string, error) {
	return v.recordsIn(t.UTC().Format(dayFormat), t.UTC().Format(hourFormat)+".")
}

// records are the paths of the decisions of a day, sorted.
func (v *View) records(day string) ([]string, error) { return v.recordsIn(day, "") }

func (v *View) recordsIn(day, prefix string) ([]string, error) {
	dir := decisionsDir + "/" + day
	blocks, err := v.list(dir)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, b := range blocks {
		if !isBlock(b.Name) || !strings.HasPrefix(b.Name, prefix) {
			continue
		}
		files, err := v.list(dir + "/" + b.Name)
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			if isRecord(f.Name) {
				out = append(out, dir+"/"+b.Name+"/"+f.Name)
			}
		}
	}
	return out, nil
}

// list is a directory's entries; a missing one has none.
func (v *View) list(dir string) ([]gitrepo.Entry, error) {
	e, err := v.repo.Entry(v.commit.Tree, dir)
	if errors.Is(err, gitrepo.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return v.repo.Entries(e.Hash)
}

// tree is the id of a directory, and whether there is one.
func (v *View) tree(dir string) (string, bool, error) {
	e, err := v.repo.Entry(v.commit.Tree, dir)
	if errors.Is(err, gitrepo.ErrNotFound) {
		return "", false, nil
	}
	if err != nil || e.Kind != gitrepo.Dir {
		return "", false, err
	}
	return e.Hash.String(), true, nil
}

func (v *View) read(p string) ([]byte, error) {
	e, err := v.repo.Entry(v.commit.Tree, p)
	if err != nil {
		return nil, err
	}
	b, err := v.repo.Blob(e.Hash)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p, err)
	}
	return b, nil
}

// files is a directory as a file system, with its id.
func (v *View) files(dir string) (fs.FS, string, error) {
	e, err := v.repo.Entry(v.commit.Tree, dir)
	if err != nil {
		return nil, "", fmt.Errorf("%s at commit %s: %w", dir, v.Commit(), err)
	}
	return v.repo.FS(e.Hash), e.Hash.String(), nil
}

// blobs are the files below a directory, by path from the root.
func (v *View) blobs(dir string) (map[string]gitrepo.Hash, error) {
	e, err := v.repo.Entry(v.commit.Tree, dir)
	if errors.Is(err, gitrepo.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	changes, err := v.repo.Changes(gitrepo.Hash{}, e.Hash)
	out := make(map[string]gitrepo.Hash, len(changes))
	for _, c := range changes {
		out[dir+"/"+c.Path] = c.To.Hash
	}
	return out, err
}

// contents are the files below a directory, by path from there.
func (v *View) contents(dir string) (map[string][]byte, error) {
	files, err := v.blobs(dir)
	if err != nil {
		return nil, err
	}
	out := make(map[string][]byte, len(files))
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if out[strings.TrimPrefix(name, dir+"/")], err = v.repo.Blob(files[name]); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return out, nil
}
