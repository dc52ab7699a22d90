package sim

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// require is the pod's required node affinity: each argument is one term.
func require(terms ...corev1.NodeSelectorTerm) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms},
		}}
	}
}

func expr(key string, op corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: key, Operator: op, Values: values}
}

func term(es ...corev1.NodeSelectorRequirement) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: es}
}

func tolerate(ts ...corev1.Toleration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Tolerations = ts }
}

func requests(s string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = amounts(s) }
}

func port80(ip string, protocol corev1.Protocol) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80, HostIP: ip, Protocol: protocol}}
	}
}

func node(name string, edit ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name, "zone": "a", "size": "8", "empty": ""}}}
	n.Status.Allocatable = amounts("cpu=4 memory=8Gi pods=3")
	for _, e := range edit {
		e(n)
	}
	return n
}

func nodeTaints(ts ...string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		for _, t := range ts {
			n.Spec.Taints = append(n.Spec.Taints, taint(t))
		}
	}
}

func nodeLabels(s string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		for k, v := range labelsOf(s) {
			n.Labels[k] = v
		}
	}
}

const (
	affinityReason = "node(s) didn't match Pod's node affinity/selector"
	portReason     = "node(s) didn't have free ports for the requested pod ports"
)

func TestFiltersThatLookAtOneNode(t *testing.T) {
	cordoned := func(n *corev1.Node) { n.Spec.Unschedulable = true }
	selector := func(s string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.NodeSelector = labelsOf(s) }
	}
	always := corev1.ContainerRestartPolicyAlways
	tests := []struct {
		name string
		node *corev1.Node
		pod  *corev1.Pod
		on   []*corev1.Pod
		want string
	}{
		{"an empty node takes a pod", node("n"), pod(), nil, ""},
		{"a cordoned node takes none", node("n", cordoned), pod(), nil, "node(s) were unschedulable"},
		{"but those that tolerate it", node("n", cordoned), pod(tolerate(corev1.Toleration{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists})), nil, ""},
		{"a pod for another node", node("n"), pod(on("m")), nil, "node(s) didn't match the requested node name"},

		{"a NoSchedule taint", node("n", nodeTaints("a=b:NoSchedule")), pod(), nil, "node(s) had untolerated taint {a: b}"},
		{"a NoExecute taint", node("n", nodeTaints("a:NoExecute")), pod(), nil, "node(s) had untolerated taint {a: }"},
		{"a PreferNoSchedule taint keeps nobody away", node("n", nodeTaints("a:PreferNoSchedule")), pod(), nil, ""},
		{"tolerated by value", node("n", nodeTaints("a=b:NoSchedule")), pod(tolerate(corev1.Toleration{Key: "a", Value: "b"})), nil, ""},
		{"not by another value", node("n", nodeTaints("a=b:NoSchedule")), pod(tolerate(corev1.Toleration{Key: "a", Value: "c"})), nil, "node(s) had untolerated taint {a: b}"},
		{"not by an equal empty value", node("n", nodeTaints("a=b:NoSchedule")), pod(tolerate(corev1.Toleration{Key: "a"})), nil, "node(s) had untolerated taint {a: b}"},
		{"not for another effect", node("n", nodeTaints("a=b:NoSchedule")), pod(tolerate(corev1.Toleration{Key: "a", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute})), nil, "node(s) had untolerated taint {a: b}"},
		{"tolerated by everything", node("n", nodeTaints("a=b:NoSchedule", "c:NoExecute")), pod(tolerate(corev1.Toleration{Operator: corev1.TolerationOpExists})), nil, ""},
		{"an empty key needs Exists", node("n", nodeTaints("a=b:NoSchedule")), pod(tolerate(corev1.Toleration{Value: "b"})), nil, "node(s) had untolerated taint {a: b}"},
		{"a comparing operator is not on", node("n", nodeTaints("a=5:NoSchedule")), pod(tolerate(corev1.Toleration{Key: "a", Operator: "Lt", Value: "9"})), nil, "node(s) had untolerated taint {a: 5}"},

		{"the selector matches", node("n"), pod(selector("zone=a")), nil, ""},
		{"the selector asks for another value", node("n"), pod(selector("zone=b")), nil, affinityReason},
		{"the selector asks for an empty value that is missing", node("n"), pod(selector("missing=")), nil, affinityReason},
		{"the selector asks for an empty value that is there", node("n"), pod(selector("empty=")), nil, ""},
		{"In", node("n"), pod(require(term(expr("zone", "In", "b", "a")))), nil, ""},
		{"In without the label", node("n"), pod(require(term(expr("x", "In", "")))), nil, affinityReason},
		{"NotIn", node("n"), pod(require(term(expr("zone", "NotIn", "a")))), nil, affinityReason},
		{"NotIn without the label", node("n"), pod(require(term(expr("x", "NotIn", "a")))), nil, ""},
		{"Exists", node("n"), pod(require(term(expr("empty", "Exists")))), nil, ""},
		{"Exists without the label", node("n"), pod(require(term(expr("x", "Exists")))), nil, affinityReason},
		{"DoesNotExist", node("n"), pod(require(term(expr("zone", "DoesNotExist")))), nil, affinityReason},
		{"DoesNotExist without the label", node("n"), pod(require(term(expr("x", "DoesNotExist")))), nil, ""},
		{"Gt", node("n"), pod(require(term(expr("size", "Gt", "7")))), nil, ""},
		{"Gt of the same", node("n"), pod(require(term(expr("size", "Gt", "8")))), nil, affinityReason},
		{"Lt", node("n"), pod(require(term(expr("size", "Lt", "9")))), nil, ""},
		{"Lt of the same", node("n"), pod(require(term(expr("size", "Lt", "8")))), nil, affinityReason},
		{"Gt of a word", node("n"), pod(require(term(expr("zone", "Gt", "7")))), nil, affinityReason},
		{"Gt of nothing", node("n"), pod(require(term(expr("x", "Gt", "7")))), nil, affinityReason},
		{"an operator that is none", node("n"), pod(require(term(expr("zone", "Like", "a")))), nil, affinityReason},
		{"all expressions of a term", node("n"), pod(require(term(expr("zone", "In", "a"), expr("size", "In", "9")))), nil, affinityReason},
		{"any term", node("n"), pod(require(term(expr("zone", "In", "b")), term(expr("size", "In", "8")))), nil, ""},
		{"an empty term matches nothing", node("n"), pod(require(corev1.NodeSelectorTerm{})), nil, affinityReason},
		{"no term matches nothing", node("n"), pod(require()), nil, affinityReason},
		{"a field", node("n"), pod(require(corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{expr("metadata.name", "In", "n")}})), nil, ""},
		{"a field of another node", node("n"), pod(require(corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{expr("metadata.name", "In", "m")}})), nil, affinityReason},
		{"a field that is none", node("n"), pod(require(corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{expr("metadata.uid", "In", "n")}})), nil, affinityReason},

		{"the same host port", node("n"), pod(port80("", "")), []*corev1.Pod{pod(on("n"), port80("", corev1.ProtocolTCP))}, portReason},
		{"a wildcard meets an address", node("n"), pod(port80("127.0.0.1", "")), []*corev1.Pod{pod(on("n"), port80("0.0.0.0", ""))}, portReason},
		{"another address", node("n"), pod(port80("127.0.0.1", "")), []*corev1.Pod{pod(on("n"), port80("10.0.0.1", ""))}, ""},
		{"another protocol", node("n"), pod(port80("", corev1.ProtocolUDP)), []*corev1.Pod{pod(on("n"), port80("", ""))}, ""},
		{"a container port of a pod in the host's network", node("n"), pod(port80("", "")), []*corev1.Pod{pod(on("n"), func(p *corev1.Pod) {
			p.Spec.HostNetwork = true
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80}}
		})}, portReason},
		{"the port of a sidecar", node("n"), pod(port80("", "")), []*corev1.Pod{pod(on("n"), func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{RestartPolicy: &always, Ports: []corev1.ContainerPort{{HostPort: 80}}}}
		})}, portReason},
		{"the port of an init container is free again", node("n"), pod(port80("", "")), []*corev1.Pod{pod(on("n"), func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Ports: []corev1.ContainerPort{{HostPort: 80}}}}
		})}, ""},

		{"exactly what is there", node("n"), pod(requests("cpu=4 memory=8Gi")), nil, ""},
		{"a little more", node("n"), pod(requests("cpu=4001m memory=9Gi")), nil, "Insufficient cpu, Insufficient memory"},
		{"what others leave", node("n"), pod(requests("cpu=2")), []*corev1.Pod{pod(on("n"), requests("cpu=3"))}, "Insufficient cpu"},
		{"what pods that ended leave", node("n"), pod(requests("cpu=2")), []*corev1.Pod{pod(on("n"), requests("cpu=3"), func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })}, ""},
		{"a device that is not there", node("n"), pod(requests("nvidia.com/gpu=1")), nil, "Insufficient nvidia.com/gpu"},
		{"no device", node("n"), pod(requests("nvidia.com/gpu=0")), nil, ""},
		{"one pod too many", node("n"), pod(requests("")), []*corev1.Pod{pod(on("n"), requests("")), pod(on("n"), requests("")), pod(on("n"), requests(""))}, "Too many pods"},

		{"an empty directory and such", node("n"), pod(func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{
				{VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
				{VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}},
			}
		}), nil, ""},
		{"a claimed volume", node("n"), pod(func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{}}}}
		}), nil, `volume "data" is of a kind that the simulation cannot judge`},
		{"a resource claim", node("n"), pod(func(p *corev1.Pod) { p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "x"}} }), nil,
			"resource claims are nothing that the simulation can judge"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			for i, p := range tc.on {
				p.Name = string(rune('a' + i))
			}
			ok, got := NewView([]*corev1.Node{tc.node}, tc.on, nil).Feasible(tc.pod, "n")
			if got != tc.want || ok != (tc.want == "") {
				t.Errorf("got %v %q, want %q", ok, got, tc.want)
			}
		})
	}
	if ok, _ := NewView(nil, nil, nil).Feasible(pod(), "n"); ok {
		t.Error("a node that is not there takes a pod")
	}
}

