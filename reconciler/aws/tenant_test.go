package aws_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/reeve-project/reeve/reconciler/aws"
	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/sim"
	"github.com/reeve-project/reeve/reconciler/sim/awsapi"
)

const seoul = "ap-northeast-2"

var noon = time.Date(2026, 4, 6, 12, 0, 0, 0, time.UTC)

// tenant is an account without anything running, and a client of the cluster
// "shop" in it.
type tenant struct {
	*awsapi.Endpoint
	world *sim.World
	cloud *aws.Cloud
	log   *logBuffer
}

// logBuffer is written to from several goroutines.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) count(s string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.b.String(), s)
}

func newTenant(t *testing.T, edit ...func(*awsapi.Options)) *tenant {
	t.Helper()
	data, err := catalog.Embedded(seoul)
	noError(t, err)
	o := awsapi.Options{Cluster: "shop", Catalog: data}
	for _, e := range edit {
		e(&o)
	}
	w := sim.NewWorld(sim.Options{Start: noon})
	endpoint, err := awsapi.New(w, o)
	noError(t, err)
	out := &tenant{Endpoint: endpoint, world: w, log: &logBuffer{}}
	out.cloud = out.client(t, aws.Options{Cluster: "shop", Queue: "shop"})
	return out
}

// client is another process of the same cluster.
func (a *tenant) client(t *testing.T, o aws.Options) *aws.Cloud {
	t.Helper()
	o.Clock, o.Log, o.CallTimeout = a.world.Clock, slog.New(slog.NewTextHandler(a.log, nil)), 5*time.Second
	cloud, err := aws.New(awssdk.Config{
		Region: a.Region(), HTTPClient: a.HTTPClient(), Credentials: credentials.NewStaticCredentialsProvider("AKIDEXAMPLE", "secret", ""),
		Retryer: func() awssdk.Retryer {
			return retry.NewStandard(func(o *retry.StandardOptions) { o.MaxAttempts = 1 })
		},
	}, o)
	noError(t, err)
	return cloud
}

func (a *tenant) pass(t *testing.T, d time.Duration) {
	t.Helper()
	noError(t, a.world.Clock.Advance(d))
}

// calls is how many there were since the last time.
func (a *tenant) since(before map[string]int) map[string]int {
	out := map[string]int{}
	for action, n := range a.Calls() {
		if n > before[action] {
			out[action] = n - before[action]
		}
	}
	return out
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
