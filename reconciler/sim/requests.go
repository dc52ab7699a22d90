package sim

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/reeve-project/reeve/reconciler/resources"
)

// requestsOf is what the scheduler counts for a pod, from the documentation of
// init containers, sidecar containers, pod overhead and pod-level resources:
// the larger of what runs together in the end (containers and sidecars) and of
// each init container together with the sidecars started before it; pod-level
// requests replace that for the resources they name; overhead comes on top.
func requestsOf(pod *corev1.Pod) resources.List {
	spec := &pod.Spec
	sidecars, peak := resources.List{}, resources.List{}
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		own := resources.From(c.Resources.Requests)
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			sidecars = sidecars.Plus(own)
			peak = peak.Max(sidecars)
			continue
		}
		peak = peak.Max(sidecars.Plus(own))
	}
	sum := sidecars
	for i := range spec.Containers {
		sum = sum.Plus(resources.From(spec.Containers[i].Resources.Requests))
	}
	sum = sum.Max(peak)
	if spec.Resources != nil {
		for name, amount := range resources.From(spec.Resources.Requests) {
			if podLevel(name) {
				sum[name] = amount
			}
		}
	}
	sum = sum.Plus(resources.From(spec.Overhead))
	sum[corev1.ResourcePods] = 1
	return sum
}

// podLevel says whether a pod as a whole may request the resource.
func podLevel(name corev1.ResourceName) bool {
	return name == corev1.ResourceCPU || name == corev1.ResourceMemory ||
		len(name) > len(corev1.ResourceHugePagesPrefix) && name[:len(corev1.ResourceHugePagesPrefix)] == corev1.ResourceHugePagesPrefix
}

// hostPort is a port of the node that a pod holds.
type hostPort struct {
	ip       string
	port     int32
	protocol corev1.Protocol
}

func hostPortsOf(pod *corev1.Pod) []hostPort {
	var out []hostPort
	add := func(c *corev1.Container) {
		for _, p := range c.Ports {
			port := p.HostPort
			if pod.Spec.HostNetwork && port == 0 {
				port = p.ContainerPort
			}
			if port == 0 {
				continue
			}
			h := hostPort{ip: p.HostIP, port: port, protocol: p.Protocol}
			if h.protocol == "" {
				h.protocol = corev1.ProtocolTCP
			}
			if h.ip == "" || h.ip == "::" {
				h.ip = "0.0.0.0"
			}
			out = append(out, h)
		}
	}
	for i := range pod.Spec.Containers {
		add(&pod.Spec.Containers[i])
	}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			add(c)
		}
	}
	return out
}

func (h hostPort) conflicts(o hostPort) bool {
	return h.port == o.port && h.protocol == o.protocol && (h.ip == o.ip || h.ip == "0.0.0.0" || o.ip == "0.0.0.0")
}
