package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/reeve-project/reeve/reconciler/check"
	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/gitrepo"
	"github.com/reeve-project/reeve/reconciler/resources"
	"github.com/reeve-project/reeve/reconciler/sim"
)

// story is what `reeve demo` begins with.
func story() scene {
	return scene{
		title: "The story of myeks", example: "myeks", cluster: Cluster, managed: twoManaged(),
		workloads: []sim.Object{controller(), sim.NewDeployment("default", "inflate", 0, cpu("1")), gravitonDeployment()},
		steps: []step{
			{"A fleet is pushed", acceptFleet},
			{"Five pods of 1 CPU go pending", scale(5, resources.USD*344/1000)},
			{"Thirty replicas", scale(30, resources.USD*1462/1000)},
			{"The nodes are repacked", rest(30, resources.USD*1376/1000)},
			{"All replicas go", goneSaving(resources.USD * 1376 / 1000)},
			{"Someone pushes a moving machine image in production", movingImage},
			{"A pod asks for Graviton, and five large types are excluded", excludedTypes},
			{"The controller's own pod goes pending", ownPod},
			{"The controller's pod comes to a node of ours", ownNode},
		},
	}
}

// scaling is what `reeve demo --replicas` plays: at the end the nodes are
// repacked until nothing is left to save.
func scaling(replicas []int) scene {
	sc := story()
	sc.title, sc.steps = "inflate is scaled", []step{{"A fleet is pushed", acceptFleet}}
	for _, n := range replicas {
		sc.steps = append(sc.steps, step{fmt.Sprintf("inflate is scaled to %d", n), scale(n, anyCost)})
	}
	last := replicas[len(replicas)-1]
	sc.steps = append(sc.steps, step{"The nodes are repacked", rest(last, anyCost)})
	return sc
}

const anyCost resources.Price = -1

// Long enough for a node to start twice over, in virtual time.
const patience = 5 * time.Minute

func acceptFleet(ctx context.Context, s *stage) error {
	if err := s.push(ctx, "Describe the fleet of "+s.scene.cluster, nil); err != nil {
		return err
	}
	return s.until(ctx, patience, func() bool { return s.pipeline.Fleet() != nil })
}

// scale sets the replicas of inflate and waits until they run and no node is on
// its way. The nodes of NodePool default must then cost what is given.
func scale(replicas int, cost resources.Price) func(context.Context, *stage) error {
	return func(ctx context.Context, s *stage) error {
		if err := s.world.Scale("default/inflate", int32(replicas)); err != nil {
			return err
		}
		if err := s.until(ctx, patience, s.allRunning("inflate", replicas)); err != nil {
			return err
		}
		return s.costs(replicas, cost)
	}
}

// costs prints what the nodes of NodePool default cost, and fails if the story
// says otherwise.
func (s *stage) costs(replicas int, want resources.Price) error {
	got := s.cost("default")
	s.print.line("%s; the nodes of NodePool default cost %s", number(replicas, "replica runs", "replicas run"), got)
	if want != anyCost && got != want {
		return fmt.Errorf("the nodes of NodePool default cost %s, and the story says %s", got, want)
	}
	return nil
}

// rest lets time go by until no node has been removed or replaced for a while.
func rest(replicas int, cost resources.Price) func(context.Context, *stage) error {
	return func(ctx context.Context, s *stage) error {
		if err := s.quiet(ctx); err != nil {
			return err
		}
		if !s.allRunning("inflate", replicas)() {
			return errors.New("pods were left without a node")
		}
		return s.costs(replicas, cost)
	}
}

// restless bounds how long nodes may be repacked before they come to rest.
const restless = time.Hour

// quiet lets time go by until nothing has been open for longer than any node
// waits to be consolidated.
func (s *stage) quiet(ctx context.Context) error {
	const calm = 100 * time.Second
	still := s.world.Now()
	for end := s.world.Now().Add(restless); s.world.Now().Before(end); {
		if err := s.pass(ctx, time.Second); err != nil {
			return err
		}
		if s.pipeline.Open() {
			still = s.world.Now()
		}
		if s.world.Now().Sub(still) >= calm {
			return nil
		}
	}
	return fmt.Errorf("nodes are still removed and replaced after %s of virtual time", restless)
}

