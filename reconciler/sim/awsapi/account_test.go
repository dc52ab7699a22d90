package awsapi

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/smithy-go"
	corev1 "k8s.io/api/core/v1"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/sim"
)

const (
	region = "ap-northeast-2"
	zoneA  = region + "a"
	zoneB  = region + "b"
)

var (
	ctx = context.Background()
	t0  = time.Date(2026, 4, 6, 12, 0, 0, 0, time.UTC)
)

// account is an endpoint with clients of the SDK.
type account struct {
	*Endpoint
	world   *sim.World
	ec2     *ec2.Client
	pricing *pricing.Client
	t       *testing.T
}

func newAccount(t *testing.T, edit ...func(*Options)) *account {
	t.Helper()
	data, err := catalog.Embedded(region)
	check(t, err)
	o := Options{Cluster: "myeks", Catalog: data}
	for _, f := range edit {
		f(&o)
	}
	w := sim.NewWorld(sim.Options{Start: t0})
	e, err := New(w, o)
	check(t, err)
	e.PutInstanceProfile("myeks_1", NodeRole(o.Cluster))
	a := &account{Endpoint: e, world: w, t: t}
	a.ec2 = ec2.NewFromConfig(config(region, e.HTTPClient()))
	// Prices of all regions in Asia are served in Mumbai.
	a.pricing = pricing.NewFromConfig(config("ap-south-1", e.HTTPClient()))
	return a
}

// pass lets time pass and fails if the simulation contradicts itself.
func (a *account) pass(d time.Duration) {
	a.t.Helper()
	check(a.t, a.world.Clock.Advance(d))
	for _, e := range a.world.API.Events() {
		if e.Reason == "Bug" {
			a.t.Fatalf("the simulation contradicts itself: %s", e.Message)
		}
	}
}

// code is the code of an error of AWS's, "" for nil.
func code(t *testing.T, err error) string {
	t.Helper()
	var api smithy.APIError
	if err != nil && !errors.As(err, &api) {
		t.Fatalf("got an error that is none of AWS's: %v", err)
	}
	if err == nil {
		return ""
	}
	return api.ErrorCode()
}

func wantRefusal(t *testing.T, err error, want string) {
	t.Helper()
	if got := code(t, err); got != want {
		t.Errorf("got error %q, want %q", got, want)
	}
}

// nodeUserData is what a class with the family AL2023 makes.
const nodeUserData = `MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="//"

--//
Content-Type: text/x-shellscript; charset="us-ascii"

echo hello
--//
Content-Type: application/node.eks.aws

apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster:
    name: myeks
    apiServerEndpoint: https://myeks.example
    certificateAuthority: Y2E=
    cidr: 10.100.0.0/16
  kubelet:
    config:
      maxPods: 20
      clusterDNS: [10.100.0.10]
      registerWithTaints:
      - {key: team, value: a, effect: NoSchedule}
      - {key: cilium, effect: NoExecute}
      - {key: karpenter.sh/unregistered, effect: NoExecute}
    flags:
    - --node-labels="karpenter.sh/capacity-type=on-demand,karpenter.sh/nodepool=default,karpenter.sh/do-not-sync-taints=true"
--//--
`

func encoded(s string) *string { return new(base64.StdEncoding.EncodeToString([]byte(s))) }

// image is the id of the standard image of the newest AL2023 release.
func (a *account) image(arch string) string {
	for _, im := range a.Endpoint.ec2.images {
		if im.Family == "al2023" && im.Architecture == arch && strings.Contains(im.Name, "standard") {
			return im.ID
		}
	}
	a.t.Fatalf("there is no image for %s", arch)
	return ""
}

func (a *account) subnetIn(zone string) string {
	for _, s := range a.Endpoint.ec2.subnets {
		if s.Zone == zone {
			return s.ID
		}
	}
	a.t.Fatalf("there is no subnet in %s", zone)
	return ""
}

