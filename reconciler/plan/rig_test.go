package plan

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/reeve-project/reeve/examples"
	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/gitrepo"
	"github.com/reeve-project/reeve/reconciler/kube/dump"
	"github.com/reeve-project/reeve/reconciler/ledger"
	"github.com/reeve-project/reeve/reconciler/pipeline"
	"github.com/reeve-project/reeve/reconciler/sim"
	"github.com/reeve-project/reeve/reconciler/spec"
)

var (
	ctx  = context.Background()
	noon = time.Date(2026, 4, 6, 12, 0, 0, 0, time.UTC)
)

// rig is a simulated cluster that a real pipeline runs, with all its objects to
// be printed as kubectl would.
type rig struct {
	t        *testing.T
	repo     string
	world    *sim.World
	cloud    *sim.Cloud
	pipeline *pipeline.Pipeline
	author   *gitrepo.Repo
	files    map[string][]byte
	tip      gitrepo.Hash
	// made are the decisions, printed the objects as they were when each was
	// made.
	made    []*decision.Decision
	printed [][]byte
}

func newRig(t *testing.T) *rig {
	t.Helper()
	t.Setenv("GIT_CONFIG_GLOBAL", "/dev/null")
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	r := &rig{t: t, repo: filepath.Join(t.TempDir(), "fleet.git"), files: map[string][]byte{}}
	must(t, gitrepo.InitBare(r.repo, "main"))
	r.author = r.open()
	r.world = sim.NewWorld(sim.Options{Start: noon})
	data, err := catalog.Embedded("ap-northeast-2")
	must(t, err)
	r.cloud, err = sim.NewCloud(r.world, sim.CloudOptions{Cluster: "myeks", Catalog: data, Releases: map[string][]string{"al2023": {"v20260318"}}})
	must(t, err)
	_, err = r.cloud.AddManaged("system", "m5.large", "ap-northeast-2a")
	must(t, err)
	controller := sim.NewDeployment("kube-system", "reeve", 1, cpu("1"))
	controller.Spec.Template.Labels["app.kubernetes.io/name"] = "reeve"
	for _, o := range []sim.Object{sim.NewDaemonSet("kube-proxy", cpu("150m")), sim.NewDeployment("default", "inflate", 0, cpu("1")), controller} {
		must(t, r.world.Apply(o))
	}
	must(t, fs.WalkDir(examples.MyEKS(), ".", func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			r.files[path], err = fs.ReadFile(examples.MyEKS(), path)
		}
		return err
	}))
	r.push("Describe the fleet")
	r.lead()
	r.until("the fleet is accepted", func() bool { return r.pipeline.Fleet() != nil && !r.pipeline.Open() })
	return r
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func cpu(q string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(q)}
}

func (r *rig) open() *gitrepo.Repo {
	r.t.Helper()
	repo, err := gitrepo.Open(r.repo, gitrepo.Options{})
	must(r.t, err)
	return repo
}

func (r *rig) lead() {
	r.t.Helper()
	specs := r.open()
	led, err := ledger.Open(ctx, ledger.Options{Cluster: "myeks", Repo: r.open(), Specs: specs, Spool: sim.NewSpool(r.world)}, r.world.Now())
	must(r.t, err)
	r.pipeline = pipeline.New(pipeline.Deps{
		Specs:   spec.NewRepository(specs, "main", spec.Options{Cluster: "myeks"}),
		Cluster: sim.NewCluster(r.world), Cloud: r.cloud, Ledger: led, Clock: r.world.Clock, Log: slog.New(slog.DiscardHandler),
	}, pipeline.Options{Cluster: "myeks", Identity: "test", PullInterval: 10 * time.Second, Observer: r.observe})
	must(r.t, r.pipeline.Start(ctx))
}

func (r *rig) observe(e pipeline.Event) {
	if e.Decision != nil && e.Step == nil {
		r.made, r.printed = append(r.made, e.Decision), append(r.printed, r.print())
	}
}

// push commits the files, with the changes, to the spec branch.
func (r *rig) push(subject string, changes ...string) {
	r.t.Helper()
	for i := 0; i+1 < len(changes); i += 2 {
		r.files[changes[i]] = []byte(changes[i+1])
	}
	ed, err := r.author.Edit(gitrepo.Hash{})
	must(r.t, err)
	for name, content := range r.files {
		must(r.t, ed.Set(name, content))
	}
	tree, err := ed.Write()
	must(r.t, err)
	sig := gitrepo.Signature{Name: "dev", Email: "dev@example.com", When: r.world.Now()}
	c := gitrepo.Commit{Tree: tree, Author: sig, Committer: sig, Message: subject + "\n"}
	if !r.tip.IsZero() {
		c.Parents = []gitrepo.Hash{r.tip}
	}
	next, err := r.author.WriteCommit(c, nil)
	must(r.t, err)
	must(r.t, r.author.Push(ctx, "main", r.tip, next))
	r.tip = next
}

