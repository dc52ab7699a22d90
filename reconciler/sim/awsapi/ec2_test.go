package awsapi

import (
	"strings"
	"testing"
	"time"

	"encoding/json"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	pricingtypes "github.com/aws/aws-sdk-go-v2/service/pricing/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/resources"
)

func filter(name string, values ...string) types.Filter {
	return types.Filter{Name: &name, Values: values}
}

func TestInstanceTypesAreThoseOfTheCatalog(t *testing.T) {
	a := newAccount(t)
	var got []catalog.Type
	pages := 0
	p := ec2.NewDescribeInstanceTypesPaginator(a.ec2, &ec2.DescribeInstanceTypesInput{
		MaxResults: new(int32(100)), Filters: []types.Filter{filter("supported-virtualization-type", "hvm"), filter("processor-info.supported-architecture", "x86_64", "arm64")},
	})
	for p.HasMorePages() {
		out, err := p.NextPage(ctx)
		check(t, err)
		pages++
		for _, info := range out.InstanceTypes {
			got = append(got, typeFrom(&info))
		}
	}
	var want []catalog.Type
	for _, typ := range a.options.Catalog.Types() {
		if len(typ.Zones) > 0 {
			want = append(want, typ)
		}
	}
	// The rest is not EC2's to tell.
	ours := cmpopts.IgnoreFields(catalog.Type{}, "NetworkMbps", "BranchENIs", "VPCLimits", "Zones")
	if diff := cmp.Diff(want, got, ours); diff != "" || pages < len(want)/100 {
		t.Errorf("%d pages, types (-catalog +described):\n%s", pages, diff)
	}
}

// typeFrom reads an instance type as a client does.
func typeFrom(i *types.InstanceTypeInfo) catalog.Type {
	out := catalog.Type{
		Name: string(i.InstanceType), Arch: string(i.ProcessorInfo.SupportedArchitectures[0]), VCPUs: int64(*i.VCpuInfo.DefaultVCpus), MiB: *i.MemoryInfo.SizeInMiB,
		Manufacturer: *i.ProcessorInfo.Manufacturer, MHz: int64(deref(i.ProcessorInfo.SustainedClockSpeedInGhz)*1000 + 0.5), Hypervisor: string(i.Hypervisor),
		Encrypted: *i.NetworkInfo.EncryptionInTransitSupported, IPv4: int64(*i.NetworkInfo.Ipv4AddressesPerInterface),
	}
	for _, u := range i.SupportedUsageClasses {
		out.Usage = append(out.Usage, string(u))
	}
	for _, c := range i.NetworkInfo.NetworkCards {
		out.Cards = append(out.Cards, int64(*c.MaximumNetworkInterfaces))
	}
	if i.NetworkInfo.EfaInfo != nil {
		out.EFAs = int64(*i.NetworkInfo.EfaInfo.MaximumEfaInterfaces)
	}
	if i.EbsInfo.EbsOptimizedSupport == types.EbsOptimizedSupportDefault {
		out.EBSMbps = int64(*i.EbsInfo.EbsOptimizedInfo.MaximumBandwidthInMbps)
	}
	if s := i.InstanceStorageInfo; s != nil && s.NvmeSupport == types.EphemeralNvmeSupportUnsupported {
		out.DiskGB = *s.TotalSizeInGB
	} else if s != nil {
		out.NVMeGB = *s.TotalSizeInGB
	}
	if i.GpuInfo != nil {
		g := i.GpuInfo.Gpus[0]
		out.GPU = &catalog.GPU{Count: int64(*g.Count), Manufacturer: *g.Manufacturer, Name: *g.Name, MiB: int64(*g.MemoryInfo.SizeInMiB)}
	}
	if i.NeuronInfo != nil {
		n := i.NeuronInfo.NeuronDevices[0]
		out.Neuron = &catalog.Neuron{Count: int64(*n.Count), Cores: int64(*n.CoreInfo.Count), Name: *n.Name}
	}
	if i.InferenceAcceleratorInfo != nil {
		n := i.InferenceAcceleratorInfo.Accelerators[0]
		out.Accelerator = &catalog.Accelerator{Count: int64(*n.Count), Manufacturer: *n.Manufacturer, Name: *n.Name}
	}
	return out
}