// goneSaving scales inflate to nothing: every node of NodePool default is found
// empty, and what the decisions say is saved comes to the sum.
func goneSaving(sum resources.Price) func(context.Context, *stage) error {
	return func(ctx context.Context, s *stage) error {
		before := len(s.decisions)
		if err := s.world.Scale("default/inflate", 0); err != nil {
			return err
		}
		if err := s.quiet(ctx); err != nil {
			return err
		}
		var saved resources.Price
		for _, d := range s.decisions[before:] {
			if d.Kind == decision.Consolidate && d.Verdict.Allowed {
				saved -= d.Proposal.Cost
			}
		}
		s.print.line("the removals save %s", saved)
		if saved != sum || len(s.instances()) > 0 {
			return fmt.Errorf("%s saved and %d nodes left, and the story says %s and none", saved, len(s.instances()), sum)
		}
		return nil
	}
}

// movingImage proposes al2023@latest for a production cluster, which is refused,
// pushes it all the same, which is refused again, and takes it back.
func movingImage(ctx context.Context, s *stage) error {
	const file = "clusters/myeks/nodeclasses.cue"
	good := s.files[file]
	bad := []byte(strings.Replace(string(good), "al2023@v20260318", "al2023@latest", 1))
	if err := s.propose(ctx, "newest-image", "Follow the newest image", map[string][]byte{file: bad}); err != nil {
		return err
	}
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

// propose pushes the changes to a branch, as for a pull request, and fails unless
// `reeve check` refuses them.
func (s *stage) propose(ctx context.Context, branch, subject string, changes map[string][]byte) error {
	next, err := s.commit(subject, changes)
	if err != nil {
		return err
	}
	if err := s.author.Push(ctx, branch, gitrepo.Hash{}, next); err != nil {
		return err
	}
	res, err := check.Open(ctx, check.Target{Repo: s.repo, Rev: branch, Clusters: []string{s.scene.cluster}}, s.world.Now())
	if err != nil {
		return err
	}
	if res.OK() {
		return fmt.Errorf("the check of branch %s finds nothing", branch)
	}
	s.print.line("%s  git push  %.8s %s, to branch %s", s.world.Now().Format(time.TimeOnly), next, subject, branch)
	for _, c := range res.Clusters {
		for _, f := range c.Violations {
			if f.Position == nil {
				return fmt.Errorf("the check of branch %s does not say where: %s", branch, f.Message)
			}
			s.print.line("%s  reeve check: %s at %s", s.world.Now().Format(time.TimeOnly), f.Rule, f.Position)
		}
	}
	return nil
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
	before := len(s.instances())
	if err := s.world.Scale("kube-system/reeve", 3); err != nil {
		return err
	}
	err := s.until(ctx, patience, func() bool {
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
	if after := len(s.instances()); after != before {
		return fmt.Errorf("%d nodes became %d", before, after)
	}
	s.print.line("the pod stays pending, and no node was made for it")
	return nil
}

// ownNode makes room on a node of ours, which the controller's pod then takes:
// a smaller node would be cheaper, but the one it runs on is never removed.
func ownNode(ctx context.Context, s *stage) error {
	if err := scale(6, anyCost)(ctx, s); err != nil {
		return err
	}
	if err := s.world.Scale("default/inflate", 0); err != nil {
		return err
	}
	denied := func() bool {
		return slices.ContainsFunc(s.decisions, func(d *decision.Decision) bool {
			return d.Kind == decision.Consolidate && !d.Verdict.Allowed
		})
	}
	if err := s.until(ctx, patience, denied); err != nil {
		return err
	}
	if err := s.quiet(ctx); err != nil {
		return err
	}
	if s.cost("default") == 0 {
		return errors.New("the node that the controller runs on is gone")
	}
	s.print.line("the controller's node stays, though a smaller one would do")
	return nil
}
