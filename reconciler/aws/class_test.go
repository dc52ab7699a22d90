package aws_test

import (
	"context"
	"strings"
	"testing"
	"time"

	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"github.com/awslabs/operatorpkg/status"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reeve-project/reeve/reconciler/aws"
	"github.com/reeve-project/reeve/reconciler/sim/awsapi"
)

// shopClass is a class that resolves in the account as it is.
func shopClass(edit ...func(*ec2v1.EC2NodeClassSpec)) *ec2v1.EC2NodeClass {
	class := &ec2v1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	class.Spec.Role = awsapi.NodeRole("shop")
	class.Spec.AMISelectorTerms = []ec2v1.AMISelectorTerm{{Alias: "al2023@latest"}}
	class.Spec.SubnetSelectorTerms = []ec2v1.SubnetSelectorTerm{{Tags: map[string]string{"karpenter.sh/discovery": "shop"}}}
	class.Spec.SecurityGroupSelectorTerms = []ec2v1.SecurityGroupSelectorTerm{{Tags: map[string]string{"karpenter.sh/discovery": "shop"}}}
	for _, e := range edit {
		e(&class.Spec)
	}
	return class
}

func (a *tenant) resolve(t *testing.T, class *ec2v1.EC2NodeClass) ec2v1.EC2NodeClassStatus {
	t.Helper()
	out, err := a.cloud.ResolveNodeClass(t.Context(), class)
	noError(t, err)
	return out
}

func condition(t *testing.T, s ec2v1.EC2NodeClassStatus, kind string) status.Condition {
	t.Helper()
	for _, c := range s.Conditions {
		if c.Type == kind {
			return c
		}
	}
	t.Fatalf("there is no condition %s in %v", kind, s.Conditions)
	return status.Condition{}
}

// wantCondition checks status and reason, and that the message has the words.
func wantCondition(t *testing.T, s ec2v1.EC2NodeClassStatus, kind string, is metav1.ConditionStatus, reason string, words ...string) {
	t.Helper()
	c := condition(t, s, kind)
	if c.Status != is || c.Reason != reason {
		t.Errorf("%s is %s by %s (%s), want %s by %s", kind, c.Status, c.Reason, c.Message, is, reason)
	}
	for _, w := range words {
		if !strings.Contains(c.Message, w) {
			t.Errorf("%s: %q does not say %q", kind, c.Message, w)
		}
	}
}

var classConditions = []string{
	ec2v1.ConditionTypeSubnetsReady, ec2v1.ConditionTypeSecurityGroupsReady, ec2v1.ConditionTypeAMIsReady,
	ec2v1.ConditionTypeInstanceProfileReady, ec2v1.ConditionTypeValidationSucceeded, status.ConditionReady,
}

func TestAClassResolves(t *testing.T) {
	a := newTenant(t)
	s := a.resolve(t, shopClass())
	for _, kind := range classConditions {
		wantCondition(t, s, kind, metav1.ConditionTrue, kind)
	}
	if len(s.Subnets) != 4 || len(s.SecurityGroups) != 1 || s.SecurityGroups[0].Name != "shop-node" || len(s.AMIs) != 5 || !strings.HasPrefix(s.InstanceProfile, "shop_") {
		t.Errorf("status %+v", s)
	}
	for _, n := range s.Subnets {
		if n.Zone == "" || n.ZoneID == "" {
			t.Errorf("subnet %+v", n)
		}
	}
}

