package disruption

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/resources"
)

// caseFile is a small input with its right answer: testdata/cases/<id>/case.yaml.
// The instance types are those of commonTypes, or a ladder.
type caseFile struct {
	Time      time.Time          `json:"time"`
	NodePools []*karpv1.NodePool `json:"nodePools"`
	// Ladder is so many types t01, t02, … of 4 CPUs instead, each a cent dearer
	// than the last.
	Ladder int `json:"ladder"`
	// Offerings are prices that differ from the common ones; without a zone in
	// all of them.
	Offerings  []caseOffering                 `json:"offerings"`
	Nodes      []caseNode                     `json:"nodes"`
	Pods       []casePods                     `json:"pods"` // pending
	PDBs       []*cluster.PodDisruptionBudget `json:"pdbs"`
	SpotToSpot bool                           `json:"spotToSpot"`
	Denied     map[string]string              `json:"denied"`
	Most       int                            `json:"most"`
	// Validate is a command that waited; without it one is proposed.
	Validate *Previous `json:"validate"`
	Want     caseWant  `json:"want"`
	// Karpenter says where its answer is another one.
	Karpenter string `json:"karpenter"`
}

type caseOffering struct {
	Type         string `json:"type"`
	Zone         string `json:"zone"`
	CapacityType string `json:"capacityType"`
	Price        string `json:"price"`
}

