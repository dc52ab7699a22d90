package demo

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/resources"
	"github.com/reeve-project/reeve/reconciler/sim"
)

// labs are the scenes that follow the story: one for each of the other
// examples.
func labs() []scene {
	return []scene{onDemandBasic(), onDemandConsolidation(), spotToSpot(), arm64Managed(), placeholders()}
}

// lab is a scene on the example of that name, with the two managed nodes that
// the controller runs on.
func lab(example, title string, workloads ...sim.Object) scene {
	return scene{
		title: title, example: example, cluster: example, managed: twoManaged(),
		workloads: append([]sim.Object{controller()}, workloads...),
	}
}

// onDemandBasic is the first hour with a provisioner: pods come and get a node,
// pods go and so does the node.
func onDemandBasic() scene {
	sc := lab("on-demand-basic", "Nodes on demand", sim.NewDeployment("default", "inflate", 0, cpu("1")))
	sc.steps = []step{
		{"A fleet is pushed", acceptFleet},
		{"Five pods of 1 CPU go pending", scale(5, usd(344))},
		{"All replicas go", goneSaving(usd(344))},
	}
	return sc
}

// usd is an amount in thousandths of a dollar per hour.
func usd(thousandths int64) resources.Price {
	return resources.USD * resources.Price(thousandths) / 1000
}

// onDemandConsolidation scales up and down between machines of three sizes.
func onDemandConsolidation() scene {
	sc := lab("on-demand-consolidation", "Consolidation with three sizes", sim.NewDeployment("default", "inflate", 0, cpu("1")))
	sc.steps = []step{
		{"A fleet is pushed", acceptFleet},
		{"Five pods of 1 CPU go pending", scale(5, usd(344))},
		{"Twelve replicas", consolidated(12, usd(688))},
		{"Five replicas", consolidated(5, usd(344), "empty: 1 node goes, saves $0.344/h")},
		{"One replica", consolidated(1, usd(86), "single: 1 node goes, 1 comes, saves $0.258/h")},
		{"Twelve replicas again", consolidated(12, usd(688))},
		{"Seven replicas, spread over all nodes", consolidated(7, usd(344), "multi: 3 nodes go, saves $0.344/h")},
	}
	return sc
}

// consolidated scales inflate, lets nodes come to rest, and holds the record to
// what it must say of the consolidations on the way.
func consolidated(replicas int, cost resources.Price, want ...string) func(context.Context, *stage) error {
	return func(ctx context.Context, s *stage) error {
		since := s.world.Now()
		if err := scale(replicas, anyCost)(ctx, s); err != nil {
			return err
		}
		if err := rest(replicas, cost)(ctx, s); err != nil {
			return err
		}
		got, err := s.consolidations(ctx, since)
		if err != nil {
			return err
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("the record says %q, and the lab %q", got, want)
		}
		return nil
	}
}

// consolidations are those that the decision branch has had since the instant,
// each in a few words. It fails for one that did not end, or that replaced a
// node without saving anything.
func (s *stage) consolidations(ctx context.Context, since time.Time) ([]string, error) {
	entries, err := s.recorded(ctx, since, decision.Consolidate)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		p := &e.Decision.Proposal
		for _, n := range p.Nodes {
			if e.Outcome == nil || !e.Outcome.Has(n.Claim, decision.Terminated) {
				return nil, fmt.Errorf("%s: node %s is not gone", e.Decision.Summary, n.Name)
			}
		}
		if p.Cost >= 0 {
			return nil, fmt.Errorf("%s: nothing is saved", e.Decision.Summary)
		}
		words := []string{number(len(p.Nodes), "node goes", "nodes go")}
		if len(p.Claims) > 0 {
			words = append(words, number(len(p.Claims), "comes", "come"))
		}
		out = append(out, fmt.Sprintf("%s: %s, saves %s", p.Method, strings.Join(words, ", "), -p.Cost))
	}
	return out, nil
}
