package scheduling

import (
	"encoding/json"
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
			requirements.In(capacityTypeLabel, "spot", "on-demand"),
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

func nodePool(name string, reqs ...karpv1.NodeSelectorRequirementWithMinValues) *karpv1.NodePool {
	np := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name}}
	np.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "default"}
	np.Spec.Template.Spec.Requirements = reqs
	return np
}

func onDemandPool(name string, more ...karpv1.NodeSelectorRequirementWithMinValues) *karpv1.NodePool {
	return nodePool(name, append(more, requirement(capacityTypeLabel, corev1.NodeSelectorOpIn, "on-demand"))...)
}

// pods are n equal pods of one ReplicaSet.
func pods(name string, n int, requests resources.List, change ...func(*cluster.Shape)) []*cluster.Pod {
	sh := &cluster.Shape{
		Namespace: "default", Owner: cluster.Owner{Kind: "ReplicaSet", Name: name},
		Labels: map[string]string{"app": name}, Requests: requests.Plus(resources.List{"pods": 1}),
	}
	for _, f := range change {
		f(sh)
	}
	sh.Sealed()
	var out []*cluster.Pod
	for i := range n {
		out = append(out, &cluster.Pod{Namespace: "default", Name: fmt.Sprintf("%s-%05d", name, i), Created: t0, Shape: sh})
	}
	return out
}

func cores(milli int64) resources.List {
	return resources.List{"cpu": milli, "memory": milli * gib / 1000}
}

func input(pending []*cluster.Pod, types []*catalog.InstanceType, pools ...*karpv1.NodePool) Input {
	return Input{
		Snapshot: (&cluster.Snapshot{Time: t0, Pending: pending}).Seal(),
		Fleet:    &fleet.Fleet{NodePools: pools, Cluster: fleet.Cluster{Engine: fleet.EngineSettings{NodeFee: json.Number("0")}}},
		Types:    map[string][]*catalog.InstanceType{"default": types},
	}
}

func solve(t testing.TB, in Input) *Plan {
	t.Helper()
	plan, err := Solve(in)
	if err != nil {
		t.Fatal(err)
	}
	if err := check(in, plan); err != nil {
		t.Fatalf("the plan breaks a rule: %v", err)
	}
	return plan
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
