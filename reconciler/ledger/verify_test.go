package ledger

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/gitrepo"
)

// forgery is one commit of a chain while it is written anew.
type forgery struct {
	n       int // from zero
	subject string
	ed      *gitrepo.Editor
	msg     string
	drop    bool
	merge   bool
}

// forge writes the branch anew with changes, as somebody with write access
// could. A change is made in one tree and carried on by those after it that do
// not touch the same path.
func forge(t *testing.T, s *stage, change func(*forgery)) *Result {
	t.Helper()
	r := s.repo()
	heads := get(r.Fetch(ctx, branch, gitrepo.AllNew))(t)
	var chain []gitrepo.Commit
	must(t, r.History(heads.New, func(c gitrepo.Commit) error { chain = append([]gitrepo.Commit{c}, chain...); return nil }))
	var parents []gitrepo.Hash
	var old, tree gitrepo.Hash
	for i, c := range chain {
		ed := get(r.Edit(tree))(t)
		for _, ch := range get(r.Changes(old, c.Tree))(t) {
			if ch.To.Hash.IsZero() {
				must(t, ed.Remove(ch.Path))
				continue
			}
			if ch.From.Hash.IsZero() {
				must(t, ed.Remove(ch.Path))
			}
			must(t, ed.Place(ch.Path, ch.To))
		}
		old = c.Tree
		f := &forgery{n: i, subject: c.Subject(), ed: ed, msg: c.Message}
		change(f)
		if f.drop {
			continue
		}
		tree = get(ed.Write())(t)
		if f.merge {
			parents = append(parents, get(r.Fetch(ctx, "main", 1))(t).New)
		}
		parents = []gitrepo.Hash{get(r.WriteCommit(gitrepo.Commit{Tree: tree, Parents: parents, Message: f.msg, Author: c.Author, Committer: c.Committer}, nil))(t)}
	}
	const forged = "reeve/forged"
	must(t, r.Push(ctx, forged, gitrepo.Hash{}, parents[0]))
	return get(Verify(ctx, Source{Repo: s.dir, Branch: forged}))(t)
}