// templateData is what a launch template of ours has.
func (a *account) templateData() *types.RequestLaunchTemplateData {
	return &types.RequestLaunchTemplateData{
		ImageId: new(a.image("x86_64")), UserData: encoded(nodeUserData),
		IamInstanceProfile: &types.LaunchTemplateIamInstanceProfileSpecificationRequest{Name: new("myeks_1")},
		NetworkInterfaces: []types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest{
			{DeviceIndex: new(int32(0)), Groups: []string{a.Endpoint.ec2.groups[0].ID}},
		},
		BlockDeviceMappings: []types.LaunchTemplateBlockDeviceMappingRequest{
			{DeviceName: new("/dev/xvda"), Ebs: &types.LaunchTemplateEbsBlockDeviceRequest{VolumeSize: new(int32(50))}},
		},
	}
}

// template makes a launch template.
func (a *account) template(name string, edit ...func(*types.RequestLaunchTemplateData)) {
	a.t.Helper()
	data := a.templateData()
	for _, f := range edit {
		f(data)
	}
	_, err := a.ec2.CreateLaunchTemplate(ctx, &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: &name, LaunchTemplateData: data, TagSpecifications: tagged(types.ResourceTypeLaunchTemplate, "eks:eks-cluster-name=myeks"),
	})
	check(a.t, err)
}

// tagged reads "k=v k=v".
func tagged(kind types.ResourceType, tags string) []types.TagSpecification {
	out := types.TagSpecification{ResourceType: kind}
	for f := range strings.FieldsSeq(tags) {
		k, v, _ := strings.Cut(f, "=")
		out.Tags = append(out.Tags, types.Tag{Key: &k, Value: &v})
	}
	return []types.TagSpecification{out}
}

// over is an override for a type in a zone.
func (a *account) over(instanceType, zone string) types.FleetLaunchTemplateOverridesRequest {
	return types.FleetLaunchTemplateOverridesRequest{InstanceType: types.InstanceType(instanceType), SubnetId: new(a.subnetIn(zone)), AvailabilityZone: &zone}
}

// fleetOf asks for n instances of what the template "nodes" and the overrides say.
func (a *account) fleetOf(n int32, capacityType string, overrides ...types.FleetLaunchTemplateOverridesRequest) *ec2.CreateFleetInput {
	in := &ec2.CreateFleetInput{
		Type: types.FleetTypeInstant,
		TargetCapacitySpecification: &types.TargetCapacitySpecificationRequest{
			TotalTargetCapacity: &n, DefaultTargetCapacityType: types.DefaultTargetCapacityType(capacityType),
		},
		LaunchTemplateConfigs: []types.FleetLaunchTemplateConfigRequest{{
			LaunchTemplateSpecification: &types.FleetLaunchTemplateSpecificationRequest{LaunchTemplateName: new("nodes"), Version: new("$Latest")},
			Overrides:                   overrides,
		}},
		TagSpecifications: tagged(types.ResourceTypeInstance, "eks:eks-cluster-name=myeks karpenter.sh/nodepool=default"),
	}
	if capacityType == "spot" {
		in.SpotOptions = &types.SpotOptionsRequest{AllocationStrategy: types.SpotAllocationStrategyPriceCapacityOptimized}
	} else {
		in.OnDemandOptions = &types.OnDemandOptionsRequest{AllocationStrategy: types.FleetOnDemandAllocationStrategyLowestPrice}
	}
	return in
}

// launched is what came of a fleet: "2 × c5a.2xlarge in …a on-demand", and
// "<code> for c5a.2xlarge in …a".
func launched(out *ec2.CreateFleetOutput) []string {
	var lines []string
	for _, in := range out.Instances {
		lines = append(lines, fmt.Sprintf("%d × %s in %s %s", len(in.InstanceIds), in.InstanceType, *in.AvailabilityZone, in.Lifecycle))
	}
	for _, e := range out.Errors {
		o := e.LaunchTemplateAndOverrides.Overrides
		lines = append(lines, fmt.Sprintf("%s for %s in %s", *e.ErrorCode, o.InstanceType, deref(o.AvailabilityZone)))
	}
	return lines
}

func (a *account) node(name string) *corev1.Node {
	a.t.Helper()
	n, err := sim.Get[*corev1.Node](a.world.API, name)
	check(a.t, err)
	return n
}
