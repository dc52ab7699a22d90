package demo

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/reeve-project/reeve/reconciler/sim"
)

// arm64Taint is on all Graviton nodes of the lab, managed or not.
var arm64Taint = corev1.Taint{Key: corev1.LabelArchStable, Value: "arm64", Effect: corev1.TaintEffectNoSchedule}

// arm64Managed fills a managed node group of Graviton machines before it makes
// more of them.
func arm64Managed() scene {
	sc := lab("arm64-managed-taint", "Graviton beside a managed node group", gravitonDeployment(), sim.NewDeployment("default", "inflate", 0, cpu("1")))
	sc.managed = append(sc.managed, managed{group: "graviton", instanceType: "m6g.xlarge", zone: region + "a", taints: []corev1.Taint{arm64Taint}})
	sc.steps = []step{
		{"A fleet is pushed", acceptFleet},
		{"Three pods for Graviton: the managed node has room", fillManaged},
		{"Eight: five are too many for it", overflow},
		{"One pod for x86", besideGraviton},
		{"Three pods for Graviton again", backToManaged},
	}
	return sc
}

// fillManaged makes no node, since the pods tolerate the taint of one that is
// there.
func fillManaged(ctx context.Context, s *stage) error {
	if err := s.scaled(ctx, "inflate-arm64", 3); err != nil {
		return err
	}
	if n := len(s.instances()); n > 0 {
		return fmt.Errorf("%d nodes were made, and the managed node has room", n)
	}
	return s.runsOn("inflate-arm64", map[string]int{"m6g.xlarge": 3})
}

func overflow(ctx context.Context, s *stage) error {
	if err := s.scaled(ctx, "inflate-arm64", 8); err != nil {
		return err
	}
	return s.runsOn("inflate-arm64", map[string]int{"c6g.2xlarge": 5, "m6g.xlarge": 3})
}

func besideGraviton(ctx context.Context, s *stage) error {
	if err := s.scaled(ctx, "inflate", 1); err != nil {
		return err
	}
	return s.runsOn("inflate", map[string]int{"c5a.large": 1})
}

// backToManaged leaves the node that was made empty, and so without a reason to
// stay.
func backToManaged(ctx context.Context, s *stage) error {
	if err := s.scaled(ctx, "inflate-arm64", 3); err != nil {
		return err
	}
	if err := s.quiet(ctx); err != nil {
		return err
	}
	if n := len(s.ofPool("graviton")); n > 0 {
		return fmt.Errorf("%d nodes of NodePool graviton are left, and the managed node has room for all pods", n)
	}
	return s.runsOn("inflate-arm64", map[string]int{"m6g.xlarge": 3})
}

// scaled sets the replicas of a Deployment and waits until they run.
func (s *stage) scaled(ctx context.Context, app string, replicas int) error {
	if err := s.world.Scale("default/"+app, int32(replicas)); err != nil {
		return err
	}
	return s.until(ctx, patience, s.allRunning(app, replicas))
}

// runsOn prints the instance types that pods of the app run on, and fails if the
// API server and EC2 do not say that they are those.
func (s *stage) runsOn(app string, want map[string]int) error {
	types := map[string]string{}
	for _, in := range s.account.Instances() {
		types[in.Node] = in.Type
	}
	got := map[string]int{}
	for _, p := range sim.List[*corev1.Pod](s.world.API) {
		if p.Labels["app"] == app && p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
			got[types[p.Spec.NodeName]]++
		}
	}
	if a, b := count(got), count(want); a != b {
		return fmt.Errorf("the pods of %s run on %s, and the lab says on %s", app, a, b)
	}
	s.print.line("%s runs on %s", app, count(got))
	return nil
}

// count is how many there are of each: "5 × c6g.2xlarge, 3 × m6g.xlarge".
func count(of map[string]int) string {
	var out []string
	for name, n := range of {
		out = append(out, fmt.Sprintf("%d × %s", n, name))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// atOnce bounds how long a pod may take that finds a node: far less than a node
// takes to start.
const atOnce = 15 * time.Second
