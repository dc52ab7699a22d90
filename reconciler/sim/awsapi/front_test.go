package awsapi

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	ssmtypes "github.com/aws/aws-sdk-go-v2/service/ssm/types"
	"github.com/google/go-cmp/cmp"
	"github.com/sivchari/kumo"

	"github.com/reeve-project/reeve/reconciler/sim"
)

var frontStart = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// iamPeer is an IAM, and how a role comes into it.
type iamPeer struct {
	client  *iam.Client
	putRole func(name string)
}

func simulatedIAM(t *testing.T) (iamPeer, *iamService, *sim.Clock) {
	t.Helper()
	clock := sim.NewClock(frontStart)
	s := newIAM(clock, &sync.Mutex{}, "111122223333")
	return iamPeer{client: iam.NewFromConfig(config("us-east-1", &http.Client{Transport: transport{s}})), putRole: s.putRole}, s, clock
}

// The behaviours that kumo's IAM has too hold for both.
func TestIAMContract(t *testing.T) {
	server := kumo.NewServer()
	t.Cleanup(server.Close)
	others := iam.NewFromConfig(config("us-east-1", http.DefaultClient), func(o *iam.Options) { o.BaseEndpoint = &server.URL })
	simulated, _, _ := simulatedIAM(t)
	for _, peer := range []struct {
		name string
		iamPeer
	}{
		{"simulated", simulated},
		{"kumo", iamPeer{client: others, putRole: func(name string) {
			_, err := others.CreateRole(t.Context(), &iam.CreateRoleInput{RoleName: &name, AssumeRolePolicyDocument: aws.String("{}")})
			check(t, err)
			// kumo keeps its roles for the whole process.
			t.Cleanup(func() {
				_, err := others.DeleteRole(context.Background(), &iam.DeleteRoleInput{RoleName: &name})
				check(t, err)
			})
		}}},
	} {
		t.Run("a profile lives from its creation to its deletion in "+peer.name, func(t *testing.T) { profileLife(t, peer.iamPeer) })
	}
}

func profileLife(t *testing.T, p iamPeer) {
	ctx, name, role := t.Context(), aws.String("front-profile"), aws.String("front-role")
	_, err := p.client.GetRole(ctx, &iam.GetRoleInput{RoleName: role})
	wantError[*iamtypes.NoSuchEntityException](t, err)
	p.putRole(*role)
	got, err := p.client.GetRole(ctx, &iam.GetRoleInput{RoleName: role})
	check(t, err)
	if *got.Role.RoleName != *role || !strings.HasSuffix(*got.Role.Arn, ":role/"+*role) {
		t.Errorf("role %+v", got.Role)
	}

	_, err = p.client.GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: name})
	wantError[*iamtypes.NoSuchEntityException](t, err)
	if err != nil && strings.Contains(err.Error(), "role") {
		t.Errorf("a missing profile reads like a missing role: %v", err)
	}
	_, err = p.client.CreateInstanceProfile(ctx, &iam.CreateInstanceProfileInput{InstanceProfileName: name, Path: aws.String("/karpenter/eu/c/u/")})
	check(t, err)
	_, err = p.client.CreateInstanceProfile(ctx, &iam.CreateInstanceProfileInput{InstanceProfileName: name})
	wantError[*iamtypes.EntityAlreadyExistsException](t, err)

	_, err = p.client.AddRoleToInstanceProfile(ctx, &iam.AddRoleToInstanceProfileInput{InstanceProfileName: name, RoleName: aws.String("nobody")})
	wantError[*iamtypes.NoSuchEntityException](t, err)
	if err == nil || !strings.Contains(err.Error(), "role") {
		t.Errorf("a missing role does not read like one: %v", err)
	}
	_, err = p.client.AddRoleToInstanceProfile(ctx, &iam.AddRoleToInstanceProfileInput{InstanceProfileName: name, RoleName: role})
	check(t, err)
	out, err := p.client.GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: name})
	check(t, err)
	if *out.InstanceProfile.Path != "/karpenter/eu/c/u/" || len(out.InstanceProfile.Roles) != 1 || *out.InstanceProfile.Roles[0].RoleName != *role {
		t.Errorf("profile %+v", out.InstanceProfile)
	}

	_, err = p.client.DeleteInstanceProfile(ctx, &iam.DeleteInstanceProfileInput{InstanceProfileName: name})
	wantError[*iamtypes.DeleteConflictException](t, err)
	_, err = p.client.RemoveRoleFromInstanceProfile(ctx, &iam.RemoveRoleFromInstanceProfileInput{InstanceProfileName: name, RoleName: role})
	check(t, err)
	_, err = p.client.DeleteInstanceProfile(ctx, &iam.DeleteInstanceProfileInput{InstanceProfileName: name})
	check(t, err)
	_, err = p.client.DeleteInstanceProfile(ctx, &iam.DeleteInstanceProfileInput{InstanceProfileName: name})
	wantError[*iamtypes.NoSuchEntityException](t, err)
}