func TestAResolvedClassCostsNoCalls(t *testing.T) {
	a := newTenant(t)
	first := a.resolve(t, shopClass())
	before := a.Calls()
	for range 59 {
		a.pass(t, time.Second)
		if diff := cmp.Diff(first, a.resolve(t, shopClass())); diff != "" {
			t.Fatalf("status (-want +got):\n%s", diff)
		}
	}
	if diff := cmp.Diff(map[string]int{}, a.since(before)); diff != "" {
		t.Errorf("calls in the first minute (-want +got):\n%s", diff)
	}
	for _, step := range []struct {
		after time.Duration
		want  map[string]int
	}{
		{time.Second, map[string]int{"DescribeSubnets": 1}},
		{4 * time.Minute, map[string]int{"DescribeSubnets": 1, "DescribeSecurityGroups": 1, "DescribeImages": 1, "DescribeCluster": 1}},
		{10 * time.Minute, map[string]int{"DescribeSubnets": 1, "DescribeSecurityGroups": 1, "DescribeImages": 1, "DescribeCluster": 1, "GetInstanceProfile": 1}},
		{15 * time.Minute, map[string]int{"DescribeSubnets": 1, "DescribeSecurityGroups": 1, "DescribeImages": 1, "DescribeCluster": 1, "GetInstanceProfile": 1, "CreateFleet": 1, "RunInstances": 1}},
	} {
		a.pass(t, step.after)
		before := a.Calls()
		if diff := cmp.Diff(first, a.resolve(t, shopClass())); diff != "" {
			t.Errorf("status (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(step.want, a.since(before)); diff != "" {
			t.Errorf("calls at %s (-want +got):\n%s", a.world.Clock.Now().Sub(noon), diff)
		}
	}
}

func TestSubnetsAndGroupsAreSelectedByTerms(t *testing.T) {
	zone := func(s string) string { return seoul + s }
	a := newTenant(t, func(o *awsapi.Options) {
		o.Subnets = []awsapi.Subnet{
			{ID: "subnet-0a", Zone: zone("a"), Free: 10, Tags: map[string]string{"net": "private", "team": "x"}},
			{ID: "subnet-0b", Zone: zone("b"), Free: 30, Tags: map[string]string{"net": "private"}},
			{ID: "subnet-0c", Zone: zone("c"), Free: 20, Tags: map[string]string{"net": "public", "team": "y"}},
		}
		o.SecurityGroups = []awsapi.SecurityGroup{
			{ID: "sg-0a", Name: "nodes", Tags: map[string]string{"team": "x"}}, {ID: "sg-0b", Name: "nodes", Tags: map[string]string{"team": "y"}},
			{ID: "sg-0c", Name: "other", Tags: map[string]string{"team": "x"}},
		}
	})
	tags := func(kv ...string) map[string]string {
		out := map[string]string{}
		for i := 0; i < len(kv); i += 2 {
			out[kv[i]] = kv[i+1]
		}
		return out
	}
	for _, c := range []struct {
		name          string
		subnets       []ec2v1.SubnetSelectorTerm
		groups        []ec2v1.SecurityGroupSelectorTerm
		nets, grouped string
	}{
		{"the most free addresses come first", []ec2v1.SubnetSelectorTerm{{Tags: tags("net", "*")}}, []ec2v1.SecurityGroupSelectorTerm{{Tags: tags("team", "*")}}, "0b 0c 0a", "0a 0b 0c"},
		{"fields of a term have to match together", []ec2v1.SubnetSelectorTerm{{Tags: tags("net", "private", "team", "*")}}, []ec2v1.SecurityGroupSelectorTerm{{Name: "nodes", Tags: tags("team", "x")}}, "0a", "0a"},
		{"terms are alternatives", []ec2v1.SubnetSelectorTerm{{ID: "subnet-0a"}, {Tags: tags("team", "y")}, {ID: "subnet-0c"}}, []ec2v1.SecurityGroupSelectorTerm{{ID: "sg-0c"}, {Tags: tags("team", "y")}}, "0c 0a", "0b 0c"},
		{"an id that does not exist is passed over", []ec2v1.SubnetSelectorTerm{{ID: "subnet-0a"}, {ID: "subnet-0f"}}, []ec2v1.SecurityGroupSelectorTerm{{ID: "sg-0f"}, {Name: "other"}}, "0a", "0c"},
		{"a term without a field selects nothing", []ec2v1.SubnetSelectorTerm{{}}, []ec2v1.SecurityGroupSelectorTerm{{}}, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := a.resolve(t, shopClass(func(spec *ec2v1.EC2NodeClassSpec) {
				spec.SubnetSelectorTerms, spec.SecurityGroupSelectorTerms = c.subnets, c.groups
			}))
			var nets, groups []string
			for _, n := range s.Subnets {
				nets = append(nets, strings.TrimPrefix(n.ID, "subnet-"))
			}
			for _, g := range s.SecurityGroups {
				groups = append(groups, strings.TrimPrefix(g.ID, "sg-"))
			}
			if strings.Join(nets, " ") != c.nets || strings.Join(groups, " ") != c.grouped {
				t.Errorf("subnets %v, groups %v; want %s and %s", nets, groups, c.nets, c.grouped)
			}
		})
	}
}

