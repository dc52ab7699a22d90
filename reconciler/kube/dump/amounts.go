package dump

import (
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// No node has more than that of anything, in bytes or pieces, nor cores. Sums
// over a whole cluster still fit into 64 bits.
const (
	mostUnits = 1 << 48
	mostCores = 1 << 38
)

// checkAmounts refuses what the API server would, and what no machine has.
func checkAmounts(field string, list corev1.ResourceList) error {
	for _, name := range slices.Sorted(maps.Keys(list)) {
		q, most := list[name], int64(mostUnits)
		if name == corev1.ResourceCPU {
			most = mostCores
		}
		switch {
		case q.Sign() < 0:
			return fmt.Errorf("%s.%s: %s is below zero", field, name, short(&q))
		case q.CmpInt64(most) > 0:
			return fmt.Errorf("%s.%s: %s is more than any node has", field, name, short(&q))
		}
	}
	return nil
}

// short is the quantity as written, cut to what fits on a line.
func short(q *resource.Quantity) string {
	s := q.String()
	if len(s) > 40 {
		return s[:40] + "…"
	}
	return s
}

func checkPod(p *corev1.Pod) error { return checkPodSpec("spec", &p.Spec) }

func checkDaemonSet(ds *appsv1.DaemonSet) error {
	return checkPodSpec("spec.template.spec", &ds.Spec.Template.Spec)
}

func checkPodSpec(field string, spec *corev1.PodSpec) error {
	if err := checkAmounts(field+".overhead", spec.Overhead); err != nil {
		return err
	}
	if rs := spec.Resources; rs != nil {
		if err := checkRequirements(field+".resources", *rs); err != nil {
			return err
		}
	}
	for i := range spec.InitContainers {
		if err := checkRequirements(fmt.Sprintf("%s.initContainers[%d].resources", field, i), spec.InitContainers[i].Resources); err != nil {
			return err
		}
	}
	for i := range spec.Containers {
		if err := checkRequirements(fmt.Sprintf("%s.containers[%d].resources", field, i), spec.Containers[i].Resources); err != nil {
			return err
		}
	}
	return nil
}

func checkRequirements(field string, r corev1.ResourceRequirements) error {
	if err := checkAmounts(field+".requests", r.Requests); err != nil {
		return err
	}
	return checkAmounts(field+".limits", r.Limits)
}

func checkNode(n *corev1.Node) error {
	if err := checkAmounts("status.capacity", n.Status.Capacity); err != nil {
		return err
	}
	return checkAmounts("status.allocatable", n.Status.Allocatable)
}

func checkNodeClaim(c *karpv1.NodeClaim) error {
	if err := checkAmounts("spec.resources.requests", c.Spec.Resources.Requests); err != nil {
		return err
	}
	if err := checkAmounts("status.capacity", c.Status.Capacity); err != nil {
		return err
	}
	return checkAmounts("status.allocatable", c.Status.Allocatable)
}
