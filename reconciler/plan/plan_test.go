package plan

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/kube/dump"
	"github.com/reeve-project/reeve/reconciler/report"
	"github.com/reeve-project/reeve/reconciler/resources"
	"github.com/reeve-project/reeve/reconciler/sim"
)

// plan plans on printed objects with the fleet at the tip.
func (r *rig) plan(at time.Time, objects ...dump.Source) *report.Plan {
	r.t.Helper()
	p, err := Of(ctx, Options{Target: Target{Repo: r.repo, Rev: r.tip.String()}, Objects: objects, Now: at})
	must(r.t, err)
	return p
}

// steps are the decisions as a plan has them.
func steps(t *testing.T, ds ...*decision.Decision) []report.PlanStep {
	t.Helper()
	var out []report.PlanStep
	for _, d := range ds {
		s, err := stepOf(d, false)
		must(t, err)
		out = append(out, s)
	}
	return out
}

// now are the steps that would be decided at once.
func now(p *report.Plan) []report.PlanStep {
	var out []report.PlanStep
	for _, s := range p.Steps {
		if !s.Later {
			out = append(out, s)
		}
	}
	return out
}

func TestAPlanIsTheDecisionThatThePipelineMade(t *testing.T) {
	r := newRig(t)
	r.scale(5)
	r.scale(30)
	r.until("nodes are replaced", func() bool {
		d, _ := r.find(decision.Consolidate, func(d *decision.Decision) bool { return len(d.Proposal.Claims) > 0 })
		return d != nil && !r.pipeline.Open()
	})
	tests := []struct {
		name  string
		kind  decision.Kind
		match func(*decision.Decision) bool
	}{
		{"nodes for pending pods", decision.Provision, func(d *decision.Decision) bool { return len(d.Proposal.Claims) > 1 }},
		{"a node for the first pods", decision.Provision, func(d *decision.Decision) bool { return len(d.Proposal.Claims) == 1 }},
		{"nodes that are replaced", decision.Consolidate, func(d *decision.Decision) bool { return len(d.Proposal.Claims) > 0 }},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			want, objects := r.find(tc.kind, tc.match)
			if want == nil {
				t.Fatal("the pipeline made no such decision")
			}
			for _, src := range []dump.Source{asSource(objects), asYAML(t, objects)} {
				got := r.plan(want.Time, src)
				if diff := cmp.Diff(steps(t, want), now(got), cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("%s: steps (-the pipeline +the plan):\n%s", src.Name, diff)
				}
				if got.After-got.Before != total(got) {
					t.Errorf("%s: before %s, after %s, and the steps come to %s", src.Name, got.Before, got.After, total(got))
				}
			}
		})
	}
}

// total is what all steps that are allowed add to the price.
func total(p *report.Plan) resources.Price {
	var sum resources.Price
	for _, s := range p.Steps {
		if s.Allowed {
			sum += s.Cost
		}
	}
	return sum
}

func TestPrintedObjectsAreTheSameSnapshot(t *testing.T) {
	r := newRig(t)
	r.scale(5)
	must(t, r.world.Scale("default/inflate", 40))
	must(t, r.world.Clock.Advance(2*time.Second))
	live, err := sim.NewCluster(r.world).Snapshot(ctx)
	must(t, err)
	if len(live.Pending) == 0 || len(live.Nodes) < 2 {
		t.Fatalf("%d pods are pending, and there are %d nodes", len(live.Pending), len(live.Nodes))
	}
	for _, src := range []dump.Source{asSource(r.print()), asYAML(t, r.print())} {
		d, err := dump.Read(src)
		must(t, err)
		got := d.Objects.Snapshot(live.Time)
		if diff := cmp.Diff(live, got, cmpopts.IgnoreUnexported(cluster.Snapshot{}), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-live +printed):\n%s", src.Name, diff)
		}
		if got.Digest() != live.Digest() {
			t.Errorf("%s: the digests differ", src.Name)
		}
		if len(d.Unused) != 1 || d.Unused[0].Kind != "Namespace v1" {
			t.Errorf("unused: %v", d.Unused)
		}
	}
}
