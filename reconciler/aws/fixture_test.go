package aws_test

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/aws"
	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/port"
	"github.com/reeve-project/reeve/reconciler/requirements"
	"github.com/reeve-project/reeve/reconciler/sim"
	"github.com/reeve-project/reeve/reconciler/sim/awsapi"
)

const (
	region   = "ap-northeast-2"
	zoneA    = region + "a"
	zoneB    = region + "b"
	subnetA1 = "subnet-0a10000000000000a"
	subnetA2 = "subnet-0a20000000000000a"
	subnetB1 = "subnet-0b10000000000000b"
	group1   = "sg-01000000000000001"
	imageX86 = "ami-086000000000000001"
	imageARM = "ami-0a400000000000001"
	decided  = "20260406T122402.547Z-abcdefghijklmnop"
)

var (
	ctx = context.Background()
	t0  = time.Date(2026, 4, 6, 12, 24, 2, 547e6, time.UTC)
)

// embedded is the catalog, which takes a while to read.
var embedded = sync.OnceValues(func() (*catalog.Data, error) { return catalog.Embedded(region) })

// account is an AWS account behind the wire protocols, and the client for it.
type account struct {
	*awsapi.Endpoint
	world *sim.World
	cloud *aws.Cloud
	data  *catalog.Data
	log   *strings.Builder
}

func newAccount(t *testing.T, edit ...func(*awsapi.Options)) *account {
	t.Helper()
	data, err := embedded()
	check(t, err)
	o := awsapi.Options{
		Cluster: "myeks", Catalog: data,
		Subnets: []awsapi.Subnet{
			{ID: subnetA1, Zone: zoneA}, {ID: subnetA2, Zone: zoneA, Free: 500}, {ID: subnetB1, Zone: zoneB},
		},
		SecurityGroups: []awsapi.SecurityGroup{{ID: group1, Name: "nodes"}},
		Images: []awsapi.Image{
			{ID: imageX86, Name: "x86", Family: "al2023", Architecture: "x86_64"}, {ID: imageARM, Name: "arm", Family: "al2023", Architecture: "arm64"},
		},
	}
	for _, e := range edit {
		e(&o)
	}
	w := sim.NewWorld(sim.Options{Start: t0})
	endpoint, err := awsapi.New(w, o)
	check(t, err)
	endpoint.PutInstanceProfile("myeks_123", "nodes")
	a := &account{Endpoint: endpoint, world: w, data: data, log: &strings.Builder{}}
	a.cloud = a.newCloud(t, 1)
	return a
}

// newCloud is another process for the same account, whose SDK makes so many
// attempts.
func (a *account) newCloud(t *testing.T, attempts int, edit ...func(*aws.Options)) *aws.Cloud {
	t.Helper()
	o := aws.Options{
		Cluster: "myeks", Clock: a.world.Clock, Log: slog.New(slog.NewTextHandler(a.log, nil)),
		Info: aws.ClusterInfo{Endpoint: "https://ABC.gr7.ap-northeast-2.eks.amazonaws.com", CA: "Q0E=", CIDR: "10.100.0.0/16", Version: "1.34"},
	}
	for _, e := range edit {
		e(&o)
	}
	cloud, err := aws.New(awssdk.Config{
		Region: region, HTTPClient: a.HTTPClient(), Credentials: credentials.NewStaticCredentialsProvider("AKIDEXAMPLE", "secret", ""),
		Retryer: func() awssdk.Retryer {
			return retry.NewStandard(func(o *retry.StandardOptions) { o.MaxAttempts, o.MaxBackoff = attempts, time.Millisecond })
		},
	}, o)
	check(t, err)
	return cloud
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func needs(key string, op corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: key, Operator: op, Values: values}
}

