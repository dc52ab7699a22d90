package cluster

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reeve-project/reeve/reconciler/resources"
)

func container(cpu string, always bool) corev1.Container {
	c := corev1.Container{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}}
	if always {
		p := corev1.ContainerRestartPolicyAlways
		c.RestartPolicy = &p
	}
	return c
}

// Case B17 of the scheduling semantics: a sidecar counts beside the init
// containers that come after it.
func TestRequestsCountInitAndSidecarContainers(t *testing.T) {
	tests := []struct {
		name string
		init []corev1.Container
		want int64
	}{
		{"the sidecar starts after the init container", []corev1.Container{container("4", false), container("500m", true)}, 4000},
		{"the sidecar starts before the init container", []corev1.Container{container("500m", true), container("4", false)}, 4500},
		{"only the main container", nil, 1000},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: corev1.PodSpec{InitContainers: tc.init, Containers: []corev1.Container{container("1", false)}}}
			want := resources.List{"cpu": tc.want, "pods": 1}
			if diff := cmp.Diff(want, NewShape(pod).Requests); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		Overhead:   corev1.ResourceList{"cpu": resource.MustParse("250m")},
		Containers: []corev1.Container{container("1", false), container("0", false)},
	}}
	if got := NewShape(pod).Requests["cpu"]; got != 1250 {
		t.Errorf("with overhead: %d", got)
	}
}

func replica(name string) *corev1.Pod {
	yes := true
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, UID: "u-" + "x",
			Labels:          map[string]string{"app": "web", "apps.kubernetes.io/pod-index": name},
			Annotations:     map[string]string{"karpenter.sh/do-not-disrupt": "true", "secret": "hunter2"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "StatefulSet", Name: "web", Controller: &yes}},
		},
		Spec: corev1.PodSpec{
			SchedulerName: corev1.DefaultSchedulerName,
			Containers: []corev1.Container{{
				Env:       []corev1.EnvVar{{Name: "TOKEN", Value: "hunter2"}},
				Args:      []string{"hunter2"},
				Resources: container("1", false).Resources,
				Ports:     []corev1.ContainerPort{{HostPort: 8080}, {ContainerPort: 1}},
			}},
			Volumes: []corev1.Volume{
				{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "b"}}},
				{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "a"}}},
				{VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{}}}},
				{VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			},
			ResourceClaims: []corev1.PodResourceClaim{{Name: "gpu"}},
		},
	}
}

func TestSiblingsShareAShapeThatHoldsNoSecrets(t *testing.T) {
	a, b := NewPod(replica("web-0")), NewPod(replica("web-1"))
	s := (&Snapshot{Pending: []*Pod{b, a}}).Seal()
	if s.Pending[0].Key() != "default/web-0" || s.Pending[0].Shape != s.Pending[1].Shape {
		t.Errorf("pods %s, %s with shapes %s, %s", s.Pending[0].Key(), s.Pending[1].Key(), a.Shape.ID, b.Shape.ID)
	}
	sh := a.Shape
	if !strings.HasPrefix(sh.ID, "web-") || sh.Owner != (Owner{Kind: "StatefulSet", Name: "web"}) {
		t.Errorf("shape %s of %v", sh.ID, sh.Owner)
	}
	if diff := cmp.Diff(map[string]string{"karpenter.sh/do-not-disrupt": "true"}, sh.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]HostPort{{IP: "0.0.0.0", Port: 8080, Protocol: corev1.ProtocolTCP}}, sh.HostPorts); diff != "" {
		t.Errorf("host ports (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a", "b"}, sh.Claims); diff != "" || len(sh.Ephemeral) != 1 || len(sh.Resources) != 1 {
		t.Errorf("volumes: %s %v %v", diff, sh.Ephemeral, sh.Resources)
	}
	other := *sh
	other.Priority = 7
	if other.Sealed().ID == sh.ID {
		t.Error("another priority is the same shape")
	}
}

// Case B5: a wildcard address conflicts with every other.
func TestHostPortsConflict(t *testing.T) {
	any8080 := HostPort{"0.0.0.0", 8080, corev1.ProtocolTCP}
	tests := []struct {
		name string
		a, b HostPort
		want bool
	}{
		{"the same port", any8080, any8080, true},
		{"a wildcard and an address", any8080, HostPort{"127.0.0.1", 8080, corev1.ProtocolTCP}, true},
		{"two addresses", HostPort{"10.0.0.1", 8080, corev1.ProtocolTCP}, HostPort{"127.0.0.1", 8080, corev1.ProtocolTCP}, false},
		{"another protocol", any8080, HostPort{"0.0.0.0", 8080, corev1.ProtocolUDP}, false},
		{"another port", any8080, HostPort{"0.0.0.0", 8081, corev1.ProtocolTCP}, false},
	}
	for _, tc := range tests {
		if got := tc.a.Conflicts(tc.b); got != tc.want || tc.b.Conflicts(tc.a) != tc.want {
			t.Errorf("%s: %v, want %v both ways", tc.name, got, tc.want)
		}
	}
}

func TestSnapshotsAreSortedAndSearched(t *testing.T) {
	s := (&Snapshot{
		Nodes: []*Node{
			{Name: "z"},
			{Name: "ip-1", Ready: true, Claim: &Claim{Name: "default-b"}},
			{Claim: &Claim{Name: "default-a", Conditions: Conditions{Initialized: true}}},
		},
		NodeClasses: []*NodeClassStatus{{Name: "b"}, {Name: "a"}},
		Unavailable: []Unavailable{{InstanceType: "b"}, {InstanceType: "a", Zone: "z"}, {InstanceType: "a", Zone: "a"}},
		DaemonSets: []*DaemonSet{
			{Namespace: "kube-system", Name: "b", Shape: NewShape(replica("x"))},
			{Namespace: "kube-system", Name: "a", Shape: NewShape(replica("y"))},
		},
	}).Seal()
	var keys []string
	for _, n := range s.Nodes {
		keys = append(keys, n.Key())
	}
	if diff := cmp.Diff([]string{"default-a", "default-b", "z"}, keys); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
	if n := s.Node("default-b"); n == nil || n.Name != "ip-1" || n.Initialized() {
		t.Errorf("node default-b: %+v", n)
	}
	if s.Node("default-c") != nil || s.NodeClass("c") != nil || s.NodeClass("a") == nil {
		t.Error("search")
	}
	if !s.Node("default-a").Initialized() || s.Node("z").Initialized() {
		t.Error("Initialized")
	}
	if s.Unavailable[0].Zone != "a" || s.Unavailable[2].InstanceType != "b" {
		t.Errorf("unavailable: %v", s.Unavailable)
	}
	if s.DaemonSets[0].Name != "a" || s.DaemonSets[0].Shape != s.DaemonSets[1].Shape {
		t.Error("daemonsets are not sorted or do not share their shape")
	}
}

func TestPodsKnowWhenTheyStartedAndEnd(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 4, 6, 0, 0, 0, 0, time.UTC))
	pod := replica("a")
	pod.Status.StartTime, pod.DeletionTimestamp = &at, &at
	p := NewPod(pod)
	if !p.Started.Equal(at.Time) || !p.Terminating {
		t.Errorf("%+v", p)
	}
	if got := p.Shape.String(); !strings.Contains(got, "web") {
		t.Errorf("for people: %s", got)
	}
}