func TestOfferingsAndSpotPricesAreThoseOfTheCatalog(t *testing.T) {
	a := newAccount(t)
	offered := map[string][]string{}
	p := ec2.NewDescribeInstanceTypeOfferingsPaginator(a.ec2, &ec2.DescribeInstanceTypeOfferingsInput{LocationType: types.LocationTypeAvailabilityZoneId, MaxResults: new(int32(1000))})
	for p.HasMorePages() {
		out, err := p.NextPage(ctx)
		check(t, err)
		for _, o := range out.InstanceTypeOfferings {
			offered[string(o.InstanceType)] = append(offered[string(o.InstanceType)], *o.Location)
		}
	}
	spot := catalog.SpotPrices{}
	history := ec2.NewDescribeSpotPriceHistoryPaginator(a.ec2, &ec2.DescribeSpotPriceHistoryInput{
		ProductDescriptions: []string{"Linux/UNIX", "Linux/UNIX (Amazon VPC)"}, StartTime: new(t0), MaxResults: new(int32(2000)),
	})
	for history.HasMorePages() {
		out, err := history.NextPage(ctx)
		check(t, err)
		for _, s := range out.SpotPriceHistory {
			price, err := resources.ParsePrice(*s.SpotPrice)
			check(t, err)
			if spot[string(s.InstanceType)] == nil {
				spot[string(s.InstanceType)] = map[string]resources.Price{}
			}
			spot[string(s.InstanceType)][*s.AvailabilityZoneId] = price
		}
	}
	wantOffered, wantSpot := map[string][]string{}, catalog.SpotPrices{}
	for _, typ := range a.options.Catalog.Types() {
		if len(typ.Zones) > 0 {
			wantOffered[typ.Name] = typ.Zones
		}
		for _, z := range typ.Zones {
			if price, ok := a.options.Catalog.SpotPrice(typ.Name, z); ok {
				if wantSpot[typ.Name] == nil {
					wantSpot[typ.Name] = map[string]resources.Price{}
				}
				wantSpot[typ.Name][z] = price
			}
		}
	}
	if diff := cmp.Diff(wantOffered, offered); diff != "" || len(offered) < 300 {
		t.Errorf("%d types are offered (-want +got):\n%s", len(offered), diff)
	}
	if diff := cmp.Diff(wantSpot, spot); diff != "" || len(spot) < 300 {
		t.Errorf("%d types have spot prices (-want +got):\n%s", len(spot), diff)
	}
	windows, err := a.ec2.DescribeSpotPriceHistory(ctx, &ec2.DescribeSpotPriceHistoryInput{ProductDescriptions: []string{"Windows"}})
	check(t, err)
	if len(windows.SpotPriceHistory) != 0 {
		t.Errorf("there are %d spot prices for Windows", len(windows.SpotPriceHistory))
	}
}

func TestOnDemandPricesAreThoseOfTheCatalog(t *testing.T) {
	a := newAccount(t)
	got, want := catalog.OnDemandPrices{}, catalog.OnDemandPrices{}
	for tenancy, family := range map[string]string{"Shared": "Compute Instance", "Dedicated": "Compute Instance (bare metal)"} {
		in := &pricing.GetProductsInput{ServiceCode: new("AmazonEC2"), MaxResults: new(int32(100))}
		for field, value := range map[string]string{
			"regionCode": region, "serviceCode": "AmazonEC2", "preInstalledSw": "NA", "operatingSystem": "Linux", "capacitystatus": "Used",
			"marketoption": "OnDemand", "tenancy": tenancy, "productFamily": family,
		} {
			in.Filters = append(in.Filters, pricingtypes.Filter{Field: &field, Type: pricingtypes.FilterTypeTermMatch, Value: &value})
		}
		p := pricing.NewGetProductsPaginator(a.pricing, in)
		for p.HasMorePages() {
			out, err := p.NextPage(ctx)
			check(t, err)
			readPrices(t, out.PriceList, got)
		}
	}
	for _, typ := range a.options.Catalog.Types() {
		if price, ok := a.options.Catalog.OnDemandPrice(typ.Name); ok && len(typ.Zones) > 0 {
			want[typ.Name] = price
		}
	}
	if diff := cmp.Diff(want, got); diff != "" || len(got) < 300 {
		t.Errorf("%d prices (-want +got):\n%s", len(got), diff)
	}
}