func TestAProfileHasItsTagsAndVirtualTime(t *testing.T) {
	p, _, clock := simulatedIAM(t)
	ctx, name := t.Context(), aws.String("tagged")
	check(t, clock.Advance(time.Hour))
	_, err := p.client.CreateInstanceProfile(ctx, &iam.CreateInstanceProfileInput{InstanceProfileName: name, Tags: []iamtypes.Tag{{Key: aws.String("a"), Value: aws.String("1 & <2>")}}})
	check(t, err)
	_, err = p.client.TagInstanceProfile(ctx, &iam.TagInstanceProfileInput{InstanceProfileName: name, Tags: []iamtypes.Tag{{Key: aws.String("b"), Value: aws.String("2")}, {Key: aws.String("c"), Value: aws.String("3")}}})
	check(t, err)
	_, err = p.client.UntagInstanceProfile(ctx, &iam.UntagInstanceProfileInput{InstanceProfileName: name, TagKeys: []string{"c", "z"}})
	check(t, err)
	want := map[string]string{"a": "1 & <2>", "b": "2"}
	got, err := p.client.GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: name})
	check(t, err)
	if diff := cmp.Diff(want, tagsOf(got.InstanceProfile.Tags)); diff != "" {
		t.Errorf("tags of GetInstanceProfile (-want +got):\n%s", diff)
	}
	if at := *got.InstanceProfile.CreateDate; !at.Equal(frontStart.Add(time.Hour)) {
		t.Errorf("created at %s", at)
	}
	tags, err := p.client.ListInstanceProfileTags(ctx, &iam.ListInstanceProfileTagsInput{InstanceProfileName: name})
	check(t, err)
	if diff := cmp.Diff(want, tagsOf(tags.Tags)); diff != "" || tags.IsTruncated {
		t.Errorf("tags of ListInstanceProfileTags (-want +got):\n%s", diff)
	}
}

func tagsOf(tags []iamtypes.Tag) map[string]string {
	out := map[string]string{}
	for _, t := range tags {
		out[*t.Key] = *t.Value
	}
	return out
}

func TestProfilesAreListedByPathPrefixAndPage(t *testing.T) {
	p, s, _ := simulatedIAM(t)
	for i := range 5 {
		_, err := p.client.CreateInstanceProfile(t.Context(), &iam.CreateInstanceProfileInput{
			InstanceProfileName: aws.String(fmt.Sprintf("p%d", i)), Path: aws.String(fmt.Sprintf("/karpenter/%d/", i%2)),
			Tags: []iamtypes.Tag{{Key: aws.String("a"), Value: aws.String("1")}}})
		check(t, err)
	}
	list := func(prefix *string, size int32) (names []string, pages int) {
		pager := iam.NewListInstanceProfilesPaginator(p.client, &iam.ListInstanceProfilesInput{PathPrefix: prefix, MaxItems: &size})
		for pager.HasMorePages() {
			out, err := pager.NextPage(t.Context())
			check(t, err)
			for _, x := range out.InstanceProfiles {
				names = append(names, *x.InstanceProfileName)
				if len(x.Tags) != 0 {
					t.Errorf("a list has tags, which IAM's does not: %+v", x)
				}
			}
			pages++
		}
		return names, pages
	}
	even, pages := list(aws.String("/karpenter/0/"), 2)
	if diff := cmp.Diff([]string{"p0", "p2", "p4"}, even); diff != "" || pages != 2 {
		t.Errorf("%d pages (-want +got):\n%s", pages, diff)
	}
	if all, pages := list(nil, 100); len(all) != 5 || pages != 1 {
		t.Errorf("%d pages of %v", pages, all)
	}
	if left := s.list(); len(left) != 5 || left[0].Path != "/karpenter/0/" || !s.exists("p3", 0) || s.exists("p9", 0) {
		t.Errorf("profiles %+v", left)
	}
}

