package aws

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/smithy-go/middleware"
	"k8s.io/utils/clock"

	"github.com/reeve-project/reeve/reconciler/aws/bootstrap"
)

// callTimeout is how long one call may take with the repetitions that the SDK
// makes, unless the options say otherwise.
const callTimeout = time.Minute

// Options are what the client has to know about the cluster.
type Options struct {
	// Cluster is the name of the EKS cluster.
	Cluster string
	// Region is the region of the cluster; that of the configuration unless
	// set.
	Region string
	// KubernetesVersion is the minor version that images are chosen for, such as
	// "1.34"; the version of the EKS control plane unless set.
	KubernetesVersion string
	// Info is what a node has to know to join the cluster; what is empty in it is
	// as EKS describes the cluster.
	Info ClusterInfo
	// Queue is the name of the SQS queue with interruptions; none unless set.
	Queue string
	// CallTimeout bounds one call with the SDK's own repetitions; a minute unless
	// set.
	CallTimeout time.Duration
	// Clock tells the time; the system's unless set.
	Clock clock.PassiveClock
	// Log takes what is worth knowing and no error; slog's default unless set.
	Log *slog.Logger
}

// ClusterInfo is what a node has to know to join the cluster.
type ClusterInfo = bootstrap.ClusterInfo

// Cloud is AWS as a port.Cloud; Queue gives its port.Queue. Its methods may be
// called concurrently.
type Cloud struct {
	options Options
	clock   clock.PassiveClock
	log     *slog.Logger

	ec2     ec2API
	ssm     ssmAPI
	iam     iamAPI
	eks     eksAPI
	pricing pricingAPI
	sqs     sqsAPI

	addresses  addressBook
	templates  templateBook
	launches   launchBook
	info       infoCache
	market     marketBook
	classes    classBook
	parameters parameterBook
	profiles   profileBook
}

// New makes the client from a configuration of the SDK, which brings
// credentials, the HTTP client and, in tests, the endpoint. It calls nothing. It
// fails when the cluster or the region is not named.
func New(cfg aws.Config, o Options) (*Cloud, error) {
	if o.Region == "" {
		o.Region = cfg.Region
	}
	if o.Cluster == "" || o.Region == "" {
		return nil, fmt.Errorf("AWS client: cluster %q in region %q: both have to be named", o.Cluster, o.Region)
	}
	if o.CallTimeout == 0 {
		o.CallTimeout = callTimeout
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	cfg = cfg.Copy()
	cfg.Region = o.Region
	cfg.APIOptions = append(cfg.APIOptions[:len(cfg.APIOptions):len(cfg.APIOptions)], bounded(o.CallTimeout))
	prices := cfg.Copy()
	prices.Region = pricingRegion(o.Region)
	return &Cloud{
		options: o, clock: o.Clock, log: o.Log,
		ec2: ec2.NewFromConfig(cfg), ssm: ssm.NewFromConfig(cfg), iam: iam.NewFromConfig(cfg), eks: eks.NewFromConfig(cfg),
		pricing: pricing.NewFromConfig(prices), sqs: sqs.NewFromConfig(cfg),
	}, nil
}

// pricingRegion is where the price list of a region is served (Karpenter,
// pkg/providers/pricing).
func pricingRegion(region string) string {
	switch {
	case strings.HasPrefix(region, "ap-"):
		return "ap-south-1"
	case strings.HasPrefix(region, "eu-"):
		return "eu-central-1"
	case strings.HasPrefix(region, "cn-"):
		return "cn-northwest-1"
	}
	return "us-east-1"
}

// bounded gives every call a deadline, so that an endpoint that hangs does not
// hold up a pass for ever.
func bounded(d time.Duration) func(*middleware.Stack) error {
	return func(s *middleware.Stack) error {
		return s.Initialize.Add(middleware.InitializeMiddlewareFunc("Deadline", func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
			ctx, cancel := context.WithTimeout(ctx, d)
			defer cancel()
			return next.HandleInitialize(ctx, in)
		}), middleware.Before)
	}
}