// casePods are pods <name>-0, <name>-1 and so on.
type casePods struct {
	Count       int               `json:"count"`
	Name        string            `json:"name"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	// Owner is the kind of the controller; ReplicaSet unless set.
	Owner string `json:"owner"`
	// Started is how long ago the pod started; an hour unless set, never if
	// "-".
	Started     string         `json:"started"`
	Terminating bool           `json:"terminating"`
	Unready     bool           `json:"unready"`
	Preempting  bool           `json:"preempting"`
	Spec        corev1.PodSpec `json:"spec"`
}

type caseNode struct {
	Name     string `json:"name"`
	NodePool string `json:"nodePool"` // empty: not ours
	Type     string `json:"type"`
	Zone     string `json:"zone"` // a unless set
	// CapacityType is on-demand unless set.
	CapacityType string            `json:"capacityType"`
	Annotations  map[string]string `json:"annotations"`
	Taints       []corev1.Taint    `json:"taints"`
	// Stage is "launched", "registered" or "" for initialized.
	Stage     string     `json:"stage"`
	NotReady  bool       `json:"notReady"`
	Deleting  bool       `json:"deleting"`
	Removing  string     `json:"removing"`
	Nominated []string   `json:"nominated"`
	Event     string     `json:"event"` // how long ago, an hour unless set
	Pods      []casePods `json:"pods"`
}

type caseWant struct {
	// Command is what is proposed, or left of what was; none if there is none.
	Command *wantCommand `json:"command"`
	// Dropped is a part of why a command is dropped.
	Dropped string `json:"dropped"`
	// Events are all, sorted by node; their messages are parts.
	Events []Blocked `json:"events"`
}

type wantCommand struct {
	Method       Method          `json:"method"`
	Reason       string          `json:"reason"`
	Nodes        []string        `json:"nodes"`
	Types        []string        `json:"types"`
	CapacityType string          `json:"capacityType"`
	Zone         string          `json:"zone"`
	Savings      string          `json:"savings"`
	Placements   []wantPlacement `json:"placements"`
}

type wantPlacement struct {
	Node string   `json:"node"`
	Pods []string `json:"pods"`
}

func TestCases(t *testing.T) {
	files, err := filepath.Glob("testdata/cases/*/case.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var c caseFile
			if err := yaml.UnmarshalStrict(b, &c); err != nil {
				t.Fatal(err)
			}
			c.run(t)
		})
	}
}

func (c *caseFile) run(t *testing.T) {
	in := c.input(t)
	if c.Validate == nil {
		cmd, events := propose(t, in)
		c.Want.compare(t, cmd, events)
		return
	}
	cmd, why, err := Validate(in, *c.Validate)
	if err != nil {
		t.Fatal(err)
	}
	if (why == "") != (cmd != nil) || !strings.Contains(why, c.Want.Dropped) {
		t.Errorf("dropped because %q, want %q", why, c.Want.Dropped)
	}
	if cmd != nil {
		if err := check(in, cmd); err != nil {
			t.Errorf("the command breaks a rule: %v", err)
		}
	}
	c.Want.compare(t, cmd, nil)
}

func (c *caseFile) input(t *testing.T) Input {
	for _, np := range c.NodePools {
		if np.Spec.Template.Spec.NodeClassRef == nil {
			np.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Name: "default"}
		}
		np.Spec.Disruption.ConsolidationPolicy = cmp.Or(np.Spec.Disruption.ConsolidationPolicy, karpv1.ConsolidationPolicyWhenEmptyOrUnderutilized)
	}
	types := c.types(t)
	s := &cluster.Snapshot{Time: t0, Budgets: c.PDBs}
	if !c.Time.IsZero() {
		s.Time = c.Time
	}
	for _, p := range c.Pods {
		s.Pending = append(s.Pending, p.pods(t, s.Time)...)
	}
	for _, n := range c.Nodes {
		s.Nodes = append(s.Nodes, n.node(t, types, s.Time))
	}
	slices.SortFunc(c.NodePools, func(a, b *karpv1.NodePool) int { return cmp.Compare(a.Name, b.Name) })
	return Input{
		Snapshot: s.Seal(), Fleet: &fleet.Fleet{NodePools: c.NodePools, Cluster: fleet.Cluster{Engine: fleet.EngineSettings{SpotToSpot: c.SpotToSpot}}},
		Types: map[string][]*catalog.InstanceType{"default": types}, Denied: c.Denied, Most: c.Most,
	}
}

func (c *caseFile) types(t *testing.T) []*catalog.InstanceType {
	types := commonTypes()
	if c.Ladder > 0 {
		types = nil
		for i := range c.Ladder {
			types = append(types, plainType(fmt.Sprintf("t%02d", i+1), 4, 8, resources.Price(10+i)*10_000_000))
		}
	}
	for _, o := range c.Offerings {
		price, err := resources.ParsePrice(o.Price)
		if err != nil {
			t.Fatal(err)
		}
		it := typeNamed(types, o.Type)
		for i := range it.Offerings {
			f := &it.Offerings[i]
			if f.CapacityType == o.CapacityType && (o.Zone == "" || f.Zone == o.Zone) {
				f.Price = price
			}
		}
	}
	return types
}

func (p casePods) pods(t *testing.T, now time.Time) []*cluster.Pod {
	ago, err := time.ParseDuration(cmp.Or(strings.Trim(p.Started, "-"), "1h"))
	if err != nil {
		t.Fatal(err)
	}
	yes := true
	var out []*cluster.Pod
	for i := range p.Count {
		pod := cluster.NewPod(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", Name: fmt.Sprintf("%s-%d", p.Name, i), Labels: p.Labels, Annotations: p.Annotations,
				OwnerReferences: []metav1.OwnerReference{{Kind: cmp.Or(p.Owner, "ReplicaSet"), Name: p.Name, Controller: &yes}},
			},
			Spec: p.Spec,
		})
		if p.Started != "-" {
			pod.Started = now.Add(-ago)
		}
		pod.Terminating, pod.Unready, pod.Preempting = p.Terminating, p.Unready, p.Preempting
		out = append(out, pod)
	}
	return out
}

func (n caseNode) node(t *testing.T, types []*catalog.InstanceType, now time.Time) *cluster.Node {
	ago, err := time.ParseDuration(cmp.Or(n.Event, "1h"))
	if err != nil {
		t.Fatal(err)
	}
	var pods []*cluster.Pod
	for _, p := range n.Pods {
		pods = append(pods, p.pods(t, now)...)
	}
	np := nodePool(n.NodePool)
	out := nodeOf(n.Name, np, typeNamed(types, n.Type), cmp.Or(n.Zone, "a"), cmp.Or(n.CapacityType, "on-demand"), pods)
	out.Annotations, out.Taints, out.Ready = n.Annotations, n.Taints, !n.NotReady
	out.Deleting, out.Removing, out.Nominated = n.Deleting, n.Removing, n.Nominated
	if n.NodePool == "" {
		out.Claim = nil
		delete(out.Labels, karpv1.NodePoolLabelKey)
		return out
	}
	out.Claim.LastPodEvent = now.Add(-ago)
	switch n.Stage {
	case "launched":
		out.Claim.Conditions.Registered = false
		out.Name, out.Labels, out.Allocatable = "", nil, nil
		fallthrough
	case "registered":
		out.Claim.Conditions.Initialized, out.Claim.Conditions.InitializedAt = false, time.Time{}
	}
	return out
}

func podNames(pods []*cluster.Pod) []string {
	var out []string
	for _, p := range pods {
		out = append(out, p.Name)
	}
	slices.Sort(out)
	return out
}

func (w *caseWant) compare(t *testing.T, cmd *Command, events []Blocked) {
	t.Helper()
	var got *wantCommand
	if cmd != nil {
		got = &wantCommand{Method: cmd.Method, Reason: cmd.Reason, Nodes: slices.Sorted(slices.Values(cmd.Keys())), Savings: cmd.Savings.Decimal()}
		for _, c := range cmd.Claims {
			for _, it := range c.Types {
				got.Types = append(got.Types, it.Name)
			}
			if w.Command != nil && w.Command.CapacityType != "" {
				got.CapacityType = strings.Join(c.Requirements.Get(karpv1.CapacityTypeLabelKey).Values(), ",")
			}
			if w.Command != nil && w.Command.Zone != "" {
				got.Zone = c.Offering.Zone
			}
		}
		for _, p := range cmd.Placements {
			got.Placements = append(got.Placements, wantPlacement{Node: p.Node, Pods: podNames(p.Pods)})
		}
	}
	if diff := gocmp.Diff(w.Command, got); diff != "" {
		t.Errorf("command (-want +got):\n%s", diff)
	}
	for i := range min(len(events), len(w.Events)) {
		if strings.Contains(events[i].Message, w.Events[i].Message) {
			events[i].Message = w.Events[i].Message
		}
	}
	if diff := gocmp.Diff(w.Events, events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}
