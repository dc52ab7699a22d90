package decision

import (
	"fmt"
	"testing"
	"time"
)

// TestAnOutcomeFindsWhatItsStepsSay adds steps by Advance and by hand, as
// reading from the ledger does, and asks for each after each.
func TestAnOutcomeFindsWhatItsStepsSay(t *testing.T) {
	o := NewOutcome("d")
	has := func(subject string, s State) bool {
		for i := range o.Steps {
			if o.Steps[i].State == s && o.Steps[i].subject() == subject {
				return true
			}
		}
		return false
	}
	subjects := []string{"a", "b", "i-1"}
	for n, step := range []Step{
		{State: Claimed, Claim: "a"}, {State: Claimed, Claim: "b"}, {State: Launched, Claim: "a", Instance: "i-9"},
		{State: Failed, Claim: "b"}, {State: Terminated, Instance: "i-1"}, {State: Initialized, Claim: "a", Node: "n"},
	} {
		step.Time = time.Unix(int64(n), 0)
		if n%2 == 0 {
			o.Advance(subjects, step)
		} else {
			o.Steps = append(o.Steps, step)
		}
		for _, subject := range subjects {
			for _, s := range []State{Claimed, Launched, Failed, Terminated, Initialized} {
				if got, want := o.Has(subject, s), has(subject, s); got != want {
					t.Errorf("after %d steps: %s has %s: %t, want %t", n+1, subject, s, got, want)
				}
			}
		}
	}
	for _, subject := range subjects {
		if !o.Ended(subject) {
			t.Errorf("%s has not ended", subject)
		}
	}
	if o.Ended("c") {
		t.Error("what nothing happened to has ended")
	}
}

func TestACopyOfAnOutcomeIsIndependentAndEqual(t *testing.T) {
	o := NewOutcome("d")
	o.Advance([]string{"a"}, Step{State: Claimed, Claim: "a"})
	o.Has("a", Claimed)
	c := o.Clone()
	if !c.Equal(o) || !o.Equal(c) {
		t.Error("a copy differs")
	}
	c.Advance([]string{"a"}, Step{State: Launched, Claim: "a"})
	o.Advance([]string{"a"}, Step{State: Failed, Claim: "a"})
	if o.Has("a", Launched) || c.Has("a", Failed) || c.Equal(o) || c.Equal(nil) {
		t.Errorf("original and copy are not independent: %+v, %+v", o, c)
	}
	if none := (*Outcome)(nil); !none.Equal(nil) || none.Equal(o) {
		t.Error("no outcome equals no outcome only")
	}
}

func BenchmarkOutcome(b *testing.B) {
	subjects := make([]string, 1000)
	for i := range subjects {
		subjects[i] = fmt.Sprintf("default-%08d", i)
	}
	for b.Loop() {
		o := NewOutcome("d")
		for _, state := range []State{Claimed, Launched} {
			for _, s := range subjects {
				if !o.Has(s, state) {
					o.Advance(subjects, Step{State: state, Claim: s})
				}
			}
		}
	}
}
