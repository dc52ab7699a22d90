// Package awse2e_test runs the whole pipeline with the production client of AWS
// against the endpoint that speaks AWS's wire protocols, in virtual time: what
// the demo wires, under load and under faults.
package awse2e_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/examples"
	"github.com/reeve-project/reeve/reconciler/aws"
	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/gitrepo"
	"github.com/reeve-project/reeve/reconciler/ledger"
	"github.com/reeve-project/reeve/reconciler/pipeline"
	"github.com/reeve-project/reeve/reconciler/replay"
	"github.com/reeve-project/reeve/reconciler/sim"
	"github.com/reeve-project/reeve/reconciler/sim/awsapi"
	"github.com/reeve-project/reeve/reconciler/spec"
)

const (
	clusterName = "myeks"
	region      = "ap-northeast-2"
	poolsFile   = "clusters/myeks/nodepools.cue"
	classesFile = "clusters/myeks/nodeclasses.cue"
	clusterFile = "clusters/myeks/cluster.cue"
)

var noon = time.Date(2026, 4, 6, 12, 0, 0, 0, time.UTC)

// rig is a simulated cluster and account with a real repository and the real
// pipeline and client of AWS between them.
type rig struct {
	tb      testing.TB
	ctx     context.Context
	repo    string
	world   *sim.World
	api     *sim.Cluster
	spool   *sim.Spool
	account *awsapi.Endpoint
	cloud   *aws.Cloud

	author *gitrepo.Repo
	files  map[string][]byte
	tip    gitrepo.Hash

	pipeline  *pipeline.Pipeline
	decisions []*decision.Decision
	steps     map[string][]decision.Step
	errs      []error
	// seen is told of everything, after it was noted.
	seen func(pipeline.Event)

	// claims is how many claims each recorded decision has, and launched how
	// many instances were launched in its name.
	claims   map[string]int
	launched map[string]int
	wrong    []string
	// boot is how instances start from now on.
	boot sim.Boot
	// callTimeout of the client; its default unless set.
	callTimeout time.Duration
	// rewrite changes what the endpoint answers to a call; nil for nothing.
	rewrite func(action string, answer []byte) []byte
	// step is how much time lies between two passes; a second unless set.
	step time.Duration
}

// newRig is a cluster with the fleet of the example, whose files may be
// replaced, a repository that nothing was pushed to, and no leader.
func newRig(tb testing.TB, files map[string]string, workloads ...sim.Object) *rig {
	tb.Helper()
	tb.Setenv("GIT_CONFIG_GLOBAL", "/dev/null")
	tb.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	r := &rig{
		tb: tb, ctx: context.Background(), repo: filepath.Join(tb.TempDir(), "fleet.git"), files: map[string][]byte{},
		steps: map[string][]decision.Step{}, claims: map[string]int{}, launched: map[string]int{},
	}
	r.must(gitrepo.InitBare(r.repo, "main"))
	r.must(gitrepo.Unsynced(r.repo))
	r.author = r.open()
	r.world = sim.NewWorld(sim.Options{Start: noon})
	r.api, r.spool = sim.NewCluster(r.world), sim.NewSpool(r.world)
	data, err := catalog.Embedded(region)
	r.must(err)
	r.account, err = awsapi.New(r.world, awsapi.Options{
		Cluster: clusterName, Catalog: data, Releases: map[string][]string{"al2023": {"v20260318"}},
		Boot: func(awsapi.Instance) sim.Boot { return r.boot },
	})
	r.must(err)
	r.account.OnState(r.entered)
	for _, o := range workloads {
		r.must(r.world.Apply(o))
	}
	r.readExample(files)
	return r
}

func (r *rig) readExample(files map[string]string) {
	r.tb.Helper()
	example := examples.MyEKS()
	r.must(fs.WalkDir(example, ".", func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			r.files[path], err = fs.ReadFile(example, path)
		}
		return err
	}))
	for name, content := range files {
		r.files[name] = []byte(content)
	}
}

// start pushes the fleet and begins a leader.
func (r *rig) start() *rig {
	r.tb.Helper()
	r.push("Begin", nil)
	r.lead()
	return r
}

// entered notes each launch: it has to be recorded, and no decision may launch
// more than it has claims.
func (r *rig) entered(in awsapi.Instance) {
	if in.Managed || in.State != "pending" {
		return
	}
	id := in.Tags["reeve.dev/decision"]
	r.launched[id]++
	if n, recorded := r.claims[id]; !recorded || r.launched[id] > n {
		r.wrong = append(r.wrong, fmt.Sprintf("instance %d of decision %q is launched, which has %d claims (recorded: %t)", r.launched[id], id, n, recorded))
	}
}

