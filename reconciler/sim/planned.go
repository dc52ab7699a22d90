package sim

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/lifecycle"
	"github.com/reeve-project/reeve/reconciler/resources"
)

// CheckPlan asks the binder about a proposal before it is acted on. The pods
// planned for nodes that exist, and those planned for each claim on the offering
// that the plan counts on, have to be feasible all together; and those of each
// claim, with the daemons, on every type that may be launched for it. The error
// joins every refusal.
//
// Nodes are taken as they will be once they are initialized. Pods planned for a
// claim of an earlier decision that has no instance yet cannot be judged and are
// left out.
func (c *Cloud) CheckPlan(p *decision.Proposal, f *fleet.Fleet) error {
	return c.world.CheckPlan(p, f, func(class *ec2v1.EC2NodeClass) ([]*catalog.InstanceType, error) {
		resolved := class.DeepCopy()
		var err error
		if resolved.Status, err = c.resolve(class); err != nil {
			return nil, err
		}
		return c.data.Resolve(resolved, c.settings)
	})
}

// TypesOf gives the instance types that nodes of a class can have.
type TypesOf func(class *ec2v1.EC2NodeClass) ([]*catalog.InstanceType, error)

// CheckPlan is Cloud.CheckPlan for whatever cloud: types are asked of the
// function.
func (w *World) CheckPlan(p *decision.Proposal, f *fleet.Fleet, types TypesOf) error {
	var refused []error
	v := w.View()
	for _, pl := range p.Placements {
		node, err := w.nodeToBe(pl.Node)
		if err != nil {
			refused = append(refused, err)
			continue
		}
		if node != nil {
			v.replaceNode(node)
			refused = append(refused, w.placeAll(v, node, pl.Pods)...)
		}
	}
	for i := range p.Claims {
		refused = append(refused, w.checkClaim(v, &p.Claims[i], f, p.Lists, types)...)
	}
	return errors.Join(refused...)
}

// nodeToBe is the node of that key, a claim's name or its own, as it will be
// once it is initialized; nil while nothing is known of it.
func (w *World) nodeToBe(key string) (*corev1.Node, error) {
	nc, err := Get[*karpv1.NodeClaim](w.API, key)
	if err != nil {
		return Get[*corev1.Node](w.API, key)
	}
	if nc.Status.ProviderID == "" {
		return nil, nil
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: key, Labels: nc.Labels}}
	node.Spec.Taints = nc.Spec.Taints
	node.Status.Allocatable = nc.Status.Allocatable
	for _, n := range List[*corev1.Node](w.API) {
		if n.Spec.ProviderID == nc.Status.ProviderID {
			node = n.DeepCopy()
		}
	}
	if node.Labels[karpv1.NodeInitializedLabelKey] == "true" {
		return node, nil
	}
	node.Labels = maps.Clone(node.Labels)
	maps.Copy(node.Labels, nc.Labels)
	node.Spec.Taints = slices.DeleteFunc(slices.Clone(node.Spec.Taints), func(t corev1.Taint) bool {
		return lifecycle.IsEphemeral(t) || slices.ContainsFunc(nc.Spec.StartupTaints, func(s corev1.Taint) bool { return sameTaint(s, t) })
	})
	node.Status.Allocatable = nc.Status.Allocatable
	return node, nil
}

// replaceNode puts the node in the place of the one of its name, with its pods.
func (v *View) replaceNode(n *corev1.Node) {
	old := v.byName[n.Name]
	if old == nil {
		v.AddNode(n)
		return
	}
	old.node, old.allocatable = n, newNodeView(n).allocatable
}

func (w *World) checkClaim(v *View, claim *decision.Claim, f *fleet.Fleet, lists map[string][]string, of TypesOf) []error {
	pool, class := f.NodePool(claim.NodePool), f.NodeClass(claim.NodeClass)
	if pool == nil || class == nil {
		return []error{fmt.Errorf("claim %d: the fleet has no NodePool %q or no EC2NodeClass %q", claim.Index, claim.NodePool, claim.NodeClass)}
	}
	types, err := of(class)
	if err != nil {
		return []error{err}
	}
	byName := map[string]*catalog.InstanceType{}
	for _, it := range types {
		byName[it.Name] = it
	}
	var refused []error
	planned := false
	for _, name := range namesOf(claim.Launchable, lists) {
		it := byName[name]
		if it == nil {
			refused = append(refused, fmt.Errorf("claim %d: there is no launchable type %q", claim.Index, name))
			continue
		}
		if name == claim.InstanceType {
			planned = true
			refused = append(refused, checkOffering(claim, it)...)
			node := plannedNode(claim, pool, it, claim.Zone)
			v.AddNode(node)
			refused = append(refused, w.placeAll(v, node, claim.Pods)...)
			continue
		}
		refused = append(refused, w.checkType(claim, pool, it)...)
	}
	if !planned {
		refused = append(refused, fmt.Errorf("claim %d: %s, which the plan counts on, is not among the launchable types", claim.Index, claim.InstanceType))
	}
	return refused
}

