package awsapi

import (
	"fmt"
	"maps"
	"net/http"
)

// Call is one call of the endpoint, for a script that makes some of them fail
// and for tests that look at what was asked.
type Call struct {
	// Service is "ec2", "pricing", "sqs", "ssm", "eks" or "iam".
	Service string
	// Action is "CreateFleet".
	Action string
	// N counts the calls of this action from one.
	N int
	// Body is the request as it came.
	Body string
	// Fault is what the script did to it, nil for nothing.
	Fault *Fault
}

// Fault is how a call fails. Without Code, Hang and Truncate the connection
// breaks before an answer.
type Fault struct {
	// After says that the call takes effect before it fails.
	After bool
	// Code is the error that is answered, in the service's protocol:
	// "RequestLimitExceeded", "AuthFailure", "ExpiredToken".
	Code string
	// Message of the error.
	Message string
	// Status of the answer; what AWS sends with the code unless set.
	Status int
	// Hang keeps the caller waiting until it gives up.
	Hang bool
	// Truncate breaks the connection after half of the answer; it goes with
	// After.
	Truncate bool
}

// Script decides which calls fail; nil lets the call through. It must not call
// the endpoint.
type Script func(Call) *Fault

// Nth is a script that has the nth call of the action fail, counted from the
// start of the endpoint.
func Nth(action string, n int, f Fault) Script {
	return func(c Call) *Fault {
		if c.Action == action && c.N == n {
			return &f
		}
		return nil
	}
}

// Every is a script that has all calls of the action fail; "" is every action.
func Every(action string, f Fault) Script {
	return func(c Call) *Fault {
		if action == "" || c.Action == action {
			return &f
		}
		return nil
	}
}

// Scripts asks one script after the other; the first fault counts.
func Scripts(all ...Script) Script {
	return func(c Call) *Fault {
		for _, s := range all {
			if f := s(c); f != nil {
				return f
			}
		}
		return nil
	}
}

type faults struct {
	script Script
	counts map[string]int
	log    []Call
}

func newFaults() faults { return faults{counts: map[string]int{}} }

// SetFaults makes calls fail as the script says; nil stops it.
func (e *Endpoint) SetFaults(s Script) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.faults.script = s
}

// Calls is how many calls of each action there were, those that failed
// included.
func (e *Endpoint) Calls() map[string]int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return maps.Clone(e.faults.counts)
}

// Log is every call in the order in which they came.
func (e *Endpoint) Log() []Call {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]Call(nil), e.faults.log...)
}

// note counts the call and asks the script.
func (e *Endpoint) note(c *Call) *Fault {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.faults.counts[c.Action]++
	c.N = e.faults.counts[c.Action]
	if e.faults.script != nil {
		c.Fault = e.faults.script(*c)
	}
	e.faults.log = append(e.faults.log, *c)
	return c.Fault
}

// strike does what the fault says; the answer is nil if the call had no effect.
func (f *Fault) strike(w http.ResponseWriter, r *http.Request, s service, answer *recorder) {
	switch {
	case f.Hang:
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	case f.Code != "":
		s.fail(w, &APIError{Code: f.Code, Message: orDefault(f.Message, "the script had this call fail"), Status: f.Status})
	case f.Truncate && answer != nil:
		answer.copyTo(w, answer.body.Len()/2)
		panic(http.ErrAbortHandler)
	default:
		panic(http.ErrAbortHandler)
	}
}

func orDefault(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// APIError is an error as a service of AWS answers it.
type APIError struct {
	// Code is what programs look at: "InvalidInstanceID.NotFound".
	Code string
	// Message is for people.
	Message string
	// Status is the HTTP status; what AWS sends with the code unless set.
	Status int
}

// Error is "<code>: <message>".
func (e *APIError) Error() string { return e.Code + ": " + e.Message }

// errorf is an error of the code with the status that belongs to it.
func errorf(code, format string, args ...any) *APIError {
	return &APIError{Code: code, Message: fmt.Sprintf(format, args...)}
}

// statuses are the HTTP statuses of codes that are not 400.
var statuses = map[string]int{
	"DryRunOperation":              http.StatusPreconditionFailed,
	"UnauthorizedOperation":        http.StatusForbidden,
	"AuthFailure":                  http.StatusUnauthorized,
	"RequestLimitExceeded":         http.StatusServiceUnavailable,
	"Unavailable":                  http.StatusServiceUnavailable,
	"ServiceUnavailable":           http.StatusServiceUnavailable,
	"InternalError":                http.StatusInternalServerError,
	"InternalFailure":              http.StatusInternalServerError,
	"InsufficientInstanceCapacity": http.StatusInternalServerError,
	"AccessDenied":                 http.StatusForbidden,
	"NoSuchEntity":                 http.StatusNotFound,
	"EntityAlreadyExists":          http.StatusConflict,
}

func (e *APIError) status() int {
	if e.Status != 0 {
		return e.Status
	}
	if s, ok := statuses[e.Code]; ok {
		return s
	}
	return http.StatusBadRequest
}
