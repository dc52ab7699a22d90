package awsapi

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/sim"
)

func TestAnInstanceOfAFleetBecomesTheNodeThatItsUserDataSays(t *testing.T) {
	a := newAccount(t, func(o *Options) {
		o.StartupTaints = []corev1.Taint{{Key: "cilium", Effect: corev1.TaintEffectNoExecute}}
		o.Boot = func(Instance) sim.Boot { return sim.Boot{StartupTaints: 20 * time.Second} }
	})
	a.template("nodes")
	out, err := a.ec2.CreateFleet(ctx, a.fleetOf(1, "on-demand", a.over("c5a.2xlarge", zoneB)))
	check(t, err)
	if diff := cmp.Diff([]string{"1 × c5a.2xlarge in " + zoneB + " on-demand"}, launched(out)); diff != "" {
		t.Fatalf("fleet (-want +got):\n%s", diff)
	}
	in, _ := a.Instance(out.Instances[0].InstanceIds[0])
	if in.State != "pending" || in.Trouble != "" {
		t.Errorf("instance is %q with trouble %q, want pending without", in.State, in.Trouble)
	}
	a.pass(45 * time.Second)
	n := a.node(in.Node)
	wantTaints := []corev1.Taint{
		{Key: "team", Value: "a", Effect: corev1.TaintEffectNoSchedule}, {Key: "cilium", Effect: corev1.TaintEffectNoExecute},
		{Key: "karpenter.sh/unregistered", Effect: corev1.TaintEffectNoExecute},
	}
	if diff := cmp.Diff(wantTaints, n.Spec.Taints); diff != "" {
		t.Errorf("taints (-want +got):\n%s", diff)
	}
	wantLabels := map[string]string{
		"karpenter.sh/capacity-type": "on-demand", "karpenter.sh/nodepool": "default", "karpenter.sh/do-not-sync-taints": "true",
		"kubernetes.io/hostname": in.Node, "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", "node.kubernetes.io/instance-type": "c5a.2xlarge",
		"topology.kubernetes.io/region": region, "topology.kubernetes.io/zone": zoneB, "topology.k8s.aws/zone-id": in.ZoneID,
	}
	if diff := cmp.Diff(wantLabels, n.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	// 16 GiB less 7.5 % are 15155 MiB; the kubelet of 58 possible pods keeps
	// 11 × 58 + 255 MiB and evicts below 100 MiB. The volume has 50 GiB.
	got := fmt.Sprintf("%s %s %s %s", n.Status.Allocatable.Cpu(), n.Status.Allocatable.Memory(), n.Status.Allocatable.Pods(), n.Status.Capacity.StorageEphemeral())
	if want := "7910m 14162Mi 20 50Gi"; got != want {
		t.Errorf("node has %s, want %s", got, want)
	}
	a.pass(20 * time.Second)
	if left := a.node(in.Node).Spec.Taints; len(left) != 2 {
		t.Errorf("the startup taint is still there: %v", left)
	}
}

func TestAnInstanceLivesAndEnds(t *testing.T) {
	a := newAccount(t)
	var states []string
	a.OnState(func(in Instance) { states = append(states, a.world.Now().Sub(t0).String()+" "+in.State) })
	a.template("nodes")
	free := a.Endpoint.ec2.subnet(a.subnetIn(zoneA)).Free
	out, err := a.ec2.CreateFleet(ctx, a.fleetOf(2, "spot", a.over("m5.large", zoneA)))
	check(t, err)
	id := out.Instances[0].InstanceIds[0]
	if got := a.Endpoint.ec2.subnet(a.subnetIn(zoneA)).Free; got != free-2 {
		t.Errorf("the subnet has %d addresses left, want %d", got, free-2)
	}
	got := a.describe(id)
	if got.SpotInstanceRequestId == nil || got.InstanceLifecycle != types.InstanceLifecycleTypeSpot || got.State.Name != "pending" || len(got.NetworkInterfaces) != 1 {
		t.Errorf("described as %+v", got)
	}
	a.pass(time.Minute)
	ended, err := a.ec2.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{id}})
	check(t, err)
	if c := ended.TerminatingInstances[0]; c.PreviousState.Name != "running" || c.CurrentState.Name != "shutting-down" || *c.CurrentState.Code != 32 {
		t.Errorf("state change %v to %v", c.PreviousState.Name, c.CurrentState.Name)
	}
	a.pass(time.Minute)
	if got := a.describe(id); got.State.Name != "terminated" || got.NetworkInterfaces != nil {
		t.Errorf("a minute later it is described as %+v", got)
	}
	again, err := a.ec2.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{id}})
	check(t, err)
	if c := again.TerminatingInstances[0]; c.PreviousState.Name != "terminated" || c.CurrentState.Name != "terminated" {
		t.Errorf("what is terminated went from %v to %v", c.PreviousState.Name, c.CurrentState.Name)
	}
	if got := a.Endpoint.ec2.subnet(a.subnetIn(zoneA)).Free; got != free-1 {
		t.Errorf("the subnet has %d addresses left, want %d", got, free-1)
	}
	a.pass(time.Hour)
	_, err = a.ec2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{InstanceIds: []string{id}})
	wantRefusal(t, err, noInstance)
	_, err = a.ec2.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{id, out.Instances[0].InstanceIds[1]}})
	wantRefusal(t, err, noInstance)
	want := []string{"0s pending", "0s pending", "5s running", "5s running", "1m0s shutting-down", "1m20s terminated"}
	if diff := cmp.Diff(want, states); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}
}

