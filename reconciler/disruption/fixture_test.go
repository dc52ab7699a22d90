package disruption

import (
	"fmt"
	"testing"
	"time"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/requirements"
	"github.com/reeve-project/reeve/reconciler/resources"
)

var t0 = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

const gib = int64(1) << 30

// plainType is a type whose allocatable is its capacity, in three zones, with
// spot at three tenths of the price.
func plainType(name string, cpu, memGi int64, price resources.Price) *catalog.InstanceType {
	amounts := resources.List{"cpu": cpu * 1000, "memory": memGi * gib, "pods": 110}
	it := &catalog.InstanceType{
		Name: name, Capacity: amounts, Allocatable: amounts,
		Requirements: requirements.NewSet(
			requirements.In(corev1.LabelInstanceTypeStable, name),
			requirements.In(corev1.LabelTopologyZone, "a", "b", "c"),
			requirements.In(karpv1.CapacityTypeLabelKey, "spot", "on-demand"),
			requirements.In(corev1.LabelArchStable, "amd64"),
			requirements.In(corev1.LabelOSStable, "linux"),
			requirements.In(awsv1.LabelInstanceSize, name),
			requirements.DoesNotExist(awsv1.LabelInstanceGPUCount),
		),
	}
	for _, zone := range []string{"a", "b", "c"} {
		it.Offerings = append(it.Offerings,
			catalog.Offering{Zone: zone, CapacityType: "spot", Price: price * 3 / 10, Available: true},
			catalog.Offering{Zone: zone, CapacityType: "on-demand", Price: price, Available: true})
	}
	return it
}

// commonTypes are s1 to s32: 1 CPU, 2 GiB and $0.05/h each.
func commonTypes() []*catalog.InstanceType {
	var out []*catalog.InstanceType
	for cpu := int64(1); cpu <= 32; cpu *= 2 {
		out = append(out, plainType(fmt.Sprintf("s%d", cpu), cpu, 2*cpu, resources.Price(cpu)*50_000_000))
	}
	return out
}

func requirement(key string, op corev1.NodeSelectorOperator, values ...string) karpv1.NodeSelectorRequirementWithMinValues {
	return karpv1.NodeSelectorRequirementWithMinValues{Key: key, Operator: op, Values: values}
}

// nodePool consolidates at once and has no budgets.
func nodePool(name string, reqs ...karpv1.NodeSelectorRequirementWithMinValues) *karpv1.NodePool {
	np := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name}}
	np.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "default"}
	np.Spec.Template.Spec.Requirements = reqs
	np.Spec.Disruption.ConsolidateAfter = karpv1.NillableDuration{Duration: new(time.Duration)}
	np.Spec.Disruption.ConsolidationPolicy = karpv1.ConsolidationPolicyWhenEmptyOrUnderutilized
	return np
}

func onDemand() karpv1.NodeSelectorRequirementWithMinValues {
	return requirement(karpv1.CapacityTypeLabelKey, corev1.NodeSelectorOpIn, "on-demand")
}

// podsOf are n equal pods of one ReplicaSet.
func podsOf(name string, n int, requests resources.List) []*cluster.Pod {
	sh := (&cluster.Shape{
		Namespace: "default", Owner: cluster.Owner{Kind: "ReplicaSet", Name: name},
		Labels: map[string]string{"app": name}, Requests: requests.Plus(resources.List{"pods": 1}),
	}).Sealed()
	var out []*cluster.Pod
	for i := range n {
		out = append(out, &cluster.Pod{Namespace: "default", Name: fmt.Sprintf("%s-%05d", name, i), Created: t0, Started: t0, Shape: sh})
	}
	return out
}

// nodeOf is an initialized node of a type, its pods bound an hour ago.
func nodeOf(name string, np *karpv1.NodePool, it *catalog.InstanceType, zone, capacityType string, pods []*cluster.Pod) *cluster.Node {
	labels := it.Requirements.Labels()
	labels[corev1.LabelTopologyZone], labels[karpv1.CapacityTypeLabelKey] = zone, capacityType
	labels[karpv1.NodePoolLabelKey], labels[corev1.LabelHostname] = np.Name, name
	n := &cluster.Node{
		Name: name, Labels: labels, Capacity: it.Capacity, Allocatable: it.Allocatable, Ready: true, Pods: pods,
		Claim: &cluster.Claim{
			Name: name, NodePool: np.Name, NodeClass: "default", Labels: labels, InstanceType: it.Name, Zone: zone,
			CapacityType: capacityType, Capacity: it.Capacity, Allocatable: it.Allocatable, LastPodEvent: t0.Add(-time.Hour),
			Conditions: cluster.Conditions{Launched: true, Registered: true, Initialized: true, InitializedAt: t0.Add(-2 * time.Hour)},
		},
	}
	n.Claim.Price = priceOf(n.Claim, it)
	return n
}

