package scheduling

import (
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/cluster"
)

// fullNode is an initialized node of the common types with pods on it.
func fullNode(name, pool, instanceType string, bound ...[]*cluster.Pod) *cluster.Node {
	var c *Claim
	for _, it := range commonTypes() {
		if it.Name == instanceType {
			c = &Claim{NodePool: pool, NodeClass: "default", InstanceType: it.Name, Offering: it.Offerings[1], Types: commonTypes()}
		}
	}
	n := asNode(name, c)
	n.Labels[nodePoolLabel] = pool
	for k, v := range map[string]string{corev1.LabelArchStable: "amd64", corev1.LabelHostname: name} {
		n.Labels[k] = v
	}
	n.Pods = nil
	for _, list := range bound {
		n.Pods = append(n.Pods, list...)
	}
	return n
}

// rearranger makes every node a source with all its pods.
func rearranger(t testing.TB, in Input, m Moves, nodes ...*cluster.Node) *Rearranger {
	t.Helper()
	in.Snapshot.Nodes = slices.Clone(nodes)
	in.Snapshot.Seal()
	for _, n := range nodes {
		if n.Initialized() && !n.Deleting && n.Removing == "" {
			m.Sources = append(m.Sources, Source{Node: n.Key(), Pods: n.Pods})
		}
	}
	r, err := NewRearranger(in, m)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// summary is a rearrangement in short.
type summary struct {
	NewNodes int
	Placed   map[string][]string
	Types    []string
	Pods     []string
	Leans    []string
}

func summarize(m *Rearrangement) summary {
	out := summary{NewNodes: m.NewNodes, Leans: m.Leans}
	if m.NewNodes > 1 {
		return out
	}
	for _, p := range m.Placements() {
		if out.Placed == nil {
			out.Placed = map[string][]string{}
		}
		out.Placed[p.Node] = names(p.Pods)
	}
	if m.Draft != nil {
		c := m.Draft.Claim(nil, MaxLaunchable, "")
		for _, it := range c.Types {
			out.Types = append(out.Types, it.Name)
		}
		out.Pods = names(c.Pods)
	}
	return out
}

func TestTakingNodesAway(t *testing.T) {
	on := func(pools ...*karpv1.NodePool) Input { return input(nil, commonTypes(), pools...) }
	limited := onDemandPool("default")
	limited.Spec.Limits = karpv1.Limits{"nodes": resource.MustParse("2"), "cpu": resource.MustParse("6")}
	apart := func(sh *cluster.Shape) {
		sh.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: sh.Labels}}}}}
	}
	port := func(sh *cluster.Shape) {
		sh.HostPorts = []cluster.HostPort{{IP: "0.0.0.0", Port: 80, Protocol: corev1.ProtocolTCP}}
	}
	heavy := onDemandPool("heavy", requirement(corev1.LabelInstanceTypeStable, corev1.NodeSelectorOpIn, "s1"))
	weight := int32(10)
	heavy.Spec.Weight = &weight
	tests := []struct {
		name  string
		in    Input
		moves Moves
		nodes []*cluster.Node
		take  []int
		want  summary
	}{
		{
			"pods go where there is room, the largest first", on(onDemandPool("default")), Moves{},
			[]*cluster.Node{fullNode("n1", "default", "s4", pods("large", 1, cores(2000)), pods("small", 2, cores(1000))), fullNode("n2", "default", "s4"), fullNode("n3", "default", "s2", pods("x", 1, cores(1000)))},
			[]int{0}, summary{Placed: map[string][]string{"n2": {"large-00000", "small-00000", "small-00001"}}},
		},
		{
			"what is left is on one new node", on(onDemandPool("default")), Moves{},
			[]*cluster.Node{fullNode("n1", "default", "s4", pods("a", 4, cores(1000))), fullNode("n2", "default", "s4", pods("b", 3, cores(1000))), fullNode("n3", "default", "s8", pods("c", 7, cores(1000)))},
			[]int{0, 1}, summary{NewNodes: 1, Placed: map[string][]string{"n3": {"a-00000"}}, Types: []string{"s8", "s16", "s32"}, Pods: []string{"a-00001", "a-00002", "a-00003", "b-00000", "b-00001", "b-00002"}},
		},
		{
			"nodes that are closed to moved pods take waiting ones", func() Input {
				in := on(onDemandPool("default"))
				in.Snapshot.Pending = pods("w", 1, cores(1000))
				return in
			}(), Moves{Closed: map[string]bool{"n2": true}},
			[]*cluster.Node{fullNode("n1", "default", "s1", pods("a", 1, cores(1000))), fullNode("n2", "default", "s2", pods("b", 1, cores(1000)))},
			[]int{0}, summary{NewNodes: 1, Types: []string{"s1", "s2", "s4", "s8", "s16", "s32"}, Pods: []string{"a-00000"}},
		},
		{
			"limits are given back by what is taken away", on(limited), Moves{},
			[]*cluster.Node{fullNode("n1", "default", "s2", pods("a", 1, cores(1000))), fullNode("n2", "default", "s4", pods("b", 4, cores(1000)))},
			[]int{0}, summary{NewNodes: 1, Types: []string{"s1", "s2"}, Pods: []string{"a-00000"}},
		},
		{
			"pods that keep apart need two nodes", on(onDemandPool("default")), Moves{},
			[]*cluster.Node{fullNode("n1", "default", "s2", pods("a", 1, cores(1000), apart)), fullNode("n2", "default", "s2", pods("a2", 1, cores(1000), func(sh *cluster.Shape) { sh.Labels = map[string]string{"app": "a"} }, apart))},
			[]int{0, 1}, summary{NewNodes: 2},
		},
		{
			"a host port is free only once on a node", on(onDemandPool("default")), Moves{},
			[]*cluster.Node{fullNode("n1", "default", "s2", pods("a", 1, cores(1000), port)), fullNode("n2", "default", "s2", pods("b", 1, cores(1000), port)), fullNode("n3", "default", "s8")},
			[]int{0, 1}, summary{NewNodes: 1, Placed: map[string][]string{"n3": {"a-00000"}}, Types: []string{"s1", "s2", "s4", "s8", "s16", "s32"}, Pods: []string{"b-00000"}},
		},
		{
			"the first NodePool that can hold all is used", on(heavy, onDemandPool("default")), Moves{},
			[]*cluster.Node{fullNode("n1", "default", "s4", pods("a", 2, cores(1000)))},
			[]int{0}, summary{NewNodes: 1, Types: []string{"s2", "s4", "s8", "s16", "s32"}, Pods: []string{"a-00000", "a-00001"}},
		},
	}
	for _, tc := range tests {
		r := rearranger(t, tc.in, tc.moves, tc.nodes...)
		for range 2 { // an answer must not change the next
			if diff := gocmp.Diff(tc.want, summarize(r.Remove(tc.take))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.name, diff)
			}
		}
	}
}

