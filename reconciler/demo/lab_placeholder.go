package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/sim"
	"github.com/reeve-project/reeve/reconciler/sim/awsapi"
)

// placeholders keeps a node warm for pods that cannot wait for one.
func placeholders() scene {
	sc := lab("placeholder-overprovisioning", "Placeholders keep a node warm", placeholder(), sim.NewDeployment("default", "web", 0, cpu("1")))
	sc.steps = []step{
		{"A fleet is pushed", acceptFleet},
		{"Seven placeholders fill a node", warm},
		{"Seven real pods take their place", preempted},
		{"The real pods go", cooled},
	}
	return sc
}

// placeholder is a Deployment of pods that do nothing and give way to every
// other. They take some seconds to end, so that passes see the real pods wait
// for room that is already being made.
func placeholder() *appsv1.Deployment {
	d := sim.NewDeployment("default", "placeholder", 0, cpu("1"))
	d.Spec.Template.Spec.Priority = new(int32(-10))
	d.Spec.Template.Annotations = map[string]string{sim.AnnotationStopAfter: "5s"}
	return d
}

func warm(ctx context.Context, s *stage) error {
	if err := s.scaled(ctx, "placeholder", 7); err != nil {
		return err
	}
	return s.runsOn("placeholder", map[string]int{"c5a.2xlarge": 7})
}

// preempted scales up the real work: it runs before any new node could be up,
// and one node is made for the placeholders that had to go.
func preempted(ctx context.Context, s *stage) error {
	before, since := s.instances(), s.world.Now()
	if len(before) != 1 {
		return fmt.Errorf("%d nodes are there, and the lab says one", len(before))
	}
	if err := s.world.Scale("default/web", 7); err != nil {
		return err
	}
	running := s.allRunning("web", 7)
	for !running() {
		if err := s.pass(ctx, time.Second); err != nil {
			return err
		}
		if waited := s.world.Now().Sub(since); waited > atOnce {
			return fmt.Errorf("the real pods do not run after %s", waited)
		}
	}
	for _, p := range sim.List[*corev1.Pod](s.world.API) {
		if p.Labels["app"] == "web" && p.Spec.NodeName != before[0].Node {
			return errors.New("a real pod did not go to the warm node")
		}
	}
	s.print.line("seven real pods run on %s after %s", before[0].Node, s.world.Now().Sub(since))
	if err := s.until(ctx, patience, s.allRunning("placeholder", 7)); err != nil {
		return err
	}
	provision, err := s.only(ctx, since, decision.Provision)
	if err != nil {
		return err
	}
	bought := slices.DeleteFunc(s.instances(), func(in awsapi.Instance) bool { return in.ID == before[0].ID })
	claims := provision.Decision.Proposal.Claims
	if len(claims) != 1 || len(bought) != 1 {
		return fmt.Errorf("%d nodes were made, and the lab says one", len(bought))
	}
	for _, g := range claims[0].Pods {
		for _, name := range g.Names {
			if !strings.HasPrefix(name, "placeholder-") {
				return fmt.Errorf("the node was made for pod %s too, which has found its room", name)
			}
		}
	}
	s.print.line("one node was made, for the placeholders")
	return nil
}

// cooled takes the real work away: one of the two nodes has no reason to stay.
func cooled(ctx context.Context, s *stage) error {
	if err := s.world.Scale("default/web", 0); err != nil {
		return err
	}
	if err := s.quiet(ctx); err != nil {
		return err
	}
	return s.runsOn("placeholder", map[string]int{"c5a.2xlarge": 7})
}
