package aws_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/reeve-project/reeve/reconciler/aws"
	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/port"
	"github.com/reeve-project/reeve/reconciler/sim/awsapi"
)

const someInstance = "i-0b662ef9931388ba0"

func TestTheQueueTellsOfEachKindOfInterruption(t *testing.T) {
	a := newTenant(t)
	a.Events().SpotWarning(someInstance, "terminate")
	a.Events().Rebalance(someInstance)
	a.Events().Reservation(someInstance, "terminate")
	a.Events().StateChange(someInstance, "running")
	a.Events().StateChange(someInstance, "shutting-down")
	a.Events().Health([]string{someInstance, "i-00000000000000001"}, "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED")
	a.Queue().Send("no event")
	got, err := a.cloud.Queue().Receive(t.Context(), 100)
	noError(t, err)
	of := func(kind, action string, ids ...string) []cluster.Interruption {
		var out []cluster.Interruption
		for _, id := range ids {
			out = append(out, cluster.Interruption{Kind: kind, Instance: id, Time: noon, Action: action})
		}
		return out
	}
	want := []port.Message{
		{Interruptions: of(cluster.SpotInterruption, "terminate", someInstance)},
		{Interruptions: of(cluster.RebalanceRecommendation, "", someInstance)},
		{Interruptions: of(cluster.ReservationInterruption, "terminate", someInstance)},
		{},
		{Interruptions: of(cluster.StateChange, "shutting-down", someInstance)},
		{Interruptions: of(cluster.HealthEvent, "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED", someInstance, "i-00000000000000001")},
		{Problem: "the message is no event of EventBridge: invalid character 'o' in literal null (expecting 'u')"},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(port.Message{}, "Handle", "ID"), cmpopts.IgnoreFields(cluster.Interruption{}, "Message")); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	for _, m := range got {
		if m.Handle == "" || m.ID == "" {
			t.Errorf("message without handle or id: %+v", m)
		}
		for _, in := range m.Interruptions {
			if in.Message != m.ID {
				t.Errorf("interruption of message %s in message %s", in.Message, m.ID)
			}
		}
	}
	noError(t, a.cloud.Queue().Delete(t.Context(), got))
	if visible, hidden := a.Queue().Depth(); visible+hidden != 0 {
		t.Errorf("%d + %d messages are left", visible, hidden)
	}
	noError(t, a.cloud.Queue().Delete(t.Context(), got))
}

func TestReceiveTakesAsManyAsAsked(t *testing.T) {
	a := newTenant(t)
	for i := range 250 {
		a.Events().SpotWarning(fmt.Sprintf("i-%017x", i), "terminate")
	}
	q := a.cloud.Queue()
	seen := map[string]bool{}
	for _, c := range []struct{ most, want int }{{7, 7}, {120, 120}, {0, 0}, {500, 123}} {
		got, err := q.Receive(t.Context(), c.most)
		noError(t, err)
		if len(got) != c.want {
			t.Errorf("%d messages of at most %d, want %d", len(got), c.most, c.want)
		}
		for _, m := range got {
			if seen[m.ID] {
				t.Errorf("message %s came twice", m.ID)
			}
			seen[m.ID] = true
		}
		noError(t, q.Delete(t.Context(), got))
	}
	if n := a.Calls()["GetQueueUrl"]; n != 1 {
		t.Errorf("the URL was asked for %d times", n)
	}
}

func TestWhatIsNotDeletedComesAgain(t *testing.T) {
	a := newTenant(t)
	a.Events().SpotWarning(someInstance, "stop")
	first, err := a.cloud.Queue().Receive(t.Context(), 10)
	noError(t, err)
	none, err := a.cloud.Queue().Receive(t.Context(), 10)
	noError(t, err)
	a.pass(t, 20*time.Second)
	again, err := a.cloud.Queue().Receive(t.Context(), 10)
	noError(t, err)
	if len(first) != 1 || len(none) != 0 || len(again) != 1 || first[0].ID != again[0].ID {
		t.Errorf("received %v, %v, %v", first, none, again)
	}
}

func TestAMissingQueueIsAnErrorUntilItIsThere(t *testing.T) {
	a := newTenant(t)
	q := a.client(t, aws.Options{Cluster: "shop", Queue: "none"}).Queue()
	for range 2 {
		_, err := q.Receive(t.Context(), 10)
		if !errors.Is(err, port.ErrNotFound) || !strings.Contains(err.Error(), `"none"`) || !strings.Contains(err.Error(), "interruptionQueue") {
			t.Errorf("receive: %v", err)
		}
	}
	if err := q.Delete(t.Context(), []port.Message{{Handle: "x"}}); !errors.Is(err, port.ErrNotFound) {
		t.Errorf("delete: %v", err)
	}
}

