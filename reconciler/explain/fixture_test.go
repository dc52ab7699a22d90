package explain

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/gitrepo"
	"github.com/reeve-project/reeve/reconciler/ledger"
	"github.com/reeve-project/reeve/reconciler/port"
	"github.com/reeve-project/reeve/reconciler/report"
)

var ctx = context.Background()

// storyDir holds the ledger of a real run. It is written by the demo, which this
// package may not import; so the command makes it.
var storyDir string

func TestMain(m *testing.M) {
	os.Setenv("GIT_CONFIG_GLOBAL", "/dev/null")
	os.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "explain")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer os.RemoveAll(dir)
	storyDir = filepath.Join(dir, "demo")
	if out, err := exec.Command("go", "run", "../../cmd/reeve", "demo", "--dir", storyDir).CombinedOutput(); err != nil {
		fmt.Printf("%v\n%s", err, out)
		return 1
	}
	return m.Run()
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func git(t testing.TB, args ...string) string {
	t.Helper()
	out, err := exec.Command("git", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// memSpool is a port.Spool in memory.
type memSpool map[string][]byte

func (s memSpool) Put(_ context.Context, key string, b []byte) error {
	s[key] = bytes.Clone(b)
	return nil
}
func (s memSpool) List(context.Context) ([]string, error) { return slices.Sorted(maps.Keys(s)), nil }
func (s memSpool) Get(_ context.Context, key string) ([]byte, error) {
	return s[key], nil
}
func (s memSpool) Delete(_ context.Context, key string) error {
	delete(s, key)
	return nil
}

// book is the demo's ledger, written on by another leader.
type book struct {
	t      testing.TB
	dir    string
	ledger *ledger.Ledger
	now    time.Time
	// made are the demo's decisions, oldest first.
	made []*decision.Decision
}

// newBook is the ledger up to the second provision: no node has gone yet.
func newBook(t testing.TB) *book {
	return bookUpTo(t, "^initialized: provision(default): .* for 23 pods")
}

// wholeBook is the ledger up to the pod that stays pending.
func wholeBook(t testing.TB) *book { return bookUpTo(t, "^provision: 1 pod stays pending") }

// bookUpTo is the demo's ledger up to the newest commit with that subject.
func bookUpTo(t testing.TB, subject string) *book {
	t.Helper()
	b := &book{t: t, dir: filepath.Join(t.TempDir(), "fleet.git"), now: time.Date(2026, 4, 6, 13, 0, 0, 0, time.UTC)}
	git(t, "clone", "-q", "--mirror", filepath.Join(storyDir, "fleet.git"), b.dir)
	git(t, "-C", b.dir, "update-ref", "refs/heads/reeve/myeks", git(t, "-C", b.dir, "log", "-1", "--format=%H", "--grep="+subject, "reeve/myeks"))
	must(t, ledger.Log(ctx, b.source(), ledger.Query{}, func(e ledger.Entry) error {
		b.made = append(b.made, e.Decision)
		return nil
	}))
	slices.Reverse(b.made)
	return b
}

func (b *book) source() ledger.Source { return ledger.Source{Repo: b.dir} }

// lead opens the ledger for writing, as a new leader.
func (b *book) lead() {
	b.t.Helper()
	repo, err := gitrepo.Open(b.dir, gitrepo.Options{})
	must(b.t, err)
	specs, err := gitrepo.Open(b.dir, gitrepo.Options{})
	must(b.t, err)
	b.ledger, err = ledger.Open(ctx, ledger.Options{Cluster: "myeks", Repo: repo, Specs: specs, Spool: memSpool{}}, b.now)
	must(b.t, err)
	d := &decision.Decision{
		Kind: decision.Handover, Summary: "handover: test",
		Proposal: decision.Proposal{Reason: "a new leader has begun", Handover: &decision.Leader{Epoch: b.ledger.Epoch(), Previous: b.ledger.Epoch() - 1, Identity: "test"}},
	}
	b.seal(d)
	o := decision.NewOutcome(d.ID)
	o.Advance(nil, decision.Step{Time: b.now, State: decision.Applied})
	must(b.t, b.ledger.Append(ctx, port.Entry{Time: b.now, Decisions: []*decision.Decision{d}, Outcomes: []*decision.Outcome{o}}))
}

// seal completes a decision that is made a minute after the one before.
func (b *book) seal(d *decision.Decision) {
	b.t.Helper()
	b.now = b.now.Add(time.Minute)
	d.Time, d.Cluster, d.Engine = b.now, "myeks", decision.CurrentEngine()
	if d.Mode == "" {
		d.Mode = fleet.Enforce
	}
	d.Verdict.Allowed = len(d.Verdict.Violations) == 0
	last := b.made[len(b.made)-1].Inputs
	if d.Kind != decision.Handover {
		d.Inputs = decision.Inputs{SpecCommit: last.SpecCommit, Fleet: last.Fleet, Policies: last.Policies}
	}
	if d.Summary == "" {
		d.Summary = string(d.Kind)
	}
	must(b.t, d.Seal())
}

// record writes a decision, and then what became of each of its subjects.
func (b *book) record(d *decision.Decision, steps ...decision.Step) *decision.Decision {
	b.t.Helper()
	b.seal(d)
	must(b.t, b.ledger.Append(ctx, port.Entry{Time: b.now, Decisions: []*decision.Decision{d}}))
	if len(steps) == 0 {
		return d
	}
	o := decision.NewOutcome(d.ID)
	for i, s := range steps {
		s.Time = b.now.Add(time.Duration(i+1) * 5 * time.Second)
		o.Advance(d.Subjects(), s)
	}
	b.now = b.now.Add(time.Minute)
	must(b.t, b.ledger.Append(ctx, port.Entry{Time: b.now, Outcomes: []*decision.Outcome{o}}))
	return d
}

func (b *book) push() {
	b.t.Helper()
	must(b.t, b.ledger.Close(ctx, b.now.Add(time.Minute)))
}

// named is the demo's first decision with that in its summary.
func (b *book) named(summary string) *decision.Decision {
	b.t.Helper()
	for _, d := range b.made {
		if strings.Contains(d.Summary, summary) {
			return d
		}
	}
	b.t.Fatalf("the demo has made no %q", summary)
	return nil
}

// claim is the n-th claim of that decision.
func (b *book) claim(summary string, n int) decision.Claim {
	b.t.Helper()
	return b.named(summary).Proposal.Claims[n]
}

// node is a claim as a node to remove.
func node(c decision.Claim, detail string) decision.Node {
	return decision.Node{
		Claim: c.Name, NodePool: c.NodePool, InstanceType: c.InstanceType, Zone: c.Zone, CapacityType: c.CapacityType,
		Price: c.Price, Pods: c.Pods, Detail: detail, DisruptionCostMilli: 1500,
	}
}

// text is what a story prints, which must not be wide nor end lines in blanks.
func text[T any](t testing.TB, story *T, err error, write func(io.Writer, *T) error) string {
	t.Helper()
	must(t, err)
	var out bytes.Buffer
	must(t, write(&out, story))
	for line := range strings.Lines(out.String()) {
		line = strings.TrimSuffix(line, "\n")
		if n := len([]rune(line)); n > 100 {
			t.Errorf("%d runes: %s", n, line)
		}
		if strings.TrimRight(line, " ") != line {
			t.Errorf("ends in blanks: %q", line)
		}
	}
	return out.String()
}

// holds fails unless the text has the parts, in their order.
func holds(t testing.TB, text string, parts ...string) {
	t.Helper()
	rest := text
	for _, p := range parts {
		_, after, ok := strings.Cut(rest, p)
		if !ok {
			t.Errorf("there is no %q, or not after the one before, in:\n%s", p, text)
			return
		}
		rest = after
	}
}

func nodeText(t testing.TB, b *book, name string) string {
	t.Helper()
	s, err := Node(ctx, b.source(), name)
	return text(t, s, err, report.ExplainNode)
}

func podText(t testing.TB, b *book, name string) string {
	t.Helper()
	s, err := Pod(ctx, b.source(), name)
	return text(t, s, err, report.ExplainPod)
}

func decisionText(t testing.TB, b *book, part string) string {
	t.Helper()
	s, err := Decision(ctx, b.source(), part)
	return text(t, s, err, report.ExplainDecision)
}
