package aws_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/aws"
	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/port"
	"github.com/reeve-project/reeve/reconciler/sim"
	"github.com/reeve-project/reeve/reconciler/sim/awsapi"
)

var _ port.Cloud = (*aws.Cloud)(nil)

// TestFromAClassToNodesAndBack does with an account all that the pipeline does,
// and leaves it as it was.
func TestFromAClassToNodesAndBack(t *testing.T) {
	for _, alias := range []string{"al2023@v20260318", "bottlerocket@v1.50.0"} {
		t.Run(alias, func(t *testing.T) {
			a := newAccount(t, func(o *awsapi.Options) { o.Subnets, o.SecurityGroups, o.Images = nil, nil, nil })
			a.PutRole("nodes")
			cloud := a.newCloud(t, 1, func(o *aws.Options) { o.Info = aws.ClusterInfo{} })
			req := a.resolved(t, cloud, alias)
			out, err := cloud.Launch(ctx, req)
			check(t, err)
			check(t, a.world.Clock.Advance(2*time.Minute))
			for _, in := range mustList(t, cloud) {
				real, _ := a.Instance(in.ID)
				if _, err := sim.Get[*corev1.Node](a.world.API, real.Node); err != nil || real.Trouble != "" || in.State != "running" {
					t.Errorf("%s is %s, and its node is not there: %v %s", in.ID, in.State, err, real.Trouble)
				}
			}
			if len(out.Instances) != 3 {
				t.Errorf("launched %d", len(out.Instances))
			}
			check(t, cloud.Terminate(ctx, ids(out.Instances)))
			check(t, a.world.Clock.Advance(2*time.Hour))
			check(t, cloud.Sweep(ctx, nil))
			check(t, a.world.Clock.Advance(2*time.Hour))
			check(t, cloud.Sweep(ctx, nil))
			if left := a.Leftovers(); len(left) > 0 {
				t.Errorf("left behind:\n%s", strings.Join(left, "\n"))
			}
		})
	}
}

// resolved is a request whose class and types are as AWS says.
func (a *account) resolved(t *testing.T, cloud *aws.Cloud, alias string) port.LaunchRequest {
	t.Helper()
	discovery := map[string]string{"karpenter.sh/discovery": "myeks"}
	class := &ec2v1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "1"}}
	class.Spec.Role = "nodes"
	class.Spec.AMISelectorTerms = []ec2v1.AMISelectorTerm{{Alias: alias}}
	class.Spec.SubnetSelectorTerms = []ec2v1.SubnetSelectorTerm{{Tags: discovery}}
	class.Spec.SecurityGroupSelectorTerms = []ec2v1.SecurityGroupSelectorTerm{{Tags: discovery}}
	status, err := cloud.ResolveNodeClass(ctx, class)
	check(t, err)
	class.Status = status
	data, err := cloud.Catalog(ctx)
	check(t, err)
	types, err := data.Resolve(class, catalog.DefaultSettings())
	check(t, err)
	req := a.request(t, 3, karpv1.CapacityTypeSpot, "m5.large")
	req.Class, req.Types, req.Offerings = class, nil, nil
	for _, it := range types {
		if !slices.Contains([]string{"m5.large", "m6g.large", "c6i.large", "m7i.large"}, it.Name) {
			continue
		}
		req.Types = append(req.Types, it)
		for _, o := range it.Offerings {
			if o.Available && o.CapacityType == req.CapacityType {
				req.Offerings = append(req.Offerings, decision.Offering{InstanceType: it.Name, Zone: o.Zone, CapacityType: o.CapacityType, Price: o.Price})
			}
		}
	}
	slices.SortFunc(req.Offerings, func(a, b decision.Offering) int { return cmp.Compare(a.Price, b.Price) })
	if len(req.Offerings) == 0 {
		t.Fatalf("nothing is on offer; the class is %+v", status)
	}
	return req
}
