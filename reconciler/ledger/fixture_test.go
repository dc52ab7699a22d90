package ledger

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/gitrepo"
	"github.com/reeve-project/reeve/reconciler/port"
	"github.com/reeve-project/reeve/reconciler/resources"
)

func TestMain(m *testing.M) {
	os.Setenv("GIT_CONFIG_GLOBAL", "/dev/null")
	os.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	os.Exit(m.Run())
}

const branch = "reeve/myeks"

var (
	ctx  = context.Background()
	noon = time.Date(2026, 4, 6, 12, 0, 0, 0, time.UTC)
)

// memSpool is a port.Spool in memory that can be made to fail.
type memSpool struct {
	mu   sync.Mutex
	data map[string][]byte
	fail error
}

func newSpool() *memSpool { return &memSpool{data: map[string][]byte{}} }

func (s *memSpool) Put(_ context.Context, key string, b []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return s.fail
	}
	s.data[key] = slices.Clone(b)
	return nil
}

func (s *memSpool) List(context.Context) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.data)), s.fail
}

func (s *memSpool) Get(_ context.Context, key string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.data[key], s.fail
}

func (s *memSpool) Delete(_ context.Context, key string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.data, key)
	return s.fail
}

func (s *memSpool) entries() int {
	n := 0
	for k := range s.data {
		if strings.HasPrefix(k, entryPrefix) {
			n++
		}
	}
	return n
}

// stage is a remote with a spec branch, and a spool.
type stage struct {
	t     testing.TB
	dir   string
	specs *gitrepo.Repo
	spool *memSpool
	fleet []string // trees of the spec commits
	spec  []string
	now   time.Time
	// outcomes as they have been recorded.
	outcomes map[string]*decision.Outcome
}

func newStage(t testing.TB) *stage {
	t.Helper()
	s := &stage{t: t, dir: filepath.Join(t.TempDir(), "fleet.git"), spool: newSpool(), now: noon, outcomes: map[string]*decision.Outcome{}}
	must(t, gitrepo.InitBare(s.dir, "main"))
	s.specs = s.repo()
	s.pushSpec("a")
	return s
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func get[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		must(t, err)
		return v
	}
}

func (s *stage) repo() *gitrepo.Repo {
	s.t.Helper()
	return get(gitrepo.Open(s.dir, gitrepo.Options{}))(s.t)
}

// pushSpec pushes a fleet with a content to the spec branch.
func (s *stage) pushSpec(content string) {
	s.t.Helper()
	h := s.push(s.specs, "main", "clusters/myeks/fleet.cue", content)
	s.spec = append(s.spec, h.String())
	s.fleet = append(s.fleet, get(s.specs.TreeID(h))(s.t).String())
}

// push puts a file on a branch as anybody could.
func (s *stage) push(r *gitrepo.Repo, branch, path, content string) gitrepo.Hash {
	s.t.Helper()
	var tree gitrepo.Hash
	var parents []gitrepo.Hash
	heads, err := r.Fetch(ctx, branch, 1)
	if err == nil {
		tree, parents = get(r.TreeID(heads.New))(s.t), []gitrepo.Hash{heads.New}
	} else if !errors.Is(err, gitrepo.ErrBranchMissing) {
		s.t.Fatal(err)
	}
	ed := get(r.Edit(tree))(s.t)
	must(s.t, ed.Set(path, []byte(content)))
	h := get(r.WriteCommit(gitrepo.Commit{Tree: get(ed.Write())(s.t), Parents: parents, Message: "By hand\n"}, nil))(s.t)
	must(s.t, r.Push(ctx, branch, heads.New, h))
	return h
}

func (s *stage) options() Options {
	return Options{Cluster: "myeks", Repo: s.repo(), Specs: s.specs, Spool: s.spool, SkipCI: true}
}

// open opens a ledger without a handover.
func (s *stage) open() *Ledger {
	s.t.Helper()
	return get(Open(ctx, s.options(), s.now))(s.t)
}

// lead opens a ledger and takes over.
func (s *stage) lead() *Ledger {
	s.t.Helper()
	l := s.open()
	must(s.t, s.handover(l))
	must(s.t, l.Push(ctx, s.tick(), true))
	return l
}

func (s *stage) handover(l *Ledger) error {
	d := sealed(s.t, &decision.Decision{
		Kind: decision.Handover, Time: s.tick(), Summary: fmt.Sprintf("handover: epoch %d", l.Epoch()),
		Proposal: decision.Proposal{Handover: &decision.Leader{Epoch: l.Epoch(), Previous: l.Epoch() - 1, Identity: "pod-1"}},
	})
	return l.Append(ctx, port.Entry{Time: s.now, Decisions: []*decision.Decision{d}, Outcomes: []*decision.Outcome{outcome(d, s.now, decision.Applied)}})
}

