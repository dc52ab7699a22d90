package aws_test

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/port"
	"github.com/reeve-project/reeve/reconciler/sim/awsapi"
)

func TestAGroupIsLaunchedByOneCall(t *testing.T) {
	a := newAccount(t)
	req := a.request(t, 3, karpv1.CapacityTypeOnDemand, "c5a.2xlarge", "m6g.2xlarge", "m5.2xlarge")
	out, err := a.cloud.Launch(ctx, req)
	check(t, err)
	if len(out.Instances) != 3 || len(out.Refused) != 0 {
		t.Fatalf("launched %d, refused %v", len(out.Instances), out.Refused)
	}
	for i, in := range out.Instances {
		real, ok := a.Instance(in.ID)
		if !ok || in.Claim != req.Claims[i] || in.InstanceType != real.Type || in.Zone != real.Zone || in.ProviderID != real.ProviderID ||
			in.ImageID != real.ImageID || in.CapacityType != "on-demand" || in.Decision != decided {
			t.Errorf("instance %d is %+v, EC2 has %+v", i, in, real)
		}
		if in.Price != 0 || in.Labels != nil || in.Capacity != nil || in.Allocatable != nil {
			t.Errorf("the client says what the catalog has to: %+v", in)
		}
		if real.Tags["reeve.dev/group"] != "0" || real.Tags["reeve.dev/decision"] != decided || real.Tags["team"] != "a" || real.Trouble != "" {
			t.Errorf("tags %v, trouble %q", real.Tags, real.Trouble)
		}
	}
	want := map[string]int{"DescribeLaunchTemplates": 1, "CreateLaunchTemplate": 2, "CreateFleet": 1}
	if diff := cmp.Diff(want, a.Calls()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if !slices.IsSorted(ids(out.Instances)) {
		t.Error("the instances are not in the order of their ids")
	}
}

func TestACallHasTheFormOfKarpenters(t *testing.T) {
	a := newAccount(t)
	req := a.request(t, 2, karpv1.CapacityTypeSpot, "c5a.2xlarge")
	req.Class.Spec.Context = new("my-context")
	_, err := a.cloud.Launch(ctx, req)
	check(t, err)
	form, err := url.ParseQuery(a.bodies("CreateFleet")[0])
	check(t, err)
	for key, want := range map[string]string{
		"Type": "instant", "ClientToken": req.Token, "Context": "my-context",
		"TargetCapacitySpecification.TotalTargetCapacity":             "2",
		"TargetCapacitySpecification.DefaultTargetCapacityType":       "spot",
		"SpotOptions.AllocationStrategy":                              "price-capacity-optimized",
		"OnDemandOptions.AllocationStrategy":                          "",
		"LaunchTemplateConfigs.1.LaunchTemplateSpecification.Version": "$Latest",
		"LaunchTemplateConfigs.1.Overrides.1.InstanceType":            "c5a.2xlarge",
		"LaunchTemplateConfigs.1.Overrides.1.ImageId":                 imageX86,
		"LaunchTemplateConfigs.1.Overrides.1.AvailabilityZone":        req.Offerings[0].Zone,
		"LaunchTemplateConfigs.1.Overrides.1.Priority":                strconv.FormatFloat(float64(req.Offerings[0].Price)/1e9, 'f', -1, 64),
		"TagSpecification.1.ResourceType":                             "instance",
		"TagSpecification.2.ResourceType":                             "volume",
		"TagSpecification.3.ResourceType":                             "fleet",
	} {
		if got := form.Get(key); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	if name := form.Get("LaunchTemplateConfigs.1.LaunchTemplateSpecification.LaunchTemplateName"); !strings.HasPrefix(name, "karpenter.k8s.aws/") {
		t.Errorf("the launch template is named %q", name)
	}
}

func TestATokenSendsTheSameAgainWhateverTheRequestSaysNow(t *testing.T) {
	a := newAccount(t)
	req := a.request(t, 2, karpv1.CapacityTypeOnDemand, "c5a.2xlarge", "m5.2xlarge")
	a.SetFaults(awsapi.Nth("CreateFleet", 1, awsapi.Fault{After: true}))
	if _, err := a.cloud.Launch(ctx, req); err == nil || port.IsTerminal(err) {
		t.Fatalf("a lost answer is %v", err)
	}
	later := req
	later.Offerings = req.Offerings[1:]
	first, err := a.cloud.Launch(ctx, later)
	check(t, err)
	second, err := a.cloud.Launch(ctx, later)
	check(t, err)
	if len(a.Instances()) != 2 || !slices.Equal(ids(first.Instances), ids(second.Instances)) {
		t.Errorf("EC2 has %d instances, the answers are %v and %v", len(a.Instances()), ids(first.Instances), ids(second.Instances))
	}
	sent := a.bodies("CreateFleet")
	if len(sent) != 3 || sent[0] != sent[1] || sent[1] != sent[2] {
		t.Errorf("%d calls that are not the same", len(sent))
	}
	t.Run("with other claims it is refused before it is sent", func(t *testing.T) {
		later.Claims = later.Claims[:1]
		if _, err := a.cloud.Launch(ctx, later); !errors.Is(err, port.ErrTokenUsed) || len(a.bodies("CreateFleet")) != 3 {
			t.Errorf("launch: %v", err)
		}
	})
}

func TestAfterARestartTheSameRequestIsTheSameCall(t *testing.T) {
	a := newAccount(t)
	req := a.request(t, 2, karpv1.CapacityTypeOnDemand, "c5a.2xlarge", "m6g.2xlarge", "m5.2xlarge")
	first, err := a.cloud.Launch(ctx, req)
	check(t, err)
	second, err := a.newCloud(t, 1).Launch(ctx, req)
	check(t, err)
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("(-first +second):\n%s", diff)
	}
	t.Run("and another one needs another token", func(t *testing.T) {
		req.Offerings = req.Offerings[1:]
		if _, err := a.newCloud(t, 1).Launch(ctx, req); !errors.Is(err, port.ErrTokenUsed) || port.IsTerminal(err) || !strings.Contains(err.Error(), "IdempotentParameterMismatch") {
			t.Errorf("launch: %v", err)
		}
	})
}

func TestWhatEC2HasNoneOfIsRefused(t *testing.T) {
	a := newAccount(t)
	req := a.request(t, 3, karpv1.CapacityTypeOnDemand, "c5a.2xlarge", "m5.2xlarge")
	for _, o := range req.Offerings {
		a.SetCapacity(awsapi.Pool{InstanceType: o.InstanceType, Zone: o.Zone, CapacityType: o.CapacityType}, 0)
	}
	out, err := a.cloud.Launch(ctx, req)
	if !errors.Is(err, port.ErrInsufficientCapacity) || port.IsTerminal(err) {
		t.Errorf("launch: %v", err)
	}
	var refused []decision.Offering
	for _, r := range out.Refused {
		refused = append(refused, r.Offering)
		if r.Code != "InsufficientInstanceCapacity" || r.Message == "" {
			t.Errorf("refusal %+v", r)
		}
	}
	if diff := cmp.Diff(req.Offerings, refused); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
	t.Run("while the rest is launched", func(t *testing.T) {
		o := req.Offerings[2]
		a.SetCapacity(awsapi.Pool{InstanceType: o.InstanceType, Zone: o.Zone, CapacityType: o.CapacityType}, 2)
		out, err := a.cloud.Launch(ctx, again(req))
		check(t, err)
		if len(out.Instances) != 2 || len(out.Refused) < 3 {
			t.Errorf("launched %d, refused %v", len(out.Instances), out.Refused)
		}
	})
}

func TestTheSubnetWithMostAddressesIsTaken(t *testing.T) {
	a := newAccount(t)
	req := a.request(t, 1, karpv1.CapacityTypeOnDemand, "m5.large")
	req.Class.Status.Subnets = slices.DeleteFunc(req.Class.Status.Subnets, func(s ec2Subnet) bool { return s.Zone != zoneA })
	a.resolve(t, &req, "m5.large")
	out, err := a.cloud.Launch(ctx, req)
	check(t, err)
	in, _ := a.Instance(out.Instances[0].ID)
	if in.SubnetID != subnetA1 {
		t.Errorf("launched in %s, the first of the status is %s", in.SubnetID, subnetA1)
	}
	t.Run("and one without addresses is refused", func(t *testing.T) {
		a.SetFree(subnetA1, 0)
		out, err := a.cloud.Launch(ctx, next(req, 1, 1))
		if !errors.Is(err, port.ErrInsufficientCapacity) || len(out.Refused) != 1 || out.Refused[0].Code != "InsufficientFreeAddressesInSubnet" {
			t.Errorf("launch: %v, refused %+v", err, out.Refused)
		}
	})
	t.Run("and left out the next time", func(t *testing.T) {
		out, err := a.cloud.Launch(ctx, next(req, 2, 1))
		check(t, err)
		if in, _ := a.Instance(out.Instances[0].ID); in.SubnetID != subnetA2 {
			t.Errorf("launched in %s", in.SubnetID)
		}
	})
}

func TestTemplatesThatVanishedAreMadeAgain(t *testing.T) {
	a := newAccount(t)
	req := a.request(t, 1, karpv1.CapacityTypeOnDemand, "m5.large")
	_, err := a.cloud.Launch(ctx, req)
	check(t, err)
	// Another process takes away what nobody uses.
	other := a.newCloud(t, 1)
	check(t, other.Sweep(ctx, nil))
	check(t, a.world.Clock.Advance(2*time.Minute))
	check(t, other.Sweep(ctx, nil))
	if a.Calls()["DeleteLaunchTemplate"] != 1 {
		t.Fatalf("calls: %v", a.Calls())
	}
	out, err := a.cloud.Launch(ctx, next(req, 1, 1))
	check(t, err)
	if len(out.Instances) != 1 || a.Calls()["CreateLaunchTemplate"] != 2 {
		t.Errorf("launched %v, calls %v", out.Instances, a.Calls())
	}
}

func TestATemplateThatEC2DoesNotSeeYetIsWaitedFor(t *testing.T) {
	a := newAccount(t, func(o *awsapi.Options) { o.Delays.Template = 5 * time.Second })
	req := a.request(t, 1, karpv1.CapacityTypeOnDemand, "m5.large")
	if _, err := a.cloud.Launch(ctx, req); err == nil || port.IsTerminal(err) {
		t.Fatalf("launch: %v", err)
	}
	check(t, a.world.Clock.Advance(10*time.Second))
	out, err := a.cloud.Launch(ctx, req)
	check(t, err)
	if len(out.Instances) != 1 {
		t.Errorf("launched %v", out.Instances)
	}
}

func TestALargeDecisionTakesFewCalls(t *testing.T) {
	a := newAccount(t, func(o *awsapi.Options) {
		o.Subnets = []awsapi.Subnet{{ID: subnetA1, Zone: zoneA, Free: 100_000}, {ID: subnetB1, Zone: zoneB, Free: 100_000}}
	})
	types := a.sixty(t)
	req := a.request(t, 50, karpv1.CapacityTypeOnDemand, types...)
	total := 0
	for group := range 20 {
		out, err := a.cloud.Launch(ctx, next(req, group, 50))
		check(t, err)
		total += len(out.Instances)
	}
	list, err := a.cloud.Instances(ctx)
	check(t, err)
	sum := 0
	for _, n := range a.Calls() {
		sum += n
	}
	if total != 1000 || len(list) != 1000 || sum > 60 {
		t.Errorf("launched %d and listed %d by %d calls: %v", total, len(list), sum, a.Calls())
	}
	t.Logf("1,000 claims in 20 groups: %d calls %v", sum, a.Calls())
}

// sixty are types of several architectures and sizes.
func (a *account) sixty(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, family := range []string{"c5", "c5a", "c6i", "c6g", "c7g", "m5", "m5a", "m6i", "m6g", "m7g", "r5", "r6i", "r6g", "c6a", "m6a", "r6a", "m7i", "r7g"} {
		for _, size := range []string{"large", "xlarge", "2xlarge", "4xlarge", "8xlarge"} {
			if it, ok := a.data.Type(family + "." + size); ok && len(it.Zones) > 0 && len(out) < 70 {
				out = append(out, it.Name)
			}
		}
	}
	if len(out) < 60 {
		t.Fatalf("only %d types", len(out))
	}
	return out
}

func TestAtMostSixtyTypesAreNamed(t *testing.T) {
	a := newAccount(t)
	req := a.request(t, 1, karpv1.CapacityTypeOnDemand, a.sixty(t)...)
	_, err := a.cloud.Launch(ctx, req)
	check(t, err)
	form, err := url.ParseQuery(a.bodies("CreateFleet")[0])
	check(t, err)
	named := map[string]bool{}
	for key := range form {
		if strings.HasSuffix(key, ".InstanceType") {
			named[form.Get(key)] = true
		}
	}
	if len(named) != 60 || !named[req.Offerings[0].InstanceType] || len(req.Types) <= 60 {
		t.Errorf("%d of %d types are named", len(named), len(req.Types))
	}
}

func TestARequestThatLeadsNowhereIsTerminal(t *testing.T) {
	a := newAccount(t)
	good := func() port.LaunchRequest { return a.request(t, 1, karpv1.CapacityTypeOnDemand, "m5.large") }
	for name, edit := range map[string]func(*port.LaunchRequest){
		"the client token is missing":                          func(r *port.LaunchRequest) { r.Token = "" },
		"there is no claim to launch for":                      func(r *port.LaunchRequest) { r.Claims = nil },
		"the class or the template is missing":                 func(r *port.LaunchRequest) { r.Class = nil },
		`capacity type "reserved" is neither`:                  func(r *port.LaunchRequest) { r.CapacityType = "reserved" },
		"there is no offering to choose from":                  func(r *port.LaunchRequest) { r.Offerings = nil },
		"offering m5.large in":                                 func(r *port.LaunchRequest) { r.CapacityType = "spot" },
		"none of the 2 offerings":                              func(r *port.LaunchRequest) { r.Class.Status.AMIs = nil },
		"UserDataSizeLimitExceeded: user data has 16385 bytes": func(r *port.LaunchRequest) { r.Class.Spec.UserData = new(strings.Repeat("x", 16385)) },
		"images of family Windows2022 are not supported yet":   func(r *port.LaunchRequest) { r.Class.Spec.AMIFamily = new("Windows2022") },
		"spec.blockDeviceMappings[0]: volumeSize":              func(r *port.LaunchRequest) { r.Class.Spec.BlockDeviceMappings = hugeDevice() },
		"correct the labels of the NodePool's template":        func(r *port.LaunchRequest) { r.Template.Labels["x"] = `" --evil` },
	} {
		t.Run(name, func(t *testing.T) {
			req := good()
			edit(&req)
			out, err := a.cloud.Launch(ctx, req)
			if !port.IsTerminal(err) || !strings.Contains(fmt.Sprint(err), name) || len(out.Instances) > 0 {
				t.Errorf("launch: %v", err)
			}
		})
	}
	if len(a.Calls()) != 0 {
		t.Errorf("EC2 was called: %v", a.Calls())
	}
}

func TestOneTokenFromSeveralGoroutinesLaunchesOnce(t *testing.T) {
	a := newAccount(t)
	req := a.request(t, 2, karpv1.CapacityTypeOnDemand, "m5.large", "m6g.large")
	var wg sync.WaitGroup
	answers := make([]port.LaunchResult, 6)
	for i := range answers {
		wg.Go(func() {
			out, err := a.cloud.Launch(ctx, req)
			if err != nil {
				t.Error(err)
			}
			answers[i] = out
		})
	}
	wg.Wait()
	for _, out := range answers {
		if diff := cmp.Diff(ids(answers[0].Instances), ids(out.Instances)); diff != "" {
			t.Errorf("(-first +other):\n%s", diff)
		}
	}
	if len(a.Instances()) != 2 || a.Calls()["CreateLaunchTemplate"] != 2 {
		t.Errorf("%d instances, calls %v", len(a.Instances()), a.Calls())
	}
}
