package sim

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// daemonTolerations are what the DaemonSet controller adds to its pods.
func daemonTolerations(spec *corev1.PodSpec) []corev1.Toleration {
	exists := func(key string, effect corev1.TaintEffect) corev1.Toleration {
		return corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: effect}
	}
	out := []corev1.Toleration{
		exists(corev1.TaintNodeNotReady, corev1.TaintEffectNoExecute),
		exists(corev1.TaintNodeUnreachable, corev1.TaintEffectNoExecute),
		exists(corev1.TaintNodeDiskPressure, corev1.TaintEffectNoSchedule),
		exists(corev1.TaintNodeMemoryPressure, corev1.TaintEffectNoSchedule),
		exists(corev1.TaintNodePIDPressure, corev1.TaintEffectNoSchedule),
		exists(corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule),
	}
	if spec.HostNetwork {
		out = append(out, exists(corev1.TaintNodeNetworkUnavailable, corev1.TaintEffectNoSchedule))
	}
	return out
}

// addDaemonTolerations gives the pod those it does not have yet.
func addDaemonTolerations(spec *corev1.PodSpec) {
	for _, t := range daemonTolerations(spec) {
		if !slices.ContainsFunc(spec.Tolerations, func(o corev1.Toleration) bool { return o.MatchToleration(&t) }) {
			spec.Tolerations = append(spec.Tolerations, t)
		}
	}
}

// daemonPod is a pod of the DaemonSet as it would be on a node of that name.
func daemonPod(ds *appsv1.DaemonSet, node string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: *ds.Spec.Template.ObjectMeta.DeepCopy(), Spec: *ds.Spec.Template.Spec.DeepCopy()}
	pod.Namespace = ds.Namespace
	pod.OwnerReferences = append(pod.OwnerReferences, controllerRef("apps/v1", "DaemonSet", ds))
	addDaemonTolerations(&pod.Spec)
	if node != "" {
		pinToNode(pod, node)
	}
	return pod
}

// pinToNode replaces the required node affinity by the one node: the controller
// has tested the template's own affinity, the scheduler only binds.
func pinToNode(pod *corev1.Pod, node string) {
	if pod.Spec.Affinity == nil {
		pod.Spec.Affinity = &corev1.Affinity{}
	}
	if pod.Spec.Affinity.NodeAffinity == nil {
		pod.Spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
			{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{node}},
		}}},
	}
}

// daemonEligible says whether the DaemonSet wants a pod on the node, and
// whether one that is there may stay: a NoSchedule taint keeps new ones away
// only.
func daemonEligible(ds *appsv1.DaemonSet, node *corev1.Node) (run, stay bool) {
	pod := daemonPod(ds, "")
	if ok, _ := matchesNode(pod, node); !ok {
		return false, false
	}
	run, stay = true, true
	for _, t := range node.Spec.Taints {
		if tolerated(pod.Spec.Tolerations, t) {
			continue
		}
		switch t.Effect {
		case corev1.TaintEffectNoExecute:
			return false, false
		case corev1.TaintEffectNoSchedule:
			run = false
		}
	}
	return run, stay
}

// reconcileDaemonSets puts one pod of each DaemonSet on each node that it is
// for.
func (w *World) reconcileDaemonSets() {
	owned := ownedBy(List[*corev1.Pod](w.API))
	nodes := List[*corev1.Node](w.API)
	for _, ds := range List[*appsv1.DaemonSet](w.API) {
		if ds.DeletionTimestamp != nil {
			continue
		}
		byNode := map[string][]*corev1.Pod{}
		for _, p := range owned[ds.UID] {
			byNode[daemonNode(p)] = append(byNode[daemonNode(p)], p)
		}
		for _, n := range nodes {
			run, stay := daemonEligible(ds, n)
			have := byNode[n.Name]
			switch {
			case run && len(have) == 0:
				name := n.Name
				w.createPod(actorDaemonSet, ds, "DaemonSet", ds.Spec.Template, func(p *corev1.Pod) {
					addDaemonTolerations(&p.Spec)
					pinToNode(p, name)
				})
			case !stay:
				for _, p := range have {
					if p.DeletionTimestamp == nil {
						w.must(Delete[*corev1.Pod](w.API, actorDaemonSet, KeyOf(p), nil))
					}
				}
			}
		}
	}
}

// daemonNode is the node that a DaemonSet's pod is on or was made for.
func daemonNode(p *corev1.Pod) string {
	if p.Spec.NodeName != "" {
		return p.Spec.NodeName
	}
	if a := p.Spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		for _, term := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			for _, f := range term.MatchFields {
				if f.Key == "metadata.name" && len(f.Values) == 1 {
					return f.Values[0]
				}
			}
		}
	}
	return ""
}