func TestPodsThatWaitAreCountedOn(t *testing.T) {
	leaving := pods("leaving", 2, cores(1000))
	gone := fullNode("gone", "default", "s4", leaving)
	gone.Removing = "decision"
	fresh := fullNode("fresh", "default", "s2")
	fresh.Claim.Conditions.Initialized = false
	fresh.Nominated = []string{"default/leaving-00000", "default/leaving-00001"}
	nodes := []*cluster.Node{fullNode("n1", "default", "s2", pods("a", 1, cores(2000))), gone, fresh, fullNode("n2", "default", "s2")}

	r := rearranger(t, input(nil, commonTypes(), onDemandPool("default")), Moves{Leaving: leaving}, nodes...)
	want := summary{Placed: map[string][]string{"n2": {"a-00000"}}}
	if diff := gocmp.Diff(want, summarize(r.Remove([]int{0}))); diff != "" {
		t.Errorf("what is leaving has its place (-want +got):\n%s", diff)
	}
	fresh.Nominated = nil
	r = rearranger(t, input(nil, commonTypes(), onDemandPool("default")), Moves{Leaving: leaving}, nodes[0], gone, fresh)
	if got := r.Remove([]int{0}); got.NewNodes != 1 || len(got.Leans) != 0 {
		t.Errorf("what is leaving takes the room there is: %+v", summarize(got))
	}
	r = rearranger(t, input(nil, commonTypes(), onDemandPool("default")), Moves{}, nodes[0], gone, fresh)
	if got := r.Remove([]int{0}); !gocmp.Equal(got.Leans, []string{"fresh"}) {
		t.Errorf("it leans on %v", got.Leans)
	}
	for _, cpu := range []int64{64000, 3000} {
		in := input(pods("large", 1, cores(cpu)), commonTypes(), onDemandPool("default"))
		r = rearranger(t, in, Moves{}, nodes[0], fullNode("n2", "default", "s2"))
		if got := r.Remove([]int{0}); got.NewNodes != 0 {
			t.Errorf("a pod without a place in any case makes %d new nodes", got.NewNodes)
		}
	}
	in := input(pods("waiting", 1, cores(2000)), commonTypes(), onDemandPool("default"))
	r = rearranger(t, in, Moves{}, fullNode("n1", "default", "s4", pods("a", 1, cores(1000))), fullNode("n2", "default", "s1"))
	want = summary{NewNodes: 1, Placed: map[string][]string{"n2": {"a-00000"}}, Types: []string{"s2", "s4", "s8", "s16", "s32"}, Pods: []string{"waiting-00000"}}
	if diff := gocmp.Diff(want, summarize(r.Remove([]int{0}))); diff != "" {
		t.Errorf("what waits must not lose its place (-want +got):\n%s", diff)
	}
}

