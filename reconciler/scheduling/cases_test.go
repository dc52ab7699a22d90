package scheduling

import (
	"cmp"
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
)

// caseFile is a small input with its right answer: testdata/cases/<id>/case.yaml.
// The instance types are those of commonTypes.
type caseFile struct {
	Time              time.Time                      `json:"time"`
	NodePools         []*karpv1.NodePool             `json:"nodePools"`
	NotReady          map[string]string              `json:"notReady"`
	DaemonSets        []casePods                     `json:"daemonSets"`
	Nodes             []caseNode                     `json:"nodes"`
	Pods              []casePods                     `json:"pods"`
	Unavailable       []cluster.Unavailable          `json:"unavailable"`
	ExcludedOfferings map[string][]OfferingExclusion `json:"excludedOfferings"`
	ExcludedPods      map[string]map[string]string   `json:"excludedPods"`
	Want              caseWant                       `json:"want"`
}

// casePods are pods <name>-0, <name>-1 and so on.
type casePods struct {
	Count  int               `json:"count"`
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels"`
	Spec   corev1.PodSpec    `json:"spec"`
	// Preempting pods are listed with the node that is being cleared for them.
	Preempting bool `json:"preempting"`
}

type caseNode struct {
	Name     string `json:"name"`
	NodePool string `json:"nodePool"` // empty: not ours
	Type     string `json:"type"`
	Zone     string `json:"zone"`
	// Stage is "launched", "registered" or "" for initialized.
	Stage         string         `json:"stage"`
	Taints        []corev1.Taint `json:"taints"`
	StartupTaints []corev1.Taint `json:"startupTaints"`
	Pods          []casePods     `json:"pods"`
	Nominated     []string       `json:"nominated"`
	Deleting      bool           `json:"deleting"`
	Removing      string         `json:"removing"`
}

type caseWant struct {
	Claims     []wantClaim     `json:"claims"`
	Placements []wantPlacement `json:"placements"`
	Unplaced   []wantUnplaced  `json:"unplaced"`
	// Nodes, Cost and Apart are for cases with several right answers: how many
	// claims, their price, and pods that are all on different ones.
	Nodes int      `json:"nodes"`
	Cost  string   `json:"cost"`
	Apart []string `json:"apart"`
}

type wantClaim struct {
	NodePool     string            `json:"nodePool"`
	Types        []string          `json:"types"`
	Pods         []string          `json:"pods"`
	Zone         string            `json:"zone"`
	CapacityType string            `json:"capacityType"`
	DaemonsCPU   string            `json:"daemonsCPU"`
	Labels       map[string]string `json:"labels"`
}

type wantPlacement struct {
	Node string   `json:"node"`
	Pods []string `json:"pods"`
}

type wantUnplaced struct {
	Reason  string   `json:"reason"`
	Message string   `json:"message"` // a part of it
	Rules   []string `json:"rules"`
	Pods    []string `json:"pods"`
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
			plan := solve(t, c.input(t))
			c.Want.compare(t, plan)
		})
	}
}

func (c *caseFile) input(t *testing.T) Input {
	for _, np := range c.NodePools {
		if np.Spec.Template.Spec.NodeClassRef == nil {
			np.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Name: "default"}
		}
	}
	s := &cluster.Snapshot{Time: t0, Unavailable: c.Unavailable}
	if !c.Time.IsZero() {
		s.Time = c.Time
	}
	for _, p := range c.Pods {
		s.Pending = append(s.Pending, p.pods()...)
	}
	for _, d := range c.DaemonSets {
		d.Count = 1
		s.DaemonSets = append(s.DaemonSets, &cluster.DaemonSet{Namespace: "default", Name: d.Name, Shape: d.pods()[0].Shape})
	}
	for _, n := range c.Nodes {
		s.Nodes = append(s.Nodes, n.node(t))
	}
	slices.SortFunc(c.NodePools, func(a, b *karpv1.NodePool) int { return cmp.Compare(a.Name, b.Name) })
	return Input{
		Snapshot: s.Seal(), Fleet: &fleet.Fleet{NodePools: c.NodePools}, NotReady: c.NotReady,
		Types:      map[string][]*catalog.InstanceType{"default": commonTypes()},
		Exclusions: Exclusions{Offerings: c.ExcludedOfferings, Pods: c.ExcludedPods},
	}
}

func (p casePods) pods() []*cluster.Pod {
	var out []*cluster.Pod
	for i := range p.Count {
		out = append(out, cluster.NewPod(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: p.Name + "-" + string(rune('0'+i)), Labels: p.Labels},
			Spec:       p.Spec,
		}))
		out[i].Preempting = p.Preempting
	}
	return out
}