// tick lets a second pass.
func (s *stage) tick() time.Time {
	s.now = s.now.Add(time.Second)
	return s.now
}

func sealed(t testing.TB, d *decision.Decision) *decision.Decision {
	t.Helper()
	d.Cluster, d.Engine, d.Verdict.Allowed = "myeks", decision.CurrentEngine(), d.Kind != decision.Reject && len(d.Verdict.Violations) == 0
	if d.Mode == "" {
		d.Mode = fleet.Enforce
	}
	if d.Summary == "" {
		d.Summary = string(d.Kind)
	}
	must(t, d.Seal())
	return d
}

func outcome(d *decision.Decision, at time.Time, states ...decision.State) *decision.Outcome {
	o := decision.NewOutcome(d.ID)
	subjects := d.Subjects()
	for _, st := range states {
		if len(subjects) == 0 {
			o.Advance(nil, decision.Step{Time: at, State: st})
		}
		for _, c := range subjects {
			o.Advance(subjects, decision.Step{Time: at, State: st, Claim: c})
		}
	}
	return o
}

var rego = map[string][]byte{"shipped/ami.rego": []byte("package reeve.spec\n"), "fleet/policies/x.rego": []byte("package reeve.decision\n")}

func (s *stage) inputs(n int) port.Inputs {
	return port.Inputs{FleetTree: s.fleet[n], Policies: rego, Catalog: prices(s.t)}
}

var theCatalog *catalog.Data

func prices(t testing.TB) *catalog.Data {
	t.Helper()
	if theCatalog == nil {
		theCatalog = get(catalog.Embedded("ap-northeast-2"))(t)
	}
	return theCatalog
}

// judgeSpec records the accept or reject of the n-th spec commit.
func (s *stage) judgeSpec(l *Ledger, kind decision.Kind, n int) *decision.Decision {
	s.t.Helper()
	d := sealed(s.t, &decision.Decision{
		Kind: kind, Time: s.tick(), Inputs: decision.Inputs{SpecCommit: s.spec[n], Policies: "sha256:aa"},
		Proposal: decision.Proposal{Spec: &decision.SpecChange{Branch: "main", Commit: s.spec[n], Tree: s.fleet[n], Author: "A", Subject: "Change"}},
	})
	must(s.t, l.Append(ctx, port.Entry{
		Time: s.now, Decisions: []*decision.Decision{d}, Inputs: s.inputs(0),
		Proposed: &port.Proposed{FleetTree: s.fleet[n], Policies: rego},
	}))
	return d
}

// accept records the accept of the n-th spec commit and its outcome.
func (s *stage) accept(l *Ledger, n int) *decision.Decision {
	s.t.Helper()
	d := s.judgeSpec(l, decision.Accept, n)
	s.advance(l, d, decision.Applied)
	return d
}

func (s *stage) advance(l *Ledger, d *decision.Decision, states ...decision.State) {
	s.t.Helper()
	o := s.outcomes[d.ID]
	if o == nil {
		o = decision.NewOutcome(d.ID)
		s.outcomes[d.ID] = o
	}
	s.tick()
	for _, st := range states {
		for _, c := range append(d.Subjects(), "")[:max(1, len(d.Subjects()))] {
			o.Advance(d.Subjects(), decision.Step{Time: s.now, State: st, Claim: c})
		}
	}
	must(s.t, l.Append(ctx, port.Entry{Time: s.now, Outcomes: []*decision.Outcome{o.Clone()}}))
}

func (s *stage) provision(pool string) *decision.Decision {
	s.t.Helper()
	lists := map[string][]string{}
	var names []string
	for i := range 20 {
		names = append(names, fmt.Sprintf("c5a.%02dxlarge", i))
	}
	c := prices(s.t)
	return sealed(s.t, &decision.Decision{
		Kind: decision.Provision, Time: s.tick(), Summary: "provision(" + pool + "): 1 × c5a.2xlarge for 2 pods",
		Inputs: decision.Inputs{SpecCommit: s.spec[0], Policies: "sha256:aa", Types: c.TypesDigest(), Prices: c.PricesDigest()},
		Proposal: decision.Proposal{NodePool: pool, Cost: 344_000_000, Lists: lists, Claims: []decision.Claim{{
			NodePool: pool, NodeClass: "default", InstanceType: "c5a.2xlarge", Zone: "ap-northeast-2a", CapacityType: "on-demand",
			Price: 344_000_000, Launchable: decision.NewTypeSet(names, lists), Requests: resources.List{"cpu": 2150},
			Pods: []decision.PodGroup{{Shape: "web-x", Namespace: "default", Names: []string{"web-a", "web-b"}}},
		}}},
	})
}