func TestRequestsOfAPod(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	initial := func(cpu string, sidecar bool) corev1.Container {
		c := corev1.Container{Resources: corev1.ResourceRequirements{Requests: amounts("cpu=" + cpu)}}
		if sidecar {
			c.RestartPolicy = &always
		}
		return c
	}
	tests := []struct {
		name string
		edit func(*corev1.PodSpec)
		want int64
	}{
		{"the container alone", func(*corev1.PodSpec) {}, 1000},
		{"a small init container", func(s *corev1.PodSpec) { s.InitContainers = []corev1.Container{initial("500m", false)} }, 1000},
		{"a large init container", func(s *corev1.PodSpec) { s.InitContainers = []corev1.Container{initial("4", false)} }, 4000},
		{"a sidecar", func(s *corev1.PodSpec) { s.InitContainers = []corev1.Container{initial("500m", true)} }, 1500},
		{"a sidecar after the init container", func(s *corev1.PodSpec) {
			s.InitContainers = []corev1.Container{initial("4", false), initial("500m", true)}
		}, 4000},
		{"a sidecar before the init container", func(s *corev1.PodSpec) {
			s.InitContainers = []corev1.Container{initial("500m", true), initial("4", false)}
		}, 4500},
		{"overhead", func(s *corev1.PodSpec) { s.Overhead = amounts("cpu=250m") }, 1250},
		{"requests of the pod", func(s *corev1.PodSpec) {
			s.Resources = &corev1.ResourceRequirements{Requests: amounts("cpu=3 nvidia.com/gpu=5")}
		}, 3000},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			p := pod()
			tc.edit(&p.Spec)
			got := requestsOf(p)
			if got["cpu"] != tc.want || got["pods"] != 1 || got["nvidia.com/gpu"] != 0 {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestTheBinderTakesPodsInOrderAndSaysWhyTheyWait(t *testing.T) {
	w := newTestWorld(t, "n1")
	check(t, w.Apply(pod(named("z"), requests("cpu=2"))))
	check(t, w.Apply(pod(named("a"), requests("cpu=2"))))
	check(t, w.Apply(pod(named("late"), requests("cpu=2"), func(p *corev1.Pod) { p.Spec.NodeSelector = labelsOf("x=y") })))
	check(t, w.Apply(pod(named("gated"), func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "g"}} })))
	check(t, w.Apply(pod(named("vip"), requests("cpu=1"), func(p *corev1.Pod) { p.Spec.PriorityClassName = "system-cluster-critical" })))
	pass(t, w, 0)
	got := map[string]string{}
	for _, p := range List[*corev1.Pod](w.API) {
		got[p.Name] = p.Spec.NodeName
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
				got[p.Name] = c.Reason + ": " + c.Message
			}
		}
	}
	want := map[string]string{
		"vip": "n1", "z": "n1", "a": "Unschedulable: 0/1 nodes are available: 1 Insufficient cpu.",
		"late":  "Unschedulable: 0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.",
		"gated": "SchedulingGated: Scheduling is blocked due to non-empty scheduling gates",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	n := len(w.API.Audit())
	pass(t, w, time.Second)
	check(t, w.Delete(KindPod, "default/late"))
	pass(t, w, 0)
	if extra := w.API.Audit()[n:]; len(extra) != 1 {
		t.Errorf("what is no news was written again: %v", extra)
	}
}

func TestTheBinderPrefers(t *testing.T) {
	tests := []struct {
		name  string
		most  bool
		nodes []*corev1.Node
		want  string
	}{
		{"the emptiest", false, []*corev1.Node{node("a"), node("b"), node("c")}, "b"},
		{"the fullest when told so", true, []*corev1.Node{node("a"), node("b"), node("c")}, "a"},
		{"no taint that asks to stay away", false, []*corev1.Node{node("a"), node("b", nodeTaints("x:PreferNoSchedule")), node("c")}, "c"},
		{"a node that offers no memory as little as none", false, []*corev1.Node{node("a"), node("b", func(n *corev1.Node) { n.Status.Allocatable = amounts("cpu=4 pods=3") }), node("c")}, "c"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			v := NewView(tc.nodes, []*corev1.Pod{pod(on("a"), requests("cpu=2"))}, nil)
			best, why := v.best(pod(named("q")), tc.most)
			if best == nil || best.node.Name != tc.want {
				t.Errorf("got %v %s", best, why)
			}
		})
	}
}
