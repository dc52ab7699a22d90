package disruption

import (
	"fmt"
	"testing"
	"time"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/resources"
)

func storyPool() *karpv1.NodePool {
	np := nodePool("default", onDemand(),
		requirement(corev1.LabelArchStable, corev1.NodeSelectorOpIn, "amd64"),
		requirement(corev1.LabelOSStable, corev1.NodeSelectorOpIn, "linux"),
		requirement(awsv1.LabelInstanceCategory, corev1.NodeSelectorOpIn, "c", "m", "r"),
		requirement(awsv1.LabelInstanceGeneration, corev1.NodeSelectorOpGt, "2"),
	)
	minute := time.Minute
	np.Spec.Disruption.ConsolidateAfter.Duration = &minute
	np.Spec.Disruption.Budgets = []karpv1.Budget{{Nodes: "100%"}}
	np.Spec.Limits = karpv1.Limits{corev1.ResourceCPU: resource.MustParse("1000")}
	return np
}

// storyNode is a node of the story with pods of one CPU.
type storyNode struct {
	instanceType string
	pods         int
}

func storyInput(types []*catalog.InstanceType, nodes ...storyNode) Input {
	np := storyPool()
	daemon := (&cluster.Shape{
		Namespace: "kube-system", Owner: cluster.Owner{Kind: "DaemonSet", Name: "agent"},
		Requests: resources.List{"cpu": 150, "pods": 1}, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
	}).Sealed()
	var list []*cluster.Node
	for i, n := range nodes {
		pods := podsOf("inflate", n.pods, resources.List{"cpu": 1000})
		for _, p := range pods {
			p.Name = fmt.Sprintf("node%d-%s", i, p.Name)
		}
		pods = append(pods, &cluster.Pod{Namespace: "kube-system", Name: fmt.Sprintf("agent-%d", i), Started: t0, Shape: daemon})
		list = append(list, nodeOf(fmt.Sprintf("node-%d", i), np, typeNamed(types, n.instanceType), "ap-northeast-2a", "on-demand", pods))
	}
	in := input(types, list, np)
	in.Snapshot.DaemonSets = []*cluster.DaemonSet{{Namespace: "kube-system", Name: "agent", Shape: daemon}}
	in.Snapshot.Seal()
	return in
}

func TestThirtyPodsOfTheStoryComeToRest(t *testing.T) {
	types := regionTypes(t, "ap-northeast-2")
	in := storyInput(types, storyNode{"c5a.2xlarge", 7}, storyNode{"c5a.4xlarge", 15}, storyNode{"c5a.2xlarge", 7}, storyNode{"c5a.large", 1})
	cmd, _ := propose(t, in)
	if cmd == nil {
		t.Fatal("there is no command")
	}
	if cmd.Method != Multi || len(cmd.Nodes) != 3 || len(cmd.Claims) != 1 || cmd.Claims[0].InstanceType != "c5a.4xlarge" || cmd.Savings.String() != "$0.086/h" {
		t.Errorf("got %s of %v saving %s", cmd.Method, cmd.Keys(), cmd.Savings)
	}
	rest, cmds := settle(t, in)
	if got := priceOfNodes(rest.Snapshot).String(); got != "$1.376/h" || len(cmds) != 1 {
		t.Errorf("at rest it costs %s after %d commands", got, len(cmds))
	}
}

func TestThreePodsOfTheStoryEndOnOneNode(t *testing.T) {
	types := regionTypes(t, "ap-northeast-2")
	tests := []struct {
		name  string
		nodes []storyNode
	}{
		{"spread", []storyNode{{"c5a.2xlarge", 1}, {"c5a.4xlarge", 1}, {"c5a.8xlarge", 1}, {"c5a.large", 0}}},
		{"on one", []storyNode{{"c5a.2xlarge", 0}, {"c5a.4xlarge", 3}, {"c5a.8xlarge", 0}}},
		{"on the small ones", []storyNode{{"c5a.2xlarge", 2}, {"c5a.4xlarge", 0}, {"c5a.large", 1}, {"c5a.8xlarge", 0}}},
	}
	for _, tc := range tests {
		rest, cmds := settle(t, storyInput(types, tc.nodes...))
		if got := priceOfNodes(rest.Snapshot).String(); got != "$0.172/h" {
			t.Errorf("%s: at rest it costs %s after %d commands", tc.name, got, len(cmds))
		}
	}
}

func TestNothingIsLeftOfTheStoryWithoutPods(t *testing.T) {
	in := storyInput(regionTypes(t, "ap-northeast-2"), storyNode{"c5a.4xlarge", 0}, storyNode{"c5a.4xlarge", 0})
	cmd, _ := propose(t, in)
	if cmd == nil || cmd.Method != Empty || cmd.Reason != "Empty" || len(cmd.Nodes) != 2 || cmd.Savings.String() != "$1.376/h" {
		t.Errorf("got %+v", cmd)
	}
}
