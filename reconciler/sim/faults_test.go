package sim

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/port"
)

func TestTheSpoolHasTheLimitsOfAConfigMap(t *testing.T) {
	e := newEstate(t)
	s := NewSpool(e.World)
	b := []byte("one")
	check(t, s.Put(ctx, "b", b))
	b[0] = 'X'
	check(t, s.Put(ctx, "a", []byte("two")))
	check(t, s.Put(ctx, "a", []byte("three")))
	keys, err := s.List(ctx)
	check(t, err)
	got, err := s.Get(ctx, "b")
	check(t, err)
	if diff := cmp.Diff([]string{"a", "b", "one"}, append(keys, string(got))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := s.Get(ctx, "c"); !errors.Is(err, port.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	if err := s.Put(ctx, "a/b", nil); !port.IsTerminal(err) {
		t.Errorf("a key that no ConfigMap takes: %v", err)
	}
	check(t, s.Put(ctx, "big", make([]byte, maxSpool-8)))
	if err := s.Put(ctx, "c", []byte("x")); err == nil || !strings.Contains(err.Error(), "1048577 bytes") {
		t.Errorf("too much: %v", err)
	}
	check(t, s.Put(ctx, "a", []byte("fewer")))
	check(t, s.Delete(ctx, "big"))
	check(t, s.Delete(ctx, "big"))
	check(t, s.Put(ctx, "c", []byte("x")))
}

func TestScriptsMakeCallsFail(t *testing.T) {
	e := newEstate(t)
	var seen []string
	e.SetFaults(func(c Call) *Fault {
		seen = append(seen, fmt.Sprintf("%s.%s %s %d", c.Port, c.Op, c.Subject, c.N))
		switch {
		case c.Op == "CreateClaim" && c.N == 1:
			return &Fault{Err: ErrTimeout}
		case c.Op == "CreateClaim" && c.N == 2:
			return &Fault{Err: ErrTimeout, After: true}
		case c.Op == "Launch" && c.N == 1:
			return &Fault{Err: Throttled(2 * time.Second)}
		case c.Op == "Launch" && c.N == 2:
			return &Fault{Err: ErrTimeout, After: true}
		}
		return nil
	})
	create := func() (int, error) {
		err := e.cluster.CreateClaim(ctx, claimOf("c", "d1", "0"))
		return len(List[*karpv1.NodeClaim](e.API)), err
	}
	for i, want := range []int{0, 1, 1} {
		n, err := create()
		if n != want || errors.Is(err, ErrTimeout) != (i < 2) {
			t.Errorf("call %d: %d claims, %v", i+1, n, err)
		}
	}
	var wait *port.WaitError
	for i, want := range []int{0, 1, 1} {
		res, err := e.cloud.Launch(ctx, e.request(t, "tok", "c"))
		if n := len(e.cloud.list()); n != want || errors.As(err, &wait) != (i == 0) || errors.Is(err, ErrTimeout) != (i == 1) || len(res.Instances) != i/2 {
			t.Errorf("call %d: %d instances, %v, %v", i+1, n, res, err)
		}
	}
	e.SetFaults(nil)
	check(t, e.cluster.DeleteClaim(ctx, "c"))
	if diff := cmp.Diff([]string{"cluster.CreateClaim c 1", "cluster.CreateClaim c 2", "cluster.CreateClaim c 3"}, seen[:3]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := e.cluster.Snapshot(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestAControllerCanDieBetweenTwoWrites(t *testing.T) {
	e := newEstate(t)
	e.SetFaults(func(c Call) *Fault {
		if c.Op == "Register/claim" && c.N == 1 {
			return &Fault{Err: ErrTimeout}
		}
		return nil
	})
	e.provision(t, 30, "c")
	node := "ip-10-0-0-4.ap-northeast-2.compute.internal"
	pass(t, e.World, time.Second)
	if err := e.cluster.Register(ctx, "c", node); !errors.Is(err, ErrTimeout) {
		t.Fatal(err)
	}
	s, err := e.cluster.Snapshot(ctx)
	check(t, err)
	if n := s.Node("c"); n.Labels[karpv1.NodeRegisteredLabelKey] != "true" || n.Claim.Conditions.Registered {
		t.Errorf("node %+v", n)
	}
	check(t, e.cluster.Register(ctx, "c", node))
	s, err = e.cluster.Snapshot(ctx)
	check(t, err)
	if c := s.Node("c").Claim.Conditions; !c.Registered || !c.RegisteredAt.Equal(e.Now()) {
		t.Errorf("claim %+v", c)
	}
}