func readPrices(t *testing.T, list []string, into catalog.OnDemandPrices) {
	t.Helper()
	for _, raw := range list {
		var item struct {
			Product struct{ Attributes map[string]string }
			Terms   struct {
				OnDemand map[string]struct {
					PriceDimensions map[string]struct{ PricePerUnit map[string]string }
				}
			}
		}
		check(t, json.Unmarshal([]byte(raw), &item))
		for _, term := range item.Terms.OnDemand {
			for _, d := range term.PriceDimensions {
				price, err := resources.ParsePrice(d.PricePerUnit["USD"])
				check(t, err)
				into[item.Product.Attributes["instanceType"]] = price
			}
		}
	}
}

func TestThePriceListRefusesWhatItDoesNotHave(t *testing.T) {
	a := newAccount(t)
	in := func(service, field, kind string) *pricing.GetProductsInput {
		return &pricing.GetProductsInput{ServiceCode: &service, Filters: []pricingtypes.Filter{{Field: &field, Type: pricingtypes.FilterType(kind), Value: new("x")}}}
	}
	_, err := a.pricing.GetProducts(ctx, in("AmazonS3", "tenancy", "TERM_MATCH"))
	wantRefusal(t, err, "NotFoundException")
	_, err = a.pricing.GetProducts(ctx, in("AmazonEC2", "colour", "TERM_MATCH"))
	wantRefusal(t, err, "InvalidParameterException")
	_, err = a.pricing.GetProducts(ctx, in("AmazonEC2", "tenancy", "RHYMES_WITH"))
	wantRefusal(t, err, "InvalidParameterException")
	bad := in("AmazonEC2", "tenancy", "TERM_MATCH")
	bad.NextToken = new("!")
	_, err = a.pricing.GetProducts(ctx, bad)
	wantRefusal(t, err, "InvalidParameterException")
	_, err = a.pricing.DescribeServices(ctx, &pricing.DescribeServicesInput{})
	wantRefusal(t, err, "UnknownOperationException")
}

