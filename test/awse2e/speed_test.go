package awse2e_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/pipeline"
	"github.com/reeve-project/reeve/reconciler/sim"
	"github.com/reeve-project/reeve/reconciler/sim/awsapi"
)

// The decision that the speed of launches is measured with.
const (
	launchGroups = 20
	groupClaims  = 50
	// maxCalls is how many calls EC2 may get from the record of the decision
	// until it has described all instances.
	maxCalls = 60
)

// fourCPUs are types of which each holds one pod of 3 CPUs.
var fourCPUs = []string{
	"c5.xlarge", "c5a.xlarge", "c5d.xlarge", "c5n.xlarge", "r5b.xlarge", "c6i.xlarge", "c6id.xlarge", "c6in.xlarge", "c7i.xlarge", "m5.xlarge",
	"m5a.xlarge", "m5d.xlarge", "m6i.xlarge", "r5n.xlarge", "m6id.xlarge", "m7i.xlarge", "r5.xlarge", "r5a.xlarge", "r6i.xlarge", "r7i.xlarge",
}

// launches is what one decision of many launch groups took.
type launches struct {
	claims, groups int
	// calls of EC2 from the record until all instances are described, by
	// action.
	calls map[string]int
	// delays are the real times from the record to each CreateFleet.
	delays []time.Duration
}

func (l launches) total() int {
	n := 0
	for _, c := range l.calls {
		n += c
	}
	return n
}

// launchMany launches a thousand claims in twenty groups by one decision.
func launchMany(tb testing.TB) (*rig, launches) {
	tb.Helper()
	r := newRig(tb, map[string]string{poolsFile: pools(pool{name: "default", requirements: []string{types(fourCPUs...), onDemand}})})
	for _, name := range fourCPUs[:launchGroups] {
		d := sim.NewDeployment("default", "on-"+name, groupClaims, cpu("3"))
		d.Spec.Template.Spec.NodeSelector = map[string]string{corev1.LabelInstanceTypeStable: name}
		r.must(r.world.Apply(d))
	}
	var recorded time.Time
	var got launches
	before := 0
	r.seen = func(e pipeline.Event) {
		if e.Step == nil && e.Decision != nil && e.Decision.Kind == decision.Provision {
			recorded, before = time.Now(), len(r.account.Log())
		}
	}
	r.account.SetFaults(func(c awsapi.Call) *awsapi.Fault {
		if c.Action == "CreateFleet" {
			if !recorded.IsZero() {
				got.delays = append(got.delays, time.Since(recorded))
			}
		}
		return nil
	})
	r.start()
	r.until("all instances are launched and described", time.Minute, func() bool {
		return len(r.ours()) == launchGroups*groupClaims && described(r.account.Log()[before:])
	})
	got.calls = map[string]int{}
	for _, c := range r.account.Log()[before:] {
		if c.Service == "ec2" {
			got.calls[c.Action]++
		}
	}
	d := r.of(decision.Provision)[0]
	got.claims = len(d.Proposal.Claims)
	for i := range d.Proposal.Claims {
		got.groups = max(got.groups, d.Proposal.Claims[i].Group+1)
	}
	return r, got
}

// described says whether EC2 was asked what runs after the last launch.
func described(calls []awsapi.Call) bool {
	seen := false
	for _, c := range calls {
		seen = seen && c.Action != "CreateFleet" || c.Action == "DescribeInstances"
	}
	return seen
}

// percentile is the nearest-rank percentile.
func percentile(all []time.Duration, p int) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[max(0, (len(sorted)*p+99)/100-1)]
}

func TestAThousandClaimsInTwentyGroupsTakeFewCalls(t *testing.T) {
	r, got := launchMany(t)
	t.Logf("%d claims in %d groups: %d EC2 calls %v; record to CreateFleet: median %s, p99 %s",
		got.claims, got.groups, got.total(), got.calls, percentile(got.delays, 50), percentile(got.delays, 99))
	if got.claims != launchGroups*groupClaims || got.groups != launchGroups {
		t.Errorf("%d claims in %d groups, want %d in %d", got.claims, got.groups, launchGroups*groupClaims, launchGroups)
	}
	if got.total() > maxCalls || got.calls["CreateFleet"] != launchGroups {
		t.Errorf("%d calls of EC2, at most %d are allowed, one CreateFleet a group: %v", got.total(), maxCalls, got.calls)
	}
	if n := len(r.of(decision.Provision)); n != 1 {
		t.Errorf("%d decisions to launch, want one", n)
	}
	r.until("all pods run", 5*time.Minute, func() bool { return r.settled() && r.running() == launchGroups*groupClaims })
	r.finish()
}

// BenchmarkLaunch measures the real time from the record of a decision to each
// of its CreateFleet calls, with an endpoint that answers at once: its 99th
// percentile is the time of the operation.
func BenchmarkLaunch(b *testing.B) {
	var delays []time.Duration
	for range b.N {
		_, got := launchMany(b)
		delays = append(delays, got.delays...)
	}
	b.ReportMetric(float64(percentile(delays, 99).Nanoseconds()), "ns/op")
	b.ReportMetric(float64(percentile(delays, 50).Microseconds())/1000, "ms-median")
}