func (n caseNode) node(t *testing.T) *cluster.Node {
	var it *catalog.InstanceType
	for _, c := range commonTypes() {
		if c.Name == n.Type {
			it = c
		}
	}
	if it == nil {
		t.Fatalf("node %s: there is no type %s", n.Name, n.Type)
	}
	labels := it.Requirements.Labels()
	labels[corev1.LabelTopologyZone], labels[capacityTypeLabel], labels[corev1.LabelHostname] = n.Zone, "on-demand", n.Name
	out := &cluster.Node{Name: n.Name, Labels: labels, Taints: n.Taints, Ready: true, Capacity: it.Capacity, Allocatable: it.Allocatable, Nominated: n.Nominated, Deleting: n.Deleting, Removing: n.Removing}
	for _, p := range n.Pods {
		out.Pods = append(out.Pods, p.pods()...)
	}
	if n.NodePool == "" {
		return out
	}
	labels[nodePoolLabel] = n.NodePool
	out.Claim = &cluster.Claim{
		Name: n.Name, NodePool: n.NodePool, NodeClass: "default", Labels: labels, Taints: n.Taints, StartupTaints: n.StartupTaints,
		InstanceType: n.Type, Zone: n.Zone, CapacityType: "on-demand", Capacity: it.Capacity, Allocatable: it.Allocatable,
		Conditions: cluster.Conditions{Launched: true, Registered: n.Stage != "launched", Initialized: n.Stage == ""},
	}
	if n.Stage == "launched" {
		out.Name, out.Labels, out.Taints, out.Capacity, out.Allocatable = "", nil, nil, nil, nil
	}
	return out
}

func names(list []*cluster.Pod) []string {
	return sortedNames(list, func(p *cluster.Pod) string { return p.Name })
}

func (w *caseWant) compare(t *testing.T, plan *Plan) {
	t.Helper()
	if w.Nodes != 0 {
		if len(plan.Claims) != w.Nodes {
			t.Errorf("%d claims, want %d", len(plan.Claims), w.Nodes)
		}
	} else {
		w.compareClaims(t, plan)
	}
	if w.Cost != "" && plan.Cost().Decimal() != w.Cost {
		t.Errorf("the plan costs %s, want %s", plan.Cost().Decimal(), w.Cost)
	}
	at := map[string]string{}
	for i, c := range plan.Claims {
		for _, name := range names(c.Pods) {
			at[name] = string(rune('a' + i))
		}
	}
	used := map[string]bool{}
	for _, name := range w.Apart {
		if at[name] == "" || used[at[name]] {
			t.Errorf("pod %s is not on a node without the others: %v", name, at)
		}
		used[at[name]] = true
	}
	var placements []wantPlacement
	for _, p := range plan.Placements {
		placements = append(placements, wantPlacement{Node: p.Node, Pods: names(p.Pods)})
	}
	if diff := gocmp.Diff(w.Placements, placements); diff != "" {
		t.Errorf("placements (-want +got):\n%s", diff)
	}
	w.compareUnplaced(t, plan)
}

func (w *caseWant) compareClaims(t *testing.T, plan *Plan) {
	t.Helper()
	var got []wantClaim
	for i, c := range plan.Claims {
		g := wantClaim{NodePool: c.NodePool, Pods: names(c.Pods)}
		for _, it := range c.Types {
			g.Types = append(g.Types, it.Name)
		}
		if i < len(w.Claims) {
			want := w.Claims[i]
			if want.Zone != "" {
				g.Zone = c.Offering.Zone
			}
			if want.CapacityType != "" {
				g.CapacityType = c.Offering.CapacityType
			}
			if want.DaemonsCPU != "" {
				q := c.Daemons.Kubernetes()[corev1.ResourceCPU]
				g.DaemonsCPU = q.String()
			}
			for key := range want.Labels {
				if g.Labels == nil {
					g.Labels = map[string]string{}
				}
				g.Labels[key] = c.Requirements.Labels()[key]
			}
		}
		got = append(got, g)
	}
	if diff := gocmp.Diff(w.Claims, got); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
}

func (w *caseWant) compareUnplaced(t *testing.T, plan *Plan) {
	t.Helper()
	var got []wantUnplaced
	for _, u := range plan.Unplaced {
		g := wantUnplaced{Reason: u.Reason, Message: u.Message, Rules: u.Rules, Pods: names(u.Pods)}
		for _, want := range w.Unplaced {
			if slices.Equal(want.Pods, g.Pods) && strings.Contains(g.Message, want.Message) {
				g.Message = want.Message
			}
		}
		got = append(got, g)
	}
	order := func(a, b wantUnplaced) int { return slices.Compare(a.Pods, b.Pods) }
	slices.SortFunc(got, order)
	slices.SortFunc(w.Unplaced, order)
	if diff := gocmp.Diff(w.Unplaced, got); diff != "" {
		t.Errorf("unplaced (-want +got):\n%s", diff)
	}
}
