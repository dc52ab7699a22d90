package cluster

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/reeve-project/reeve/reconciler/resources"
)

// Pod is a pod as far as a decision depends on it. Env, args and annotations
// outside the allow-list never get here, so they cannot get into a record.
type Pod struct {
	Namespace string
	Name      string
	UID       string
	Created   time.Time
	// Started is when the kubelet acknowledged the pod; zero before.
	Started time.Time
	// Terminating says that the pod has a deletion timestamp, and Deadline
	// when its grace period ends.
	Terminating bool
	Deadline    time.Time
	// Unready says that the pod runs and its Ready condition is not true.
	Unready bool
	// Preempting says that kube-scheduler is making room for the pod on the
	// node it is listed with, by ending pods of lower priority. It is not
	// bound yet.
	Preempting bool
	// Shape is what it shares with its siblings.
	Shape *Shape
}

// Key is "namespace/name".
func (p *Pod) Key() string { return p.Namespace + "/" + p.Name }

// Owner is the controller of a pod.
type Owner struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// Shape is everything about a pod that placement, disruption or a policy
// depends on. Pods of one ReplicaSet share one shape.
type Shape struct {
	// ID is derived from the content of the other fields.
	ID        string            `json:"-"`
	Namespace string            `json:"namespace"`
	Owner     Owner             `json:"owner"`
	Labels    map[string]string `json:"labels,omitempty"`
	// Annotations are only those that Reeve or a policy reads; see
	// KeptAnnotations.
	Annotations map[string]string `json:"annotations,omitempty"`
	// Requests is what the scheduler counts: init and sidecar containers, pod
	// overhead and pod-level resources included, and one "pods".
	Requests     resources.List      `json:"requests"`
	NodeSelector map[string]string   `json:"nodeSelector,omitempty"`
	Affinity     *corev1.Affinity    `json:"affinity,omitempty"`
	Tolerations  []corev1.Toleration `json:"tolerations,omitempty"`
	// Spread are the topology spread constraints.
	Spread        []corev1.TopologySpreadConstraint `json:"spread,omitempty"`
	HostPorts     []HostPort                        `json:"hostPorts,omitempty"`
	Claims        []string                          `json:"claims,omitempty"`         // names of PersistentVolumeClaims
	Ephemeral     []string                          `json:"ephemeral,omitempty"`      // StorageClasses of generic ephemeral volumes
	Resources     []string                          `json:"resourceClaims,omitempty"` // names of DRA claims
	PriorityClass string                            `json:"priorityClass,omitempty"`
	Priority      int32                             `json:"priority,omitempty"`
	// GracePeriodSeconds is terminationGracePeriodSeconds, nil when unset.
	GracePeriodSeconds *int64 `json:"gracePeriodSeconds,omitempty"`
	SchedulerName      string `json:"schedulerName,omitempty"`
}

// HostPort is a port of the node that a pod asks for.
type HostPort struct {
	IP       string          `json:"ip"`
	Port     int32           `json:"port"`
	Protocol corev1.Protocol `json:"protocol"`
}

// Conflicts says whether two pods with these ports cannot share a node: same
// port and protocol, and the same address or a wildcard on either side.
func (h HostPort) Conflicts(o HostPort) bool {
	return h.Port == o.Port && h.Protocol == o.Protocol &&
		(h.IP == o.IP || isWildcard(h.IP) || isWildcard(o.IP))
}

func isWildcard(ip string) bool { return ip == "" || ip == "0.0.0.0" || ip == "::" }

// KeptAnnotations are the pod annotations that go into a shape.
var KeptAnnotations = []string{
	"karpenter.sh/do-not-disrupt",
	"controller.kubernetes.io/pod-deletion-cost",
}

// Labels that are different in every pod of a set and that no selector of
// another object sensibly names; kept, each pod would be a shape of its own.
var perPodLabels = []string{"statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index", "batch.kubernetes.io/job-completion-index"}

// NewPod takes from a pod of the API what decisions depend on.
func NewPod(pod *corev1.Pod) *Pod {
	out := &Pod{
		Namespace:   pod.Namespace,
		Name:        pod.Name,
		UID:         string(pod.UID),
		Created:     pod.CreationTimestamp.UTC(),
		Terminating: pod.DeletionTimestamp != nil,
		Shape:       NewShape(pod),
	}
	if pod.Status.StartTime != nil {
		out.Started = pod.Status.StartTime.UTC()
	}
	if pod.DeletionTimestamp != nil {
		out.Deadline = pod.DeletionTimestamp.UTC()
	}
	out.Unready = pod.Status.Phase == corev1.PodRunning && !ready(pod)
	out.Preempting = pod.Spec.NodeName == "" && pod.Status.NominatedNodeName != ""
	return out
}