// checkOffering: what the plan counts on is sold, at that price.
func checkOffering(claim *decision.Claim, it *catalog.InstanceType) []error {
	for _, o := range it.Offerings {
		if o.Zone == claim.Zone && o.CapacityType == claim.CapacityType && o.Available && o.Meets(claim.Requirements) {
			if o.Price != claim.Price {
				return []error{fmt.Errorf("claim %d: the plan counts on %s for %s in %s, which costs %s", claim.Index, claim.Price, it.Name, o.Zone, o.Price)}
			}
			return nil
		}
	}
	return []error{fmt.Errorf("claim %d: the plan counts on %s %s in %s, which is not sold or not allowed", claim.Index, claim.CapacityType, it.Name, claim.Zone)}
}

func namesOf(s decision.TypeSet, lists map[string][]string) []string {
	if s.List != "" {
		return lists[s.List]
	}
	return s.Names
}

// checkType places the claim's pods on a node of the type alone, in the first
// zone in which it may be launched.
func (w *World) checkType(claim *decision.Claim, pool *karpv1.NodePool, it *catalog.InstanceType) []error {
	o, ok := it.Cheapest(claim.Requirements)
	if !ok {
		return []error{fmt.Errorf("claim %d: launchable type %s has no offering that the claim allows", claim.Index, it.Name)}
	}
	node := plannedNode(claim, pool, it, o.Zone)
	v := NewView([]*corev1.Node{node}, nil, nil)
	v.only = node.Name
	return w.placeAll(v, node, claim.Pods)
}

// plannedNode is the node that the claim would become.
func plannedNode(claim *decision.Claim, pool *karpv1.NodePool, it *catalog.InstanceType, zone string) *corev1.Node {
	labels := it.Requirements.Labels()
	maps.Copy(labels, claim.Requirements.Labels())
	maps.Copy(labels, pool.Spec.Template.Labels)
	labels[corev1.LabelTopologyZone] = zone
	labels[corev1.LabelInstanceTypeStable] = it.Name
	labels[karpv1.CapacityTypeLabelKey] = claim.CapacityType
	labels[karpv1.NodePoolLabelKey] = claim.NodePool
	labels[ec2v1.LabelNodeClass] = claim.NodeClass
	for _, o := range it.Offerings {
		if o.Zone == zone {
			labels[ec2v1.LabelTopologyZoneID] = o.ZoneID
		}
	}
	name := fmt.Sprintf("claim-%d-as-%s", claim.Index, strings.ReplaceAll(it.Name, ".", "-"))
	labels[corev1.LabelHostname] = name
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec:       corev1.NodeSpec{Taints: pool.Spec.Template.Spec.Taints},
		Status:     corev1.NodeStatus{Allocatable: it.Allocatable.Kubernetes()},
	}
}

// placeAll places the daemons that the node lacks and then the pods.
func (w *World) placeAll(v *View, node *corev1.Node, groups []decision.PodGroup) []error {
	var refused []error
	here := map[string]bool{}
	for _, p := range v.byName[node.Name].pods {
		if ref := metav1.GetControllerOf(p); ref != nil {
			here[string(ref.UID)] = true
		}
	}
	for _, ds := range List[*appsv1.DaemonSet](w.API) {
		if run, _ := daemonEligible(ds, node); !run || here[string(ds.UID)] {
			continue
		}
		pod := daemonPod(ds, node.Name)
		pod.Name = ds.Name
		setDefaults(pod)
		if err := v.Place(pod, node.Name); err != nil {
			refused = append(refused, err)
		}
	}
	for _, g := range groups {
		for _, name := range g.Names {
			pod, err := Get[*corev1.Pod](w.API, g.Namespace+"/"+name)
			if err == nil {
				err = v.Place(v.lift(pod), node.Name)
			}
			if err != nil {
				refused = append(refused, err)
			}
		}
	}
	return refused
}

// lift takes a pod that moves off the node that it is on, and gives it as it
// will be when it has been made anew.
func (v *View) lift(pod *corev1.Pod) *corev1.Pod {
	old := v.byName[pod.Spec.NodeName]
	if pod.Spec.NodeName == "" {
		return pod
	}
	if old != nil {
		stay := slices.DeleteFunc(slices.Clone(old.pods), func(p *corev1.Pod) bool { return p.UID == pod.UID })
		v.withAnti = slices.DeleteFunc(v.withAnti, func(p placed) bool { return p.on == old })
		old.pods, old.used, old.ports = nil, resources.List{}, nil
		for _, p := range stay {
			v.put(p, old)
		}
	}
	pod = pod.DeepCopy()
	pod.Spec.NodeName = ""
	return pod
}
