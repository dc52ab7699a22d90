package demo

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reeve-project/reeve/examples"
	"github.com/reeve-project/reeve/reconciler/check"
	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/resources"
)

func TestEveryExampleIsPlayed(t *testing.T) {
	played := Scenes()
	slices.Sort(played)
	if diff := cmp.Diff(examples.Names(), played); diff != "" {
		t.Errorf("examples and scenes (-want +got):\n%s", diff)
	}
}

func TestEveryExampleIsRight(t *testing.T) {
	for _, name := range examples.Names() {
		dir := filepath.Join("..", "..", "examples", name)
		res, err := check.Open(t.Context(), check.Target{Path: dir}, begin)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !res.OK() || len(res.Clusters) != 1 || res.Clusters[0].Cluster != name || len(res.Clusters[0].Warnings) > 0 {
			t.Errorf("%s: %+v", name, res)
		}
		if _, err := os.Stat(filepath.Join(dir, "README.md")); err != nil {
			t.Errorf("%s does not say what it shows: %v", name, err)
		}
	}
}

// What a scene may leave running, and what its nodes cost then.
func TestLabsEndAsTheyShould(t *testing.T) {
	for name, want := range map[string]struct {
		nodes int
		cost  resources.Price
	}{
		"on-demand-basic":              {0, 0},
		"on-demand-consolidation":      {1, usd(344)},
		"arm64-managed-taint":          {1, usd(86)},
		"placeholder-overprovisioning": {1, usd(344)},
	} {
		t.Run(name, func(t *testing.T) {
			p := left(t, name)
			if n := len(p.instances()); n != want.nodes || p.cost("") != want.cost {
				t.Errorf("%d nodes for %s are left, want %d for %s", n, p.cost(""), want.nodes, want.cost)
			}
		})
	}
}

// The EC2NodeClass is still there, and so is its instance profile.
func TestNothingElseIsLeftInTheAccount(t *testing.T) {
	got := left(t, "on-demand-basic").account.Leftovers()
	if len(got) != 1 || !strings.HasPrefix(got[0], "instance profile on-demand-basic_") {
		t.Errorf("left are %q", got)
	}
}

// A node goes only if something is saved: what EC2 charged for the nodes that
// went is more than what it charges for the one that came.
func TestNoLabReplacesANodeForNothing(t *testing.T) {
	for _, name := range Scenes() {
		p := left(t, name)
		prices := map[string]resources.Price{}
		for _, in := range p.account.Instances() {
			prices[in.Tags["karpenter.sh/nodeclaim"]] = in.Price
		}
		for _, e := range p.entries(t, decision.Consolidate) {
			if !e.Decision.Verdict.Allowed {
				continue
			}
			var saved resources.Price
			for _, n := range e.Decision.Proposal.Nodes {
				saved += prices[n.Claim]
			}
			for i := range e.Decision.Proposal.Claims {
				saved -= prices[e.Decision.Proposal.Claims[i].Name]
			}
			if saved <= 0 || saved != -e.Decision.Proposal.Cost {
				t.Errorf("%s: %s: EC2's prices say %s", name, e.Decision.Summary, saved)
			}
		}
	}
}

func TestDecisionsOfTheLabs(t *testing.T) {
	for name, want := range map[string][]string{
		"on-demand-basic": {"empty 1→0"},
		// 12 → 5, 5 → 1, 12 → 7.
		"on-demand-consolidation":      {"empty 1→0", "single 1→1", "multi 3→0"},
		"spot-to-spot":                 {"single 1→1"},
		"arm64-managed-taint":          {"empty 1→0"},
		"placeholder-overprovisioning": {"empty 1→0"},
	} {
		var got []string
		for _, e := range left(t, name).entries(t, decision.Consolidate) {
			p := &e.Decision.Proposal
			got = append(got, fmt.Sprintf("%s %d→%d", p.Method, len(p.Nodes), len(p.Claims)))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: consolidations (-want +got):\n%s", name, diff)
		}
	}
}

// 15 types are launchable for the replacement, each cheaper than what it
// replaces.
func TestSpotNodesMoveToFifteenCheaperTypes(t *testing.T) {
	p := left(t, "spot-to-spot")
	e := p.entries(t, decision.Consolidate)[0]
	old, c := e.Decision.Proposal.Nodes[0], &e.Decision.Proposal.Claims[0]
	types, err := c.Launchable.Resolve(e.Decision.Proposal.Lists)
	if err != nil {
		t.Fatal(err)
	}
	data, err := e.View.Catalog()
	if err != nil {
		t.Fatal(err)
	}
	if len(types) != leastTypes || c.CapacityType != "spot" || old.CapacityType != "spot" {
		t.Errorf("%d types, %s → %s", len(types), old.CapacityType, c.CapacityType)
	}
	for _, name := range types {
		var least resources.Price
		for _, z := range data.Zones() {
			if price, ok := data.SpotPrice(name, z.ID); ok && (least == 0 || price < least) {
				least = price
			}
		}
		if least == 0 || least >= old.Price {
			t.Errorf("%s costs %s and %s is replaced at %s", name, least, old.InstanceType, old.Price)
		}
	}
}

func TestAnInterruptionIsAnsweredInOnePass(t *testing.T) {
	p := left(t, "spot-to-spot")
	interrupts := p.entries(t, decision.Interrupt)
	if len(interrupts) != 1 {
		t.Fatalf("%d interruptions are recorded", len(interrupts))
	}
	d := interrupts[0].Decision
	n := d.Proposal.Nodes[0]
	if d.Proposal.Interruption == nil || d.Proposal.Interruption.Kind != "EC2 Spot Instance Interruption Warning" {
		t.Errorf("the record does not name the message: %+v", d.Proposal.Interruption)
	}
	p.wasRemoved(t, n, d)
	launched := 0
	for _, in := range p.ofPool("wide") {
		if in.Launched.Equal(d.Time) {
			launched++
		}
		within := in.Launched.Sub(d.Time)
		if within >= 0 && within < unavailable && in.Type == n.InstanceType && in.Zone == n.Zone {
			t.Errorf("the offering was bought again %s after the warning", within)
		}
	}
	if launched != 1 {
		t.Errorf("%d nodes were launched in the pass that answered the warning", launched)
	}
}