func TestVerifyFindsEveryForgery(t *testing.T) {
	s, _, ds := story(t)
	s.proved()
	unforged := forge(t, s, func(*forgery) {})
	if len(unforged.Problems) > 0 {
		t.Fatalf("the forger's tool is not faithful: %v", unforged.Problems)
	}
	s.git("update-ref", "-d", "refs/heads/reeve/forged")
	head := get(get(s.source().Open(ctx))(t).Head())(t)
	path := map[string]string{}
	for _, d := range ds {
		path[d.ID] = get(head.find(d.ID))(t)
	}
	edit := func(f *forgery, p, old, new string) {
		b, ok, err := f.ed.Read(p)
		if !ok || err != nil || !strings.Contains(string(b), old) {
			t.Fatalf("commit %d %q: %s has no %q: %v", f.n, f.subject, p, old, err)
		}
		must(t, f.ed.Set(p, []byte(strings.Replace(string(b), old, new, 1))))
	}
	// Commits: 0 handover, 1 accept, 2 its outcome, 3 provision, 4 its outcome,
	// 5 two provisions, 6 and 7 outcomes, 8 reject, 9 drift.
	for name, tc := range map[string]struct {
		change func(*forgery)
		want   string
	}{
		"a decision is changed in its own commit": {func(f *forgery) {
			if f.n == 3 {
				edit(f, path[ds[1].ID], `"cost": 0.344`, `"cost": 0.1`)
			}
		}, "the record was changed after it was written"},
		"a decision is changed later": {func(f *forgery) {
			if f.n == 6 {
				edit(f, path[ds[1].ID], "2 pods", "3 pods")
			}
		}, "the decision was changed after it was recorded"},
		"a decision is reformatted": {func(f *forgery) {
			if f.n == 3 {
				edit(f, path[ds[1].ID], "  ", " ")
			}
		}, "the bytes are not those"},
		"a decision is of a later format": {func(f *forgery) {
			if f.n == 3 {
				edit(f, path[ds[1].ID], decision.Version, "ledger.reeve.dev/v9")
			}
		}, "unknown format version"},
		"a decision is deleted": {func(f *forgery) {
			if f.n == 9 {
				must(t, f.ed.Remove(path[ds[3].ID]))
			}
		}, "the decision was deleted"},
		"a decision is dropped on the way": {func(f *forgery) {
			if f.n == 3 {
				must(t, f.ed.Remove(path[ds[1].ID]))
				must(t, f.ed.Remove("open/"+ds[1].ID))
			}
		}, "which the commit does not record"},
		"a commit is dropped": {func(f *forgery) { f.drop = f.n == 3 }, "which is not recorded"},
		"the message leaves a decision out": {func(f *forgery) {
			if f.n == 9 {
				f.msg = strings.Replace(f.msg, "Decision-Id: ", "Decision: ", 1)
			}
		}, "the message does not name decision"},
		"a decision is moved": {func(f *forgery) {
			if f.n == 3 {
				b, _, err := f.ed.Read(path[ds[1].ID])
				must(t, err)
				must(t, f.ed.Set("decisions/2026-04-06/13.0000/"+filepath.Base(path[ds[1].ID]), b))
			}
		}, "the path is not that of decision"},
		"a type list is changed": {func(f *forgery) {
			if f.n == 3 {
				edit(f, listPath(ds[1].Time, listIDs(ds[1])[0]), "c5a.00xlarge", "m5.large")
			}
		}, "the list is not the one"},
		"an outcome is changed": {func(f *forgery) {
			if f.n == 6 {
				edit(f, outcomePath(path[ds[1].ID]), `"launched"`, `"failed"`)
			}
		}, "recorded steps"},
		"an outcome stands in the commit of its decision": {func(f *forgery) {
			if f.n == 3 {
				o := outcome(ds[1], ds[1].Time, decision.Claimed)
				must(t, f.ed.Set(outcomePath(path[ds[1].ID]), get(decision.EncodeOutcome(o))(t)))
			}
		}, "acted on before it was recorded"},
		"an outcome has no decision": {func(f *forgery) {
			if f.n == 9 {
				o := outcome(sealed(t, &decision.Decision{Kind: decision.Expire, Time: noon}), noon, decision.Tainted)
				must(t, f.ed.Set("decisions/2026-04-06/12.0000/x.outcome.json", get(decision.EncodeOutcome(o))(t)))
			}
		}, "which is not recorded"},
		"a denied decision has an outcome": {func(f *forgery) {
			if f.n == 9 {
				must(t, f.ed.Set(outcomePath(path[ds[4].ID]), get(decision.EncodeOutcome(outcome(ds[4], noon, decision.Applied)))(t)))
			}
		}, "was denied and has an outcome"},
		"an outcome goes on after its end": {func(f *forgery) {
			if f.n == 9 {
				edit(f, outcomePath(path[ds[1].ID]), `"final": true`, `"final": false`)
			}
		}, "was final and has changed"},
		"an outcome is deleted": {func(f *forgery) {
			if f.n == 9 {
				must(t, f.ed.Remove(outcomePath(path[ds[1].ID])))
			}
		}, "the outcome was deleted"},
		"the message tells of another outcome": {func(f *forgery) {
			if f.n == 6 {
				f.msg = strings.Replace(f.msg, "Outcome: "+ds[1].ID+" ", "Outcome: "+ds[1].ID+" un", 1)
			}
		}, "which the commit does not record"},
		"an outcome was not written": {func(f *forgery) {
			if f.n == 6 {
				must(t, f.ed.Remove("open/"+ds[1].ID))
				must(t, f.ed.Remove(outcomePath(path[ds[1].ID])))
			}
		}, "has no final outcome and is not listed as open"},
		"an open decision is hidden": {func(f *forgery) {
			if f.n == 9 {
				must(t, f.ed.Remove("open/"+ds[2].ID))
			}
		}, "is not listed as open"},
		"a closed decision is listed as open": {func(f *forgery) {
			if f.n == 9 {
				must(t, f.ed.Set("open/"+ds[1].ID, []byte(path[ds[1].ID])))
			}
		}, "the decision is not open"},
		"a NodeClaim exists whose decision is unknown": {func(f *forgery) {
			if f.n == 9 {
				must(t, f.ed.Set("state/nodes/"+ds[1].Proposal.Claims[0].Name+".json",
					[]byte(strings.ReplaceAll(`{"claim":{"name":"x","nodePool":"default","nodeClass":"default","created":"2026-04-06T12:00:00Z","decision":"ID","index":0,"price":0,"conditions":{"launched":false,"registered":false,"initialized":false}},"ready":false}`, "ID", "20260406T120000.000Z-aaaaaaaaaaaaaaaa"))))
			}
		}, "is not recorded"},
		"a NodeClaim exists before its decision": {func(f *forgery) {
			if f.n == 3 {
				name := ds[1].Proposal.Claims[0].Name
				must(t, f.ed.Set("state/nodes/"+name+".json",
					[]byte(strings.NewReplacer("ID", ds[1].ID, "NAME", name).Replace(`{"claim":{"name":"NAME","nodePool":"default","nodeClass":"default","created":"2026-04-06T12:00:00Z","decision":"ID","index":0,"price":0,"conditions":{"launched":false,"registered":false,"initialized":false}},"ready":false}`))))
			}
		}, "existed before its decision"},
		"a NodeClaim is none that its decision has": {func(f *forgery) {
			if f.n == 9 {
				edit(f, "state/nodes/"+ds[1].Proposal.Claims[0].Name+".json", `"name": "default-`, `"name": "defaulx-`)
			}
		}, "has no claim"},
		"a state cannot be read": {func(f *forgery) {
			if f.n == 9 {
				must(t, f.ed.Set("state/nodes/x.json", []byte("{}{}")))
			}
		}, "state/nodes/x.json"},
		"the epoch falls": {func(f *forgery) {
			if f.n > 0 && f.n < 9 {
				f.msg = strings.Replace(f.msg, "Epoch: 1", "Epoch: 2", 1)
			}
		}, "a leader wrote that had been relieved"},
		"an epoch begins without a handover": {func(f *forgery) {
			if f.n == 9 {
				f.msg = strings.Replace(f.msg, "Epoch: 1", "Epoch: 2", 1)
			}
		}, "begins without a handover"},
		"a commit loses its trailers": {func(f *forgery) {
			if f.n == 9 {
				f.msg = "Something else\n"
			}
		}, "changed by a commit that is not the ledger's"},
		"the message tells another verdict": {func(f *forgery) {
			if f.n == 9 {
				f.msg = strings.Replace(f.msg, "Verdict: denied", "Verdict: allowed", 1)
			}
		}, "kind or verdict in the message"},
		"the message tells another spec commit": {func(f *forgery) {
			if f.n == 3 {
				f.msg = strings.Replace(f.msg, "Spec-Commit: ", "Spec-Commit: 0", 1)
			}
		}, "the message names spec commit"},
		"the message tells another policy digest": {func(f *forgery) {
			if f.n == 3 {
				f.msg = strings.Replace(f.msg, "Policy-Digest: sha256:", "Policy-Digest: sha256:0", 1)
			}
		}, "the message names policies"},
		"the policies are changed": {func(f *forgery) {
			if f.n == 5 {
				must(t, f.ed.Set("inputs/policies/shipped/ami.rego", []byte("package other")))
			}
		}, "stood for"},
		"the fleet is changed": {func(f *forgery) {
			if f.n == 5 {
				must(t, f.ed.Set("inputs/fleet/clusters/myeks/fleet.cue", []byte("changed")))
			}
		}, "without an accept"},
		"another fleet is put in force than was accepted": {func(f *forgery) {
			if f.n == 1 {
				must(t, f.ed.Set("inputs/fleet/clusters/myeks/fleet.cue", []byte("changed")))
			}
		}, "is not the tree that decision"},
		"prices are changed": {func(f *forgery) {
			if f.n == 3 {
				edit(f, "inputs/catalog/ondemand.json", "0.344", "0.1")
			}
		}, "the catalog has types"},
		"the catalog is missing": {func(f *forgery) {
			if f.n == 3 {
				must(t, f.ed.Remove("inputs/catalog"))
			}
		}, "the catalog of the decision is not recorded"},
		"what was proposed is missing": {func(f *forgery) {
			if f.n == 8 {
				must(t, f.ed.Remove("inputs/proposed"))
			}
		}, "a proposed commit is kept"},
		"the leader's file is changed": {func(f *forgery) {
			if f.n == 9 {
				edit(f, leaderFile, `"epoch": 1`, `"epoch": 5`)
			}
		}, "names epoch 5"},
		"a merge": {func(f *forgery) { f.merge = f.n == 5 }, "has 2 parents"},
		"a false day": {func(f *forgery) {
			if f.n == 9 {
				must(t, f.ed.Remove(path[ds[3].ID]))
				must(t, f.ed.Set("days/2026-04-06.json", []byte(`{"version":"ledger.reeve.dev/v1","day":"2026-04-06","commit":"`+strings.Repeat("1a", 20)+`","tree":"","decisions":70,"kinds":{}}`)))
			}
		}, "has it"},
	} {
		t.Run(name, func(t *testing.T) {
			res := forge(t, s, tc.change)
			s.git("update-ref", "-d", "refs/heads/reeve/forged")
			for _, p := range res.Problems {
				if strings.Contains(p.String(), tc.want) && len(p.Commit) == 40 {
					return
				}
			}
			t.Errorf("want a problem %q, got %v", tc.want, res.Problems)
		})
	}
}

