package sim

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/port"
	"github.com/reeve-project/reeve/reconciler/resources"
)

// summary is what was launched and refused, one line each.
func summary(r port.LaunchResult) []string {
	var out []string
	for _, in := range r.Instances {
		out = append(out, fmt.Sprintf("%s %s %s %s", in.InstanceType, in.Zone, in.CapacityType, in.Price))
	}
	slices.Sort(out)
	for _, f := range r.Refused {
		out = append(out, fmt.Sprintf("refused %s %s: %s", f.Offering.InstanceType, f.Offering.Zone, f.Code))
	}
	return out
}

func TestLaunchTakesTheCheapestWithCapacity(t *testing.T) {
	c5, m5 := "c5a.2xlarge", "m5.2xlarge"
	tests := []struct {
		name  string
		pools map[Pool]int
		edit  func(*port.LaunchRequest)
		want  []string
	}{
		{"the first of equal prices by name of the zone", nil, nil,
			[]string{"c5a.2xlarge ap-northeast-2a on-demand $0.344/h", "c5a.2xlarge ap-northeast-2a on-demand $0.344/h"}},
		{"the next pool when one runs out", map[Pool]int{{c5, zoneA, "on-demand"}: 1}, nil,
			[]string{"c5a.2xlarge ap-northeast-2a on-demand $0.344/h", "c5a.2xlarge ap-northeast-2b on-demand $0.344/h",
				"refused c5a.2xlarge ap-northeast-2a: InsufficientInstanceCapacity"}},
		{"some claims get nothing", map[Pool]int{{c5, zoneA, "on-demand"}: 0, {c5, zoneB, "on-demand"}: 0, {m5, zoneA, "on-demand"}: 1}, nil,
			[]string{"m5.2xlarge ap-northeast-2a on-demand $0.472/h", "refused c5a.2xlarge ap-northeast-2a: InsufficientInstanceCapacity",
				"refused c5a.2xlarge ap-northeast-2b: InsufficientInstanceCapacity", "refused m5.2xlarge ap-northeast-2a: InsufficientInstanceCapacity"}},
		{"no capacity at all", map[Pool]int{{c5, zoneA, "on-demand"}: 0, {c5, zoneB, "on-demand"}: 0, {m5, zoneA, "on-demand"}: 0}, nil,
			[]string{"refused c5a.2xlarge ap-northeast-2a: InsufficientInstanceCapacity", "refused c5a.2xlarge ap-northeast-2b: InsufficientInstanceCapacity",
				"refused m5.2xlarge ap-northeast-2a: InsufficientInstanceCapacity"}},
		{"a pool of another capacity type does not matter", map[Pool]int{{c5, zoneA, "spot"}: 0}, func(r *port.LaunchRequest) { r.Claims = r.Claims[:1] },
			[]string{"c5a.2xlarge ap-northeast-2a on-demand $0.344/h"}},
		{"what EC2 does not sell is refused", nil, func(r *port.LaunchRequest) {
			r.Claims = r.Claims[:1]
			r.Offerings = []decision.Offering{{InstanceType: "m0.large", Zone: zoneA, CapacityType: "on-demand"}, {InstanceType: "c7g.large", Zone: zoneA, CapacityType: "on-demand"}}
			r.Class.Status.AMIs = r.Class.Status.AMIs[:1]
		}, []string{"refused m0.large ap-northeast-2a: Unsupported", "refused c7g.large ap-northeast-2a: Unsupported"}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			e := newEstate(t)
			for p, n := range tc.pools {
				e.cloud.SetCapacity(p, n)
			}
			req := e.request(t, "token", "x", "y")
			if tc.edit != nil {
				tc.edit(&req)
			}
			got, err := e.cloud.Launch(ctx, req)
			check(t, err)
			if diff := cmp.Diff(tc.want, summary(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheSameTokenLaunchesOnce(t *testing.T) {
	e := newEstate(t)
	e.cloud.SetCapacity(Pool{"c5a.2xlarge", zoneA, "on-demand"}, 1)
	first, err := e.cloud.Launch(ctx, e.request(t, "token", "x", "y"))
	check(t, err)
	again, err := e.cloud.Launch(ctx, e.request(t, "token", "x", "y"))
	check(t, err)
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("(-first +again):\n%s", diff)
	}
	if n := len(e.cloud.list()); n != 2 {
		t.Errorf("%d instances run", n)
	}
	if _, err := e.cloud.Launch(ctx, e.request(t, "token", "x")); !errors.Is(err, port.ErrTokenUsed) || !strings.Contains(err.Error(), "IdempotentParameterMismatch") {
		t.Errorf("another input with the same token: %v", err)
	}
	other, err := e.cloud.Launch(ctx, e.request(t, "token2", "z"))
	check(t, err)
	if other.Instances[0].ID == first.Instances[0].ID {
		t.Error("two tokens gave one instance")
	}
	// The answer shows the instances as they are by now.
	e.cloud.Kill(first.Instances[0].ID)
	again, err = e.cloud.Launch(ctx, e.request(t, "token", "x", "y"))
	check(t, err)
	if again.Instances[0].State != "shutting-down" {
		t.Errorf("state %s", again.Instances[0].State)
	}
	second := newEstate(t)
	same, err := second.cloud.Launch(ctx, second.request(t, "token", "x"))
	check(t, err)
	if same.Instances[0].ID != first.Instances[0].ID {
		t.Error("ids do not follow from the token")
	}
}

func TestAMalformedLaunchIsTerminal(t *testing.T) {
	e := newEstate(t)
	tests := []struct {
		name string
		edit func(*port.LaunchRequest)
		want string
	}{
		{"without token", func(r *port.LaunchRequest) { r.Token = "" }, "client token is missing"},
		{"without claims", func(r *port.LaunchRequest) { r.Claims = nil }, "no claim"},
		{"without class", func(r *port.LaunchRequest) { r.Class = nil }, "class or the template"},
		{"without offerings", func(r *port.LaunchRequest) { r.Offerings = nil }, "no offering"},
		{"with offerings of another capacity type", func(r *port.LaunchRequest) { r.CapacityType = "spot" }, "is on-demand, and the launch is spot"},
		{"with an unknown image family", func(r *port.LaunchRequest) { r.Class.Spec.AMIFamily = new("AL1") }, "AL1"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			req := e.request(t, "t", "c")
			tc.edit(&req)
			if _, err := e.cloud.Launch(ctx, req); !port.IsTerminal(err) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestInstancesAreListedAsTheyAre(t *testing.T) {
	e := newEstate(t)
	_, err := e.cloud.AddManaged("system", "m5.large", zoneA)
	check(t, err)
	untagged := e.request(t, "other", "o")
	untagged.Tags = nil
	_, err = e.cloud.Launch(ctx, untagged)
	check(t, err)
	res, err := e.cloud.Launch(ctx, e.request(t, "token", "x"))
	check(t, err)
	id := res.Instances[0].ID
	state := func() string {
		list, err := e.cloud.Instances(ctx)
		check(t, err)
		var out []string
		for _, in := range list {
			if in.ID != id || in.Decision != "d1" || in.Claim != "" || in.Group != -1 || in.ProviderID != "aws:///"+zoneA+"/"+id {
				t.Errorf("instance %+v", in)
			}
			out = append(out, in.State)
		}
		return strings.Join(out, " ")
	}
	got := []string{state()}
	for _, d := range []time.Duration{5 * time.Second, time.Minute} {
		pass(t, e.World, d)
		got = append(got, state())
	}
	check(t, e.cloud.Terminate(ctx, []string{id}))
	got = append(got, state())
	pass(t, e.World, shutdownTime)
	got = append(got, state())
	if diff := cmp.Diff([]string{"pending", "running", "running", "shutting-down", ""}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestBootsThatFail(t *testing.T) {
	e := newEstate(t, func(o *CloudOptions) {
		boots := []Boot{{Never: true}, {NeverReady: true}, {Join: time.Minute}, {}}
		o.Boot = func(port.Instance) Boot {
			next := boots[0]
			boots = boots[1:]
			return next
		}
	})
	e.provision(t, 90, "a", "b", "c", "d")
	s, err := e.cluster.Snapshot(ctx)
	check(t, err)
	var got []string
	for _, n := range s.Nodes {
		c := n.Claim.Conditions
		got = append(got, fmt.Sprintf("joined=%v ready=%v registered=%v initialized=%v", n.Name != "", n.Ready, c.Registered, c.Initialized))
	}
	slices.Sort(got)
	want := []string{
		"joined=false ready=false registered=false initialized=false",
		"joined=true ready=false registered=true initialized=false",
		"joined=true ready=true registered=true initialized=true",
		"joined=true ready=true registered=true initialized=true",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTaintsOfAClaimAreOnTheNodeFromTheStart(t *testing.T) {
	e := newEstate(t)
	req := e.request(t, "token", "x")
	req.Template.Spec.Taints = []corev1.Taint{taint("team=a:NoSchedule")}
	req.Template.Spec.StartupTaints = []corev1.Taint{taint("cni:NoExecute")}
	_, err := e.cloud.Launch(ctx, req)
	check(t, err)
	pass(t, e.World, 30*time.Second)
	n := List[*corev1.Node](e.API)[0]
	var keys []string
	for _, x := range n.Spec.Taints {
		keys = append(keys, x.ToString())
	}
	want := []string{"team=a:NoSchedule", "cni:NoExecute", "karpenter.sh/unregistered:NoExecute", "node.kubernetes.io/not-ready:NoSchedule"}
	if diff := cmp.Diff(want, keys); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if n.Labels["karpenter.sh/do-not-sync-taints"] != "true" || n.Labels["node-restriction.kubernetes.io/x"] != "" {
		t.Errorf("labels %v", n.Labels)
	}
}

func TestClassesAreResolvedAgainstTheAccount(t *testing.T) {
	subnets := []Subnet{
		{ID: "subnet-b", Zone: zoneB, ZoneID: "apne2-az2", Tags: labelsOf("tier=private zone=b")},
		{ID: "subnet-a", Zone: zoneA, ZoneID: "apne2-az1", Tags: labelsOf("tier=private zone=a")},
	}
	groups := []SecurityGroup{{ID: "sg-1", Name: "nodes", Tags: labelsOf("use=nodes")}, {ID: "sg-2", Name: "other"}}
	tests := []struct {
		name string
		edit func(*ec2v1.EC2NodeClassSpec)
		want string
	}{
		{"everything is found", func(*ec2v1.EC2NodeClassSpec) {},
			"subnet-a subnet-b | sg-1 | 5 images | ready"},
		{"by several terms", func(s *ec2v1.EC2NodeClassSpec) {
			s.SubnetSelectorTerms = []ec2v1.SubnetSelectorTerm{{Tags: labelsOf("zone=b")}, {ID: "subnet-b"}}
			s.SecurityGroupSelectorTerms = []ec2v1.SecurityGroupSelectorTerm{{Name: "other"}, {ID: "sg-1"}}
		}, "subnet-b | sg-1 sg-2 | 5 images | ready"},
		{"nothing by a term that says nothing", func(s *ec2v1.EC2NodeClassSpec) {
			s.SubnetSelectorTerms = []ec2v1.SubnetSelectorTerm{{}}
			s.SecurityGroupSelectorTerms = []ec2v1.SecurityGroupSelectorTerm{{}}
		}, " |  | 5 images | SubnetsReady SecurityGroupsReady ValidationSucceeded Ready"},
		{"the latest release", func(s *ec2v1.EC2NodeClassSpec) {
			s.AMISelectorTerms = []ec2v1.AMISelectorTerm{{Alias: "al2023@latest"}}
		}, "subnet-a subnet-b | sg-1 | 5 images | ready"},
		{"a release that is not there", func(s *ec2v1.EC2NodeClassSpec) {
			s.AMISelectorTerms = []ec2v1.AMISelectorTerm{{Alias: "al2023@v20200101"}}
		}, "subnet-a subnet-b | sg-1 | 0 images | AMIsReady ValidationSucceeded Ready"},
		{"images by id, and none by name", func(s *ec2v1.EC2NodeClassSpec) {
			s.AMISelectorTerms = []ec2v1.AMISelectorTerm{{ID: "ami-1"}, {Name: "x"}}
		}, "subnet-a subnet-b | sg-1 | 1 images | ready"},
		{"an instance profile instead of a role", func(s *ec2v1.EC2NodeClassSpec) { s.Role, s.InstanceProfile = "", new("mine") },
			"subnet-a subnet-b | sg-1 | 5 images | ready"},
		{"neither", func(s *ec2v1.EC2NodeClassSpec) { s.Role = "" },
			"subnet-a subnet-b | sg-1 | 5 images | InstanceProfileReady ValidationSucceeded Ready"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			e := newEstate(t, func(o *CloudOptions) { o.Subnets, o.SecurityGroups = subnets, groups })
			class := e.fleet.NodeClasses[0].DeepCopy()
			class.Spec.SubnetSelectorTerms = []ec2v1.SubnetSelectorTerm{{Tags: labelsOf("tier=*")}}
			class.Spec.SecurityGroupSelectorTerms = []ec2v1.SecurityGroupSelectorTerm{{Tags: labelsOf("use=nodes")}}
			tc.edit(&class.Spec)
			s, err := e.cloud.ResolveNodeClass(ctx, class)
			check(t, err)
			var nets, sgs, bad []string
			for _, n := range s.Subnets {
				nets = append(nets, n.ID)
			}
			for _, g := range s.SecurityGroups {
				sgs = append(sgs, g.ID)
			}
			for _, c := range s.Conditions {
				if c.Status != "True" {
					bad = append(bad, c.Type)
				}
			}
			if len(bad) == 0 {
				bad = []string{"ready"}
			}
			got := fmt.Sprintf("%s | %s | %d images | %s", strings.Join(nets, " "), strings.Join(sgs, " "), len(s.AMIs), strings.Join(bad, " "))
			if got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestAReleaseChangesWhatLatestMeans(t *testing.T) {
	e := newEstate(t)
	class := e.fleet.NodeClasses[0].DeepCopy()
	ami := func(alias string) string {
		class.Spec.AMISelectorTerms = []ec2v1.AMISelectorTerm{{Alias: alias}}
		s, err := e.cloud.ResolveNodeClass(ctx, class)
		check(t, err)
		return s.AMIs[0].ID
	}
	pinned, before := ami("al2023@v20260318"), ami("al2023@latest")
	e.cloud.Release("al2023", "v20260401")
	if pinned != before || ami("al2023@v20260318") != pinned || ami("al2023@latest") == before {
		t.Error("a release changed a pinned image, or did not change the latest")
	}
	for _, alias := range []string{"al2023", "al1@latest"} {
		class.Spec.AMISelectorTerms = []ec2v1.AMISelectorTerm{{Alias: alias}}
		if _, err := e.cloud.ResolveNodeClass(ctx, class); !port.IsTerminal(err) {
			t.Errorf("alias %s: %v", alias, err)
		}
	}
}

func TestImagesFitTheirTypes(t *testing.T) {
	e := newEstate(t)
	class := e.fleet.NodeClasses[0].DeepCopy()
	var err error
	class.Status, err = e.cloud.ResolveNodeClass(ctx, class)
	check(t, err)
	byID := map[string]string{"": "none"}
	for _, a := range class.Status.AMIs {
		byID[a.ID] = a.Name
	}
	want := map[string]string{
		"m5.large": "amd64-standard", "m7g.large": "arm64-standard", "g4dn.xlarge": "amd64-nvidia", "g5g.xlarge": "arm64-nvidia", "inf2.xlarge": "amd64-neuron",
	}
	for name, image := range want {
		it, err := e.cloud.typeOf(class, name)
		check(t, err)
		if got := byID[imageFor(class, it)]; !strings.Contains(got, image) {
			t.Errorf("%s boots %s, want %s", name, got, image)
		}
	}
}

func TestPricesCanChange(t *testing.T) {
	e := newEstate(t)
	data, err := e.cloud.Catalog(ctx)
	check(t, err)
	dearer := catalog.OnDemandPrices{"c5a.2xlarge": resources.USD, "m5.2xlarge": resources.USD / 2}
	changed, err := data.WithPrices(dearer, nil)
	check(t, err)
	e.cloud.SetCatalog(changed)
	res, err := e.cloud.Launch(ctx, e.request(t, "token", "x"))
	check(t, err)
	if diff := cmp.Diff([]string{"m5.2xlarge ap-northeast-2a on-demand $0.5/h"}, summary(res)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAnAccountNeedsItsParts(t *testing.T) {
	data, err := catalog.Embedded("ap-northeast-2")
	check(t, err)
	for _, o := range []CloudOptions{{}, {Cluster: "c"}, {Catalog: data}} {
		if _, err := NewCloud(NewWorld(Options{Start: t0}), o); err == nil {
			t.Errorf("%+v makes an account", o)
		}
	}
	e := newEstate(t, func(o *CloudOptions) {
		o.Zones = []string{zoneA, zoneB}
		o.Settings = &catalog.Settings{VMMemoryOverheadPPM: 0}
	})
	s, err := e.cloud.ResolveNodeClass(ctx, e.fleet.NodeClasses[0])
	check(t, err)
	if len(s.Subnets) != 2 {
		t.Errorf("%d subnets", len(s.Subnets))
	}
	var errs []error
	for _, args := range [][2]string{{"m0.large", zoneA}, {"m5.large", "nowhere"}} {
		_, err := e.cloud.AddManaged("g", args[0], args[1])
		errs = append(errs, err)
	}
	if slices.Contains(errs, nil) {
		t.Errorf("managed nodes that EC2 does not sell: %v", errors.Join(errs...))
	}
	name, err := e.cloud.AddManaged("g", "m5.large", zoneA)
	check(t, err)
	n, err := Get[*corev1.Node](e.API, name)
	check(t, err)
	// Without overhead for the hypervisor: 8192 less 574 reserved, less 100
	// for eviction.
	if got := n.Status.Allocatable.Memory().Value() >> 20; got != 7518 {
		t.Errorf("allocatable memory %d MiB", got)
	}
}