func TestWhyOneNodeWillNotDo(t *testing.T) {
	only := func(types ...string) *karpv1.NodePool {
		return onDemandPool("default", requirement(corev1.LabelInstanceTypeStable, corev1.NodeSelectorOpIn, types...))
	}
	full := only("s2")
	full.Spec.Limits = karpv1.Limits{"cpu": resource.MustParse("1")}
	tests := []struct {
		name  string
		pool  *karpv1.NodePool
		nodes int
		stuck string
	}{
		{"too small a type", only("s2"), 3, ""},
		{"no type", only("s1"), 0, "no place for pod default/a-00000: NodePool \"default\" has 1 instance types that meet the requirements, none with room"},
		{"limits", full, 0, "is at its limits: limit of 1 cpu leaves 1, the smallest type that fits has 2"},
	}
	for _, tc := range tests {
		n := fullNode("n1", "default", "s8", pods("a", 3, cores(1500)))
		n.Claim.NodePool = "another"
		r := rearranger(t, input(nil, commonTypes(), tc.pool), Moves{}, n)
		m := r.Remove([]int{0})
		if m.NewNodes != 2 {
			t.Fatalf("%s: %d new nodes", tc.name, m.NewNodes)
		}
		for range 2 {
			nodes, stuck := m.Explain()
			if nodes != tc.nodes || !strings.Contains(stuck, tc.stuck) || (tc.stuck == "") != (stuck == "") {
				t.Errorf("%s: %d nodes, %q", tc.name, nodes, stuck)
			}
		}
	}
}

func TestSizesLoadsAndSpareRoom(t *testing.T) {
	closed := fullNode("closed", "default", "s4")
	r := rearranger(t, input(nil, commonTypes(), onDemandPool("default"), nodePool("deleted")), Moves{Closed: map[string]bool{"closed": true}},
		fullNode("n1", "default", "s8", pods("a", 2, cores(1000)), pods("b", 1, cores(3000))), closed)
	if got := r.Load(0); !gocmp.Equal(got, []int64{5000, 5 * gib, 3}) {
		t.Errorf("the load is %v", got)
	}
	if got := r.Spare(); !gocmp.Equal(got, []int64{3000, 11 * gib, 107}) {
		t.Errorf("spare is %v", got)
	}
	sizes := r.Sizes()
	if len(sizes) < 6 || sizes[0].InstanceType != "s1" || sizes[0].Room[0] != 1000 {
		t.Errorf("sizes %+v", sizes)
	}
	for i := 1; i < len(sizes); i++ {
		if sizes[i].Price < sizes[i-1].Price {
			t.Errorf("%s is not in its place", sizes[i].InstanceType)
		}
	}
}

