package aws_test

import (
	"slices"
	"testing"
	"time"

	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/aws"
	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/port"
	"github.com/reeve-project/reeve/reconciler/sim/awsapi"
)

// profiles are the profiles of IAM: path and role by name.
func (a *tenant) profiles() map[string]string {
	out := map[string]string{}
	for _, p := range a.InstanceProfiles() {
		out[p.Name] = p.Path + " " + p.Role
	}
	return out
}

func TestARoleGetsAProfile(t *testing.T) {
	a := newTenant(t)
	class := shopClass(func(s *ec2v1.EC2NodeClassSpec) { s.Tags = map[string]string{"team": "x"} })
	name := a.resolve(t, class).InstanceProfile
	all := a.InstanceProfiles()
	if len(all) != 1 {
		t.Fatalf("profiles %v", all)
	}
	want := awsapi.InstanceProfile{
		Name: name, Path: "/karpenter/" + seoul + "/shop/default/", Role: awsapi.NodeRole("shop"), Created: noon,
		Tags: map[string]string{
			"team": "x", "kubernetes.io/cluster/shop": "owned", "eks:eks-cluster-name": "shop", "karpenter.k8s.aws/ec2nodeclass": "default", "topology.kubernetes.io/region": seoul,
		},
	}
	if diff := cmp.Diff(want, all[0]); diff != "" {
		t.Errorf("profile (-want +got):\n%s", diff)
	}
	t.Run("which another process finds again", func(t *testing.T) {
		before := a.Calls()
		s, err := a.client(t, aws.Options{Cluster: "shop"}).ResolveNodeClass(t.Context(), class)
		noError(t, err)
		if s.InstanceProfile != name || a.since(before)["CreateInstanceProfile"]+a.since(before)["AddRoleToInstanceProfile"] != 0 {
			t.Errorf("profile %s after %v", s.InstanceProfile, a.since(before))
		}
	})
	t.Run("and another class has another one", func(t *testing.T) {
		other := shopClass()
		other.Name = "other"
		if got := a.resolve(t, other).InstanceProfile; got == name {
			t.Error("two classes share a profile")
		}
	})
}

func TestAProfileThatIsNamedIsUsedAsItIs(t *testing.T) {
	a := newTenant(t)
	a.PutInstanceProfile("by-hand", "somebody")
	s := a.resolve(t, shopClass(func(s *ec2v1.EC2NodeClassSpec) { s.Role, s.InstanceProfile = "", new("by-hand") }))
	wantCondition(t, s, "Ready", metav1.ConditionTrue, "Ready")
	if s.InstanceProfile != "by-hand" || a.Calls()["GetInstanceProfile"] != 0 {
		t.Errorf("profile %q after %v", s.InstanceProfile, a.Calls())
	}
}

func TestARoleWithAPathIsAddedByItsName(t *testing.T) {
	a := newTenant(t)
	a.PutRole("nodes")
	s := a.resolve(t, shopClass(func(s *ec2v1.EC2NodeClassSpec) { s.Role = "team/x/nodes" }))
	wantCondition(t, s, "InstanceProfileReady", metav1.ConditionTrue, "InstanceProfileReady")
	if diff := cmp.Diff(map[string]string{s.InstanceProfile: "/karpenter/" + seoul + "/shop/default/ nodes"}, a.profiles()); diff != "" {
		t.Errorf("profiles (-want +got):\n%s", diff)
	}
}

func TestAMissingRoleLeavesNoProfile(t *testing.T) {
	a := newTenant(t)
	a.resolve(t, shopClass(func(s *ec2v1.EC2NodeClassSpec) { s.Role = "nobody" }))
	if got := a.profiles(); len(got) != 0 {
		t.Errorf("profiles %v", got)
	}
}

func TestARoleThatSomebodyTookOutIsPutBack(t *testing.T) {
	a := newTenant(t)
	name := a.resolve(t, shopClass()).InstanceProfile
	a.DropRole(awsapi.NodeRole("shop"))
	a.PutRole(awsapi.NodeRole("shop"))
	a.pass(t, 15*time.Minute)
	a.resolve(t, shopClass())
	if diff := cmp.Diff(map[string]string{name: "/karpenter/" + seoul + "/shop/default/ " + awsapi.NodeRole("shop")}, a.profiles()); diff != "" {
		t.Errorf("profiles (-want +got):\n%s", diff)
	}
	t.Run("and another role in it is replaced", func(t *testing.T) {
		a.PutInstanceProfile(name, "intruder")
		a.pass(t, 15*time.Minute)
		a.resolve(t, shopClass())
		if got := a.profiles()[name]; got != "/ "+awsapi.NodeRole("shop") {
			t.Errorf("profile %s", got)
		}
	})
}

