package sim

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/port"
)

func receive(t *testing.T, q *Queue, most int) []port.Message {
	t.Helper()
	out, err := q.Receive(ctx, most)
	check(t, err)
	return out
}

// about are the instances that the messages are about.
func about(ms []port.Message) string {
	var out []string
	for _, m := range ms {
		for _, in := range m.Interruptions {
			out = append(out, in.Instance)
		}
	}
	return strings.Join(out, " ")
}

func TestAMessageComesAgainUntilItIsDeleted(t *testing.T) {
	w := newTestWorld(t)
	q := NewQueue(w)
	for _, id := range []string{"a", "b", "c"} {
		q.Send(cluster.Interruption{Kind: cluster.RebalanceRecommendation, Instance: id})
	}
	first := receive(t, q, 2)
	got := []string{about(first), about(receive(t, q, 10)), about(receive(t, q, 10))}
	check(t, q.Delete(ctx, first[:1]))
	pass(t, w, 20*time.Second)
	again := receive(t, q, 10)
	got = append(got, about(again), fmt.Sprint(q.Len()))
	if again[0].Handle == first[1].Handle || again[0].ID != first[1].ID {
		t.Errorf("first %+v, again %+v", first[1], again[0])
	}
	// The handle of an earlier delivery deletes nothing.
	check(t, q.Delete(ctx, first))
	got = append(got, fmt.Sprint(q.Len()))
	check(t, q.Delete(ctx, again))
	check(t, q.Delete(ctx, again))
	got = append(got, fmt.Sprint(q.Len()))
	if diff := cmp.Diff([]string{"a b", "c", "", "b c", "2", "2", "0"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDeliveryIsScripted(t *testing.T) {
	w := newTestWorld(t)
	q := NewQueue(w)
	q.Send(cluster.Interruption{Instance: "a"}, cluster.Interruption{Instance: "b"})
	q.SendGarbage("no JSON")
	q.Send()
	q.Deliver = func(ms []port.Message) []port.Message {
		slices.Reverse(ms)
		return append(ms[1:], ms[2:]...)
	}
	got := receive(t, q, 10)
	for i := range got {
		got[i].Handle = ""
	}
	at := func(id, in string) cluster.Interruption {
		return cluster.Interruption{Message: id, Instance: in, Time: t0}
	}
	both := port.Message{ID: got[1].ID, Interruptions: []cluster.Interruption{at(got[1].ID, "a"), at(got[1].ID, "b")}}
	want := []port.Message{{ID: got[0].ID, Problem: "no JSON"}, both, both}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// What was held back is still visible.
	q.Deliver = nil
	if rest := receive(t, q, 10); len(rest) != 1 || len(rest[0].Interruptions) != 0 {
		t.Errorf("got %+v", rest)
	}
	w.SetFaults(func(c Call) *Fault {
		if c.Port != "queue" {
			return nil
		}
		return &Fault{Err: ErrTimeout, After: true}
	})
	pass(t, w, time.Minute)
	if _, err := q.Receive(ctx, 10); !errors.Is(err, ErrTimeout) {
		t.Errorf("got %v", err)
	}
	w.SetFaults(nil)
	if rest := receive(t, q, 10); len(rest) != 0 {
		t.Errorf("an answer that was lost left visible %v", rest)
	}
}

// spot is a request for one spot instance.
func spot(t *testing.T, e *estate) port.LaunchRequest {
	t.Helper()
	req := e.request(t, "spot", "x")
	req.CapacityType = "spot"
	req.Offerings = []decision.Offering{{InstanceType: "c5a.2xlarge", Zone: zoneA, CapacityType: "spot"}}
	return req
}

func TestASpotInstanceIsTakenBackTwoMinutesAfterTheWarning(t *testing.T) {
	e := newEstate(t)
	q := NewQueue(e.World)
	e.cloud.Attach(q)
	res, err := e.cloud.Launch(ctx, spot(t, e))
	check(t, err)
	id := res.Instances[0].ID
	pass(t, e.World, time.Minute)
	check(t, e.cloud.Interrupt(id))
	pass(t, e.World, 2*time.Minute-1)
	if got := e.cloud.list()[0].State; got != "running" {
		t.Errorf("state %s before the end", got)
	}
	pass(t, e.World, time.Minute)
	var got []string
	for _, m := range receive(t, q, 10) {
		text := "nothing"
		for _, in := range m.Interruptions {
			text = fmt.Sprintf("%s %s %s", in.Time.Sub(t0), in.Kind, in.Action)
			if in.Instance != id || in.Message != m.ID {
				t.Errorf("%+v", in)
			}
		}
		got = append(got, text)
	}
	want := []string{"nothing", "nothing",
		"1m0s EC2 Spot Instance Interruption Warning terminate",
		"3m0s EC2 Instance State-change Notification shutting-down",
		"3m20s EC2 Instance State-change Notification terminated",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOnlySpotInstancesThatRunAreInterrupted(t *testing.T) {
	e := newEstate(t)
	res, err := e.cloud.Launch(ctx, e.request(t, "token", "x"))
	check(t, err)
	taken, err := e.cloud.Launch(ctx, spot(t, e))
	check(t, err)
	check(t, e.cloud.Interrupt(taken.Instances[0].ID))
	e.cloud.Kill(taken.Instances[0].ID)
	for _, id := range []string{res.Instances[0].ID, "i-unknown", taken.Instances[0].ID} {
		if err := e.cloud.Interrupt(id); err == nil {
			t.Errorf("%s was interrupted", id)
		}
	}
	pass(t, e.World, time.Hour)
	if got := len(e.cloud.list()); got != 1 {
		t.Errorf("%d instances are left", got)
	}
}

func TestEC2KnowsOnlyTheTagsOfTheCall(t *testing.T) {
	e := newEstate(t)
	req := e.request(t, "token", "x", "y", "z")
	req.Tags[port.GroupTag] = "4"
	res, err := e.cloud.Launch(ctx, req)
	check(t, err)
	if !slices.IsSortedFunc(res.Instances, func(a, b port.Instance) int { return strings.Compare(a.ID, b.ID) }) {
		t.Error("the answer is not in the order of the ids")
	}
	for _, in := range res.Instances {
		if diff := cmp.Diff(req.Tags, in.Tags); diff != "" || in.Claim != "" || in.Decision != "d1" || in.Group != 4 {
			t.Errorf("instance %+v\n%s", in, diff)
		}
	}
	id := res.Instances[1].ID
	check(t, e.cloud.Tag(ctx, id, map[string]string{"karpenter.sh/nodeclaim": "x", "Name": "n"}))
	for _, in := range e.cloud.list() {
		if (in.Claim == "x") != (in.ID == id) || in.Group != 4 {
			t.Errorf("instance %+v", in)
		}
	}
	if err := e.cloud.Tag(ctx, "i-unknown", nil); !errors.Is(err, port.ErrNotFound) {
		t.Errorf("got %v", err)
	}
}