func TestWhatIsMissingIsACondition(t *testing.T) {
	a := newTenant(t)
	for _, c := range []struct {
		name         string
		edit         func(*ec2v1.EC2NodeClassSpec)
		kind, reason string
		words        []string
	}{
		{"no subnet", func(s *ec2v1.EC2NodeClassSpec) {
			s.SubnetSelectorTerms = []ec2v1.SubnetSelectorTerm{{Tags: map[string]string{"net": "none"}}}
		}, "SubnetsReady", "SubnetsNotFound", []string{"tag net=none", "correct the terms"}},
		{"no security group", func(s *ec2v1.EC2NodeClassSpec) {
			s.SecurityGroupSelectorTerms = []ec2v1.SecurityGroupSelectorTerm{{Name: "none"}, {ID: "sg-1"}}
		}, "SecurityGroupsReady", "SecurityGroupsNotFound", []string{"name none; id sg-1"}},
		{"a release that does not exist", func(s *ec2v1.EC2NodeClassSpec) { s.AMISelectorTerms[0].Alias = "al2023@v20010101" }, "AMIsReady", "AMINotFound", []string{"al2023@v20010101", "Kubernetes 1.34", "al2023@latest"}},
		{"no image by that name", func(s *ec2v1.EC2NodeClassSpec) { s.AMISelectorTerms = []ec2v1.AMISelectorTerm{{Name: "mine-*"}} }, "AMIsReady", "AMINotFound", []string{"name mine-*"}},
		{"neither role nor profile", func(s *ec2v1.EC2NodeClassSpec) { s.Role = "" }, "InstanceProfileReady", "InstanceProfileNotFound", []string{"set spec.role"}},
		{"a role that does not exist", func(s *ec2v1.EC2NodeClassSpec) { s.Role = "nobody" }, "InstanceProfileReady", "RoleNotFound", []string{`"nobody"`, "create it"}},
		{"a tag of the controller", func(s *ec2v1.EC2NodeClassSpec) { s.Tags = map[string]string{"eks:eks-cluster-name": "x"} }, "ValidationSucceeded", "TagValidationFailed", []string{"remove it"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := a.resolve(t, shopClass(c.edit))
			wantCondition(t, s, c.kind, metav1.ConditionFalse, c.reason, c.words...)
			wantCondition(t, s, status.ConditionReady, metav1.ConditionFalse, "UnhealthyDependents", c.kind)
			if c.kind != "ValidationSucceeded" {
				wantCondition(t, s, "ValidationSucceeded", metav1.ConditionFalse, "DependenciesNotReady")
			}
		})
	}
}

func TestWhatIsMissingIsFoundAMinuteLater(t *testing.T) {
	a := newTenant(t)
	class := shopClass(func(s *ec2v1.EC2NodeClassSpec) { s.Role = "path/to/late" })
	wantCondition(t, a.resolve(t, class), "Ready", metav1.ConditionFalse, "UnhealthyDependents")
	a.PutRole("late")
	a.pass(t, 59*time.Second)
	before := a.Calls()
	wantCondition(t, a.resolve(t, class), "InstanceProfileReady", metav1.ConditionFalse, "RoleNotFound")
	if diff := cmp.Diff(map[string]int{}, a.since(before)); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	a.pass(t, time.Second)
	s := a.resolve(t, class)
	wantCondition(t, s, "Ready", metav1.ConditionTrue, "Ready")
	if got := condition(t, s, "Ready").LastTransitionTime.Time; !got.Equal(noon.Add(time.Minute)) {
		t.Errorf("ready since %s", got)
	}
	if got := condition(t, s, "SubnetsReady").LastTransitionTime.Time; !got.Equal(noon) {
		t.Errorf("subnets ready since %s", got)
	}
}

