package pipeline

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/port"
)

func TestAKindThatCannotBeDecidedOnDoesNotHoldUpTheOthers(t *testing.T) {
	broken := errors.New("broken")
	says := func(k decision.Kind) proposer {
		return func(context.Context) ([]*decision.Decision, error) { return []*decision.Decision{{Kind: k}}, nil }
	}
	got, err := proposed(t.Context(), says(decision.Interrupt),
		func(context.Context) ([]*decision.Decision, error) { return nil, broken }, says(decision.Reclaim))
	if len(got) != 2 || got[0].Kind != decision.Interrupt || got[1].Kind != decision.Reclaim || !errors.Is(err, broken) {
		t.Errorf("%d decisions, error %v", len(got), err)
	}
}

// noQueue fails the test when it is asked for anything.
type noQueue struct{ port.Queue }

func TestMessagesAreLeftToOthersInObserve(t *testing.T) {
	p := New(Deps{Queue: noQueue{}}, Options{})
	p.fleet = &fleet.Fleet{Cluster: fleet.Cluster{Mode: fleet.Observe, InterruptionQueue: "q"}}
	p.messages = []received{{port.Message{ID: "m"}, t0}}
	p.receive(t.Context(), t0)
	if err := p.answered(t.Context(), &cluster.Snapshot{Time: t0}); err != nil || len(p.messages) != 0 {
		t.Errorf("%d messages are kept, error %v", len(p.messages), err)
	}
}

// emptyCloud lists no instance.
type emptyCloud struct{ port.Cloud }

func (emptyCloud) Instances(context.Context) ([]port.Instance, error) { return nil, nil }

// durable is a ledger that has pushed everything.
type durable struct{ port.Ledger }

func (durable) Unpushed() (int, time.Time) { return 0, time.Time{} }

// A token that EC2 has seen with another request may have launched instances
// that EC2 does not list yet.
func TestAnotherAttemptWaitsUntilEC2ListsTheFirst(t *testing.T) {
	p := New(Deps{Cloud: emptyCloud{}, Ledger: durable{}}, Options{})
	p.fleet = &fleet.Fleet{}
	d := &decision.Decision{ID: "d", Proposal: decision.Proposal{Claims: []decision.Claim{{Name: "a"}}}}
	r := &port.Record{Decision: d, Outcome: decision.NewOutcome("d")}
	p.step(r, decision.Step{Time: t0, State: decision.Claimed, Claim: "a"})
	for _, tc := range []struct {
		after time.Duration
		want  int
	}{{10 * time.Second, 0}, {time.Minute, 1}, {90 * time.Second, 1}} {
		claims := []*decision.Claim{&d.Proposal.Claims[0]}
		err := p.nextAttempt(t.Context(), &cluster.Snapshot{Time: t0.Add(tc.after)}, r, port.LaunchRequest{Attempt: 1}, claims)
		if waits := tc.after != time.Minute; errors.Is(err, port.ErrTokenUsed) != waits {
			t.Errorf("after %s: error %v", tc.after, err)
		}
		if got := attempts(r.Outcome, "a"); got != tc.want {
			t.Errorf("%d further attempts after %s, want %d", got, tc.after, tc.want)
		}
	}
}
