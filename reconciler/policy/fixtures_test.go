package policy

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/resources"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// document is the fleet of the tests; alias and policy vary.
const document = `{
 "cluster": {"name": "myeks", "region": "ap-northeast-2", "environment": "production"},
 "nodePools": {"default": {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "default"},
   "spec": {"template": {"spec": {"nodeClassRef": {"name": "default"}, "requirements": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}]}}}}},
 "nodeClasses": {"default": {"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "default"},
   "spec": {"role": "node", "amiSelectorTerms": [{"alias": "ALIAS"}]}}},
 "policy": POLICY,
 "exceptions": []
}`

const shippedSettings = `{"amiPinning": {"enabled": true, "environments": ["production"], "allow": []},
 "instanceTypes": {"enabled": true, "exclude": ["m6g*.16xlarge"], "excludeSizes": ["metal"], "excludeFamilies": [], "gpu": "on-request"},
 "controllerPlacement": {"enabled": true, "namespace": "kube-system", "labels": {"app.kubernetes.io/name": "reeve"}}}`

// newFleet is a fleet with that AMI alias.
func newFleet(t testing.TB, alias string) *fleet.Fleet {
	t.Helper()
	doc := strings.NewReplacer("ALIAS", alias, "POLICY", shippedSettings).Replace(document)
	if !json.Valid([]byte(doc)) {
		t.Fatalf("document is no JSON:\n%s", doc)
	}
	f := &fleet.Fleet{
		Cluster:     fleet.Cluster{Name: "myeks", Environment: "production"},
		NodePools:   []*karpv1.NodePool{{ObjectMeta: metav1.ObjectMeta{Name: "default"}}},
		NodeClasses: []*ec2v1.EC2NodeClass{{ObjectMeta: metav1.ObjectMeta{Name: "default"}}},
		Document:    json.RawMessage(doc),
		Policy:      json.RawMessage(shippedSettings),
		Positions:   fleet.Positions{},
	}
	f.NodePools[0].Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Name: "default"}
	set := func(line int, path ...string) {
		f.Positions.Set(path, fleet.Position{File: "clusters/myeks/fleet.cue", Line: line, Column: 3})
	}
	set(10, "nodePools", "default")
	set(20, "nodeClasses", "default")
	set(22, "nodeClasses", "default", "spec", "amiSelectorTerms", "0", "alias")
	set(30, "policy")
	set(31, "policy", "instanceTypes", "exclude", "0")
	return f
}

