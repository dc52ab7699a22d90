package sim

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/lifecycle"
	"github.com/reeve-project/reeve/reconciler/port"
	"github.com/reeve-project/reeve/reconciler/resources"
)

const (
	zoneA = "ap-northeast-2a"
	zoneB = "ap-northeast-2b"
)

var ctx = context.Background()

// estate is a cluster and an account with one NodePool and one EC2NodeClass.
type estate struct {
	*World
	cluster *Cluster
	cloud   *Cloud
	fleet   *fleet.Fleet
	// removing are the subjects of open decisions.
	removing map[string]bool
	// tgp is the termination grace period of claims; none if zero.
	tgp time.Duration
}

func newEstate(t *testing.T, edit ...func(*CloudOptions)) *estate {
	t.Helper()
	data, err := catalog.Embedded("ap-northeast-2")
	check(t, err)
	o := CloudOptions{Cluster: "myeks", Catalog: data}
	for _, e := range edit {
		e(&o)
	}
	w := NewWorld(Options{Start: t0})
	cloud, err := NewCloud(w, o)
	check(t, err)
	e := &estate{World: w, cluster: NewCluster(w), cloud: cloud, fleet: testFleet()}
	check(t, e.cluster.Apply(ctx, e.fleet))
	return e
}

func testFleet() *fleet.Fleet {
	discovery := map[string]string{"karpenter.sh/discovery": "myeks"}
	class := &ec2v1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	class.Spec.Role = "nodes"
	class.Spec.AMISelectorTerms = []ec2v1.AMISelectorTerm{{Alias: "al2023@v20260318"}}
	class.Spec.SubnetSelectorTerms = []ec2v1.SubnetSelectorTerm{{Tags: discovery}}
	class.Spec.SecurityGroupSelectorTerms = []ec2v1.SecurityGroupSelectorTerm{{Tags: discovery}}
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	pool.Spec.Template.Labels = labelsOf("team=a")
	pool.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "default"}
	return &fleet.Fleet{NodePools: []*karpv1.NodePool{pool}, NodeClasses: []*ec2v1.EC2NodeClass{class}}
}

func claimOf(name, id, index string) *karpv1.NodeClaim {
	return &karpv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Labels:      map[string]string{karpv1.NodePoolLabelKey: "default", ec2v1.LabelNodeClass: "default", "team": "a", "node-restriction.kubernetes.io/x": "y"},
			Annotations: map[string]string{cluster.DecisionAnnotation: id, cluster.IndexAnnotation: index},
		},
		Spec: karpv1.NodeClaimSpec{
			NodeClassRef: &karpv1.NodeClassReference{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "default"},
			Resources:    karpv1.ResourceRequirements{Requests: amounts("cpu=5150m memory=1Gi pods=7")},
		},
	}
}

func (e *estate) request(t *testing.T, token string, claims ...string) port.LaunchRequest {
	t.Helper()
	class := e.fleet.NodeClasses[0].DeepCopy()
	status, err := e.cloud.ResolveNodeClass(ctx, class)
	check(t, err)
	class.Status = status
	od := func(typ, zone string, price resources.Price) decision.Offering {
		return decision.Offering{InstanceType: typ, Zone: zone, CapacityType: "on-demand", Price: price}
	}
	return port.LaunchRequest{
		Decision: "d1", Token: token, Claims: claims, NodePool: "default", Class: class, Template: claimOf("template", "d1", "0"), CapacityType: "on-demand",
		Offerings: []decision.Offering{od("c5a.2xlarge", zoneB, 1), od("c5a.2xlarge", zoneA, 1), od("m5.2xlarge", zoneA, 1)},
		Tags:      map[string]string{ec2v1.EKSClusterNameTagKey: "myeks", karpv1.NodePoolLabelKey: "default", cluster.DecisionAnnotation: "d1"},
	}
}

