package pipeline_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/reeve-project/reeve/examples"
	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/gitrepo"
	"github.com/reeve-project/reeve/reconciler/ledger"
	"github.com/reeve-project/reeve/reconciler/pipeline"
	"github.com/reeve-project/reeve/reconciler/port"
	"github.com/reeve-project/reeve/reconciler/replay"
	"github.com/reeve-project/reeve/reconciler/sim"
	"github.com/reeve-project/reeve/reconciler/spec"
)

var noon = time.Date(2026, 4, 6, 12, 0, 0, 0, time.UTC)

// rig is a simulated cluster with a real repository. Leaders come and go in
// it; what they leave behind stays.
type rig struct {
	t     *testing.T
	ctx   context.Context
	repo  string
	world *sim.World
	api   *sim.Cluster
	cloud *sim.Cloud
	spool *sim.Spool
	queue *sim.Queue
	watch *sim.Invariants
	// ledger is the current leader's; wrap, when set, stands in front of it.
	ledger port.Ledger
	wrap   func(port.Ledger) port.Ledger

	author *gitrepo.Repo
	files  map[string][]byte
	tip    gitrepo.Hash

	pipeline  *pipeline.Pipeline
	decisions []*decision.Decision
	steps     map[string][]decision.Step
	errs      []error
	recorded  map[string]bool
	// reading says that the test itself reads the spool.
	reading bool
	// orphan is the id of an instance that was left behind.
	orphan string
	// boot is how instances start from now on.
	boot sim.Boot
	// pod is the controller's own, as "namespace/name".
	pod string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	t.Setenv("GIT_CONFIG_GLOBAL", "/dev/null")
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	r := &rig{t: t, ctx: context.Background(), repo: filepath.Join(t.TempDir(), "fleet.git"), files: map[string][]byte{}}
	r.must(gitrepo.InitBare(r.repo, "main"))
	// Nobody needs this repository after a power cut.
	r.git("config", "core.fsync", "none")
	r.author = r.open()
	r.world = sim.NewWorld(sim.Options{Start: noon})
	data, err := catalog.Embedded("ap-northeast-2")
	r.must(err)
	r.api, r.spool = sim.NewCluster(r.world), sim.NewSpool(r.world)
	r.cloud, err = sim.NewCloud(r.world, sim.CloudOptions{Cluster: "myeks", Catalog: data, Releases: map[string][]string{"al2023": {"v20260318"}}, Boot: func(port.Instance) sim.Boot { return r.boot }})
	r.must(err)
	r.queue = sim.NewQueue(r.world)
	r.cloud.Attach(r.queue)
	r.watch = sim.Watch(r.api, r.cloud, r)
	r.watch.Removing = r.removing
	r.must(r.world.Apply(sim.NewDaemonSet("kube-proxy", cpu("150m"))))
	r.must(r.world.Apply(sim.NewDeployment("default", "inflate", 0, cpu("1"))))
	example := examples.MyEKS()
	r.must(fs.WalkDir(example, ".", func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			r.files[path], err = fs.ReadFile(example, path)
		}
		return err
	}))
	return r
}

func cpu(q string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(q)}
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) open() *gitrepo.Repo {
	r.t.Helper()
	repo, err := gitrepo.Open(r.repo, gitrepo.Options{})
	r.must(err)
	return repo
}

// lead begins a new leader; the one before is forgotten as if it had crashed.
func (r *rig) lead() {
	r.t.Helper()
	r.must(r.tryLead())
}

func (r *rig) tryLead() error {
	specs := r.open()
	led, err := ledger.Open(r.ctx, ledger.Options{Cluster: "myeks", Repo: r.open(), Specs: specs, Spool: r.spool}, r.world.Now())
	if err != nil {
		return err
	}
	r.ledger = led
	if r.wrap != nil {
		r.ledger = r.wrap(led)
	}
	r.pipeline = pipeline.New(pipeline.Deps{
		Specs:   spec.NewRepository(specs, "main", spec.Options{Cluster: "myeks"}),
		Cluster: r.api, Cloud: r.cloud, Queue: r.queue, Ledger: r.ledger, Clock: r.world.Clock, Log: slog.New(slog.DiscardHandler),
	}, pipeline.Options{Cluster: "myeks", Identity: "test", Pod: r.pod, PullInterval: 10 * time.Second, Observer: r.observe})
	return r.pipeline.Start(r.ctx)
}

// removing are the subjects of the open decisions that remove something.
func (r *rig) removing() map[string]bool {
	out := map[string]bool{}
	if r.ledger == nil {
		return out
	}
	for _, rec := range r.ledger.Open() {
		for _, n := range rec.Decision.Proposal.Nodes {
			out[n.Name], out[n.Claim] = true, true
		}
		for _, in := range rec.Decision.Proposal.Instances {
			out[in.ID] = true
		}
	}
	return out
}

func (r *rig) observe(e pipeline.Event) {
	if e.Step != nil {
		if r.steps == nil {
			r.steps = map[string][]decision.Step{}
		}
		r.steps[e.Decision.ID] = append(r.steps[e.Decision.ID], *e.Step)
	}
	switch {
	case e.Err != nil:
		r.errs = append(r.errs, e.Err)
	case e.Step == nil && e.Decision != nil:
		r.decisions = append(r.decisions, e.Decision)
		if e.Decision.Verdict.Allowed && r.pipeline.Fleet() != nil {
			if err := r.cloud.CheckPlan(&e.Decision.Proposal, r.pipeline.Fleet()); err != nil {
				r.t.Errorf("the binder refuses the plan of %s: %v", e.Decision.Summary, err)
			}
		}
	}
}

