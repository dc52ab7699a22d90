package sim

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func selectorOf(s string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: labelsOf(s)}
}

func affine(anti bool, terms ...corev1.PodAffinityTerm) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{}
		if anti {
			p.Spec.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}
		} else {
			p.Spec.Affinity.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}
		}
	}
}

func inNamespace(ns string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Namespace = ns } }

// feasibleOn are the names of the nodes that take the pod.
func feasibleOn(v *View, p *corev1.Pod) []string {
	out := []string{}
	for _, n := range v.nodes {
		if ok, _ := v.Feasible(p, n.node.Name); ok {
			out = append(out, n.node.Name)
		}
	}
	return out
}

func TestPodAffinity(t *testing.T) {
	nodes := []*corev1.Node{node("a1"), node("a2"), node("b1", nodeLabels("zone=b")), node("none", func(n *corev1.Node) { n.Labels = nil })}
	byZone := func(s string) corev1.PodAffinityTerm {
		return corev1.PodAffinityTerm{TopologyKey: "zone", LabelSelector: selectorOf(s)}
	}
	byHost := func(s string) corev1.PodAffinityTerm {
		return corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: selectorOf(s)}
	}
	edited := func(t corev1.PodAffinityTerm, f func(*corev1.PodAffinityTerm)) corev1.PodAffinityTerm {
		f(&t)
		return t
	}
	web := pod(named("web"), on("a1"), labelled("app=web v=1"))
	far := pod(named("far"), on("b1"), labelled("app=web"), inNamespace("far"))
	shy := pod(named("shy"), on("a1"), labelled("app=shy"), affine(true, byZone("app=p")))
	all := []string{"a1", "a2", "b1", "none"}
	tests := []struct {
		name string
		on   []*corev1.Pod
		pod  *corev1.Pod
		want []string
	}{
		{"affinity: the whole zone of the other pod", []*corev1.Pod{web}, pod(affine(false, byZone("app=web"))), []string{"a1", "a2"}},
		{"affinity: its host", []*corev1.Pod{web}, pod(affine(false, byHost("app=web"))), []string{"a1"}},
		{"affinity: all terms have to be about one pod", []*corev1.Pod{web}, pod(affine(false, byZone("app=web"), byZone("v=2"))), []string{}},
		{"affinity: nobody is there", nil, pod(affine(false, byZone("app=web"))), []string{}},
		{"affinity: the first of its kind may go where the key is", nil, pod(affine(false, byZone("app=p"))), []string{"a1", "a2", "b1"}},
		{"affinity: the second may not", []*corev1.Pod{pod(on("b1"))}, pod(affine(false, byZone("app=p"))), []string{"b1"}},
		{"affinity: other namespaces do not count", []*corev1.Pod{far}, pod(affine(false, byZone("app=web"))), []string{}},
		{"affinity: unless listed", []*corev1.Pod{far}, pod(affine(false, edited(byZone("app=web"), func(t *corev1.PodAffinityTerm) { t.Namespaces = []string{"far"} }))), []string{"b1"}},
		{"affinity: or selected", []*corev1.Pod{far}, pod(affine(false, edited(byZone("app=web"), func(t *corev1.PodAffinityTerm) { t.NamespaceSelector = selectorOf("team=far") }))), []string{"b1"}},
		{"affinity: an empty namespace selector is all", []*corev1.Pod{far}, pod(affine(false, edited(byZone("app=web"), func(t *corev1.PodAffinityTerm) { t.NamespaceSelector = selectorOf("") }))), []string{"b1"}},
		{"affinity: no selector is about nobody", []*corev1.Pod{web}, pod(affine(false, corev1.PodAffinityTerm{TopologyKey: "zone"})), []string{}},
		{"affinity: the same value of a label", []*corev1.Pod{web}, pod(labelled("v=1"), affine(false, edited(byZone("app=web"), func(t *corev1.PodAffinityTerm) { t.MatchLabelKeys = []string{"v"} }))), []string{"a1", "a2"}},
		{"affinity: not another value", []*corev1.Pod{web}, pod(labelled("v=2"), affine(false, edited(byZone("app=web"), func(t *corev1.PodAffinityTerm) { t.MatchLabelKeys = []string{"v"} }))), []string{}},
		{"affinity: another value where that is asked for", []*corev1.Pod{web}, pod(labelled("v=1"), affine(false, edited(byZone("app=web"), func(t *corev1.PodAffinityTerm) { t.MismatchLabelKeys = []string{"v"} }))), []string{}},

		{"anti-affinity: away from the zone", []*corev1.Pod{web}, pod(affine(true, byZone("app=web"))), []string{"b1", "none"}},
		{"anti-affinity: away from the host", []*corev1.Pod{web}, pod(affine(true, byHost("app=web"))), []string{"a2", "b1", "none"}},
		{"anti-affinity: any term keeps away", []*corev1.Pod{web}, pod(affine(true, byHost("app=x"), byZone("v=1"))), []string{"b1", "none"}},
		{"anti-affinity: nobody is there", nil, pod(affine(true, byZone("app=web"))), all},
		{"anti-affinity of a pod that runs", []*corev1.Pod{shy}, pod(), []string{"b1", "none"}},
		{"anti-affinity of a pod that runs against others", []*corev1.Pod{shy}, pod(labelled("app=x")), all},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			v := NewView(nodes, tc.on, []*corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "far", Labels: labelsOf("team=far")}}})
			if diff := cmp.Diff(tc.want, feasibleOn(v, tc.pod)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTopologySpread(t *testing.T) {
	nodes := []*corev1.Node{
		node("a1"), node("a2", nodeTaints("x:NoSchedule")), node("b1", nodeLabels("zone=b")), node("c1", nodeLabels("zone=c size=4")),
		node("none", func(n *corev1.Node) { delete(n.Labels, "zone") }),
	}
	spread := func(edit ...func(*corev1.TopologySpreadConstraint)) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			c := corev1.TopologySpreadConstraint{TopologyKey: "zone", MaxSkew: 1, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: selectorOf("app=p")}
			for _, e := range edit {
				e(&c)
			}
			p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, c)
		}
	}
	honor, ignore := corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore
	at := func(places ...string) []*corev1.Pod {
		var out []*corev1.Pod
		for i, place := range places {
			out = append(out, pod(named(string(rune('a'+i))), on(place), requests("")))
		}
		return out
	}
	tests := []struct {
		name string
		on   []*corev1.Pod
		pod  *corev1.Pod
		want []string
	}{
		{"any zone at first", nil, pod(spread()), []string{"a1", "b1", "c1"}},
		{"then those with fewest", at("a1"), pod(spread()), []string{"b1", "c1"}},
		{"a larger skew", at("a1"), pod(spread(func(c *corev1.TopologySpreadConstraint) { c.MaxSkew = 2 })), []string{"a1", "b1", "c1"}},
		{"a soft one keeps nobody away", at("a1"), pod(spread(func(c *corev1.TopologySpreadConstraint) { c.WhenUnsatisfiable = corev1.ScheduleAnyway })), []string{"a1", "b1", "c1", "none"}},
		{"zones the pod cannot use do not count", at("a1", "b1"), pod(spread(), require(term(expr("size", "In", "8")))), []string{"a1", "b1"}},
		{"unless they shall", at("a1", "b1"), pod(spread(func(c *corev1.TopologySpreadConstraint) { c.NodeAffinityPolicy = &ignore }), require(term(expr("size", "In", "8")))), []string{}},
		{"tainted nodes count", at("a2"), pod(spread()), []string{"b1", "c1"}},
		{"unless they shall not", at("a2"), pod(spread(func(c *corev1.TopologySpreadConstraint) { c.NodeTaintsPolicy = &honor })), []string{"a1", "b1", "c1"}},
		{"fewer domains than asked for: the minimum is zero", at("a1", "b1", "c1"), pod(spread(func(c *corev1.TopologySpreadConstraint) { c.MinDomains = new(int32(4)) })), []string{}},
		{"as many as asked for", at("a1", "b1", "c1"), pod(spread(func(c *corev1.TopologySpreadConstraint) { c.MinDomains = new(int32(3)) })), []string{"a1", "b1", "c1"}},
		{"a pod that it is not about adds nothing", at("a1"), pod(labelled("app=x"), spread()), []string{"a1", "b1", "c1"}},
		{"pods of other namespaces do not count", []*corev1.Pod{pod(on("a1"), inNamespace("far"))}, pod(spread()), []string{"a1", "b1", "c1"}},
		{"nor those being deleted", []*corev1.Pod{pod(on("a1"), func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: t0} })}, pod(spread()), []string{"a1", "b1", "c1"}},
		{"nor those of another revision", at("a1"), pod(labelled("app=p rev=2"), spread(func(c *corev1.TopologySpreadConstraint) { c.MatchLabelKeys = []string{"rev"} })), []string{"a1", "b1", "c1"}},
		{"two constraints both hold", at("a1", "b1", "c1"), pod(spread(), spread(func(c *corev1.TopologySpreadConstraint) { c.TopologyKey = corev1.LabelHostname })), []string{}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, feasibleOn(NewView(nodes, tc.on, nil), tc.pod)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
