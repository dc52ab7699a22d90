package disruption

import (
	"testing"
	"time"

	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/fleet"
)

const driftZone = "ap-northeast-2a"

// driftScene is a node of a fleet that it is exactly what that fleet says.
type driftScene struct {
	in    DriftInput
	pool  *karpv1.NodePool
	class *ec2v1.EC2NodeClass
	node  *cluster.Node
	// status of the class.
	status *ec2v1.EC2NodeClassStatus
}

func newDriftScene(t *testing.T) *driftScene {
	t.Helper()
	at := time.Date(2026, 4, 6, 12, 0, 0, 0, time.UTC)
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	pool.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "default"}
	pool.Spec.Template.Spec.Requirements = []karpv1.NodeSelectorRequirementWithMinValues{
		{Key: corev1.LabelArchStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"amd64"}},
		{Key: karpv1.CapacityTypeLabelKey, Operator: corev1.NodeSelectorOpIn, Values: []string{"on-demand", "reserved"}},
	}
	class := &ec2v1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	class.Spec.Role, class.Spec.AMISelectorTerms = "node", []ec2v1.AMISelectorTerm{{Alias: "al2023@v20260318"}}
	amd64 := []corev1.NodeSelectorRequirement{{Key: corev1.LabelArchStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"amd64"}}}
	arm64 := []corev1.NodeSelectorRequirement{{Key: corev1.LabelArchStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"arm64"}}}
	st := &cluster.NodeClassStatus{Name: "default", Status: ec2v1.EC2NodeClassStatus{
		Subnets:        []ec2v1.Subnet{{ID: "subnet-a", Zone: driftZone, ZoneID: "apne2-az1"}},
		SecurityGroups: []ec2v1.SecurityGroup{{ID: "sg-1"}, {ID: "sg-2"}},
		AMIs:           []ec2v1.AMI{{ID: "ami-arm", Requirements: arm64}, {ID: "ami-new", Requirements: amd64}, {ID: "ami-old", Requirements: amd64}},
	}}
	node := &cluster.Node{Name: "ip-1", Claim: &cluster.Claim{
		Name: "default-1", NodePool: "default", NodeClass: "default", Created: at.Add(-2 * time.Hour), Decision: "20260406T100000.000Z-x",
		InstanceType: "c5a.large", Zone: driftZone, CapacityType: "on-demand", ImageID: "ami-new",
		Labels: map[string]string{
			corev1.LabelArchStable: "amd64", karpv1.CapacityTypeLabelKey: "on-demand", karpv1.NodePoolLabelKey: "default",
			corev1.LabelInstanceTypeStable: "c5a.large", corev1.LabelTopologyZone: driftZone,
		},
		Annotations: map[string]string{
			karpv1.NodePoolHashAnnotationKey: pool.Hash(), karpv1.NodePoolHashVersionAnnotationKey: karpv1.NodePoolHashVersion,
			ec2v1.AnnotationEC2NodeClassHash: class.Hash(nil), ec2v1.AnnotationEC2NodeClassHashVersion: ec2v1.EC2NodeClassHashVersion,
		},
		Conditions: cluster.Conditions{Launched: true},
	}}
	data, err := catalog.Embedded("ap-northeast-2")
	if err != nil {
		t.Fatal(err)
	}
	resolved := class.DeepCopy()
	resolved.Status = st.Status
	types, err := data.Resolve(resolved, catalog.DefaultSettings())
	if err != nil {
		t.Fatal(err)
	}
	return &driftScene{
		pool: pool, class: class, node: node, status: &st.Status,
		in: DriftInput{
			Snapshot: (&cluster.Snapshot{Time: at, Nodes: []*cluster.Node{node}, NodeClasses: []*cluster.NodeClassStatus{st}}).Seal(),
			Fleet:    &fleet.Fleet{NodePools: []*karpv1.NodePool{pool}, NodeClasses: []*ec2v1.EC2NodeClass{class}},
			Types:    map[string][]*catalog.InstanceType{"default": types},
			Networks: map[string]Network{"default-1": {Subnet: "subnet-a", SecurityGroups: []string{"sg-2", "sg-1"}}},
		},
	}
}

func ptr[T any](v T) *T { return &v }