func TestSubnetsGroupsAndImagesAreFoundByWhatClassesSelect(t *testing.T) {
	a := newAccount(t, func(o *Options) {
		o.Zones = []string{zoneA, zoneB}
		o.Images = []Image{
			{ID: "ami-own", Name: "own-1", Architecture: "x86_64", Created: t0, Tags: map[string]string{"team": "a"}},
			{ID: "ami-old", Name: "amazon-1", Architecture: "x86_64", Owner: "amazon", Deprecated: t0},
		}
	})
	discovery := filter("tag:karpenter.sh/discovery", "myeks")
	subnets := func(f ...types.Filter) (ids []string) {
		out, err := a.ec2.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{Filters: f, MaxResults: new(int32(500))})
		check(t, err)
		for _, s := range out.Subnets {
			ids = append(ids, *s.AvailabilityZone)
		}
		return ids
	}
	images := func(in *ec2.DescribeImagesInput) (ids []string) {
		out, err := a.ec2.DescribeImages(ctx, in)
		check(t, err)
		for _, i := range out.Images {
			ids = append(ids, *i.Name)
		}
		return ids
	}
	groups, err := a.ec2.DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{Filters: []types.Filter{discovery, filter("group-name", "myeks-?ode")}})
	check(t, err)
	for _, c := range []struct {
		name      string
		got, want any
	}{
		{"subnets by tag", subnets(discovery), []string{zoneA, zoneB}},
		{"subnets by tag key", subnets(filter("tag-key", "karpenter.sh/*")), []string{zoneA, zoneB}},
		{"subnets by id", subnets(filter("subnet-id", a.subnetIn(zoneB))), []string{zoneB}},
		{"subnets by another tag", subnets(discovery, filter("tag:team", "a")), []string(nil)},
		{"groups by tag and name", len(groups.SecurityGroups), 1},
		{"images by name", images(&ec2.DescribeImagesInput{Filters: []types.Filter{filter("name", "own-*")}}), []string{"own-1"}},
		{"images of this account by tag", images(&ec2.DescribeImagesInput{Owners: []string{"self"}, Filters: []types.Filter{filter("tag:team", "a")}}), []string{"own-1"}},
		{"a deprecated image of Amazon's", images(&ec2.DescribeImagesInput{Filters: []types.Filter{filter("name", "amazon-1")}}), []string(nil)},
		{"a deprecated image when asked to", images(&ec2.DescribeImagesInput{IncludeDeprecated: new(true), ImageIds: []string{"ami-old"}}), []string{"amazon-1"}},
		{"the image of a release", images(&ec2.DescribeImagesInput{ImageIds: []string{a.image("arm64")}}), []string{"amazon-eks-node-al2023-arm64-standard-1.34-v20260318"}},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
	_, err = a.ec2.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{Filters: []types.Filter{filter("colour", "red")}})
	wantRefusal(t, err, "InvalidParameterValue")
	_, err = a.ec2.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{NextToken: new("?")})
	wantRefusal(t, err, "InvalidNextToken")
	_, err = a.ec2.DescribeImages(ctx, &ec2.DescribeImagesInput{ImageIds: []string{"ami-0"}})
	wantRefusal(t, err, "InvalidAMIID.NotFound")
}

func TestReleasesAreNamedByParameters(t *testing.T) {
	a := newAccount(t)
	const root = "/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/x86_64/standard/"
	old, _ := a.parameter(root + "recommended/image_id")
	a.Release("al2023", "v20260405")
	recommended, _ := a.parameter(root + "recommended/image_id")
	pinned, _ := a.parameter(root + "amazon-eks-node-al2023-x86_64-standard-1.34-v20260318/image_id")
	newest, _ := a.parameter(root + "amazon-eks-node-al2023-x86_64-standard-1.34-v20260405/image_id")
	if old == "" || old != pinned || recommended != newest || newest == old {
		t.Errorf("recommended was %s and is %s; v20260318 is %s, v20260405 is %s", old, recommended, pinned, newest)
	}
	bottlerocket, _ := a.parameter("/aws/service/bottlerocket/aws-k8s-1.34-nvidia/arm64/1.50.0/image_id")
	latest, _ := a.parameter("/aws/service/bottlerocket/aws-k8s-1.34-nvidia/arm64/latest/image_id")
	if bottlerocket == "" || bottlerocket != latest {
		t.Errorf("Bottlerocket 1.50.0 is %q, the latest %q", bottlerocket, latest)
	}
	if _, ok := a.parameter(root + "other/image_id"); ok {
		t.Error("there is a parameter for an unknown release")
	}
}

