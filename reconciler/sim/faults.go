package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/reeve-project/reeve/reconciler/port"
)

// Call is one call of a port, for a script that makes some of them fail.
type Call struct {
	// Port is "cluster", "cloud", "queue" or "spool".
	Port string
	// Op is the method: "CreateClaim". A method that writes several objects
	// makes a call of its own for each further write: "Register/claim".
	Op string
	// Subject is the claim, node, token or key that it is about.
	Subject string
	// N counts the calls of this Op from one.
	N int
}

// Fault is how a call fails.
type Fault struct {
	// Err is what the caller gets.
	Err error
	// After says that the call takes effect before it fails, as one does whose
	// answer is lost.
	After bool
}

// Script decides which calls fail; nil lets the call through.
type Script func(Call) *Fault

// ErrTimeout is the error of a call that got no answer.
var ErrTimeout = errors.New("timed out waiting for an answer")

// Throttled is EC2's answer to too many requests.
func Throttled(after time.Duration) error {
	return port.RetryAfter(errors.New("RequestLimitExceeded: Request limit exceeded"), after)
}

// faults asks the script about every call.
type faults struct {
	script Script
	counts map[string]int
}

// SetFaults makes calls of the ports fail as the script says; nil stops it.
func (w *World) SetFaults(s Script) { w.faults.script = s }

// call does what a port's method does, unless the context has ended or the
// script has it fail.
func (w *World) call(ctx context.Context, name, op, subject string, do func() error) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	w.faults.counts[name+"."+op]++
	var f *Fault
	if w.faults.script != nil {
		f = w.faults.script(Call{Port: name, Op: op, Subject: subject, N: w.faults.counts[name+"."+op]})
	}
	if f != nil && !f.After {
		return fmt.Errorf("%s %s: %w", op, subject, f.Err)
	}
	if err := do(); err != nil {
		return err
	}
	if f != nil {
		return fmt.Errorf("%s %s: %w", op, subject, f.Err)
	}
	return nil
}
