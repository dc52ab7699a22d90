package decision

import (
	"cmp"
	"time"

	"github.com/reeve-project/reeve/reconciler/resources"
)

// Outcome is what became of an allowed decision. It grows by steps until it is
// final.
type Outcome struct {
	Version string `json:"version"`
	// Decision is the id.
	Decision string `json:"decision"`
	// State is the state of the whole: see Advance.
	State State `json:"state"`
	// Final closes the decision.
	Final bool `json:"final"`
	// Unpushed says that it was acted on before its record was pushed.
	Unpushed bool `json:"unpushed,omitempty"`
	// Steps are in order of time.
	Steps []Step `json:"steps"`
}

// Step is one thing that happened to one subject of a decision.
type Step struct {
	Time  time.Time `json:"time"`
	State State     `json:"state"`
	// Claim or Node or Instance it happened to; all empty for the whole.
	Claim    string `json:"claim,omitempty"`
	Node     string `json:"node,omitempty"`
	Instance string `json:"instance,omitempty"`
	// InstanceType, Zone, CapacityType and Price are what was launched.
	InstanceType string           `json:"instanceType,omitempty"`
	Zone         string           `json:"zone,omitempty"`
	CapacityType string           `json:"capacityType,omitempty"`
	Price        *resources.Price `json:"price,omitempty"`
	// Attempt is the launch attempt that begins with the step, if one does that
	// is not the first.
	Attempt int    `json:"attempt,omitempty"`
	Message string `json:"message,omitempty"`
	// Violations and Evaluation are those of the second judgement of a
	// disruption, which comes after its validation wait.
	Violations []Finding   `json:"violations,omitempty"`
	Evaluation *Evaluation `json:"evaluation,omitempty"`
}

// subject is what the step is about.
func (s Step) subject() string { return cmp.Or(s.Claim, s.Node, s.Instance) }

// NewOutcome is the outcome of a decision to which nothing has happened yet.
func NewOutcome(id string) *Outcome {
	return &Outcome{Version: Version, Decision: id}
}

// Clone is an independent copy.
func (o *Outcome) Clone() *Outcome {
	out := *o
	out.Steps = append([]Step(nil), o.Steps...)
	return &out
}

// Has says whether the subject has already reached the state.
func (o *Outcome) Has(subject string, state State) bool {
	for _, s := range o.Steps {
		if s.State == state && s.subject() == subject {
			return true
		}
	}
	return false
}

// Ended says whether nothing more is to come for the subject.
func (o *Outcome) Ended(subject string) bool {
	ended := false
	for _, s := range o.Steps {
		if s.subject() == subject {
			ended = s.State.Final()
		}
	}
	return ended
}

// Advance adds a step and recomputes the state of the whole: that of the
// subject that lags most, where subjects are those the decision has. A subject
// that failed does not hold the others back; if all failed, the whole has. One
// that nothing has happened to yet keeps the decision open.
func (o *Outcome) Advance(subjects []string, steps ...Step) {
	for _, s := range steps {
		s.Time = Milliseconds(s.Time)
		o.Steps = append(o.Steps, s)
	}
	if len(subjects) == 0 {
		subjects = []string{""}
	}
	last := map[string]State{}
	for _, s := range o.Steps {
		last[s.subject()] = s.State
	}
	var state State
	final, good := true, false
	var lost State
	for _, subject := range subjects {
		st := cmp.Or(last[subject], last[""])
		final = final && st.Final()
		if bad(st) || st == "" {
			lost = cmp.Or(lost, st)
			continue
		}
		if !good || rank(st) < rank(state) {
			state, good = st, true
		}
	}
	if !good {
		state = lost
	}
	o.State, o.Final = state, final
}

func bad(s State) bool { return s == Failed || s == Dropped || s == Abandoned }

// rank orders the states of both chains, so that those of a removal and of its
// replacement can be compared.
func rank(s State) int {
	switch s {
	case Claimed, Tainted:
		return 1
	case Launched, Drained:
		return 2
	case Registered:
		return 3
	case Initialized, Terminated, Applied:
		return 4
	default:
		return 0
	}
}