func input(types []*catalog.InstanceType, nodes []*cluster.Node, pools ...*karpv1.NodePool) Input {
	return Input{
		Snapshot: (&cluster.Snapshot{Time: t0, Nodes: nodes}).Seal(),
		Fleet:    &fleet.Fleet{NodePools: pools},
		Types:    map[string][]*catalog.InstanceType{"default": types},
	}
}

func typeNamed(types []*catalog.InstanceType, name string) *catalog.InstanceType {
	for _, it := range types {
		if it.Name == name {
			return it
		}
	}
	panic("no type " + name)
}

// regionTypes are the types of a region for an AL2023 class with a subnet in
// each zone.
func regionTypes(t testing.TB, region string) []*catalog.InstanceType {
	t.Helper()
	d, err := catalog.Embedded(region)
	if err != nil {
		t.Fatal(err)
	}
	class := &awsv1.EC2NodeClass{
		ObjectMeta: metav1.ObjectMeta{Name: "default"},
		Spec:       awsv1.EC2NodeClassSpec{AMISelectorTerms: []awsv1.AMISelectorTerm{{Alias: "al2023@v20260318"}}},
	}
	for i, z := range d.Zones() {
		class.Status.Subnets = append(class.Status.Subnets, awsv1.Subnet{ID: fmt.Sprintf("subnet-%d", i), Zone: z.Name, ZoneID: z.ID})
	}
	types, err := d.Resolve(class, catalog.DefaultSettings())
	if err != nil {
		t.Fatal(err)
	}
	return types
}

func propose(t testing.TB, in Input) (*Command, []Blocked) {
	t.Helper()
	cmd, blocked, err := Propose(in)
	if err != nil {
		t.Fatal(err)
	}
	if cmd != nil {
		if err := check(in, cmd); err != nil {
			t.Fatalf("the command breaks a rule: %v", err)
		}
	}
	return cmd, blocked
}

// apply is the cluster after a command: its nodes are gone, their pods are
// where the command says, and the new node is there.
func apply(in Input, cmd *Command, name string) Input {
	gone := map[string]bool{}
	for _, key := range cmd.Keys() {
		gone[key] = true
	}
	s := &cluster.Snapshot{Time: in.Snapshot.Time, DaemonSets: in.Snapshot.DaemonSets, Pending: in.Snapshot.Pending, Budgets: in.Snapshot.Budgets, Unavailable: in.Snapshot.Unavailable}
	more := map[string][]*cluster.Pod{}
	for _, p := range cmd.Placements {
		more[p.Node] = p.Pods
	}
	for _, n := range in.Snapshot.Nodes {
		if gone[n.Key()] {
			continue
		}
		next := *n
		next.Pods = append(append([]*cluster.Pod{}, n.Pods...), more[n.Key()]...)
		s.Nodes = append(s.Nodes, &next)
	}
	for _, c := range cmd.Claims {
		n := nodeOf(name, in.Fleet.NodePool(c.NodePool), typeNamed(c.Types, c.InstanceType), c.Offering.Zone, c.Offering.CapacityType, c.Pods)
		s.Nodes = append(s.Nodes, n)
	}
	in.Snapshot = s.Seal()
	return in
}

// settle applies commands until there are none left.
func settle(t testing.TB, in Input) (Input, []*Command) {
	t.Helper()
	var cmds []*Command
	for i := range 1000 {
		cmd, _ := propose(t, in)
		if cmd == nil {
			return in, cmds
		}
		cmds = append(cmds, cmd)
		in = apply(in, cmd, fmt.Sprintf("new-%03d", i))
	}
	t.Fatal("it does not come to rest")
	return in, nil
}

func priceOfNodes(s *cluster.Snapshot) resources.Price {
	var sum resources.Price
	for _, n := range s.Nodes {
		if n.Claim != nil {
			sum += n.Claim.Price
		}
	}
	return sum
}
