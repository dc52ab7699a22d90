package port

import (
	"errors"
	"fmt"
	"time"

	"github.com/reeve-project/reeve/reconciler/decision"
)

// Sentinels of errors that the pipeline treats in a way of their own.
var (
	// ErrNotFound: the object is not there.
	ErrNotFound = errors.New("not found")
	// ErrBlocked: not now; a disruption budget is in the way.
	ErrBlocked = errors.New("blocked")
	// ErrFenced: another leader has a higher epoch. Stop acting and exit.
	ErrFenced = errors.New("another leader has taken over")
	// ErrConflict: somebody wrote to our folders of the decision branch.
	ErrConflict = errors.New("ledger conflict")
	// ErrBranchMissing: the branch is not on the remote.
	ErrBranchMissing = errors.New("branch is missing")
	// ErrTokenUsed: the client token of a launch was used with other parameters.
	ErrTokenUsed = errors.New("client token was used with other parameters")
	// ErrInsufficientCapacity: EC2 has none of what was asked for.
	ErrInsufficientCapacity = errors.New("insufficient capacity")
)

// TerminalError is an error that no repetition mends: somebody has to push
// another commit or change a setting.
type TerminalError struct{ Err error }

// Error is the text of the cause.
func (e *TerminalError) Error() string { return e.Err.Error() }

// Unwrap is the cause.
func (e *TerminalError) Unwrap() error { return e.Err }

// Terminal marks the error as one that no repetition mends.
func Terminal(err error) error {
	if err == nil {
		return nil
	}
	return &TerminalError{Err: err}
}

// IsTerminal says whether no repetition mends the error.
func IsTerminal(err error) bool {
	var t *TerminalError
	return errors.As(err, &t)
}

// TerminateError is that EC2 does not terminate some of the instances it was
// asked to; it took the others.
type TerminateError struct {
	// Instances are the ids of those that go on.
	Instances []string
	Err       error
}

// Error is the text of the cause.
func (e *TerminateError) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *TerminateError) Unwrap() error { return e.Err }

// WaitError is an error that goes away by itself.
type WaitError struct {
	Err   error
	After time.Duration
}

// Error is the text of the cause with the wait.
func (e *WaitError) Error() string { return fmt.Sprintf("%v (again in %s)", e.Err, e.After) }

// Unwrap is the cause.
func (e *WaitError) Unwrap() error { return e.Err }

// RetryAfter marks the error as one to wait for.
func RetryAfter(err error, after time.Duration) error {
	if err == nil {
		return nil
	}
	return &WaitError{Err: err, After: after}
}

// Diagnosed is an error that knows what is wrong in the user's repository, as
// findings with positions.
type Diagnosed interface {
	error
	Findings() []decision.Finding
}

// Findings are the findings of a Diagnosed error in the chain, or nil.
func Findings(err error) []decision.Finding {
	var d Diagnosed
	if errors.As(err, &d) {
		return d.Findings()
	}
	return nil
}