// provision creates the claims and drives them as the pipeline would, one pass
// a second, until the time is up.
func (e *estate) provision(t *testing.T, seconds int, claims ...string) {
	t.Helper()
	for i, name := range claims {
		claim := claimOf(name, "d1", string(rune('0'+i)))
		if e.tgp > 0 {
			claim.Spec.TerminationGracePeriod = &metav1.Duration{Duration: e.tgp}
		}
		check(t, e.cluster.CreateClaim(ctx, claim))
	}
	for range seconds {
		e.drive(t, claims...)
		pass(t, e.World, 1e9)
	}
}

func (e *estate) drive(t *testing.T, claims ...string) {
	t.Helper()
	s, err := e.cluster.Snapshot(ctx)
	check(t, err)
	list, err := e.cloud.Instances(ctx)
	check(t, err)
	// Instances that no claim names yet go to the claims without, in the order
	// of their ids; each is tagged with its claim then.
	taken := map[string]bool{}
	for _, n := range s.Nodes {
		taken[n.ProviderID] = true
	}
	byClaim := map[string]port.Instance{}
	for _, n := range s.Nodes {
		i := slices.IndexFunc(list, func(in port.Instance) bool { return !taken[in.ProviderID] })
		if n.Claim != nil && n.ProviderID == "" && i >= 0 {
			byClaim[n.Claim.Name] = list[i]
			taken[list[i].ProviderID] = true
			check(t, e.cloud.Tag(ctx, list[i].ID, map[string]string{"karpenter.sh/nodeclaim": n.Claim.Name}))
		}
	}
	for _, n := range s.Nodes {
		if n.Claim == nil {
			continue
		}
		if in, ok := byClaim[n.Claim.Name]; ok {
			check(t, e.cluster.MarkLaunched(ctx, n.Claim.Name, in))
			continue
		}
		step := lifecycle.Next(n, lifecycle.EvidenceOf(s, n), s.Time)
		switch step.Action {
		case lifecycle.Launch:
			_, err = e.cloud.Launch(ctx, e.request(t, "token", claims...))
		case lifecycle.Register:
			err = e.cluster.Register(ctx, step.Claim, step.Node)
		case lifecycle.Initialize:
			err = e.cluster.Initialize(ctx, step.Claim, step.Node)
		}
		check(t, err)
	}
}

func deploy(t *testing.T, e *estate, replicas int32) {
	t.Helper()
	check(t, e.Apply(NewDeployment("default", "inflate", replicas, amounts("cpu=1"))))
}

// remove does what comes next in removing the deleted claim, as the pipeline
// would in one pass.
func (e *estate) remove(t *testing.T, claim string) {
	t.Helper()
	n := snapshot(t, e).Node(claim)
	if n == nil {
		return
	}
	list, err := e.cloud.Instances(ctx)
	check(t, err)
	i := slices.IndexFunc(list, func(in port.Instance) bool { return in.ProviderID == n.ProviderID })
	n.Claim.InstanceState = cluster.InstanceGone
	if i >= 0 {
		n.Claim.InstanceState = list[i].State
	}
	switch lifecycle.Next(n, lifecycle.Evidence{}, e.Now()).Action {
	case lifecycle.Evacuate:
		e.evacuate(t, n)
	case lifecycle.Terminate:
		if i >= 0 {
			check(t, e.cloud.Terminate(ctx, []string{list[i].ID}))
		}
		check(t, e.cluster.SetCondition(ctx, claim, port.Condition{Type: karpv1.ConditionTypeInstanceTerminating, True: true}))
	case lifecycle.Finalize:
		check(t, e.cluster.Finalize(ctx, claim))
	}
}

func (e *estate) evacuate(t *testing.T, n *cluster.Node) {
	t.Helper()
	pods, err := e.cluster.Pods(ctx, n.Name)
	check(t, err)
	d := lifecycle.NextDrain(n, pods, e.Now())
	for _, p := range d.Evict {
		if err := e.cluster.Evict(ctx, p); !errors.Is(err, port.ErrBlocked) {
			check(t, err)
		}
	}
	for _, f := range d.Delete {
		check(t, e.cluster.DeletePod(ctx, f.Pod, f.Grace))
	}
	if d.Drained {
		check(t, e.cluster.SetCondition(ctx, n.Claim.Name, port.Condition{Type: karpv1.ConditionTypeDrained, True: true}))
	}
}