// changed is a file of the fleet with one place changed.
func (r *rig) changed(name, from, to string) string {
	r.t.Helper()
	s := string(r.files[name])
	if strings.Count(s, from) != 1 {
		r.t.Fatalf("%q stands %d times in %s:\n%s", from, strings.Count(s, from), name, s)
	}
	return strings.Replace(s, from, to, 1)
}

// until makes a pass each second until it is done, for at most ten minutes.
func (r *rig) until(what string, done func() bool) {
	r.t.Helper()
	for range 600 {
		must(r.t, r.pipeline.Pass(ctx))
		must(r.t, r.world.Clock.Advance(time.Second))
		if done() {
			return
		}
	}
	r.t.Fatalf("ten minutes have passed, and not yet: %s", what)
}

// scale sets the replicas of inflate and waits until they run.
func (r *rig) scale(replicas int) {
	r.t.Helper()
	must(r.t, r.world.Scale("default/inflate", int32(replicas)))
	r.until("the replicas run", func() bool {
		running, starting, pending := r.world.Pods("default", map[string]string{"app": "inflate"})
		return running == replicas && starting+pending == 0 && !r.pipeline.Open()
	})
}

// find is the newest decision of the kind that matches, with the objects as
// they were when it was made.
func (r *rig) find(k decision.Kind, match func(*decision.Decision) bool) (*decision.Decision, []byte) {
	for i := len(r.made) - 1; i >= 0; i-- {
		if d := r.made[i]; d.Kind == k && match(d) {
			return d, r.printed[i]
		}
	}
	return nil, nil
}

// print is everything that the API server holds as kubectl get -o json has it.
func (r *rig) print() []byte {
	r.t.Helper()
	api := r.world.API
	var items []json.RawMessage
	add := func(apiVersion, kind string, o any) {
		b, err := json.Marshal(o)
		must(r.t, err)
		var m map[string]any
		must(r.t, json.Unmarshal(b, &m))
		m["apiVersion"], m["kind"] = apiVersion, kind
		b, err = json.Marshal(m)
		must(r.t, err)
		items = append(items, b)
	}
	for _, o := range sim.List[*corev1.Namespace](api) {
		add("v1", "Namespace", o)
	}
	for _, o := range sim.List[*corev1.Pod](api) {
		add("v1", "Pod", o)
	}
	for _, o := range sim.List[*corev1.Node](api) {
		add("v1", "Node", o)
	}
	for _, o := range sim.List[*appsv1.DaemonSet](api) {
		add("apps/v1", "DaemonSet", o)
	}
	for _, o := range sim.List[*karpv1.NodeClaim](api) {
		add("karpenter.sh/v1", "NodeClaim", o)
	}
	for _, o := range r.classes() {
		add("karpenter.k8s.aws/v1", "EC2NodeClass", o)
	}
	b, err := json.MarshalIndent(map[string]any{"apiVersion": "v1", "kind": "List", "items": items}, "", "    ")
	must(r.t, err)
	return b
}

// classes are the EC2NodeClasses of the fleet with their status.
func (r *rig) classes() []*ec2v1.EC2NodeClass {
	r.t.Helper()
	f := r.pipelineFleet()
	var out []*ec2v1.EC2NodeClass
	for _, class := range f {
		c := class.DeepCopy()
		status, err := r.cloud.ResolveNodeClass(ctx, class)
		must(r.t, err)
		c.Status = status
		out = append(out, c)
	}
	return out
}

func (r *rig) pipelineFleet() []*ec2v1.EC2NodeClass {
	if r.pipeline == nil || r.pipeline.Fleet() == nil {
		return nil
	}
	return r.pipeline.Fleet().NodeClasses
}

// asSource is the objects as one input.
func asSource(b []byte) dump.Source {
	return dump.Source{Name: "cluster.json", Reader: bytes.NewReader(b)}
}

func asYAML(t *testing.T, b []byte) dump.Source {
	t.Helper()
	y, err := yaml.JSONToYAML(b)
	must(t, err)
	return dump.Source{Name: "cluster.yaml", Reader: bytes.NewReader(y)}
}
