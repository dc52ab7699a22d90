package awse2e_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/pipeline"
	"github.com/reeve-project/reeve/reconciler/sim"
	"github.com/reeve-project/reeve/reconciler/sim/awsapi"
)

// flood is what draining a queue took.
type flood struct {
	// elapsed is real time, from the first pass until the queue was empty.
	elapsed time.Duration
	passes  int
	// early counts deletions of messages before any decision was recorded.
	early int
}

// spotNodes is a cluster with so many spot nodes, one for each pod.
func spotNodes(tb testing.TB, nodes int32) *rig {
	tb.Helper()
	r := newRig(tb, map[string]string{poolsFile: pools(pool{name: "default", requirements: []string{types(fourCPUs...), spot}})},
		sim.NewDeployment("default", "big", nodes, cpu("3"))).start()
	r.until("all pods run", 5*time.Minute, func() bool { return r.settled() && r.running() == int(nodes) })
	return r
}

// overwhelm sends warnings for all nodes, in disorder and some of them twice,
// and drains the queue.
func overwhelm(tb testing.TB, r *rig, messages int) flood {
	tb.Helper()
	random := rand.New(rand.NewPCG(7, 11))
	all := r.ours()
	for i := range messages {
		id := all[i%len(all)].ID
		switch i / len(all) % 3 {
		case 0:
			r.account.Events().SpotWarning(id, "terminate")
		case 1:
			r.account.Events().Rebalance(id)
		default:
			r.account.Events().StateChange(id, "stopping")
		}
	}
	r.account.Queue().Duplicate(messages / 10)
	r.account.Queue().Reorder(random.Perm)
	var got flood
	recorded := false
	r.seen = func(e pipeline.Event) {
		recorded = recorded || e.Step == nil && e.Decision != nil && e.Decision.Kind == decision.Interrupt
	}
	r.account.SetFaults(func(c awsapi.Call) *awsapi.Fault {
		if c.Action == "DeleteMessageBatch" && !recorded {
			got.early++
		}
		return nil
	})
	begin := time.Now()
	for {
		r.pass()
		got.passes++
		if visible, hidden := r.account.Queue().Depth(); visible+hidden == 0 {
			break
		}
		if got.passes > 300 {
			tb.Fatalf("the queue is not empty after %d passes; errors:\n%s", got.passes, joined(r.errs))
		}
	}
	got.elapsed = time.Since(begin)
	r.account.SetFaults(nil)
	return got
}

// interruptedOnce reports instances without, or with more than, one decision.
func (r *rig) interruptedOnce(before []awsapi.Instance) {
	r.tb.Helper()
	count := map[string]int{}
	for _, d := range r.of(decision.Interrupt) {
		count[d.Proposal.Interruption.Instance]++
	}
	for _, in := range before {
		if n := count[in.ID]; n != 1 {
			r.tb.Errorf("%d decisions about the interruption of %s", n, in.ID)
		}
	}
	if len(count) != len(before) {
		r.tb.Errorf("%d instances are interrupted of %d", len(count), len(before))
	}
}

func TestAFloodOfInterruptionsIsHandledOncePerInstance(t *testing.T) {
	const nodes, messages = 60, 1500
	r := spotNodes(t, nodes)
	before := r.ours()
	got := overwhelm(t, r, messages)
	t.Logf("%d messages for %d instances: %d passes, %s", messages, nodes, got.passes, got.elapsed)
	if got.early > 0 {
		t.Errorf("messages were deleted before a decision was recorded")
	}
	r.until("all pods run elsewhere", 10*time.Minute, func() bool { return r.settled() && r.running() == nodes })
	r.interruptedOnce(before)
	for _, in := range before {
		if now, _ := r.account.Instance(in.ID); now.State == "running" {
			t.Errorf("instance %s still runs", in.ID)
		}
	}
	r.finish()
}

// BenchmarkInterruptions drains ten thousand messages about five hundred nodes:
// the real time until the queue is empty is that of the operation.
func BenchmarkInterruptions(b *testing.B) {
	const nodes, messages = 500, 10_000
	var total time.Duration
	for range b.N {
		r := spotNodes(b, nodes)
		before := r.ours()
		total += overwhelm(b, r, messages).elapsed
		r.interruptedOnce(before)
	}
	b.ReportMetric(float64(total.Nanoseconds())/float64(b.N), "ns/op")
	b.ReportMetric(float64(messages)*float64(b.N)/total.Seconds(), "messages/s")
}