func cpu(q string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(q)}
}

func (r *rig) must(err error) {
	r.tb.Helper()
	if err != nil {
		r.tb.Fatal(err)
	}
}

func (r *rig) open() *gitrepo.Repo {
	r.tb.Helper()
	repo, err := gitrepo.Open(r.repo, gitrepo.Options{})
	r.must(err)
	return repo
}

// client is the production client. The SDK repeats calls as it does by default,
// but does not wait in between: its waits are in real time.
func (r *rig) client() *aws.Cloud {
	r.tb.Helper()
	cloud, err := aws.New(sdk.Config{
		Region: region, HTTPClient: &http.Client{Transport: rewriter{r, r.account.HTTPClient().Transport}},
		Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
		Retryer: func() sdk.Retryer {
			return retry.NewStandard(func(o *retry.StandardOptions) {
				o.RateLimiter = ratelimit.None
				o.Backoff = retry.BackoffDelayerFunc(func(int, error) (time.Duration, error) { return 0, nil })
			})
		},
	}, aws.Options{
		Cluster: clusterName, Region: region, KubernetesVersion: "1.34", Queue: clusterName,
		Clock: r.world.Clock, Log: slog.New(slog.DiscardHandler), CallTimeout: r.callTimeout,
	})
	r.must(err)
	return cloud
}

// rewriter hands the answers to calls of EC2 to the rig's rewrite.
type rewriter struct {
	r    *rig
	next http.RoundTripper
}

func (w rewriter) RoundTrip(req *http.Request) (*http.Response, error) {
	if w.r.rewrite == nil || req.Body == nil {
		return w.next.RoundTrip(req)
	}
	sent, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	req.Body = io.NopCloser(bytes.NewReader(sent))
	res, err := w.next.RoundTrip(req)
	form, bad := url.ParseQuery(string(sent))
	if err != nil || bad != nil || form.Get("Action") == "" {
		return res, err
	}
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	answer = w.r.rewrite(form.Get("Action"), answer)
	res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(answer)), int64(len(answer))
	res.Header.Set("Content-Length", strconv.Itoa(len(answer)))
	return res, nil
}

// lead begins a new leader with a new client; the one before is forgotten as if
// it had crashed.
func (r *rig) lead() {
	r.tb.Helper()
	r.cloud = r.client()
	specs := r.open()
	led, err := ledger.Open(r.ctx, ledger.Options{Cluster: clusterName, Repo: r.open(), Specs: specs, Spool: r.spool}, r.world.Now())
	r.must(err)
	r.pipeline = pipeline.New(pipeline.Deps{
		Specs:   spec.NewRepository(specs, "main", spec.Options{Cluster: clusterName}),
		Cluster: r.api, Cloud: r.cloud, Queue: r.cloud.Queue(), Ledger: led, Clock: r.world.Clock, Log: slog.New(slog.DiscardHandler),
	}, pipeline.Options{Cluster: clusterName, Identity: "test", PullInterval: 10 * time.Second, Observer: r.observe})
	r.must(r.pipeline.Start(r.ctx))
}

func (r *rig) observe(e pipeline.Event) {
	switch {
	case e.Err != nil:
		r.errs = append(r.errs, e.Err)
	case e.Step != nil:
		r.steps[e.Decision.ID] = append(r.steps[e.Decision.ID], *e.Step)
	case e.Decision != nil:
		r.decisions = append(r.decisions, e.Decision)
		r.claims[e.Decision.ID] = len(e.Decision.Proposal.Claims)
	}
	if r.seen != nil {
		r.seen(e)
	}
}