func TestVerifyDoesNotPraiseABranchWithoutDecisions(t *testing.T) {
	s, _, _ := story(t)
	for _, name := range []string{"main", "reeve/emptied"} {
		if name != "main" {
			s.git("branch", name, s.git("-c", "user.name=x", "-c", "user.email=x@example.com", "commit-tree", s.git("hash-object", "-wt", "tree", "/dev/null"), "-m", "Begin again"))
		}
		res := get(Verify(ctx, Source{Repo: s.dir, Branch: name}))(t)
		if len(res.Problems) == 0 || !strings.Contains(res.Problems[0].String(), "no decision branch") {
			t.Errorf("%s: %v", res, res.Problems)
		}
	}
}

func TestVerifyNeedsTheWholeHistory(t *testing.T) {
	s, _, ds := story(t)
	dir := filepath.Join(t.TempDir(), "shallow")
	out, err := exec.Command("git", "clone", "--quiet", "--depth", "3", "--branch", branch, "file://"+s.dir, dir).CombinedOutput()
	if err != nil {
		t.Fatalf("%v %s", err, out)
	}
	res := get(Verify(ctx, Source{Repo: dir}))(t)
	if len(res.Problems) == 0 || !strings.Contains(res.Problems[0].String(), "--unshallow") {
		t.Errorf("%v", res.Problems)
	}
	whole := filepath.Join(t.TempDir(), "whole")
	if out, err := exec.Command("git", "clone", "--quiet", "--branch", branch, s.dir, whole).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	res = get(Verify(ctx, Source{Repo: whole}))(t)
	if got := res.String(); got != "reeve/myeks: verified: 10 commits, 7 decisions, 5 outcomes, 1 open, epoch 1" {
		t.Errorf("in a clone: %s", got)
	}
	checked := map[string]bool{}
	res = get(Verify(ctx, Source{Repo: whole}, func(_ context.Context, e Entry) []string {
		checked[e.Decision.ID] = true
		if e.Decision.ID == ds[0].ID {
			return []string{"not to my taste"}
		}
		return nil
	}))(t)
	if len(checked) != 7 || len(res.Problems) != 1 || !strings.Contains(res.Problems[0].String(), "not to my taste") {
		t.Errorf("with a check: %d, %v", len(checked), res.Problems)
	}
	if !strings.Contains(res.String(), "1 problem:") {
		t.Errorf("%s", res)
	}
}