func TestLaunchTemplatesComeAndGo(t *testing.T) {
	a := newAccount(t)
	in := &ec2.CreateLaunchTemplateInput{LaunchTemplateName: new("reeve.dev/1"), LaunchTemplateData: a.templateData(), ClientToken: new("one")}
	in.TagSpecifications = tagged(types.ResourceTypeLaunchTemplate, "eks:eks-cluster-name=myeks")
	first, err := a.ec2.CreateLaunchTemplate(ctx, in)
	check(t, err)
	again, err := a.ec2.CreateLaunchTemplate(ctx, in)
	check(t, err)
	if *first.LaunchTemplate.LaunchTemplateId != *again.LaunchTemplate.LaunchTemplateId {
		t.Error("the same client token made two templates")
	}
	in.ClientToken = new("two")
	_, err = a.ec2.CreateLaunchTemplate(ctx, in)
	wantRefusal(t, err, "InvalidLaunchTemplateName.AlreadyExistsException")
	in.LaunchTemplateName, in.ClientToken = new("other"), new("one")
	_, err = a.ec2.CreateLaunchTemplate(ctx, in)
	wantRefusal(t, err, "IdempotentParameterMismatch")
	found, err := a.ec2.DescribeLaunchTemplates(ctx, &ec2.DescribeLaunchTemplatesInput{Filters: []types.Filter{filter("tag:eks:eks-cluster-name", "myeks")}})
	check(t, err)
	if len(found.LaunchTemplates) != 1 || *found.LaunchTemplates[0].LaunchTemplateName != "reeve.dev/1" {
		t.Errorf("found %d templates of the cluster", len(found.LaunchTemplates))
	}
	if diff := cmp.Diff([]string{"launch template " + *first.LaunchTemplate.LaunchTemplateId + " (reeve.dev/1)"}, a.Leftovers()); diff != "" {
		t.Errorf("leftovers (-want +got):\n%s", diff)
	}
	_, err = a.ec2.DeleteLaunchTemplate(ctx, &ec2.DeleteLaunchTemplateInput{LaunchTemplateName: new("reeve.dev/1")})
	check(t, err)
	_, err = a.ec2.DeleteLaunchTemplate(ctx, &ec2.DeleteLaunchTemplateInput{LaunchTemplateId: first.LaunchTemplate.LaunchTemplateId})
	wantRefusal(t, err, "InvalidLaunchTemplateId.NotFound")
	_, err = a.ec2.DescribeLaunchTemplates(ctx, &ec2.DescribeLaunchTemplatesInput{LaunchTemplateNames: []string{"reeve.dev/1"}})
	wantRefusal(t, err, "InvalidLaunchTemplateName.NotFoundException")
	if left := a.Leftovers(); len(left) != 0 {
		t.Errorf("left over: %v", left)
	}
}

func TestLaunchTemplatesThatMakeNoSenseAreRefused(t *testing.T) {
	a := newAccount(t)
	for _, tc := range []struct {
		name string
		edit func(*ec2.CreateLaunchTemplateInput)
		want string
	}{
		{"a name with a space", func(in *ec2.CreateLaunchTemplateInput) { in.LaunchTemplateName = new("a b c") }, "InvalidLaunchTemplateName.MalformedException"},
		{"too much user data", func(in *ec2.CreateLaunchTemplateInput) {
			in.LaunchTemplateData.UserData = encoded(strings.Repeat("x", 16<<10+1))
		}, "InvalidUserData.Malformed"},
		{"as much user data as there may be", func(in *ec2.CreateLaunchTemplateInput) {
			in.DryRun, in.LaunchTemplateData.UserData = new(true), encoded(strings.Repeat("x", 16<<10))
		}, "DryRunOperation"},
		{"user data that is not encoded", func(in *ec2.CreateLaunchTemplateInput) { in.LaunchTemplateData.UserData = new("echo hello") }, "InvalidUserData.Malformed"},
		{"a tag with an empty key", func(in *ec2.CreateLaunchTemplateInput) {
			in.TagSpecifications = tagged(types.ResourceTypeLaunchTemplate, "=b")
		}, "InvalidParameterValue"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			in := &ec2.CreateLaunchTemplateInput{LaunchTemplateName: new("abc"), LaunchTemplateData: a.templateData()}
			tc.edit(in)
			_, err := a.ec2.CreateLaunchTemplate(ctx, in)
			wantRefusal(t, err, tc.want)
		})
	}
}