// push commits the changes to the spec branch; an empty content removes the
// file.
func (r *rig) push(subject string, changes map[string]string) {
	r.tb.Helper()
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

// pass makes one pass and lets a second go by.
func (r *rig) pass() { r.passWithin(r.ctx) }

func (r *rig) passWithin(ctx context.Context) {
	r.tb.Helper()
	if err := r.pipeline.Pass(ctx); err != nil {
		r.errs = append(r.errs, err)
	}
	r.must(r.world.Clock.Advance(cmp.Or(r.step, time.Second)))
}

// run makes passes, one a second.
func (r *rig) run(d time.Duration) {
	r.tb.Helper()
	for end := r.world.Now().Add(d); r.world.Now().Before(end); {
		r.pass()
	}
}

// until makes passes until it is so, at most for the limit.
func (r *rig) until(what string, limit time.Duration, done func() bool) {
	r.tb.Helper()
	for end := r.world.Now().Add(limit); r.world.Now().Before(end); {
		r.pass()
		if done() {
			return
		}
	}
	r.tb.Fatalf("not within %s of virtual time: %s\ndecisions:\n%s\nerrors:\n%s", limit, what, r.told(), joined(r.errs))
}

// settled says whether nothing is open and no pod waits.
func (r *rig) settled() bool {
	_, starting, pending := r.world.Pods("default", nil)
	return !r.pipeline.Open() && starting+pending == 0
}

func (r *rig) settle(limit time.Duration) {
	r.tb.Helper()
	r.until("settled", limit, r.settled)
}

func (r *rig) running() int {
	n, _, _ := r.world.Pods("default", nil)
	return n
}

// told is what the last decisions and their outcomes say, for failures.
func (r *rig) told() string {
	var b strings.Builder
	for _, d := range r.decisions[max(0, len(r.decisions)-20):] {
		fmt.Fprintf(&b, "%s %s\n", d.Time.Format(time.TimeOnly), d.Summary)
		for _, s := range r.steps[d.ID][max(0, len(r.steps[d.ID])-5):] {
			fmt.Fprintf(&b, "    %s %s %s %s %s\n", s.Time.Format(time.TimeOnly), s.State, s.Claim, s.Instance, s.Message)
		}
	}
	return b.String()
}

// joined are the last errors, one a line.
func joined(errs []error) string {
	var lines []string
	for _, err := range errs[max(0, len(errs)-10):] {
		lines = append(lines, err.Error())
	}
	return strings.Join(lines, "\n")
}

// of are the decisions of the kind.
func (r *rig) of(k decision.Kind) []*decision.Decision {
	return slices.DeleteFunc(slices.Clone(r.decisions), func(d *decision.Decision) bool { return d.Kind != k })
}

// ours are the instances that run in the cluster's name, as EC2 has them.
func (r *rig) ours() []awsapi.Instance {
	return slices.DeleteFunc(r.account.Instances(), func(in awsapi.Instance) bool {
		return in.Managed || in.State != "pending" && in.State != "running"
	})
}

func (r *rig) nodeClaims() []*karpv1.NodeClaim { return sim.List[*karpv1.NodeClaim](r.world.API) }

// finish stops the leader and proves what must hold after any run: the ledger
// verifies and replays, every decision is closed, every instance and claim has
// its decision, and nothing was launched twice.
func (r *rig) finish() {
	r.tb.Helper()
	r.must(r.pipeline.Stop(r.ctx))
	r.sound()
	src := ledger.Source{Repo: r.repo}
	res, err := replay.Verify(r.ctx, src)
	r.must(err)
	for _, p := range res.Problems {
		r.tb.Errorf("verify: %v", p)
	}
	sum, err := replay.Run(r.ctx, src, nil, func(res replay.Result) error {
		if res.Verdict != replay.Same {
			r.tb.Errorf("replay: %s", res)
		}
		return nil
	})
	r.must(err)
	if sum.Same == 0 {
		r.tb.Error("nothing was replayed")
	}
}

// sound reports what must never be.
func (r *rig) sound() {
	r.tb.Helper()
	for _, w := range r.wrong {
		r.tb.Error(w)
	}
	if r.pipeline.Open() {
		r.tb.Errorf("decisions are open at the end:\n%s", r.told())
	}
	byInstance := map[string]string{}
	for _, nc := range r.nodeClaims() {
		if _, recorded := r.claims[nc.Annotations["reeve.dev/decision"]]; !recorded {
			r.tb.Errorf("NodeClaim %s has no decision", nc.Name)
		}
		id := nc.Status.ProviderID
		if other := byInstance[id]; id != "" && other != "" {
			r.tb.Errorf("%s and %s have the same instance %s", other, nc.Name, id)
		}
		byInstance[id] = nc.Name
	}
	for _, in := range r.ours() {
		if byInstance[in.ProviderID] == "" {
			r.tb.Errorf("instance %s of decision %s has no NodeClaim", in.ID, in.Tags["reeve.dev/decision"])
		}
	}
}