func (a *account) describe(id string) types.Instance {
	a.t.Helper()
	out, err := a.ec2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{InstanceIds: []string{id}})
	check(a.t, err)
	return out.Reservations[0].Instances[0]
}

func TestFleetsAreAllocatedByPriceCapacityAndPriority(t *testing.T) {
	a0 := newAccount(t)
	prioritized := func(p float64, o types.FleetLaunchTemplateOverridesRequest) types.FleetLaunchTemplateOverridesRequest {
		o.Priority = &p
		return o
	}
	od := func(typ, zone string) Pool { return Pool{typ, zone, "on-demand"} }
	spotZones := a0.spotOrder("m5.large")
	cheap, dear := spotZones[0], spotZones[len(spotZones)-1]
	tests := []struct {
		name     string
		n        int32
		kind     string
		edit     func(*account, *ec2.CreateFleetInput)
		override []types.FleetLaunchTemplateOverridesRequest
		want     []string
	}{
		{"the cheapest type on demand", 2, "on-demand", nil,
			[]types.FleetLaunchTemplateOverridesRequest{a0.over("m5.2xlarge", zoneA), a0.over("c5a.2xlarge", zoneB)},
			[]string{"2 × c5a.2xlarge in " + zoneB + " on-demand"}},
		{"the next one for what the cheapest has no capacity for", 3, "on-demand",
			func(a *account, _ *ec2.CreateFleetInput) { a.SetCapacity(od("c5a.2xlarge", zoneB), 1) },
			[]types.FleetLaunchTemplateOverridesRequest{a0.over("m5.2xlarge", zoneA), a0.over("c5a.2xlarge", zoneB)},
			[]string{"1 × c5a.2xlarge in " + zoneB + " on-demand", "2 × m5.2xlarge in " + zoneA + " on-demand", "InsufficientInstanceCapacity for c5a.2xlarge in " + zoneB}},
		{"nothing when that is less than the least", 3, "on-demand",
			func(a *account, in *ec2.CreateFleetInput) {
				a.SetCapacity(od("c5a.2xlarge", zoneB), 1)
				in.OnDemandOptions.MinTargetCapacity = new(int32(2))
			},
			[]types.FleetLaunchTemplateOverridesRequest{a0.over("c5a.2xlarge", zoneB)},
			[]string{"InsufficientInstanceCapacity for c5a.2xlarge in " + zoneB}},
		{"the lowest priority first", 1, "on-demand",
			func(_ *account, in *ec2.CreateFleetInput) {
				in.OnDemandOptions.AllocationStrategy = types.FleetOnDemandAllocationStrategyPrioritized
			},
			[]types.FleetLaunchTemplateOverridesRequest{prioritized(2, a0.over("c5a.2xlarge", zoneB)), prioritized(1, a0.over("m5.2xlarge", zoneA))},
			[]string{"1 × m5.2xlarge in " + zoneA + " on-demand"}},
		{"the cheapest zone on spot", 1, "spot", nil,
			[]types.FleetLaunchTemplateOverridesRequest{a0.over("m5.large", dear), a0.over("m5.large", cheap)},
			[]string{"1 × m5.large in " + cheap + " spot"}},
		{"the zone that has capacity for all on spot", 2, "spot",
			func(a *account, _ *ec2.CreateFleetInput) { a.SetCapacity(Pool{"m5.large", cheap, "spot"}, 1) },
			[]types.FleetLaunchTemplateOverridesRequest{a0.over("m5.large", dear), a0.over("m5.large", cheap)},
			[]string{"2 × m5.large in " + dear + " spot"}},
		{"the priority among zones with capacity on spot", 1, "spot",
			func(_ *account, in *ec2.CreateFleetInput) {
				in.SpotOptions.AllocationStrategy = types.SpotAllocationStrategyCapacityOptimizedPrioritized
			},
			[]types.FleetLaunchTemplateOverridesRequest{prioritized(2, a0.over("m5.large", cheap)), prioritized(1, a0.over("m5.large", dear))},
			[]string{"1 × m5.large in " + dear + " spot"}},
		{"no more than the quota allows", 2, "on-demand", func(a *account, _ *ec2.CreateFleetInput) { a.SetQuota("on-demand", 15) },
			[]types.FleetLaunchTemplateOverridesRequest{a0.over("c5a.2xlarge", zoneB)},
			[]string{"1 × c5a.2xlarge in " + zoneB + " on-demand", "VcpuLimitExceeded for c5a.2xlarge in " + zoneB}},
		{"no more than the subnet has addresses for", 2, "on-demand", func(a *account, _ *ec2.CreateFleetInput) { a.SetFree(a.subnetIn(zoneB), 1) },
			[]types.FleetLaunchTemplateOverridesRequest{a0.over("c5a.2xlarge", zoneB)},
			[]string{"1 × c5a.2xlarge in " + zoneB + " on-demand", "InsufficientFreeAddressesInSubnet for c5a.2xlarge in " + zoneB}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			a := newAccount(t)
			a.template("nodes")
			in := a.fleetOf(tc.n, tc.kind, tc.override...)
			if tc.edit != nil {
				tc.edit(a, in)
			}
			out, err := a.ec2.CreateFleet(ctx, in)
			check(t, err)
			if diff := cmp.Diff(tc.want, launched(out)); diff != "" {
				t.Errorf("launched (-want +got):\n%s", diff)
			}
		})
	}
}