func TestANodeDriftsByTheFirstCauseThatHolds(t *testing.T) {
	tests := []struct {
		name   string
		change func(*driftScene)
		want   Cause
	}{
		{"nothing has changed", func(*driftScene) {}, ""},
		// The template.
		{"a label of the template", func(s *driftScene) { s.pool.Spec.Template.Labels = map[string]string{"a": "b"} }, NodePoolDrifted},
		{"a taint of the template", func(s *driftScene) {
			s.pool.Spec.Template.Spec.Taints = []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoSchedule}}
		}, NodePoolDrifted},
		{"expireAfter of the template", func(s *driftScene) { s.pool.Spec.Template.Spec.ExpireAfter = karpv1.MustParseNillableDuration("1h") }, NodePoolDrifted},
		{"another version of the hash says nothing", func(s *driftScene) {
			s.pool.Spec.Template.Labels = map[string]string{"a": "b"}
			s.node.Claim.Annotations[karpv1.NodePoolHashVersionAnnotationKey] = "v2"
		}, ""},
		{"no hash says nothing", func(s *driftScene) {
			s.pool.Spec.Template.Labels = map[string]string{"a": "b"}
			delete(s.node.Claim.Annotations, karpv1.NodePoolHashAnnotationKey)
		}, ""},
		{"weight, limits and disruption are no drift", func(s *driftScene) {
			s.pool.Spec.Weight = ptr(int32(7))
			s.pool.Spec.Limits = karpv1.Limits{}
			s.pool.Spec.Disruption.Budgets = []karpv1.Budget{{Nodes: "0"}}
		}, ""},
		// The requirements.
		{"a requirement that the labels do not meet", func(s *driftScene) {
			s.pool.Spec.Template.Spec.Requirements[0].Values = []string{"arm64"}
		}, RequirementsDrifted},
		{"a requirement of a label that the node does not have", func(s *driftScene) {
			s.pool.Spec.Template.Spec.Requirements[0].Key = "example.com/team"
		}, RequirementsDrifted},
		{"a requirement that forbids what the node does not have", func(s *driftScene) {
			r := &s.pool.Spec.Template.Spec.Requirements[0]
			r.Key, r.Operator = "example.com/team", corev1.NodeSelectorOpNotIn
		}, ""},
		{"a wider requirement", func(s *driftScene) {
			s.pool.Spec.Template.Spec.Requirements[0].Values = []string{"arm64", "amd64"}
		}, ""},
		{"the template is told before the requirements", func(s *driftScene) {
			s.pool.Spec.Template.Labels = map[string]string{"a": "b"}
			s.pool.Spec.Template.Spec.Requirements[0].Values = []string{"arm64"}
		}, NodePoolDrifted},
		// The instance type.
		{"a type that the catalog does not have", func(s *driftScene) {
			s.node.Claim.Labels[corev1.LabelInstanceTypeStable] = "z99.large"
		}, InstanceTypeNotFound},
		{"a type that is not sold in the zone", func(s *driftScene) {
			s.node.Claim.Labels[corev1.LabelTopologyZone] = "ap-northeast-2z"
		}, InstanceTypeNotFound},
		{"a young node is not asked for its type", func(s *driftScene) {
			s.node.Claim.Created = s.in.Snapshot.Time.Add(-time.Hour)
			s.node.Claim.Labels[corev1.LabelInstanceTypeStable] = "z99.large"
		}, ""},
		{"a reserved node may have become an on-demand one", func(s *driftScene) {
			s.node.Claim.Labels[karpv1.CapacityTypeLabelKey] = "reserved"
		}, ""},
		// The class.
		{"a tag of the class", func(s *driftScene) { s.class.Spec.Tags = map[string]string{"a": "b"} }, NodeClassDrift},
		{"user data of the class", func(s *driftScene) { s.class.Spec.UserData = ptr("#!") }, NodeClassDrift},
		{"selectors of the class are no drift by themselves", func(s *driftScene) {
			s.class.Spec.AMISelectorTerms = []ec2v1.AMISelectorTerm{{Alias: "al2023@v20260402"}}
			s.class.Spec.SubnetSelectorTerms = []ec2v1.SubnetSelectorTerm{{ID: "subnet-b"}}
		}, ""},
		{"another version of the class hash says nothing", func(s *driftScene) {
			s.class.Spec.Tags = map[string]string{"a": "b"}
			s.node.Claim.Annotations[ec2v1.AnnotationEC2NodeClassHashVersion] = "v1"
		}, ""},
		{"Karpenter's hash has a certificate in it and says nothing alone", func(s *driftScene) { foreign(s, s.class.DeepCopy()) }, ""},
		{"Karpenter's hash and a class that was another", func(s *driftScene) {
			before := s.class.DeepCopy()
			s.class.Spec.Tags = map[string]string{"a": "b"}
			foreign(s, before)
		}, NodeClassDrift},
		{"Karpenter's hash, and nobody knows what the class was", func(s *driftScene) {
			s.class.Spec.Tags = map[string]string{"a": "b"}
			foreign(s, nil)
		}, ""},
		// The image: the first that fits is the one that a new node would get.
		{"an older image of the class", func(s *driftScene) { s.node.Claim.ImageID = "ami-old" }, AMIDrift},
		{"an image for another architecture", func(s *driftScene) { s.node.Claim.ImageID = "ami-arm" }, AMIDrift},
		{"no image fits any more", func(s *driftScene) { s.status.AMIs = s.status.AMIs[:1] }, AMIDrift},
		{"images are not resolved", func(s *driftScene) { s.status.AMIs = nil }, ""},
		// Network.
		{"a security group too many", func(s *driftScene) {
			s.in.Networks["default-1"] = Network{Subnet: "subnet-a", SecurityGroups: []string{"sg-1", "sg-2", "sg-3"}}
		}, SecurityGroupDrift},
		{"another subnet", func(s *driftScene) {
			s.in.Networks["default-1"] = Network{Subnet: "subnet-b", SecurityGroups: []string{"sg-1", "sg-2"}}
		}, SubnetDrift},
		{"no subnet in the zone of the node, which needs no word from EC2", func(s *driftScene) {
			s.in.Networks = nil
			s.status.Subnets = []ec2v1.Subnet{{ID: "subnet-b", Zone: "ap-northeast-2b"}}
		}, SubnetDrift},
		{"nobody has asked EC2", func(s *driftScene) { s.in.Networks = nil }, ""},
		// Reservation and placement.
		{"a capacity reservation of the class", func(s *driftScene) { reserved(s, "cr-1") }, ""},
		{"a capacity reservation that is not of the class", func(s *driftScene) { reserved(s, "cr-2") }, CapacityReservationDrift},
		{"a placement group that the class does not ask for", func(s *driftScene) {
			s.node.Claim.Labels[ec2v1.LabelPlacementGroupID] = "pg-1"
		}, PlacementGroupDrift},
		{"the placement group of the class", func(s *driftScene) { placed(s, "pg-1", &ec2v1.PlacementGroupSelector{ID: ptr("pg-1")}) }, ""},
		{"another placement group", func(s *driftScene) { placed(s, "pg-1", &ec2v1.PlacementGroupSelector{ID: ptr("pg-2")}) }, PlacementGroupDrift},
		{"a placement group by name, whose id only AWS knows", func(s *driftScene) { placed(s, "pg-1", &ec2v1.PlacementGroupSelector{Name: ptr("rack")}) }, ""},
		{"no placement group where the class names one", func(s *driftScene) { placed(s, "", &ec2v1.PlacementGroupSelector{Name: ptr("rack")}) }, PlacementGroupDrift},
		// Who is looked at.
		{"a claim that is not launched", func(s *driftScene) { s.drifted().Conditions.Launched = false }, ""},
		{"a node that is being deleted", func(s *driftScene) { s.drifted(); s.node.Deleting = true }, ""},
		{"a node that is not ours", func(s *driftScene) { s.drifted(); s.node.Claim = nil }, ""},
		{"a NodePool that is not in the fleet", func(s *driftScene) { s.drifted(); s.in.Fleet.NodePools = nil }, ""},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			s := newDriftScene(t)
			tc.change(s)
			var got []Cause
			for _, d := range Drift(s.in) {
				got = append(got, d.Cause)
				if d.Detail == "" || d.Node != s.node {
					t.Errorf("%+v", d)
				}
			}
			var want []Cause
			if tc.want != "" {
				want = []Cause{tc.want}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("causes (-want +got):\n%s", diff)
			}
		})
	}
}