// pass records decisions with a snapshot that has n nodes, and the claims of
// earlier decisions.
func (s *stage) pass(l *Ledger, nodes int, ds []*decision.Decision, earlier ...*decision.Decision) {
	s.t.Helper()
	snap := snapshot(s.now, nodes, earlier...)
	snap.Recent = l.Recent(s.now)
	must(s.t, l.Append(ctx, port.Entry{Time: s.now, Snapshot: snap, Decisions: ds, Inputs: s.inputs(0)}))
}

func shape(owner string, cpu int64) *cluster.Shape {
	grace := int64(30)
	return (&cluster.Shape{
		Namespace: "default", Owner: cluster.Owner{Kind: "ReplicaSet", Name: owner}, Labels: map[string]string{"app": owner},
		Requests: resources.List{"cpu": cpu, "pods": 1}, NodeSelector: map[string]string{"kubernetes.io/arch": "amd64"},
		Tolerations: []corev1.Toleration{{Key: "x", Operator: corev1.TolerationOpExists}},
		HostPorts:   []cluster.HostPort{{IP: "0.0.0.0", Port: 80, Protocol: corev1.ProtocolTCP}},
		Claims:      []string{"data"}, GracePeriodSeconds: &grace, Priority: 7,
	}).Sealed()
}

func pod(name string, sh *cluster.Shape) *cluster.Pod {
	return &cluster.Pod{Namespace: "default", Name: name, UID: "uid-" + name, Created: noon.Add(-time.Hour), Started: noon.Add(-time.Minute), Shape: sh}
}

// snapshot is a cluster with everything in it.
func snapshot(at time.Time, nodes int, claims ...*decision.Decision) *cluster.Snapshot {
	web, ds := shape("web", 1000), shape("agent", 150)
	s := &cluster.Snapshot{
		Time:        at,
		Pending:     []*cluster.Pod{pod("web-pending", web), {Namespace: "default", Name: "web-new", Terminating: true, Shape: web}},
		DaemonSets:  []*cluster.DaemonSet{{Namespace: "kube-system", Name: "agent", Shape: ds}},
		NodeClasses: []*cluster.NodeClassStatus{{Name: "default", Status: ec2v1.EC2NodeClassStatus{InstanceProfile: "p", AMIs: []ec2v1.AMI{{ID: "ami-1", Name: "al2023"}}}}},
		Unavailable: []cluster.Unavailable{{InstanceType: "m5.large", Zone: "ap-northeast-2a", CapacityType: "spot", Until: at.Add(time.Minute)}},
	}
	for i := range nodes {
		s.Nodes = append(s.Nodes, node(i, web, ds))
	}
	for _, d := range claims {
		for _, c := range d.Proposal.Claims {
			s.Nodes = append(s.Nodes, &cluster.Node{Claim: &cluster.Claim{Name: c.Name, NodePool: c.NodePool, NodeClass: c.NodeClass, Created: at, Decision: d.ID, Index: c.Index}})
		}
	}
	return s.Seal()
}

func node(i int, web, ds *cluster.Shape) *cluster.Node {
	name := fmt.Sprintf("ip-10-0-%d-%d.ap-northeast-2.compute.internal", i/250, i%250)
	return &cluster.Node{
		Name: name, ProviderID: fmt.Sprintf("aws:///ap-northeast-2a/i-%08d", i), Ready: true,
		Labels: map[string]string{"kubernetes.io/hostname": name, "x": "<y>"}, Annotations: map[string]string{"a": "b"},
		Taints: []corev1.Taint{{Key: "k", Value: "v", Effect: corev1.TaintEffectNoSchedule}}, Nominated: []string{"default/web-pending"},
		Capacity: resources.List{"cpu": 8000, "memory": 16 << 30}, Allocatable: resources.List{"cpu": 7910, "memory": 15<<30 + 1},
		Pods: []*cluster.Pod{pod(fmt.Sprintf("web-%d", i), web), pod(fmt.Sprintf("agent-%d", i), ds)},
	}
}

// git runs git in the remote.
func (s *stage) git(args ...string) string {
	s.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = s.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func (s *stage) source() Source { return Source{Repo: s.dir} }

// proved checks the branch from outside: git's own check, and Verify.
func (s *stage) proved() *Result {
	s.t.Helper()
	s.git("fsck", "--strict", "--full")
	res := get(Verify(ctx, s.source()))(s.t)
	for _, p := range res.Problems {
		s.t.Error(p)
	}
	return res
}