// spotOrder are the zones of the type, cheapest spot price first.
func (a *account) spotOrder(name string) []string {
	typ, _ := a.options.Catalog.Type(name)
	var out []string
	for _, z := range a.options.Catalog.Zones() {
		p, ok := a.options.Catalog.SpotPrice(typ.Name, z.ID)
		if !ok {
			continue
		}
		i := 0
		for ; i < len(out); i++ {
			o, _ := a.options.zone(out[i])
			if q, _ := a.options.Catalog.SpotPrice(typ.Name, o.ID); p < q {
				break
			}
		}
		out = append(out[:i], append([]string{z.Name}, out[i:]...)...)
	}
	return out
}

func TestOverridesThatCannotBeLaunchedAreErrorsOfTheFleet(t *testing.T) {
	tests := []struct {
		name string
		data func(*types.RequestLaunchTemplateData)
		edit func(*types.FleetLaunchTemplateOverridesRequest)
		want string
	}{
		{"an unknown type", nil, func(o *types.FleetLaunchTemplateOverridesRequest) { o.InstanceType = "m5.huge" }, "InvalidParameterValue"},
		{"an unknown subnet", nil, func(o *types.FleetLaunchTemplateOverridesRequest) { o.SubnetId = new("subnet-1") }, "InvalidSubnetID.NotFound"},
		{"a subnet of another zone", nil, func(o *types.FleetLaunchTemplateOverridesRequest) { o.AvailabilityZone = new(zoneB) }, "InvalidParameterValue"},
		{"an unknown zone", nil, func(o *types.FleetLaunchTemplateOverridesRequest) { o.SubnetId, o.AvailabilityZone = nil, new("x") }, "InvalidParameterValue"},
		{"an unknown image", nil, func(o *types.FleetLaunchTemplateOverridesRequest) { o.ImageId = new("ami-1") }, "InvalidAMIID.NotFound"},
		{"no image", func(d *types.RequestLaunchTemplateData) { d.ImageId = nil }, nil, "MissingParameter"},
		{"an image of another architecture", nil, func(o *types.FleetLaunchTemplateOverridesRequest) { o.InstanceType = "m6g.large" }, "InvalidParameterValue"},
		{"an unknown security group", func(d *types.RequestLaunchTemplateData) { d.SecurityGroupIds = []string{"sg-1"} }, nil, "InvalidGroup.NotFound"},
		{"an unknown instance profile", func(d *types.RequestLaunchTemplateData) { d.IamInstanceProfile.Name = new("nobody") }, nil, "InvalidParameterValue"},
		{"a type that the region lacks", nil, func(o *types.FleetLaunchTemplateOverridesRequest) { o.InstanceType = "m3.large" }, "InvalidParameterValue"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			a := newAccount(t, func(o *Options) { o.InstanceProfileExists = func(name string) bool { return name == "myeks_1" } })
			a.template("nodes", func(d *types.RequestLaunchTemplateData) {
				if tc.data != nil {
					tc.data(d)
				}
			})
			bad := a.over("m5.large", zoneA)
			if tc.edit != nil {
				tc.edit(&bad)
			}
			out, err := a.ec2.CreateFleet(ctx, a.fleetOf(1, "on-demand", bad))
			check(t, err)
			if len(out.Instances) != 0 || len(out.Errors) != 1 || *out.Errors[0].ErrorCode != tc.want {
				t.Errorf("got %v, want the error %s", launched(out), tc.want)
			}
		})
	}
}