func TestAnotherRoleIsAnotherProfileAndTheOldOneIsSwept(t *testing.T) {
	a := newTenant(t)
	a.PutRole("next")
	old := a.resolve(t, shopClass()).InstanceProfile
	class := shopClass(func(s *ec2v1.EC2NodeClassSpec) { s.Role = "next" })
	a.pass(t, time.Hour)
	a.resolve(t, shopClass())
	name := a.resolve(t, class).InstanceProfile
	if name == old {
		t.Fatal("running instances would change their role")
	}
	sweep := func(classes ...*ec2v1.EC2NodeClass) {
		t.Helper()
		noError(t, a.cloud.Sweep(t.Context(), classes))
	}
	sweep(class)
	if len(a.profiles()) != 2 {
		t.Errorf("an instance may be starting with the old profile: %v", a.profiles())
	}
	a.pass(t, time.Hour)
	sweep(class)
	if diff := cmp.Diff(map[string]string{name: "/karpenter/" + seoul + "/shop/default/ next"}, a.profiles()); diff != "" {
		t.Errorf("profiles (-want +got):\n%s", diff)
	}
	sweep()
	if diff := cmp.Diff(map[string]string{}, a.profiles()); diff != "" {
		t.Errorf("profiles of no class (-want +got):\n%s", diff)
	}
}

func TestSweepLeavesTheProfilesOfOthers(t *testing.T) {
	a := newTenant(t)
	a.PutInstanceProfile("by-hand", "somebody")
	other := a.client(t, aws.Options{Cluster: "bakery"})
	_, err := other.ResolveNodeClass(t.Context(), shopClass())
	noError(t, err)
	a.pass(t, 2*time.Hour)
	before := a.profiles()
	noError(t, a.cloud.Sweep(t.Context(), nil))
	if diff := cmp.Diff(before, a.profiles()); diff != "" {
		t.Errorf("profiles (-want +got):\n%s", diff)
	}
}

func TestSweepTellsWhatItCouldNotDelete(t *testing.T) {
	a := newTenant(t)
	a.resolve(t, shopClass())
	a.pass(t, 2*time.Hour)
	for _, action := range []string{"ListInstanceProfiles", "DescribeInstances", "RemoveRoleFromInstanceProfile", "DeleteInstanceProfile"} {
		a.SetFaults(awsapi.Every(action, awsapi.Fault{Code: "ServiceUnavailable"}))
		if err := a.cloud.Sweep(t.Context(), nil); err == nil {
			t.Errorf("%s failed without an error", action)
		}
	}
	a.SetFaults(nil)
	noError(t, a.cloud.Sweep(t.Context(), nil))
	if got := a.profiles(); len(got) != 0 {
		t.Errorf("profiles %v", got)
	}
}

// launch launches one node of the class as it resolves.
func (a *tenant) launch(t *testing.T, class *ec2v1.EC2NodeClass) port.Instance {
	t.Helper()
	class = class.DeepCopy()
	class.Status = a.resolve(t, class)
	data, err := a.cloud.Catalog(t.Context())
	noError(t, err)
	types, err := data.Resolve(class, catalog.DefaultSettings())
	noError(t, err)
	i := slices.IndexFunc(types, func(it *catalog.InstanceType) bool { return it.Name == "m5.large" })
	offer := types[i].Offerings[slices.IndexFunc(types[i].Offerings, func(o catalog.Offering) bool { return o.CapacityType == "on-demand" && o.Available })]
	out, err := a.cloud.Launch(t.Context(), port.LaunchRequest{
		Decision: "20260406T120000.000Z-abcdefghijklmnop", Token: "token", Claims: []string{"default-1"}, NodePool: "default", Class: class, Template: &karpv1.NodeClaim{},
		CapacityType: "on-demand", Types: types[i : i+1],
		Offerings: []decision.Offering{{InstanceType: "m5.large", Zone: offer.Zone, CapacityType: "on-demand", Price: offer.Price}},
		Tags: map[string]string{
			"karpenter.sh/nodepool": "default", "eks:eks-cluster-name": "shop", "kubernetes.io/cluster/shop": "owned", "karpenter.k8s.aws/ec2nodeclass": "default",
		},
	})
	noError(t, err)
	return out.Instances[0]
}

func TestTheProfileOfARunningInstanceIsNotSwept(t *testing.T) {
	a := newTenant(t)
	in := a.launch(t, shopClass())
	a.pass(t, 2*time.Hour)
	noError(t, a.cloud.Sweep(t.Context(), nil))
	if len(a.profiles()) != 1 {
		t.Errorf("profiles %v", a.profiles())
	}
	noError(t, a.cloud.Terminate(t.Context(), []string{in.ID}))
	a.pass(t, time.Hour)
	noError(t, a.cloud.Sweep(t.Context(), nil))
	if diff := cmp.Diff(map[string]string{}, a.profiles()); diff != "" {
		t.Errorf("profiles (-want +got):\n%s", diff)
	}
}