func TestASourceThatFailsKeepsWhatWasGood(t *testing.T) {
	for _, c := range []struct{ action, service, kind, reason string }{
		{"DescribeSubnets", "ec2", "SubnetsReady", "SubnetsResolutionFailed"},
		{"DescribeSecurityGroups", "ec2", "SecurityGroupsReady", "SecurityGroupsResolutionFailed"},
		{"DescribeImages", "ec2", "AMIsReady", "AMIsResolutionFailed"},
		{"GetParameter", "ssm", "AMIsReady", "AMIsResolutionFailed"},
		{"DescribeCluster", "eks", "AMIsReady", "AMIsResolutionFailed"},
		{"GetInstanceProfile", "iam", "InstanceProfileReady", "InstanceProfileResolutionFailed"},
	} {
		t.Run(c.action, func(t *testing.T) {
			a := newTenant(t)
			a.SetFaults(awsapi.Every(c.action, awsapi.Fault{Code: "ThrottlingException"}))
			s := a.resolve(t, shopClass())
			wantCondition(t, s, c.kind, metav1.ConditionFalse, c.reason, "ThrottlingException", "again in 15s")
			a.SetFaults(nil)
			a.pass(t, 15*time.Second)
			good := a.resolve(t, shopClass())
			wantCondition(t, good, "Ready", metav1.ConditionTrue, "Ready")
			a.SetFaults(awsapi.Every(c.action, awsapi.Fault{Code: "ThrottlingException"}))
			for range 100 {
				a.pass(t, time.Minute)
				if diff := cmp.Diff(good, a.resolve(t, shopClass())); diff != "" {
					t.Fatalf("status (-want +got):\n%s", diff)
				}
			}
			if c.action == "GetParameter" {
				return // the parameters are good for a day
			}
			if n := a.log.count("ThrottlingException"); n > 3 {
				t.Errorf("the error is logged %d times", n)
			}
			if a.log.count("ThrottlingException") < 2 {
				t.Error("nothing is said of what fails")
			}
		})
	}
}

func TestAnEndedContextIsAnErrorAndAskedAgain(t *testing.T) {
	a := newTenant(t)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.cloud.ResolveNodeClass(ended, shopClass()); err == nil {
		t.Error("a status by an ended context")
	}
	wantCondition(t, a.resolve(t, shopClass()), "Ready", metav1.ConditionTrue, "Ready")
	if _, err := a.cloud.ResolveNodeClass(t.Context(), nil); err == nil {
		t.Error("a status of no class")
	}
}

func TestTheDryRunSaysWhatIsNotAllowed(t *testing.T) {
	for _, call := range []string{"CreateLaunchTemplate", "CreateFleet", "RunInstances"} {
		t.Run(call, func(t *testing.T) {
			a := newTenant(t)
			a.SetFaults(awsapi.Every(call, awsapi.Fault{Code: "UnauthorizedOperation", Message: "You are not authorized to perform this operation."}))
			s := a.resolve(t, shopClass())
			wantCondition(t, s, "ValidationSucceeded", metav1.ConditionFalse, call+"AuthCheckFailed", "ec2:"+call, "not authorized", "iam:PassRole")
			before := a.Calls()
			a.pass(t, time.Minute-time.Second)
			if diff := cmp.Diff(s, a.resolve(t, shopClass())); diff != "" || len(a.since(before)) != 0 {
				t.Errorf("after calls %v the status is (-want +got):\n%s", a.since(before), diff)
			}
			a.SetFaults(nil)
			a.pass(t, time.Minute+time.Second)
			wantCondition(t, a.resolve(t, shopClass()), "ValidationSucceeded", metav1.ConditionTrue, "ValidationSucceeded")
		})
		t.Run(call+" throttled leaves it open", func(t *testing.T) {
			a := newTenant(t)
			a.SetFaults(awsapi.Every(call, awsapi.Fault{Code: "RequestLimitExceeded"}))
			s := a.resolve(t, shopClass())
			wantCondition(t, s, "ValidationSucceeded", metav1.ConditionUnknown, "ValidationPending")
			wantCondition(t, s, "Ready", metav1.ConditionUnknown, "UnhealthyDependents")
		})
		t.Run(call+" refused for another reason is what EC2 says", func(t *testing.T) {
			a := newTenant(t)
			a.SetFaults(awsapi.Every(call, awsapi.Fault{Code: "InvalidParameterCombination", Message: "no such thing"}))
			wantCondition(t, a.resolve(t, shopClass()), "ValidationSucceeded", metav1.ConditionFalse, call+"Rejected", "no such thing")
		})
	}
	t.Run("one subnet that may be used is enough", func(t *testing.T) {
		a := newTenant(t)
		a.SetFaults(awsapi.Nth("RunInstances", 1, awsapi.Fault{Code: "UnauthorizedOperation"}))
		wantCondition(t, a.resolve(t, shopClass()), "ValidationSucceeded", metav1.ConditionTrue, "ValidationSucceeded")
	})
}