func TestATypeIsLaunchedOnlyWhereAndAsItIsSold(t *testing.T) {
	a := newAccount(t)
	a.template("nodes")
	var missing, zone, onDemandOnly string
	for _, typ := range a.offered() {
		for _, z := range a.options.Catalog.Zones() {
			if typ.Arch == "x86_64" && !slices.Contains(typ.Zones, z.ID) {
				missing, zone = typ.Name, z.Name
			}
		}
		if typ.Arch == "x86_64" && !slices.Contains(typ.Usage, "spot") {
			onDemandOnly = typ.Name
		}
	}
	typ, _ := a.options.Catalog.Type(onDemandOnly)
	sold := a.over(onDemandOnly, zoneA)
	for _, z := range a.options.Catalog.Zones() {
		if z.ID == typ.Zones[0] {
			sold = a.over(onDemandOnly, z.Name)
		}
	}
	cheap, fair, odd := a.over("m5.large", zoneA), a.over("m5.large", zoneA), a.over("m5.large", zoneA)
	cheap.MaxPrice, fair.MaxPrice, odd.MaxPrice = new("0.001"), new("10"), new("much")
	for _, tc := range []struct {
		kind string
		over types.FleetLaunchTemplateOverridesRequest
		want []string
	}{
		{"on-demand", a.over(missing, zone), []string{"Unsupported for " + missing + " in " + zone}},
		{"spot", sold, []string{"Unsupported for " + onDemandOnly + " in " + *sold.AvailabilityZone}},
		{"spot", cheap, []string{"SpotMaxPriceTooLow for m5.large in " + zoneA}},
		{"spot", odd, []string{"InvalidParameterValue for m5.large in " + zoneA}},
		{"spot", fair, []string{"1 × m5.large in " + zoneA + " spot"}},
	} {
		out, err := a.ec2.CreateFleet(ctx, a.fleetOf(1, tc.kind, tc.over))
		check(t, err)
		if diff := cmp.Diff(tc.want, launched(out)); diff != "" {
			t.Errorf("launched (-want +got):\n%s", diff)
		}
	}
}

func TestANewCatalogHasNewPrices(t *testing.T) {
	a := newAccount(t)
	a.template("nodes")
	d, err := a.options.Catalog.WithPrices(catalog.OnDemandPrices{"c5.large": 2, "m5.large": 1}, nil)
	check(t, err)
	a.SetCatalog(d)
	out, err := a.ec2.CreateFleet(ctx, a.fleetOf(1, "on-demand", a.over("r5.large", zoneA), a.over("c5.large", zoneA), a.over("m5.large", zoneA)))
	check(t, err)
	if diff := cmp.Diff([]string{"1 × m5.large in " + zoneA + " on-demand"}, launched(out)); diff != "" || a.Instances()[0].Price != 1 {
		t.Errorf("price %s, launched (-want +got):\n%s", a.Instances()[0].Price, diff)
	}
	a.SetCapacity(Pool{"m5.large", zoneA, "on-demand"}, 0)
	a.SetCapacity(Pool{"c5.large", zoneA, "on-demand"}, 0)
	out, err = a.ec2.CreateFleet(ctx, a.fleetOf(1, "on-demand", a.over("r5.large", zoneA), a.over("c5.large", zoneA), a.over("m5.large", zoneA)))
	check(t, err)
	want := []string{
		"1 × r5.large in " + zoneA + " on-demand", "InsufficientInstanceCapacity for m5.large in " + zoneA, "InsufficientInstanceCapacity for c5.large in " + zoneA,
	}
	if diff := cmp.Diff(want, launched(out)); diff != "" {
		t.Errorf("what has no price comes last (-want +got):\n%s", diff)
	}
}

