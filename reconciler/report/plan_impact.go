package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/reeve-project/reeve/reconciler/resources"
)

// Impact is what a change of the fleet does to a cluster as the decision branch
// last recorded it.
type Impact struct {
	// Branch and Commit are where the state was read, Time when it was seen.
	Branch string    `json:"branch"`
	Commit string    `json:"commit"`
	Time   time.Time `json:"time"`
	// Nodes is how many nodes of the fleet there are.
	Nodes int `json:"nodes"`
	// Assumptions are what was taken for granted because it is not recorded.
	Assumptions []string `json:"assumptions,omitempty"`
	// Drift is the nodes that are not what the changed fleet says.
	Drift []PlanDrift `json:"drift"`
	// Steps are what would be decided under the changed fleet, with the nodes
	// that have drifted being replaced.
	Steps []PlanStep `json:"steps"`
	// Now is what the nodes cost, Base what they would cost at rest without the
	// change, and Head what they would with it.
	Now  resources.Price `json:"now"`
	Base resources.Price `json:"base"`
	Head resources.Price `json:"head"`
}

// PlanDrift is a node that is not what the fleet says.
type PlanDrift struct {
	// Node is the key of the node: the name of its NodeClaim.
	Node         string          `json:"node"`
	NodePool     string          `json:"nodePool"`
	InstanceType string          `json:"instanceType,omitempty"`
	Price        resources.Price `json:"price"`
	// Cause is Karpenter's word for it, or NodePoolRemoved.
	Cause  string `json:"cause"`
	Detail string `json:"detail"`
	// New says that it comes from the change.
	New bool `json:"new"`
}

// OK says whether nothing would be denied and no pod stay pending.
func (i *Impact) OK() bool { return !troubled(i.Steps) }

// ImpactText writes the impact for people, below what a check found.
func ImpactText(w io.Writer, i *Impact) error {
	p := &printer{w: w}
	p.line("On the cluster as %s recorded it at %s (%.12s), %s:", i.Branch, i.Time.UTC().Format(time.RFC3339), i.Commit, count(i.Nodes, "node", "nodes"))
	for _, g := range driftGroups(i.Drift) {
		p.line("  %s%s, NodePool %s: %s", g.cause, g.before, g.pool, few(g.nodes))
		p.line("    %s", g.detail)
	}
	if len(i.Drift) == 0 {
		p.line("  no node drifts")
	}
	p.planSteps(i.Steps)
	if len(i.Steps) > 0 {
		p.line("")
	}
	for _, a := range i.Assumptions {
		p.line("  Assumed: %s", a)
	}
	p.line("  %s", impactCost(i))
	return p.err
}

// impactCost is "The nodes cost $1/h now, $0.9/h at rest without the change and
// $0.8/h with it: $0.1/h less."
func impactCost(i *Impact) string {
	s := fmt.Sprintf("The nodes cost %s now, %s at rest without the change and %s with it", i.Now, i.Base, i.Head)
	switch {
	case i.Head > i.Base:
		return fmt.Sprintf("%s: %s more.", s, i.Head-i.Base)
	case i.Head < i.Base:
		return fmt.Sprintf("%s: %s less.", s, i.Base-i.Head)
	default:
		return s + "."
	}
}

// driftGroup is nodes that drift by the same cause.
type driftGroup struct {
	cause, before, pool, detail string
	nodes                       []string
}

// driftGroups puts together what differs in the node only, new causes first.
func driftGroups(ds []PlanDrift) []*driftGroup {
	var out []*driftGroup
	for _, d := range ds {
		before := " already without the change"
		if d.New {
			before = ""
		}
		i := slices.IndexFunc(out, func(g *driftGroup) bool {
			return g.cause == d.Cause && g.pool == d.NodePool && g.detail == d.Detail && g.before == before
		})
		if i < 0 {
			i = len(out)
			out = append(out, &driftGroup{d.Cause, before, d.NodePool, d.Detail, nil})
		}
		out[i].nodes = append(out[i].nodes, d.Node)
	}
	slices.SortStableFunc(out, func(a, b *driftGroup) int { return cmp.Compare(a.before, b.before) })
	return out
}

// ImpactMarkdown writes the impact for a comment on a pull request.
func ImpactMarkdown(w io.Writer, i *Impact) error {
	m := &printer{w: w}
	m.line("#### On the cluster as it is")
	m.line("")
	m.line("State of %s at %s (%s), %s. %s", mdCode(i.Branch), i.Time.UTC().Format(time.RFC3339), mdCode(i.Commit[:min(12, len(i.Commit))]),
		count(i.Nodes, "node", "nodes"), impactCost(i))
	m.line("")
	if len(i.Drift) > 0 {
		m.line("| Drift | NodePool | Nodes | Why |")
		m.line("| --- | --- | --- | --- |")
		for _, g := range driftGroups(i.Drift) {
			m.line("| %s | %s | %d: %s | %s |", mdText(g.cause+g.before), mdText(g.pool), len(g.nodes), mdText(few(g.nodes)), mdText(g.detail))
		}
	} else {
		m.line("No node drifts.")
	}
	m.markdownSteps(i.Steps)
	if len(i.Assumptions) > 0 {
		m.line("")
		m.line("Assumed: %s", mdText(strings.Join(i.Assumptions, " ")))
	}
	return m.err
}