// A draft is closed with what the filters left, and says so.
func TestClosingADraft(t *testing.T) {
	pool := nodePool("default")
	r := rearranger(t, input(nil, commonTypes(), pool), Moves{}, fullNode("n1", "default", "s8", pods("a", 3, cores(1000))))
	d := r.Remove([]int{0}).Draft
	if d.NodePool() != "default" || d.Price().Decimal() != "0.06" || len(d.Options()) != 4 {
		t.Fatalf("draft of %s at %s with %d options", d.NodePool(), d.Price(), len(d.Options()))
	}
	kept := d.Options()[1:]
	planned, ok := d.Planned(kept)
	c := d.Claim([]Step{{By: "a test", Keep: kept}}, 2, "spot")
	if !ok || planned.InstanceType != "s8" || c.InstanceType != "s8" || c.Offering != planned.Offering || len(c.Types) != 2 {
		t.Errorf("planned %+v, claim %s with %d types", planned, c.InstanceType, len(c.Types))
	}
	if got := c.Requirements.Get(capacityTypeLabel).Values(); !gocmp.Equal(got, []string{"spot"}) {
		t.Errorf("capacity types %v", got)
	}
	var by []string
	for _, f := range c.Filters {
		by = append(by, f.By)
	}
	if want := []string{FilterCatalog, FilterRequirements, FilterOfferings, FilterResources, "a test", FilterExotic, FilterSpotPrice, "cheapest 2"}; !gocmp.Equal(by, want) {
		t.Errorf("filters %q", by)
	}
	if _, ok := d.Planned(nil); ok || d.Claim([]Step{{By: "a test"}}, 2, "") != nil {
		t.Error("nothing is left, but there is a claim")
	}
}

func TestARearrangerNeedsItsInput(t *testing.T) {
	if _, err := NewRearranger(Input{}, Moves{}); err == nil {
		t.Error("it takes nothing")
	}
	in := input(nil, commonTypes(), onDemandPool("default"))
	if _, err := NewRearranger(in, Moves{Sources: []Source{{Node: "nobody"}}}); err == nil || !strings.Contains(err.Error(), `"nobody"`) {
		t.Errorf("it takes a source that is not there: %v", err)
	}
	in.Fleet.Cluster.Engine.NodeFee = "x"
	if _, err := NewRearranger(in, Moves{}); err == nil {
		t.Error("it takes a fee that is no price")
	}
	in.Fleet = nil
	if _, err := NewRearranger(in, Moves{}); err == nil {
		t.Error("it takes no fleet")
	}
}

// Exclusions of policy hold for moved pods as for pending ones.
func TestExclusionsHoldForMovedPods(t *testing.T) {
	in := input(nil, commonTypes(), onDemandPool("default"))
	in.Exclusions = Exclusions{
		Offerings: map[string][]OfferingExclusion{"default": {{Type: "s1", Rule: "R1"}}},
		Pods:      map[string]map[string]string{"default": {"default/b-00000": "R2"}},
	}
	r := rearranger(t, in, Moves{}, fullNode("n1", "default", "s8", pods("a", 1, cores(1000))), fullNode("n2", "default", "s8", pods("b", 1, cores(8000))))
	if got := summarize(r.Remove([]int{0})); !gocmp.Equal(got.Types, []string{"s2", "s4", "s8", "s16", "s32"}) {
		t.Errorf("got %+v", got)
	}
	m := r.Remove([]int{1})
	if _, stuck := m.Explain(); m.NewNodes != 2 || !strings.Contains(stuck, "is closed to the pod by R2") {
		t.Errorf("got %d new nodes, %q", m.NewNodes, stuck)
	}
	if r.Steps() == 0 {
		t.Error("no steps are counted")
	}
}
