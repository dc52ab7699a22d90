package awsapi

import (
	"encoding/json"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/karpenter-provider-aws/pkg/controllers/interruption/messages"
	"github.com/google/go-cmp/cmp"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/sim"
)

// accountOf is a cluster "front" in ap-northeast-2, and a configuration of the
// SDK that reaches its account.
func accountOf(t *testing.T, o Options) (*sim.World, *Endpoint, aws.Config) {
	t.Helper()
	data, err := catalog.Embedded(region)
	check(t, err)
	o.Cluster, o.Catalog = "front", data
	w := sim.NewWorld(sim.Options{Start: frontStart})
	e, err := New(w, o)
	check(t, err)
	return w, e, config(e.Region(), e.HTTPClient())
}

// launchSpot launches a spot instance with the profile by a fleet, and gives
// its id or the code of the fleet's error.
func launchSpot(t *testing.T, e *Endpoint, cfg aws.Config, profile string) (id, code string) {
	t.Helper()
	client, name := ec2.NewFromConfig(cfg), aws.String("front-"+profile)
	image := e.ec2.images[slices.IndexFunc(e.ec2.images, func(im Image) bool { return im.Architecture == "x86_64" })]
	_, err := client.CreateLaunchTemplate(t.Context(), &ec2.CreateLaunchTemplateInput{LaunchTemplateName: name, LaunchTemplateData: &ec2types.RequestLaunchTemplateData{
		ImageId: &image.ID, IamInstanceProfile: &ec2types.LaunchTemplateIamInstanceProfileSpecificationRequest{Name: &profile},
		SecurityGroupIds: []string{e.ec2.groups[0].ID}}})
	check(t, err)
	out, err := client.CreateFleet(t.Context(), &ec2.CreateFleetInput{
		Type:                        ec2types.FleetTypeInstant,
		TargetCapacitySpecification: &ec2types.TargetCapacitySpecificationRequest{TotalTargetCapacity: aws.Int32(1), DefaultTargetCapacityType: ec2types.DefaultTargetCapacityTypeSpot},
		LaunchTemplateConfigs: []ec2types.FleetLaunchTemplateConfigRequest{{
			LaunchTemplateSpecification: &ec2types.FleetLaunchTemplateSpecificationRequest{LaunchTemplateName: name, Version: aws.String("$Latest")},
			Overrides:                   []ec2types.FleetLaunchTemplateOverridesRequest{{InstanceType: "m5.large", SubnetId: &e.ec2.subnets[0].ID}},
		}},
	})
	check(t, err)
	_, err = client.DeleteLaunchTemplate(t.Context(), &ec2.DeleteLaunchTemplateInput{LaunchTemplateName: name})
	check(t, err)
	if len(out.Instances) == 0 {
		return "", *out.Errors[0].ErrorCode
	}
	return out.Instances[0].InstanceIds[0], ""
}

// event is one of EC2's as it came through the queue.
type event struct {
	Kind   string
	ID     string
	State  string
	Action string
	After  time.Duration
}

func drain(t *testing.T, client *sqs.Client, url string) []event {
	t.Helper()
	var out []event
	for {
		got := receive(t, sqsPeer{client: client}, url, nil)
		if len(got) == 0 {
			return out
		}
		for _, m := range got {
			var e struct {
				messages.Metadata
				Detail instanceDetail `json:"detail"`
			}
			check(t, json.Unmarshal([]byte(*m.Body), &e))
			out = append(out, event{e.DetailType, e.Detail.InstanceID, e.Detail.State, e.Detail.Action, e.Time.Sub(frontStart)})
			_, err := client.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: &url, ReceiptHandle: m.ReceiptHandle})
			check(t, err)
		}
	}
}