func TestIAMRefusesWhatItCannotTake(t *testing.T) {
	p, _, _ := simulatedIAM(t)
	ctx, name := t.Context(), aws.String("one")
	p.putRole("r1")
	p.putRole("r2")
	create := func(name, path string) error {
		_, err := p.client.CreateInstanceProfile(ctx, &iam.CreateInstanceProfileInput{InstanceProfileName: &name, Path: &path})
		return err
	}
	check(t, create("one", "/"))
	wantCode(t, create("a b", "/"), "ValidationError")
	wantCode(t, create("b", "no-slash"), "ValidationError")
	add := func(role string) error {
		_, err := p.client.AddRoleToInstanceProfile(ctx, &iam.AddRoleToInstanceProfileInput{InstanceProfileName: name, RoleName: &role})
		return err
	}
	check(t, add("r1"))
	wantError[*iamtypes.LimitExceededException](t, add("r2"))
	_, err := p.client.RemoveRoleFromInstanceProfile(ctx, &iam.RemoveRoleFromInstanceProfileInput{InstanceProfileName: name, RoleName: aws.String("r2")})
	wantError[*iamtypes.NoSuchEntityException](t, err)
	_, err = p.client.TagInstanceProfile(ctx, &iam.TagInstanceProfileInput{InstanceProfileName: name, Tags: []iamtypes.Tag{{Key: aws.String("aws:x"), Value: aws.String("")}}})
	wantError[*iamtypes.InvalidInputException](t, err)
	var many []iamtypes.Tag
	for i := range 51 {
		many = append(many, iamtypes.Tag{Key: aws.String(fmt.Sprint(i)), Value: aws.String("")})
	}
	_, err = p.client.TagInstanceProfile(ctx, &iam.TagInstanceProfileInput{InstanceProfileName: name, Tags: many})
	wantError[*iamtypes.LimitExceededException](t, err)
	nobody := aws.String("nobody")
	_, err = p.client.TagInstanceProfile(ctx, &iam.TagInstanceProfileInput{InstanceProfileName: nobody, Tags: many[:1]})
	wantError[*iamtypes.NoSuchEntityException](t, err)
	_, err = p.client.UntagInstanceProfile(ctx, &iam.UntagInstanceProfileInput{InstanceProfileName: nobody, TagKeys: []string{"a"}})
	wantError[*iamtypes.NoSuchEntityException](t, err)
	_, err = p.client.ListInstanceProfileTags(ctx, &iam.ListInstanceProfileTagsInput{InstanceProfileName: nobody})
	wantError[*iamtypes.NoSuchEntityException](t, err)
	_, err = p.client.ListInstanceProfileTags(ctx, &iam.ListInstanceProfileTagsInput{InstanceProfileName: name, MaxItems: aws.Int32(1001)})
	wantCode(t, err, "ValidationError")
	_, err = p.client.AddRoleToInstanceProfile(ctx, &iam.AddRoleToInstanceProfileInput{InstanceProfileName: nobody, RoleName: aws.String("r1")})
	wantError[*iamtypes.NoSuchEntityException](t, err)
	_, err = p.client.RemoveRoleFromInstanceProfile(ctx, &iam.RemoveRoleFromInstanceProfileInput{InstanceProfileName: nobody, RoleName: aws.String("r1")})
	wantError[*iamtypes.NoSuchEntityException](t, err)
	_, err = p.client.ListInstanceProfiles(ctx, &iam.ListInstanceProfilesInput{MaxItems: aws.Int32(1001)})
	wantCode(t, err, "ValidationError")
	_, err = p.client.ListUsers(ctx, &iam.ListUsersInput{})
	wantCode(t, err, "InvalidAction")
}