func TestReadsLagBehindWritesAsLongAsAsked(t *testing.T) {
	a := newAccount(t, func(o *Options) { o.Delays = Delays{Instance: 10 * time.Second, Template: 3 * time.Second} })
	a.template("nodes")
	fleet := a.fleetOf(1, "on-demand", a.over("m5.large", zoneA))
	_, err := a.ec2.CreateFleet(ctx, fleet)
	wantRefusal(t, err, "InvalidLaunchTemplateName.NotFoundException")
	a.pass(3 * time.Second)
	out, err := a.ec2.CreateFleet(ctx, fleet)
	check(t, err)
	id := out.Instances[0].InstanceIds[0]
	_, err = a.ec2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{InstanceIds: []string{id}})
	wantRefusal(t, err, noInstance)
	a.pass(10 * time.Second)
	if got := a.describe(id).State.Name; got != "running" {
		t.Errorf("instance is %s, want running", got)
	}
	a.SetDelays(Delays{Instance: time.Hour})
	_, err = a.ec2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{InstanceIds: []string{id}})
	wantRefusal(t, err, noInstance)
}

func TestTagsAreChangedOnAllResourcesOrNone(t *testing.T) {
	a := newAccount(t)
	a.template("nodes")
	out, err := a.ec2.CreateFleet(ctx, a.fleetOf(1, "on-demand", a.over("m5.large", zoneA)))
	check(t, err)
	id := out.Instances[0].InstanceIds[0]
	tag := func(k, v string) []types.Tag { return []types.Tag{{Key: &k, Value: &v}} }
	_, err = a.ec2.CreateTags(ctx, &ec2.CreateTagsInput{Resources: []string{id, a.subnetIn(zoneA)}, Tags: tag("reeve.dev/decision", "d1")})
	check(t, err)
	_, err = a.ec2.CreateTags(ctx, &ec2.CreateTagsInput{Resources: []string{id, "i-0"}, Tags: tag("Name", "n")})
	wantRefusal(t, err, noInstance)
	_, err = a.ec2.CreateTags(ctx, &ec2.CreateTagsInput{Resources: []string{id}, Tags: tag("aws:x", "n")})
	wantRefusal(t, err, "InvalidParameterValue")
	_, err = a.ec2.CreateTags(ctx, &ec2.CreateTagsInput{Resources: []string{"x"}, Tags: tag("a", "n")})
	wantRefusal(t, err, "InvalidID")
	_, err = a.ec2.DeleteTags(ctx, &ec2.DeleteTagsInput{Resources: []string{id}, Tags: tag("karpenter.sh/nodepool", "other")})
	check(t, err)
	_, err = a.ec2.DeleteTags(ctx, &ec2.DeleteTagsInput{Resources: []string{id}, Tags: []types.Tag{{Key: new("eks:eks-cluster-name")}}})
	check(t, err)
	in, _ := a.Instance(id)
	want := map[string]string{
		"karpenter.sh/nodepool": "default", "reeve.dev/decision": "d1", "aws:ec2:fleet-id": *out.FleetId,
		"aws:ec2launchtemplate:id": a.Endpoint.ec2.templates[0].id, "aws:ec2launchtemplate:version": "1",
	}
	if diff := cmp.Diff(want, in.Tags); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
	found, err := a.ec2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{MaxResults: new(int32(1000)), Filters: []types.Filter{
		filter("tag-key", "karpenter.sh/nodepool"), filter("tag:reeve.dev/decision", "d1"), filter("instance-state-name", "pending", "running"),
	}})
	check(t, err)
	if len(found.Reservations) != 1 {
		t.Errorf("found %d instances by tag, want 1", len(found.Reservations))
	}
	a.Kill(id)
	a.pass(time.Minute)
	wantLeft := []string{"launch template " + a.Endpoint.ec2.templates[0].id + " (nodes)", "tag reeve.dev/decision on " + a.subnetIn(zoneA)}
	if diff := cmp.Diff(wantLeft, a.Leftovers()); diff != "" {
		t.Errorf("leftovers (-want +got):\n%s", diff)
	}
}

