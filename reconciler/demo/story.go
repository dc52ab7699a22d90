package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/resources"
)

// step is one scene. It fails if the scene does not come out as it should.
type step struct {
	title string
	play  func(context.Context, *stage) error
}

// story is what `reeve demo` plays.
func story() []step {
	return []step{
		{"A fleet is pushed", acceptFleet},
		{"Five pods of 1 CPU go pending", scale(5, resources.USD*344/1000)},
		{"Thirty replicas", scale(30, resources.USD*1462/1000)},
		{"Someone pushes a moving machine image in production", movingImage},
		{"A pod asks for Graviton, and five large types are excluded", excludedTypes},
		{"The controller's own pod goes pending", ownPod},
	}
}

// scaling is what `reeve demo --replicas` plays.
func scaling(replicas []int) []step {
	out := []step{{"A fleet is pushed", acceptFleet}}
	for _, n := range replicas {
		out = append(out, step{fmt.Sprintf("inflate is scaled to %d", n), scale(n, anyCost)})
	}
	return out
}

const anyCost resources.Price = -1

// Long enough for a node to start twice over, in virtual time.
const patience = 5 * time.Minute

func acceptFleet(ctx context.Context, s *stage) error {
	if err := s.push(ctx, "Describe the fleet of myeks", nil); err != nil {
		return err
	}
	if err := s.until(ctx, patience, func() bool { return s.pipeline.Fleet() != nil && !s.pipeline.Open() }); err != nil {
		return err
	}
	return nil
}

// scale sets the replicas of inflate and waits until they run and no decision
// is open. The nodes of NodePool default must then cost what is given.
func scale(replicas int, cost resources.Price) func(context.Context, *stage) error {
	return func(ctx context.Context, s *stage) error {
		if err := s.world.Scale("default/inflate", int32(replicas)); err != nil {
			return err
		}
		if err := s.until(ctx, patience, s.allRunning("inflate", replicas)); err != nil {
			return err
		}
		got, err := s.cost(ctx, "default")
		if err != nil {
			return err
		}
		s.print.line("%s; the nodes of NodePool default cost %s", number(replicas, "replica runs", "replicas run"), got)
		if cost != anyCost && got != cost {
			return fmt.Errorf("the nodes of NodePool default cost %s, and the story says %s", got, cost)
		}
		return nil
	}
}

// movingImage pushes al2023@latest to a production cluster and takes it back.
func movingImage(ctx context.Context, s *stage) error {
	const file = "clusters/myeks/nodeclasses.cue"
	good := s.files[file]
	bad := []byte(strings.Replace(string(good), "al2023@v20260318", "al2023@latest", 1))
	if err := s.push(ctx, "Follow the newest image", map[string][]byte{file: bad}); err != nil {
		return err
	}
	accepted := s.pipeline.Fleet().Commit
	err := s.until(ctx, patience, func() bool { return s.last(decision.Reject) != nil })
	if err != nil {
		return err
	}
	d := s.last(decision.Reject)
	if s.pipeline.Fleet().Commit != accepted {
		return errors.New("a refused commit came into force")
	}
	if !slices.ContainsFunc(d.Verdict.Violations, func(f decision.Finding) bool { return f.Position != nil && f.Position.File == file }) {
		return fmt.Errorf("the refusal does not point into %s", file)
	}
	if err := s.push(ctx, "Revert \"Follow the newest image\"", map[string][]byte{file: good}); err != nil {
		return err
	}
	return s.until(ctx, patience, func() bool { return s.pipeline.Fleet().Commit != accepted && !s.pipeline.Open() })
}

// excludedTypes makes a pod that only the NodePool graviton takes.
func excludedTypes(ctx context.Context, s *stage) error {
	if err := s.world.Scale("default/inflate-arm64", 1); err != nil {
		return err
	}
	if err := s.until(ctx, patience, s.allRunning("inflate-arm64", 1)); err != nil {
		return err
	}
	d := s.last(decision.Provision)
	if d == nil || d.Proposal.NodePool != "graviton" || len(d.Verdict.Exclusions) == 0 {
		return errors.New("the record does not say which types were excluded")
	}
	for _, x := range d.Verdict.Exclusions {
		names, err := x.Types.Resolve(d.Proposal.Lists)
		if err != nil {
			return err
		}
		s.print.line("%s keeps %s out: %s", x.Rule, strings.Join(names, ", "), x.Message)
	}
	return nil
}

// ownPod scales the controller up: no node may be made for it.
func ownPod(ctx context.Context, s *stage) error {
	before, err := s.instances(ctx)
	if err != nil {
		return err
	}
	if err := s.world.Scale("kube-system/reeve", 3); err != nil {
		return err
	}
	err = s.until(ctx, patience, func() bool {
		d := s.last(decision.Provision)
		return d != nil && !d.Verdict.Allowed
	})
	if err != nil {
		return err
	}
	// A few passes more: nothing may come of it later either.
	if err := s.pass(ctx, 30*time.Second); err != nil {
		return err
	}
	after, err := s.instances(ctx)
	if err != nil {
		return err
	}
	if len(after) != len(before) {
		return fmt.Errorf("%d nodes became %d", len(before), len(after))
	}
	s.print.line("the pod stays pending, and no node was made for it")
	return nil
}