func TestSourcesFindTheirBranch(t *testing.T) {
	s, _, ds := story(t)
	b := get(Source{Repo: "file://" + s.dir}.Open(ctx))(t)
	if b.Name != branch {
		t.Errorf("branch %s", b.Name)
	}
	if res := get(Verify(ctx, Source{Repo: "file://" + s.dir}))(t); len(res.Problems) > 0 || res.Commits != 10 {
		t.Errorf("over a transport: %s %v", res, res.Problems)
	}
	if _, err := (Source{Repo: s.dir, Branch: "reeve/nope"}).Open(ctx); !errors.Is(err, gitrepo.ErrBranchMissing) {
		t.Errorf("a branch that is not there: %v", err)
	}
	s.git("update-ref", "refs/heads/reeve/second", "main")
	if _, err := s.source().Open(ctx); err == nil || !strings.Contains(err.Error(), "reeve/myeks, reeve/second") {
		t.Errorf("two branches: %v", err)
	}
	for _, b := range []string{"reeve/second", branch} {
		s.git("update-ref", "-d", "refs/heads/"+b)
	}
	for _, repo := range []string{s.dir, "file://" + s.dir} {
		if _, err := (Source{Repo: repo}).Open(ctx); err == nil || !strings.Contains(err.Error(), "no branch below reeve/") {
			t.Errorf("no branch: %v", err)
		}
	}
	if _, err := (Source{Repo: t.TempDir()}).Open(ctx); !errors.Is(err, gitrepo.ErrRepositoryMissing) {
		t.Errorf("no repository: %v", err)
	}
	if _, err := Find(ctx, Source{Repo: t.TempDir()}, ds[0].ID); err == nil {
		t.Error("found without a repository")
	}
}

