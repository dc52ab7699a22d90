package pipeline

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reeve-project/reeve/reconciler/port"
)

// refusingCloud terminates all instances but one.
type refusingCloud struct {
	port.Cloud
	err error
}

func (c refusingCloud) Terminate(context.Context, []string) error { return c.err }

// noting remembers the claims whose conditions were set.
type noting struct {
	port.Cluster
	claims []string
}

func (n *noting) SetCondition(_ context.Context, claim string, _ port.Condition) error {
	n.claims = append(n.claims, claim)
	return nil
}

func TestAnInstanceThatIsNotTerminatedKeepsOnlyItselfWaiting(t *testing.T) {
	protected := errors.New("OperationNotPermitted")
	tests := map[string]struct {
		err  error
		want []string
	}{
		"all are taken":  {nil, []string{"a", "b", "c"}},
		"all are gone":   {port.ErrNotFound, []string{"a", "b", "c"}},
		"one is refused": {&port.TerminateError{Instances: []string{"i-2"}, Err: protected}, []string{"a", "c"}},
		"no answer":      {protected, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			api := &noting{}
			p := New(Deps{Cloud: refusingCloud{err: tc.err}, Cluster: api}, Options{})
			p.ending = []ending{{"i-1", "a"}, {"i-2", "b"}, {"i-3", "c"}}
			if err := p.flush(t.Context()); errors.Is(err, protected) != (len(tc.want) < 3) {
				t.Errorf("error %v", err)
			}
			if diff := cmp.Diff(tc.want, api.claims); diff != "" || len(p.instances.ended) != len(tc.want) {
				t.Errorf("claims (-want +got):\n%s ended %v", diff, p.instances.ended)
			}
		})
	}
}