// drifted makes the node one that would drift.
func (s *driftScene) drifted() *cluster.Claim {
	s.node.Claim.ImageID = "ami-old"
	return s.node.Claim
}

// foreign makes the claim one of Karpenter's.
func foreign(s *driftScene, before *ec2v1.EC2NodeClass) {
	s.node.Claim.Decision = ""
	s.node.Claim.Annotations[ec2v1.AnnotationEC2NodeClassHash] = s.class.Hash(ptr("certificate"))
	if before != nil {
		s.in.Before = map[string]*ec2v1.EC2NodeClass{before.Name: before}
	}
}

func reserved(s *driftScene, id string) {
	s.node.Claim.Labels[ec2v1.LabelCapacityReservationID] = id
	s.status.CapacityReservations = []ec2v1.CapacityReservation{{ID: "cr-1"}}
}

// placed puts the node into a group under a class that selects one, the class
// being the one that the node was made from.
func placed(s *driftScene, group string, sel *ec2v1.PlacementGroupSelector) {
	if group != "" {
		s.node.Claim.Labels[ec2v1.LabelPlacementGroupID] = group
	}
	s.class.Spec.PlacementGroupSelector = sel
	s.node.Claim.Annotations[ec2v1.AnnotationEC2NodeClassHash] = s.class.Hash(nil)
}