func TestFindTakesAnyPartThatNamesOne(t *testing.T) {
	s, _, ds := story(t)
	for part, want := range map[string]string{ds[1].ID: ds[1].ID, ds[2].ID[21:27]: ds[2].ID, ds[4].ID[:20]: ds[4].ID, Latest: ds[len(ds)-1].ID} {
		if e, err := Find(ctx, s.source(), part); err != nil || e.Decision.ID != want {
			t.Errorf("%s: %v, want %s", part, err, want)
		}
	}
	if _, err := Find(ctx, s.source(), "20260406"); !errors.Is(err, ErrAmbiguous) {
		t.Errorf("a part of several: %v", err)
	}
	for _, part := range []string{"", "zzz"} {
		if _, err := Find(ctx, s.source(), part); !errors.Is(err, gitrepo.ErrNotFound) {
			t.Errorf("%q: %v", part, err)
		}
	}
	var kinds []decision.Kind
	q := Query{Kinds: []string{"provision", "accept"}, Limit: 3}
	must(t, Log(ctx, s.source(), q, func(e Entry) error { kinds = append(kinds, e.Decision.Kind); return nil }))
	if diff := cmp.Diff([]decision.Kind{"provision", "provision", "provision"}, kinds); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
	if err := Log(ctx, s.source(), Query{Kinds: []string{"imagine"}}, nil); err == nil {
		t.Error("an unknown kind was taken")
	}
	boom := errors.New("boom")
	if err := Log(ctx, s.source(), Query{}, func(Entry) error { return boom }); !errors.Is(err, boom) {
		t.Errorf("log: %v", err)
	}
	e := get(Find(ctx, s.source(), ds[1].ID))(t)
	before := get(e.View.Parent())(t)
	if _, err := before.Snapshot(); err == nil {
		t.Error("there is a state before the first pass")
	}
	if _, err := before.Catalog(); !errors.Is(err, gitrepo.ErrNotFound) {
		t.Errorf("a catalog before the first pass: %v", err)
	}
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := Verify(canceled, s.source()); !errors.Is(err, context.Canceled) {
		t.Errorf("verify: %v", err)
	}
}

func TestTrailersAreTheLastParagraphOnly(t *testing.T) {
	for msg, want := range map[string]int64{
		"S\n\nEpoch: 3\n": 3, "S\n\nEpoch: 3\n\nBye\n": 0, "Epoch: 3\n": 0, "": 0, "S\n\nEpoch: x\n": 0, "S\n\nEpoch: -1\n": 0, "S\n\nA: b\nEpoch: 4": 4,
		"S\n\nEpoch: 3\nnot a trailer\n": 0,
	} {
		if n, ok := parseTrailers(msg).epoch(); ok != (want > 0) || ok && n != want {
			t.Errorf("%q: epoch %d %v, want %d", msg, n, ok, want)
		}
	}
	d := sealed(t, &decision.Decision{Kind: decision.Expire, Time: noon, Summary: "evil\n\nEpoch: 99\n"})
	m := message{decisions: []*decision.Decision{d}, epoch: 1}
	if n, _ := parseTrailers(m.String()).epoch(); n != 1 || strings.Count(m.String(), "\nEpoch:") != 1 {
		t.Errorf("a summary broke out of its line:\n%s", m.String())
	}
}