func TestErrorsOfTheQueue(t *testing.T) {
	a := newTenant(t)
	for i := range 25 {
		a.Events().SpotWarning(fmt.Sprintf("i-%017x", i), "terminate")
	}
	q := a.cloud.Queue()
	t.Run("an error before any message is one", func(t *testing.T) {
		a.SetFaults(awsapi.Every("ReceiveMessage", awsapi.Fault{Code: "AccessDenied"}))
		if _, err := q.Receive(t.Context(), 10); err == nil || errors.Is(err, port.ErrNotFound) {
			t.Errorf("error %v", err)
		}
	})
	var got []port.Message
	t.Run("what one call brought is not lost by another", func(t *testing.T) {
		n := a.Calls()["ReceiveMessage"]
		a.SetFaults(awsapi.Nth("ReceiveMessage", n+2, awsapi.Fault{Code: "ServiceUnavailable"}))
		var err error
		got, err = q.Receive(t.Context(), 20)
		noError(t, err)
		if len(got) != 10 {
			t.Errorf("%d messages", len(got))
		}
	})
	t.Run("an error of deleting is told, and the rest is deleted", func(t *testing.T) {
		a.SetFaults(nil)
		more, err := q.Receive(t.Context(), 15)
		noError(t, err)
		got = append(got, more...)
		a.SetFaults(awsapi.Nth("DeleteMessageBatch", a.Calls()["DeleteMessageBatch"]+2, awsapi.Fault{Code: "ServiceUnavailable"}))
		if err := q.Delete(t.Context(), got); err == nil {
			t.Error("an error is lost")
		}
		if _, hidden := a.Queue().Depth(); hidden != 10 {
			t.Errorf("%d messages are left", hidden)
		}
	})
	t.Run("a handle that means nothing is success: what it stood for comes again", func(t *testing.T) {
		a.SetFaults(nil)
		noError(t, q.Delete(t.Context(), []port.Message{{Handle: "garbage"}}))
	})
}

// poll runs a poller until the test ends.
func (a *tenant) poll(t *testing.T, size int) (*aws.Poller, *atomic.Int32, *clocktesting.FakeClock) {
	t.Helper()
	woken, clock := &atomic.Int32{}, clocktesting.NewFakeClock(noon)
	p := &aws.Poller{Queue: a.cloud.Queue(), Clock: clock, Log: slog.New(slog.NewTextHandler(a.log, nil)), Wake: func() { woken.Add(1) }, Size: size}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { p.Run(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	return p, woken, clock
}

// eventually waits for what happens in the poller's goroutine.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 2000 {
		if ok() {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("%s did not happen", what)
}

func TestPollerWakesAndBuffers(t *testing.T) {
	a := newTenant(t)
	p, woken, _ := a.poll(t, 0)
	noError(t, a.Queue().AwaitReceivers(t.Context(), 1))
	if got, err := p.Receive(t.Context(), 10); len(got) != 0 || err != nil {
		t.Errorf("received %v, %v", got, err)
	}
	a.Events().SpotWarning(someInstance, "terminate")
	noError(t, a.Queue().AwaitReceivers(t.Context(), 1))
	if woken.Load() != 1 {
		t.Errorf("woken %d times", woken.Load())
	}
	// It is delivered again before anybody took it: there is still one, with the
	// newer handle.
	a.pass(t, 20*time.Second)
	noError(t, a.Queue().AwaitReceivers(t.Context(), 1))
	got, err := p.Receive(t.Context(), 10)
	noError(t, err)
	if len(got) != 1 || got[0].Interruptions[0].Instance != someInstance {
		t.Errorf("received %v", got)
	}
	noError(t, p.Delete(t.Context(), got))
	if visible, hidden := a.Queue().Depth(); visible+hidden != 0 {
		t.Errorf("%d + %d messages are left", visible, hidden)
	}
}

func TestAFullPollerStopsAsking(t *testing.T) {
	a := newTenant(t)
	for i := range 45 {
		a.Events().SpotWarning(fmt.Sprintf("i-%017x", i), "terminate")
	}
	p, _, _ := a.poll(t, 25)
	eventually(t, "filling the buffer", func() bool { _, hidden := a.Queue().Depth(); return hidden == 20 })
	time.Sleep(5 * time.Millisecond)
	if visible, _ := a.Queue().Depth(); visible != 25 {
		t.Errorf("%d messages wait in the queue", visible)
	}
	var all []string
	eventually(t, "receiving all", func() bool {
		got, err := p.Receive(t.Context(), 7)
		noError(t, err)
		for _, m := range got {
			all = append(all, m.ID)
		}
		return len(all) == 45
	})
	slices.Sort(all)
	if len(slices.Compact(all)) != 45 {
		t.Error("messages came twice")
	}
}

func TestPollerGoesOnAfterErrors(t *testing.T) {
	a := newTenant(t)
	a.SetFaults(awsapi.Every("ReceiveMessage", awsapi.Fault{Code: "ServiceUnavailable"}))
	p, _, clock := a.poll(t, 0)
	for n := 1; n <= 3; n++ {
		eventually(t, "waiting after an error", clock.HasWaiters)
		if got := a.Calls()["ReceiveMessage"]; got != n {
			t.Errorf("%d calls after %d pauses", got, n-1)
		}
		if _, err := p.Receive(t.Context(), 10); err == nil {
			t.Error("the error is not told")
		}
		pause := time.Second << (n - 1)
		clock.Step(pause - time.Millisecond)
		if !clock.HasWaiters() {
			t.Errorf("pause %d is shorter than %s", n, pause)
		}
		if n == 3 {
			a.SetFaults(nil)
		}
		clock.Step(time.Millisecond)
	}
	noError(t, a.Queue().AwaitReceivers(t.Context(), 1))
	a.Events().SpotWarning(someInstance, "terminate")
	noError(t, a.Queue().AwaitReceivers(t.Context(), 1))
	got, err := p.Receive(t.Context(), 10)
	if err != nil || len(got) != 1 {
		t.Errorf("received %v, %v", got, err)
	}
	if a.log.count("cannot be read") != 1 || a.log.count("is read again") != 1 {
		t.Errorf("log: %s", a.log.b.String())
	}
}