func TestAClassThatCannotBeLaunchedWithSaysWhy(t *testing.T) {
	a := newTenant(t, func(o *awsapi.Options) {
		o.Images = []awsapi.Image{{ID: "ami-0f", Name: "mine", Architecture: "x86_64"}}
	})
	for _, c := range []struct {
		name   string
		edit   func(*ec2v1.EC2NodeClassSpec)
		reason string
		words  []string
	}{
		{"user data that is none", func(s *ec2v1.EC2NodeClassSpec) {
			s.AMISelectorTerms, s.UserData = []ec2v1.AMISelectorTerm{{Alias: "bottlerocket@latest"}}, new("no = [toml")
		}, "LaunchTemplateInvalid", []string{"correct it"}},
		{"a placement group, which types are not known to fit", func(s *ec2v1.EC2NodeClassSpec) {
			s.PlacementGroupSelector = &ec2v1.PlacementGroupSelector{Name: new("x")}
		}, "NoCompatibleInstanceTypes", []string{"placement group"}},
		{"a size of the kubelet that is none", func(s *ec2v1.EC2NodeClassSpec) {
			s.Kubelet = &ec2v1.KubeletConfiguration{KubeReserved: map[string]string{"memory": "much"}}
		}, "InstanceTypesUnresolved", []string{"kubeReserved"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			wantCondition(t, a.resolve(t, shopClass(c.edit)), "ValidationSucceeded", metav1.ConditionFalse, c.reason, c.words...)
		})
	}
	if n := a.Calls()["CreateFleet"]; n != 0 {
		t.Errorf("%d fleets were asked for", n)
	}
}

func TestTheDryRunLeavesNothingBehind(t *testing.T) {
	a := newTenant(t)
	a.resolve(t, shopClass())
	if len(a.Instances()) != 0 {
		t.Errorf("instances %v", a.Instances())
	}
	a.pass(t, 2*time.Hour)
	noError(t, a.cloud.Sweep(t.Context(), nil))
	if got := a.Leftovers(); len(got) != 0 {
		t.Errorf("left behind: %v", got)
	}
}

func TestAProfileThatEC2DoesNotSeeYetIsWaitedFor(t *testing.T) {
	a := newTenant(t, func(o *awsapi.Options) { o.Delays.InstanceProfile = 10 * time.Second })
	wantCondition(t, a.resolve(t, shopClass()), "ValidationSucceeded", metav1.ConditionUnknown, "ValidationPending", "does not see")
	a.pass(t, 15*time.Second)
	wantCondition(t, a.resolve(t, shopClass()), "Ready", metav1.ConditionTrue, "Ready")
}

func TestTimesOfConditionsOutliveTheProcess(t *testing.T) {
	a := newTenant(t)
	class := shopClass()
	class.Status = a.resolve(t, class)
	a.pass(t, time.Hour)
	next := a.client(t, aws.Options{Cluster: "shop"})
	got, err := next.ResolveNodeClass(t.Context(), class)
	noError(t, err)
	if diff := cmp.Diff(class.Status, got); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}