func TestASpotInstanceIsWarnedAndTakenTwoMinutesLater(t *testing.T) {
	w, e, cfg := accountOf(t, Options{Queue: "interruptions"})
	e.PutInstanceProfile("nodes", NodeRole("front"))
	client := sqs.NewFromConfig(cfg)
	out, err := client.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("interruptions")})
	check(t, err)
	if *out.QueueUrl != e.Queue().URL() {
		t.Errorf("queue %s, not %s", *out.QueueUrl, e.Queue().URL())
	}
	id, code := launchSpot(t, e, cfg, "nodes")
	if code != "" {
		t.Fatalf("the fleet launched nothing: %s", code)
	}
	check(t, w.Clock.Advance(time.Minute))
	check(t, e.SpotWarning(id))
	e.Events().Rebalance(id)
	check(t, w.Clock.Advance(2*time.Minute-time.Second))
	if in, _ := e.Instance(id); in.State != "running" {
		t.Errorf("the instance is %s before its two minutes are over", in.State)
	}
	check(t, w.Clock.Advance(time.Minute))
	const state = "EC2 Instance State-change Notification"
	want := []event{
		{Kind: state, ID: id, State: "pending"},
		{Kind: state, ID: id, State: "running", After: pendingTime},
		{Kind: "EC2 Spot Instance Interruption Warning", ID: id, Action: "terminate", After: time.Minute},
		{Kind: "EC2 Instance Rebalance Recommendation", ID: id, After: time.Minute},
		{Kind: state, ID: id, State: "shutting-down", After: time.Minute + spotNotice},
		{Kind: state, ID: id, State: "terminated", After: time.Minute + spotNotice + shutdownTime},
	}
	if diff := cmp.Diff(want, drain(t, client, *out.QueueUrl)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestEC2AcceptsAProfileOnceIAMHasIt(t *testing.T) {
	w, e, cfg := accountOf(t, Options{Delays: Delays{InstanceProfile: 10 * time.Second}})
	client := iam.NewFromConfig(cfg)
	if _, code := launchSpot(t, e, cfg, "young"); code != "InvalidParameterValue" {
		t.Errorf("a profile that does not exist gave %q", code)
	}
	_, err := client.CreateInstanceProfile(t.Context(), &iam.CreateInstanceProfileInput{InstanceProfileName: aws.String("young"), Path: aws.String("/karpenter/x/")})
	check(t, err)
	if _, code := launchSpot(t, e, cfg, "young"); code != "InvalidParameterValue" {
		t.Errorf("a profile that EC2 cannot know yet gave %q", code)
	}
	check(t, w.Clock.Advance(10*time.Second))
	id, code := launchSpot(t, e, cfg, "young")
	if code != "" {
		t.Fatalf("a profile that exists gave %q", code)
	}
	e.Kill(id)
	check(t, w.Clock.Advance(time.Minute))
	if diff := cmp.Diff([]string{"instance profile young (/karpenter/x/)"}, e.Leftovers()); diff != "" {
		t.Errorf("leftovers (-want +got):\n%s", diff)
	}
	_, err = client.DeleteInstanceProfile(t.Context(), &iam.DeleteInstanceProfileInput{InstanceProfileName: aws.String("young")})
	check(t, err)
	e.PutInstanceProfile("by-hand", "some-role")
	if left := e.Leftovers(); len(left) != 0 || len(e.InstanceProfiles()) != 1 {
		t.Errorf("leftovers %v, profiles %v", left, e.InstanceProfiles())
	}
}

func TestADroppedRoleIsGoneFromItsProfiles(t *testing.T) {
	_, e, cfg := accountOf(t, Options{})
	client := iam.NewFromConfig(cfg)
	e.PutRole("extra")
	e.PutInstanceProfile("p", "extra")
	_, err := client.GetRole(t.Context(), &iam.GetRoleInput{RoleName: aws.String("extra")})
	check(t, err)
	e.DropRole("extra")
	_, err = client.GetRole(t.Context(), &iam.GetRoleInput{RoleName: aws.String("extra")})
	wantCode(t, err, "NoSuchEntity")
	if p := e.InstanceProfiles(); p[0].Role != "" {
		t.Errorf("profile %+v", p[0])
	}
}

// Both documented names of each release lead to an image that EC2 has.
func TestParametersNameTheImagesThatEC2Serves(t *testing.T) {
	_, e, cfg := accountOf(t, Options{KubernetesVersion: "1.34", Releases: map[string][]string{"al2023": {"v20260218", "v20260318"}, "bottlerocket": {"v1.50.0"}}})
	parameters, images := ssm.NewFromConfig(cfg), ec2.NewFromConfig(cfg)
	imageOf := func(name string) string {
		t.Helper()
		p, err := parameters.GetParameter(t.Context(), &ssm.GetParameterInput{Name: &name})
		check(t, err)
		out, err := images.DescribeImages(t.Context(), &ec2.DescribeImagesInput{Filters: []ec2types.Filter{{Name: aws.String("image-id"), Values: []string{*p.Parameter.Value}}}})
		check(t, err)
		if len(out.Images) != 1 {
			t.Fatalf("%s names %s, which EC2 does not have", name, *p.Parameter.Value)
		}
		return *out.Images[0].Name
	}
	const al, br = "/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/", "/aws/service/bottlerocket/aws-k8s-1.34"
	for name, want := range map[string]string{
		al + "x86_64/standard/recommended/image_id":                                       "amazon-eks-node-al2023-x86_64-standard-1.34-v20260318",
		al + "arm64/nvidia/recommended/image_id":                                          "amazon-eks-node-al2023-arm64-nvidia-1.34-v20260318",
		al + "x86_64/neuron/amazon-eks-node-al2023-x86_64-neuron-1.34-v20260218/image_id": "amazon-eks-node-al2023-x86_64-neuron-1.34-v20260218",
		br + "/arm64/latest/image_id":                                                     "bottlerocket-aws-k8s-1.34-arm64-v1.50.0",
		br + "-nvidia/x86_64/1.50.0/image_id":                                             "bottlerocket-aws-k8s-1.34-nvidia-x86_64-v1.50.0",
	} {
		if got := imageOf(name); got != want {
			t.Errorf("%s names %s, want %s", name, got, want)
		}
	}
	e.Release("al2023", "v20260418")
	if got := imageOf(al + "x86_64/standard/recommended/image_id"); !strings.HasSuffix(got, "v20260418") {
		t.Errorf("after a release the recommended image is %s", got)
	}
	e.PutParameter("/team/image", "ami-1")
	p, err := parameters.GetParameter(t.Context(), &ssm.GetParameterInput{Name: aws.String("/team/image")})
	check(t, err)
	if *p.Parameter.Value != "ami-1" {
		t.Errorf("own parameter %+v", p.Parameter)
	}
}

func TestTheClusterOfTheOptionsIsDescribed(t *testing.T) {
	_, e, cfg := accountOf(t, Options{EKS: Cluster{ServiceCIDR: "172.20.0.0/16"}})
	client := eks.NewFromConfig(cfg)
	version := func() string {
		out, err := client.DescribeCluster(t.Context(), &eks.DescribeClusterInput{Name: aws.String("front")})
		check(t, err)
		c := out.Cluster
		if *c.KubernetesNetworkConfig.ServiceIpv4Cidr != "172.20.0.0/16" || !strings.HasPrefix(*c.Endpoint, "https://") || *c.CertificateAuthority.Data == "" {
			t.Errorf("cluster %+v", c)
		}
		return *c.Version
	}
	before := version()
	c := e.options.cluster()
	c.Version = "1.35"
	e.PutCluster(c)
	if after := version(); before != "1.34" || after != "1.35" {
		t.Errorf("version %s, then %s", before, after)
	}
}

func TestFaultsReachEachServiceInItsProtocol(t *testing.T) {
	_, e, cfg := accountOf(t, Options{})
	e.SetFaults(Every("", Fault{Code: "RequestThrottled"}))
	_, err := sqs.NewFromConfig(cfg).GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("front")})
	wantCode(t, err, "RequestThrottled")
	e.SetFaults(Every("", Fault{Code: "ServiceUnavailable"}))
	_, err = sqs.NewFromConfig(cfg).GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("front")})
	wantCode(t, err, "ServiceUnavailable")
	_, err = iam.NewFromConfig(cfg).GetRole(t.Context(), &iam.GetRoleInput{RoleName: aws.String("r")})
	wantCode(t, err, "ServiceUnavailable")
	_, err = ssm.NewFromConfig(cfg).GetParameter(t.Context(), &ssm.GetParameterInput{Name: aws.String("p")})
	wantCode(t, err, "ServiceUnavailable")
	_, err = eks.NewFromConfig(cfg).DescribeCluster(t.Context(), &eks.DescribeClusterInput{Name: aws.String("c")})
	wantCode(t, err, "ServiceUnavailable")
	want := map[string]int{"GetQueueUrl": 2, "GetRole": 1, "GetParameter": 1, "DescribeCluster": 1}
	if diff := cmp.Diff(want, e.Calls()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestALongPollOverASocketIsAnsweredInVirtualTime(t *testing.T) {
	w, e, cfg := accountOf(t, Options{})
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	cfg.HTTPClient = server.Client()
	client := sqs.NewFromConfig(cfg, func(o *sqs.Options) { o.BaseEndpoint = &server.URL })
	url := e.Queue().URL()
	got := make(chan []string, 1)
	go func() { got <- bodies(receive(t, sqsPeer{client: client}, url, waitFor(20))) }()
	check(t, e.Queue().AwaitReceivers(t.Context(), 1))
	w.Clock.After(7*time.Second, func() { e.Queue().Send("seven") })
	check(t, w.Clock.Advance(time.Minute))
	if diff := cmp.Diff([]string{"seven"}, <-got); diff != "" {
		t.Errorf("received (-want +got):\n%s", diff)
	}
}

func TestAQueueNameThatSQSRefusesFailsTheAccount(t *testing.T) {
	data, err := catalog.Embedded(region)
	check(t, err)
	_, err = New(sim.NewWorld(sim.Options{Start: frontStart}), Options{Cluster: "c", Catalog: data, Queue: "a queue"})
	if err == nil || !strings.Contains(err.Error(), `queue "a queue"`) {
		t.Errorf("got error %v", err)
	}
}