func ready(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// NewShape computes the shape of a pod of the API.
func NewShape(pod *corev1.Pod) *Shape {
	spec := &pod.Spec
	sh := &Shape{
		Namespace:          pod.Namespace,
		Labels:             maps.Clone(pod.Labels),
		Requests:           podRequests(pod),
		NodeSelector:       spec.NodeSelector,
		Affinity:           spec.Affinity,
		Tolerations:        spec.Tolerations,
		Spread:             spec.TopologySpreadConstraints,
		HostPorts:          hostPorts(spec),
		PriorityClass:      spec.PriorityClassName,
		GracePeriodSeconds: spec.TerminationGracePeriodSeconds,
	}
	for _, l := range perPodLabels {
		delete(sh.Labels, l)
	}
	for _, a := range KeptAnnotations {
		if v, ok := pod.Annotations[a]; ok {
			if sh.Annotations == nil {
				sh.Annotations = map[string]string{}
			}
			sh.Annotations[a] = v
		}
	}
	if ref := metav1.GetControllerOf(pod); ref != nil {
		sh.Owner = Owner{Kind: ref.Kind, Name: ref.Name}
	}
	if spec.Priority != nil {
		sh.Priority = *spec.Priority
	}
	if spec.SchedulerName != corev1.DefaultSchedulerName {
		sh.SchedulerName = spec.SchedulerName
	}
	sh.volumes(spec)
	for _, c := range spec.ResourceClaims {
		sh.Resources = append(sh.Resources, c.Name)
	}
	sh.ID = sh.digest()
	return sh
}

func (sh *Shape) volumes(spec *corev1.PodSpec) {
	for _, v := range spec.Volumes {
		switch {
		case v.PersistentVolumeClaim != nil:
			sh.Claims = append(sh.Claims, v.PersistentVolumeClaim.ClaimName)
		case v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil:
			class := ""
			if c := v.Ephemeral.VolumeClaimTemplate.Spec.StorageClassName; c != nil {
				class = *c
			}
			sh.Ephemeral = append(sh.Ephemeral, class)
		}
	}
	slices.Sort(sh.Claims)
	slices.Sort(sh.Ephemeral)
}

// Sealed computes the ID of a shape that was built or read field by field.
func (sh *Shape) Sealed() *Shape {
	sh.ID = sh.digest()
	return sh
}

// digest names a shape by its content: the owner for people, a hash for
// machines. The hash stands last because Git finds delta bases by the end of a
// path.
func (sh *Shape) digest() string {
	b, err := json.Marshal(sh)
	if err != nil {
		panic("cluster: a shape is plain data and always encodes: " + err.Error())
	}
	sum := sha256.Sum256(b)
	hash := strings.ToLower(base32.StdEncoding.EncodeToString(sum[:5]))
	return cmp.Or(sh.Owner.Name, "pod") + "-" + hash
}

func podRequests(pod *corev1.Pod) resources.List {
	out := resources.From(resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{}))
	if out == nil {
		out = resources.List{}
	}
	for name, amount := range out {
		if amount == 0 {
			delete(out, name)
		}
	}
	out[corev1.ResourcePods] = 1
	return out
}

func hostPorts(spec *corev1.PodSpec) []HostPort {
	var out []HostPort
	add := func(cs []corev1.Container) {
		for i := range cs {
			for _, p := range cs[i].Ports {
				if p.HostPort != 0 {
					out = append(out, HostPort{IP: cmp.Or(p.HostIP, "0.0.0.0"), Port: p.HostPort, Protocol: cmp.Or(p.Protocol, corev1.ProtocolTCP)})
				}
			}
		}
	}
	add(spec.Containers)
	for i := range spec.InitContainers {
		// Only sidecars hold their ports while the pod runs.
		if rp := spec.InitContainers[i].RestartPolicy; rp != nil && *rp == corev1.ContainerRestartPolicyAlways {
			add(spec.InitContainers[i : i+1])
		}
	}
	slices.SortFunc(out, func(a, b HostPort) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.IP, b.IP))
	})
	return out
}

// String names the shape for people: "Deployment-owned pods" are named by
// their ReplicaSet.
func (sh *Shape) String() string {
	return fmt.Sprintf("%s/%s (%s)", sh.Namespace, cmp.Or(sh.Owner.Name, "pod"), sh.Requests)
}