func TestADryRunOfRunInstancesChecksWhatALaunchNeeds(t *testing.T) {
	a := newAccount(t)
	a.template("nodes")
	for _, tc := range []struct {
		name string
		edit func(*ec2.RunInstancesInput)
		want string
	}{
		{"it would succeed", func(*ec2.RunInstancesInput) {}, "DryRunOperation"},
		{"it would launch nothing when it is none", func(in *ec2.RunInstancesInput) { in.DryRun = nil }, "UnsupportedOperation"},
		{"an unknown template", func(in *ec2.RunInstancesInput) { in.LaunchTemplate.LaunchTemplateName = new("x") }, "InvalidLaunchTemplateName.NotFoundException"},
		{"an unknown subnet", func(in *ec2.RunInstancesInput) { in.NetworkInterfaces[0].SubnetId = new("subnet-1") }, "InvalidSubnetID.NotFound"},
		{"an unknown group", func(in *ec2.RunInstancesInput) { in.NetworkInterfaces[0].Groups = []string{"sg-1"} }, "InvalidGroup.NotFound"},
		{"a tag of AWS's", func(in *ec2.RunInstancesInput) { in.TagSpecifications = tagged(types.ResourceTypeInstance, "aws:a=b") }, "InvalidParameterValue"},
		{"no instances", func(in *ec2.RunInstancesInput) { in.MinCount = new(int32(0)) }, "InvalidParameterValue"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			in := &ec2.RunInstancesInput{
				DryRun: new(true), MinCount: new(int32(1)), MaxCount: new(int32(1)), InstanceType: "m5.large",
				LaunchTemplate: &types.LaunchTemplateSpecification{LaunchTemplateName: new("nodes"), Version: new("$Latest")},
				NetworkInterfaces: []types.InstanceNetworkInterfaceSpecification{
					{DeviceIndex: new(int32(0)), SubnetId: new(a.subnetIn(zoneA)), Groups: []string{a.Endpoint.ec2.groups[0].ID}},
				},
			}
			tc.edit(in)
			_, err := a.ec2.RunInstances(ctx, in)
			wantRefusal(t, err, tc.want)
		})
	}
}

func TestDryRunsOfReadsTellThatTheyMay(t *testing.T) {
	a := newAccount(t)
	_, err := a.ec2.DescribeInstanceTypes(ctx, &ec2.DescribeInstanceTypesInput{DryRun: new(true)})
	wantRefusal(t, err, "DryRunOperation")
	_, err = a.ec2.DescribeCapacityReservations(ctx, &ec2.DescribeCapacityReservationsInput{})
	check(t, err)
	_, err = a.ec2.DescribeCapacityReservations(ctx, &ec2.DescribeCapacityReservationsInput{CapacityReservationIds: []string{"cr-1"}})
	wantRefusal(t, err, "InvalidCapacityReservationId.NotFound")
	_, err = a.ec2.DescribePlacementGroups(ctx, &ec2.DescribePlacementGroupsInput{GroupNames: []string{"g"}})
	wantRefusal(t, err, "InvalidPlacementGroup.Unknown")
	_, err = a.ec2.DescribeVpcs(ctx, &ec2.DescribeVpcsInput{})
	wantRefusal(t, err, "InvalidAction")
	_, err = a.ec2.DescribeInstanceTypes(ctx, &ec2.DescribeInstanceTypesInput{MaxResults: new(int32(101))})
	wantRefusal(t, err, "InvalidParameterValue")
	_, err = a.ec2.DescribeInstanceTypes(ctx, &ec2.DescribeInstanceTypesInput{InstanceTypes: []types.InstanceType{"m5.huge"}})
	wantRefusal(t, err, "InvalidInstanceType")
}