// testClass is a class with its status resolved.
func testClass() *ec2v1.EC2NodeClass {
	class := &ec2v1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	class.Spec.Role = "nodes"
	class.Spec.AMISelectorTerms = []ec2v1.AMISelectorTerm{{Alias: "al2023@v20260318"}}
	class.Spec.Tags = map[string]string{"team": "a"}
	class.Status.Subnets = []ec2v1.Subnet{
		{ID: subnetA1, Zone: zoneA, ZoneID: "apne2-az1"}, {ID: subnetB1, Zone: zoneB, ZoneID: "apne2-az2"}, {ID: subnetA2, Zone: zoneA, ZoneID: "apne2-az1"},
	}
	class.Status.SecurityGroups = []ec2v1.SecurityGroup{{ID: group1, Name: "nodes"}}
	class.Status.AMIs = []ec2v1.AMI{
		{ID: imageX86, Requirements: []corev1.NodeSelectorRequirement{needs(corev1.LabelArchStable, corev1.NodeSelectorOpIn, "amd64")}},
		{ID: imageARM, Requirements: []corev1.NodeSelectorRequirement{needs(corev1.LabelArchStable, corev1.NodeSelectorOpIn, "arm64")}},
	}
	class.Status.InstanceProfile = "myeks_123"
	return class
}

// request is one for so many claims of one of the types.
func (a *account) request(t *testing.T, claims int, capacityType string, types ...string) port.LaunchRequest {
	t.Helper()
	class := testClass()
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	pool.Spec.Template.Labels = map[string]string{"team": "a"}
	pool.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "default"}
	template := pool.Spec.Template.ToNodeClaim()
	template.Labels = map[string]string{"team": "a", karpv1.NodePoolLabelKey: "default", ec2v1.LabelNodeClass: "default", "node-restriction.kubernetes.io/x": "y"}
	req := port.LaunchRequest{
		Decision: decided, Attempt: 1, NodePool: "default", Class: class, Template: template, CapacityType: capacityType,
		Requirements: requirements.NewSet(requirements.In(karpv1.CapacityTypeLabelKey, capacityType)),
		Tags: map[string]string{
			"team": "a", "kubernetes.io/cluster/myeks": "owned", ec2v1.EKSClusterNameTagKey: "myeks",
			karpv1.NodePoolLabelKey: "default", ec2v1.LabelNodeClass: "default", "reeve.dev/decision": decided,
		},
	}
	a.resolve(t, &req, types...)
	return next(req, 0, claims)
}

// resolve fills in the types and their offerings, cheapest first.
func (a *account) resolve(t *testing.T, req *port.LaunchRequest, types ...string) {
	t.Helper()
	all, err := a.data.Resolve(req.Class, catalog.DefaultSettings())
	check(t, err)
	req.Types, req.Offerings = nil, nil
	for _, it := range all {
		if !slices.Contains(types, it.Name) {
			continue
		}
		req.Types = append(req.Types, it)
		for _, o := range it.Offerings {
			if o.Available && o.CapacityType == req.CapacityType {
				req.Offerings = append(req.Offerings, decision.Offering{InstanceType: it.Name, Zone: o.Zone, CapacityType: o.CapacityType, Price: o.Price})
			}
		}
	}
	slices.SortFunc(req.Offerings, func(a, b decision.Offering) int {
		return cmp.Or(cmp.Compare(a.Price, b.Price), cmp.Compare(a.InstanceType, b.InstanceType), cmp.Compare(a.Zone, b.Zone))
	})
}

// next is the request of another group, with so many claims.
func next(req port.LaunchRequest, group, claims int) port.LaunchRequest {
	req.Group, req.Claims = group, nil
	for i := range claims {
		req.Claims = append(req.Claims, decision.ClaimName("default", decided, group*1000+i))
	}
	req.Token = decision.ClientToken(req.Decision, req.Group, req.Attempt)
	return req
}

// again is the request of the next attempt.
func again(req port.LaunchRequest) port.LaunchRequest {
	req.Attempt++
	req.Token = decision.ClientToken(req.Decision, req.Group, req.Attempt)
	return req
}

// bodies are the requests of the action as they came.
func (a *account) bodies(action string) []string {
	var out []string
	for _, c := range a.Log() {
		if c.Action == action {
			out = append(out, c.Body)
		}
	}
	return out
}

func ids(list []port.Instance) []string {
	var out []string
	for _, in := range list {
		out = append(out, in.ID)
	}
	return out
}

type ec2Subnet = ec2v1.Subnet

func hugeDevice() []*ec2v1.BlockDeviceMapping {
	return []*ec2v1.BlockDeviceMapping{{DeviceName: new("/dev/xvda"), EBS: &ec2v1.BlockDevice{VolumeSize: new(resource.MustParse("1Ei"))}}}
}