// push commits the changes to the spec branch; a nil content removes the file.
func (r *rig) push(subject string, changes map[string]string) {
	r.t.Helper()
	for name, content := range changes {
		if content == "" {
			delete(r.files, name)
		} else {
			r.files[name] = []byte(content)
		}
	}
	ed, err := r.author.Edit(gitrepo.Hash{})
	r.must(err)
	for name, content := range r.files {
		r.must(ed.Set(name, content))
	}
	tree, err := ed.Write()
	r.must(err)
	sig := gitrepo.Signature{Name: "dev", Email: "dev@example.com", When: r.world.Now()}
	c := gitrepo.Commit{Tree: tree, Author: sig, Committer: sig, Message: subject + "\n"}
	if !r.tip.IsZero() {
		c.Parents = []gitrepo.Hash{r.tip}
	}
	next, err := r.author.WriteCommit(c, nil)
	r.must(err)
	r.must(r.author.Push(r.ctx, "main", r.tip, next))
	r.tip = next
	if r.pipeline != nil {
		r.pipeline.Wake()
	}
}

// edit is a file of the fleet with one place changed.
func (r *rig) edit(name, old, new string) map[string]string {
	r.t.Helper()
	s := string(r.files[name])
	if strings.Count(s, old) != 1 {
		r.t.Fatalf("%q stands %d times in %s", old, strings.Count(s, old), name)
	}
	return map[string]string{name: strings.Replace(s, old, new, 1)}
}

// run makes passes, one a second, and collects what they could not do.
func (r *rig) run(d time.Duration) {
	r.t.Helper()
	for end := r.world.Now().Add(d); r.world.Now().Before(end); {
		if err := r.pipeline.Pass(r.ctx); err != nil {
			r.errs = append(r.errs, err)
		}
		r.watch.Check()
		r.must(r.world.Clock.Advance(time.Second))
	}
}

// settle runs until nothing is open.
func (r *rig) settle() {
	r.t.Helper()
	for range 300 {
		r.run(time.Second)
		if _, starting, pending := r.world.Pods("default", nil); !r.pipeline.Open() && starting+pending == 0 {
			return
		}
	}
	r.t.Fatalf("not settled after five minutes; errors: %v", r.errs)
}

// nodeOf is the name of the claim's node.
func (r *rig) nodeOf(claim string) string {
	r.t.Helper()
	snap, err := r.api.Snapshot(r.ctx)
	r.must(err)
	return snap.Node(claim).Name
}

// last is the decision of that kind that was made last.
func (r *rig) last(k decision.Kind) *decision.Decision {
	r.t.Helper()
	for i := len(r.decisions) - 1; i >= 0; i-- {
		if r.decisions[i].Kind == k {
			return r.decisions[i]
		}
	}
	r.t.Fatalf("no decision of kind %s", k)
	return nil
}

// finish stops the leader and proves everything that must hold of any run.
func (r *rig) finish() {
	r.t.Helper()
	r.must(r.pipeline.Stop(r.ctx))
	for _, v := range r.watch.Found() {
		r.t.Errorf("violated: %s", v)
	}
	src := ledger.Source{Repo: r.repo}
	res, err := replay.Verify(r.ctx, src)
	r.must(err)
	for _, p := range res.Problems {
		r.t.Errorf("verify: %v", p)
	}
	sum, err := replay.Run(r.ctx, src, nil, func(res replay.Result) error {
		if res.Verdict != replay.Same {
			r.t.Errorf("replay: %s", res)
		}
		return nil
	})
	r.must(err)
	if sum.Same == 0 {
		r.t.Error("nothing was replayed")
	}
	r.git("fsck", "--strict")
}

func (r *rig) git(args ...string) string {
	r.t.Helper()
	out, err := exec.Command("git", append([]string{"-C", r.repo}, args...)...).CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// Recorded makes the rig a sim.Repository: a decision is recorded when it is in
// the branch or in the spool.
func (r *rig) Recorded(id string) bool {
	// What is recorded stays so, which finish proves.
	if !r.recorded[id] {
		if r.recorded == nil {
			r.recorded = map[string]bool{}
		}
		r.recorded[id] = r.isRecorded(id)
	}
	return r.recorded[id]
}

func (r *rig) isRecorded(id string) bool {
	r.reading = true
	defer func() { r.reading = false }()
	if _, err := ledger.Find(r.ctx, ledger.Source{Repo: r.repo}, id); err == nil {
		return true
	}
	keys, err := r.spool.List(r.ctx)
	if err != nil {
		return false
	}
	for _, k := range keys {
		b, err := r.spool.Get(r.ctx, k)
		if err != nil {
			continue
		}
		if z, err := gzip.NewReader(bytes.NewReader(b)); err == nil {
			if raw, err := io.ReadAll(z); err == nil && bytes.Contains(raw, []byte(id)) {
				return true
			}
		}
	}
	return false
}

var _ sim.Repository = (*rig)(nil)

// running is how many pods of inflate run.
func (r *rig) running() int {
	n, _, _ := r.world.Pods("default", map[string]string{"app": "inflate"})
	return n
}

func (r *rig) instances() []port.Instance {
	r.t.Helper()
	r.world.SetFaults(nil)
	all, err := r.cloud.Instances(r.ctx)
	r.must(err)
	return all
}

var errCrash = errors.New("crash")