func TestSSMContract(t *testing.T) {
	server := kumo.NewServer()
	t.Cleanup(server.Close)
	others := ssm.NewFromConfig(config("us-east-1", http.DefaultClient), func(o *ssm.Options) { o.BaseEndpoint = &server.URL })
	_, err := others.PutParameter(t.Context(), &ssm.PutParameterInput{Name: aws.String("/team/ami"), Value: aws.String("ami-1"), Type: ssmtypes.ParameterTypeString})
	check(t, err)
	t.Cleanup(func() {
		_, err := others.DeleteParameter(context.Background(), &ssm.DeleteParameterInput{Name: aws.String("/team/ami")})
		check(t, err)
	})
	clock := sim.NewClock(frontStart)
	s := newSSM(clock, &sync.Mutex{}, "eu-west-1", "111122223333", func(string) (string, bool) { return "", false })
	s.put("/team/ami", "ami-1")
	for name, client := range map[string]*ssm.Client{"simulated": ssm.NewFromConfig(config("us-east-1", &http.Client{Transport: transport{s}})), "kumo": others} {
		t.Run("parameters are found by name in "+name, func(t *testing.T) {
			out, err := client.GetParameter(t.Context(), &ssm.GetParameterInput{Name: aws.String("/team/ami")})
			check(t, err)
			if *out.Parameter.Value != "ami-1" || *out.Parameter.Name != "/team/ami" || out.Parameter.Version != 1 || out.Parameter.Type != ssmtypes.ParameterTypeString {
				t.Errorf("parameter %+v", out.Parameter)
			}
			_, err = client.GetParameter(t.Context(), &ssm.GetParameterInput{Name: aws.String("/team/nothing")})
			wantError[*ssmtypes.ParameterNotFound](t, err)
			both, err := client.GetParameters(t.Context(), &ssm.GetParametersInput{Names: []string{"/team/ami", "/team/nothing"}})
			check(t, err)
			if len(both.Parameters) != 1 || cmp.Diff([]string{"/team/nothing"}, both.InvalidParameters) != "" {
				t.Errorf("found %+v, unknown %v", both.Parameters, both.InvalidParameters)
			}
		})
	}
}

func TestParametersOfAWSAndOfTheAccountHaveVirtualTime(t *testing.T) {
	clock := sim.NewClock(frontStart)
	s := newSSM(clock, &sync.Mutex{}, "eu-west-1", "111122223333", func(name string) (string, bool) {
		return "ami-public", strings.HasPrefix(name, "/aws/service/")
	})
	client := ssm.NewFromConfig(config("us-east-1", &http.Client{Transport: transport{s}}))
	get := func(name string) ssmtypes.Parameter {
		out, err := client.GetParameter(t.Context(), &ssm.GetParameterInput{Name: &name})
		check(t, err)
		return *out.Parameter
	}
	public := get("/aws/service/eks/x/image_id")
	if *public.Value != "ami-public" || *public.ARN != "arn:aws:ssm:eu-west-1::parameter/aws/service/eks/x/image_id" || !public.LastModifiedDate.Equal(frontStart) {
		t.Errorf("public parameter %+v", public)
	}
	s.put("mine", "1")
	check(t, clock.Advance(time.Minute))
	s.put("mine", "2")
	own := get("mine")
	if *own.Value != "2" || own.Version != 2 || !own.LastModifiedDate.Equal(frontStart.Add(time.Minute)) || *own.ARN != "arn:aws:ssm:eu-west-1:111122223333:parameter/mine" {
		t.Errorf("own parameter %+v", own)
	}
	s.put("/deep/own", "3")
	if p := get("arn:aws:ssm:eu-west-1:111122223333:parameter/deep/own"); *p.Value != "3" {
		t.Errorf("parameter by ARN %+v", p)
	}
	_, err := client.GetParameters(t.Context(), &ssm.GetParametersInput{Names: []string{}})
	wantCode(t, err, "ValidationException")
	_, err = client.DeleteParameter(t.Context(), &ssm.DeleteParameterInput{Name: aws.String("mine")})
	wantCode(t, err, "UnknownOperationException")
}

