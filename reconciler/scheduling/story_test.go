package scheduling

import (
	"testing"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/resources"
)

func storyPool() *karpv1.NodePool {
	np := onDemandPool("default",
		requirement(corev1.LabelArchStable, corev1.NodeSelectorOpIn, "amd64"),
		requirement(corev1.LabelOSStable, corev1.NodeSelectorOpIn, "linux"),
		requirement(awsv1.LabelInstanceCategory, corev1.NodeSelectorOpIn, "c", "m", "r"),
		requirement(awsv1.LabelInstanceGeneration, corev1.NodeSelectorOpGt, "2"),
	)
	np.Spec.Limits = karpv1.Limits{corev1.ResourceCPU: resource.MustParse("1000")}
	return np
}

func storyInput(t testing.TB, n int) Input {
	in := input(pods("inflate", n, resources.List{"cpu": 1000}), regionTypes(t, "ap-northeast-2"), storyPool())
	in.Snapshot.DaemonSets = []*cluster.DaemonSet{{Namespace: "kube-system", Name: "agent", Shape: (&cluster.Shape{
		Namespace: "kube-system", Owner: cluster.Owner{Kind: "DaemonSet", Name: "agent"},
		Requests: resources.List{"cpu": 150, "pods": 1}, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
	}).Sealed()}}
	in.Snapshot.Seal()
	return in
}

// asNode is the node that a claim becomes, its pods bound.
func asNode(name string, c *Claim) *cluster.Node {
	var it *catalog.InstanceType
	for _, t := range c.Types {
		if t.Name == c.InstanceType {
			it = t
		}
	}
	labels := c.Requirements.Labels()
	labels[corev1.LabelInstanceTypeStable], labels[corev1.LabelTopologyZone], labels[capacityTypeLabel] = it.Name, c.Offering.Zone, c.Offering.CapacityType
	return &cluster.Node{
		Name: name, Labels: labels, Capacity: it.Capacity, Allocatable: it.Allocatable, Ready: true, Pods: c.Pods,
		Claim: &cluster.Claim{
			Name: name, NodePool: c.NodePool, NodeClass: c.NodeClass, Labels: labels, InstanceType: it.Name, Zone: c.Offering.Zone,
			CapacityType: c.Offering.CapacityType, Price: c.Offering.Price, Capacity: it.Capacity, Allocatable: it.Allocatable,
			Conditions: cluster.Conditions{Launched: true, Registered: true, Initialized: true},
		},
	}
}

func TestFivePodsOfTheStoryGetOneNode(t *testing.T) {
	plan := solve(t, storyInput(t, 5))
	if len(plan.Claims) != 1 || len(plan.Unplaced) != 0 {
		t.Fatalf("%d claims, unplaced %+v", len(plan.Claims), plan.Unplaced)
	}
	c := plan.Claims[0]
	if c.InstanceType != "c5a.2xlarge" || c.Offering.Price.String() != "$0.344/h" || c.Offering.Zone != "ap-northeast-2a" || c.Offering.CapacityType != "on-demand" {
		t.Errorf("got %s %+v", c.InstanceType, c.Offering)
	}
	if c.Requests["cpu"] != 5150 || c.Daemons["cpu"] != 150 || len(c.Pods) != 5 || len(c.Types) != 60 {
		t.Errorf("requests %s, daemons %s, %d pods, %d types", c.Requests, c.Daemons, len(c.Pods), len(c.Types))
	}
	t.Logf("filters %+v", c.Filters)
	t.Logf("cheapest %+v", c.Cheapest)
	t.Logf("requirements %s", c.Requirements)
}

func TestTheStoryGrowsAtTheOptimum(t *testing.T) {
	tests := []struct {
		name          string
		first, second int
		total, grow   string
		spare         int
	}{
		{"five then thirty", 5, 25, "$1.462/h", "$1.118/h", 2},
		{"seven then forty-one", 7, 34, "$1.892/h", "$1.548/h", 0},
	}
	for _, tc := range tests {
		first := solve(t, storyInput(t, tc.first))
		in := storyInput(t, tc.second)
		for i, c := range first.Claims {
			in.Snapshot.Nodes = append(in.Snapshot.Nodes, asNode(string(rune('m'+i)), c))
		}
		for _, p := range in.Snapshot.Pending {
			p.Name = "late-" + p.Name
		}
		in.Snapshot.Seal()
		plan := solve(t, in)
		spare := 0
		for _, pl := range plan.Placements {
			spare += len(pl.Pods)
		}
		if got := plan.Cost().String(); got != tc.grow || spare != tc.spare {
			t.Errorf("%s: new nodes cost %s (want %s), %d pods on spare room (want %d)", tc.name, got, tc.grow, spare, tc.spare)
		}
		if got := (plan.Cost() + first.Cost()).String(); got != tc.total {
			t.Errorf("%s: in all %s, want %s", tc.name, got, tc.total)
		}
	}
}