func TestFleetsThatMakeNoSenseAreRefused(t *testing.T) {
	tests := []struct {
		name string
		edit func(*ec2.CreateFleetInput)
		want string
	}{
		{"an unknown template", func(in *ec2.CreateFleetInput) {
			in.LaunchTemplateConfigs[0].LaunchTemplateSpecification.LaunchTemplateName = new("other")
		}, "InvalidLaunchTemplateName.NotFoundException"},
		{"an unknown template by id", func(in *ec2.CreateFleetInput) {
			in.LaunchTemplateConfigs[0].LaunchTemplateSpecification = &types.FleetLaunchTemplateSpecificationRequest{LaunchTemplateId: new("lt-1"), Version: new("1")}
		}, "InvalidLaunchTemplateId.NotFound"},
		{"a version that the template lacks", func(in *ec2.CreateFleetInput) {
			in.LaunchTemplateConfigs[0].LaunchTemplateSpecification.Version = new("2")
		}, "InvalidLaunchTemplateId.VersionNotFound"},
		{"no template", func(in *ec2.CreateFleetInput) {
			in.LaunchTemplateConfigs = []types.FleetLaunchTemplateConfigRequest{{}}
		}, "MissingParameter"},
		{"another type of fleet", func(in *ec2.CreateFleetInput) { in.Type = types.FleetTypeMaintain }, "UnsupportedOperation"},
		{"nothing to launch", func(in *ec2.CreateFleetInput) { in.TargetCapacitySpecification.TotalTargetCapacity = new(int32(0)) }, "InvalidTargetCapacitySpecification"},
		{"capacity of an unknown type", func(in *ec2.CreateFleetInput) {
			in.TargetCapacitySpecification.DefaultTargetCapacityType = "capacity-block"
		}, "InvalidTargetCapacitySpecification"},
		{"both types of capacity", func(in *ec2.CreateFleetInput) { in.TargetCapacitySpecification.SpotTargetCapacity = new(int32(1)) }, "UnsupportedOperation"},
		{"an unknown strategy", func(in *ec2.CreateFleetInput) { in.OnDemandOptions.AllocationStrategy = "best" }, "InvalidParameterValue"},
		{"weights", func(in *ec2.CreateFleetInput) { in.LaunchTemplateConfigs[0].Overrides[0].WeightedCapacity = new(2.0) }, "UnsupportedOperation"},
		{"a tag of AWS's", func(in *ec2.CreateFleetInput) { in.TagSpecifications = tagged(types.ResourceTypeInstance, "aws:a=b") }, "InvalidParameterValue"},
		{"a dry run that would succeed", func(in *ec2.CreateFleetInput) { in.DryRun = new(true) }, "DryRunOperation"},
		{"a dry run that would not", func(in *ec2.CreateFleetInput) { in.DryRun, in.Type = new(true), types.FleetTypeMaintain }, "UnsupportedOperation"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			a := newAccount(t)
			a.template("nodes")
			in := a.fleetOf(1, "on-demand", a.over("m5.large", zoneA))
			tc.edit(in)
			_, err := a.ec2.CreateFleet(ctx, in)
			wantRefusal(t, err, tc.want)
			if n := len(a.Instances()); n != 0 {
				t.Errorf("%d instances were launched", n)
			}
		})
	}
}

func TestAClientTokenLaunchesOnce(t *testing.T) {
	a := newAccount(t)
	a.template("nodes")
	in := a.fleetOf(2, "on-demand", a.over("m5.large", zoneA))
	in.ClientToken = new("token-1")
	first, err := a.ec2.CreateFleet(ctx, in)
	check(t, err)
	second, err := a.ec2.CreateFleet(ctx, in)
	check(t, err)
	if diff := cmp.Diff(first.Instances, second.Instances, everything); diff != "" || len(a.Instances()) != 2 {
		t.Errorf("%d instances, second answer (-first +second):\n%s", len(a.Instances()), diff)
	}
	in.TargetCapacitySpecification.TotalTargetCapacity = new(int32(3))
	_, err = a.ec2.CreateFleet(ctx, in)
	wantRefusal(t, err, "IdempotentParameterMismatch")
	in.ClientToken = new("token-2")
	_, err = a.ec2.CreateFleet(ctx, in)
	check(t, err)
	if len(a.Instances()) != 5 {
		t.Errorf("%d instances, want 5", len(a.Instances()))
	}
}