func TestAClusterIsDescribed(t *testing.T) {
	clock := sim.NewClock(frontStart)
	s := newEKS(clock, &sync.Mutex{}, "eu-west-1", "111122223333")
	client := eks.NewFromConfig(config("us-east-1", &http.Client{Transport: transport{s}}))
	describe := func(name string) (*ekstypes.Cluster, error) {
		out, err := client.DescribeCluster(t.Context(), &eks.DescribeClusterInput{Name: &name})
		if err != nil {
			return nil, err
		}
		return out.Cluster, nil
	}
	s.put(Cluster{Name: "four", Version: "1.33", Endpoint: "https://old"})
	check(t, clock.Advance(time.Hour))
	s.put(Cluster{Name: "four", Version: "1.34", Endpoint: "https://four.example", CertificateAuthority: "Q0E=", ServiceCIDR: "10.100.0.0/16"})
	s.put(Cluster{Name: "six", Version: "1.34", ServiceCIDR: "fd00::/108"})
	four, err := describe("four")
	check(t, err)
	type facts struct {
		Name, Version, Endpoint, CA, CIDR, Arn string
		Status                                 ekstypes.ClusterStatus
		Family                                 ekstypes.IpFamily
		Created                                time.Time
	}
	got := facts{*four.Name, *four.Version, *four.Endpoint, *four.CertificateAuthority.Data, *four.KubernetesNetworkConfig.ServiceIpv4Cidr, *four.Arn, four.Status, four.KubernetesNetworkConfig.IpFamily, four.CreatedAt.UTC()}
	want := facts{"four", "1.34", "https://four.example", "Q0E=", "10.100.0.0/16", "arn:aws:eks:eu-west-1:111122223333:cluster/four", ekstypes.ClusterStatusActive, ekstypes.IpFamilyIpv4, frontStart}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("cluster (-want +got):\n%s", diff)
	}
	six, err := describe("six")
	check(t, err)
	if n := six.KubernetesNetworkConfig; *n.ServiceIpv6Cidr != "fd00::/108" || n.ServiceIpv4Cidr != nil || n.IpFamily != ekstypes.IpFamilyIpv6 {
		t.Errorf("network %+v", n)
	}
	_, err = describe("nowhere")
	wantError[*ekstypes.ResourceNotFoundException](t, err)
	_, err = client.ListNodegroups(t.Context(), &eks.ListNodegroupsInput{ClusterName: aws.String("four")})
	wantCode(t, err, "UnknownOperationException")
}

// brokenBody is a request whose connection breaks.
type brokenBody struct{}

func (brokenBody) Read([]byte) (int, error) { return 0, fmt.Errorf("connection broke") }

func TestABrokenRequestIsAnsweredAsOne(t *testing.T) {
	clock, mu := sim.NewClock(frontStart), &sync.Mutex{}
	for name, h := range map[string]http.Handler{
		"sqs": newSQS(clock, mu, "r", "a"), "iam": newIAM(clock, mu, "a"),
		"ssm": newSSM(clock, mu, "r", "a", func(string) (string, bool) { return "", false }),
	} {
		for _, body := range []interface{ Read([]byte) (int, error) }{brokenBody{}, strings.NewReader("{%zz")} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://x/", body)
			check(t, err)
			r.Header.Set("X-Amz-Target", "AmazonSQS.SendMessage")
			answer, err := transport{h}.RoundTrip(r)
			check(t, err)
			if answer.StatusCode != http.StatusBadRequest {
				t.Errorf("%s: status %d", name, answer.StatusCode)
			}
		}
	}
}