// engine compiles the shipped policies with files of a fleet.
func engine(t testing.TB, files map[string]string) *Engine {
	t.Helper()
	e, err := New(bundle(files), Options{Version: "v0.1.0"})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func bundle(files map[string]string) Bundle {
	raw := map[string][]byte{}
	for name, text := range files {
		raw[name] = []byte(text)
	}
	return NewBundle(raw, json.RawMessage(shippedSettings))
}

// manyTypes are as many instance types as EC2 has, with as many labels and
// offerings.
func manyTypes(n int) []InstanceType {
	sizes := []string{"medium", "large", "xlarge", "2xlarge", "4xlarge", "8xlarge", "12xlarge", "16xlarge", "24xlarge", "metal"}
	var out []InstanceType
	for i := range n {
		family := fmt.Sprintf("%c%dg", "cmrtgpx"[(i/len(sizes))%7], 3+i/len(sizes)/7)
		size := sizes[i%len(sizes)]
		it := InstanceType{Name: family + "." + size, Labels: map[string]string{
			"node.kubernetes.io/instance-type":         family + "." + size,
			"karpenter.k8s.aws/instance-family":        family,
			"karpenter.k8s.aws/instance-size":          size,
			"karpenter.k8s.aws/instance-category":      family[:1],
			"karpenter.k8s.aws/instance-generation":    family[1:2],
			"karpenter.k8s.aws/instance-cpu":           fmt.Sprint(1 << (i % 8)),
			"karpenter.k8s.aws/instance-memory":        fmt.Sprint(4096 << (i % 8)),
			"karpenter.k8s.aws/instance-hypervisor":    "nitro",
			"karpenter.k8s.aws/instance-ebs-bandwidth": "4750",
			"kubernetes.io/arch":                       "arm64",
			"kubernetes.io/os":                         "linux",
			"topology.kubernetes.io/region":            "ap-northeast-2",
		}}
		for j := range 12 {
			it.Labels[fmt.Sprintf("karpenter.k8s.aws/instance-label-%d", j)] = "x"
		}
		if family[0] == 'g' || family[0] == 'p' {
			it.Labels["karpenter.k8s.aws/instance-gpu-count"] = "1"
		}
		it.Capacity = resources.List{"cpu": 1000 << (i % 8), "memory": 4 << 30, "pods": 29, "ephemeral-storage": 20 << 30}
		it.Allocatable = resources.List{"cpu": 900 << (i % 8), "memory": 3 << 30, "pods": 29, "ephemeral-storage": 17 << 30}
		for _, zone := range []string{"ap-northeast-2a", "ap-northeast-2b", "ap-northeast-2c"} {
			it.Offerings = append(it.Offerings,
				Offering{Zone: zone, CapacityType: "on-demand", Price: resources.Price(96_000_000 << (i % 8))},
				Offering{Zone: zone, CapacityType: "spot", Price: resources.Price(31_700_000 << (i % 8))})
		}
		out = append(out, it)
	}
	return out
}

func newTypes(t testing.TB, list []InstanceType) *Types {
	t.Helper()
	types, err := NewTypes(list)
	if err != nil {
		t.Fatal(err)
	}
	return types
}

func classStatusFixture() *cluster.NodeClassStatus {
	st := &cluster.NodeClassStatus{Name: "default"}
	for _, z := range []string{"a", "b", "c"} {
		st.Status.Subnets = append(st.Status.Subnets, ec2v1.Subnet{ID: "subnet-" + z, Zone: "ap-northeast-2" + z, ZoneID: "apne2-az1"})
	}
	st.Status.SecurityGroups = []ec2v1.SecurityGroup{{ID: "sg-1", Name: "nodes"}}
	for _, a := range []string{"ami-1", "ami-2"} {
		st.Status.AMIs = append(st.Status.AMIs, ec2v1.AMI{ID: a, Name: "amazon-eks-node-" + a})
	}
	return st
}

// pendingPods are pods of one shape.
func pendingPods(namespace string, labels map[string]string, names ...string) []*cluster.Pod {
	shape := (&cluster.Shape{
		Namespace: namespace, Owner: cluster.Owner{Kind: "ReplicaSet", Name: "inflate-5c5f"}, Labels: labels,
		Requests: resources.List{"cpu": 1000, "pods": 1},
	}).Sealed()
	var out []*cluster.Pod
	for _, n := range names {
		out = append(out, &cluster.Pod{Namespace: namespace, Name: n, Shape: shape})
	}
	return out
}

// provision is the proposal of one node for the pods.
func provision(pods []*cluster.Pod, types []string) decision.Proposal {
	p := decision.Proposal{NodePool: "default", Reason: "pods pending", Lists: map[string][]string{}}
	group := decision.PodGroup{Shape: pods[0].Shape.ID, Namespace: pods[0].Namespace}
	for _, pod := range pods {
		group.Names = append(group.Names, pod.Name)
	}
	p.Claims = []decision.Claim{{
		NodePool: "default", NodeClass: "default", InstanceType: types[0], Zone: "ap-northeast-2a", CapacityType: "on-demand",
		Price: 344_000_000, Launchable: decision.NewTypeSet(types, p.Lists),
		Requests: resources.List{"cpu": 5150}, Pods: []decision.PodGroup{group},
	}}
	return p
}

func names(list []InstanceType) []string {
	var out []string
	for _, it := range list {
		out = append(out, it.Name)
	}
	return out
}
