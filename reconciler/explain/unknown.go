package explain

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agnivade/levenshtein"

	"github.com/reeve-project/reeve/reconciler/decision"
)

// Unknown says that nothing is recorded of a pod or node.
type Unknown struct {
	// What is "pod" or "node".
	What string
	// Name that was asked for.
	Name string
	// Branch that was searched, how many decisions, and the instant of the last
	// recorded state, zero if there is none.
	Branch    string
	Decisions int
	State     time.Time
	// Missing are days that a shallow clone does not have.
	Missing []string
	// Near are names that are much like it.
	Near []string
}

// Error says what was searched, what was perhaps meant, and how to look further.
func (e *Unknown) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %q: not found: none of the %d decisions of branch %s names it", e.What, e.Name, e.Decisions, e.Branch)
	if !e.State.IsZero() {
		fmt.Fprintf(&b, ", nor does the last recorded state (%s)", e.State.Format(time.DateTime))
	}
	if len(e.Missing) > 0 {
		fmt.Fprintf(&b, "\n  This clone is shallow and lacks %s: fetch the whole branch.", strings.Join(e.Missing, ", "))
	}
	if len(e.Near) > 0 {
		fmt.Fprintf(&b, "\n  Did you mean %s?", strings.Join(e.Near, ", "))
	}
	b.WriteString("\n  reeve log lists the decisions, and reeve show the pods and nodes of one.")
	return b.String()
}

// recentNames is how many decisions near names are taken from.
const recentNames = 500

func (h *history) unknownPod(ctx context.Context, pod string) error {
	names := map[string]bool{}
	if h.tip != nil {
		for _, p := range h.tip.Pending {
			names[p.Key()] = true
		}
		for _, n := range h.tip.Nodes {
			for _, p := range n.Pods {
				names[p.Key()] = true
			}
		}
	}
	return h.unknown(ctx, "pod", pod, names, func(d *decision.Decision) {
		for _, groups := range podGroups(&d.Proposal) {
			for _, g := range groups {
				for _, n := range g.Names {
					names[g.Namespace+"/"+n] = true
				}
			}
		}
	})
}

// podGroups are all groups of pods in a proposal.
func podGroups(p *decision.Proposal) [][]decision.PodGroup {
	var out [][]decision.PodGroup
	for i := range p.Claims {
		out = append(out, p.Claims[i].Pods)
	}
	for _, n := range p.Nodes {
		out = append(out, n.Pods)
	}
	for _, pl := range p.Placements {
		out = append(out, pl.Pods)
	}
	for _, u := range p.Unplaced {
		out = append(out, u.Pods)
	}
	return out
}

func (h *history) unknownNode(ctx context.Context, name string) error {
	names := map[string]bool{}
	add := func(id identity) {
		for _, n := range []string{id.claim, id.node, id.instance} {
			names[n] = n != ""
		}
	}
	if h.tip != nil {
		for _, n := range h.tip.Nodes {
			add(identityOf(n))
		}
	}
	records, err := h.newest(ctx, recentNames)
	if err != nil {
		return err
	}
	for _, r := range records {
		for _, id := range identities(r) {
			add(id)
		}
	}
	return h.unknown(ctx, "node", name, names, nil)
}

func (h *history) unknown(ctx context.Context, what, name string, names map[string]bool, each func(*decision.Decision)) error {
	if each != nil {
		records, err := h.newest(ctx, recentNames)
		if err != nil {
			return err
		}
		for _, r := range records {
			each(r.Decision)
		}
	}
	s := h.searched
	return &Unknown{What: what, Name: name, Branch: s.Branch, Decisions: s.Decisions, State: s.State, Missing: s.Missing, Near: near(name, names)}
}

// mostNear is how many names are suggested.
const mostNear = 5

// near are the names that are most like the one asked for: those that contain
// it or have the same last part, then those that few letters tell apart.
func near(asked string, names map[string]bool) []string {
	type scored struct {
		name     string
		distance int
	}
	var out []scored
	last := asked[strings.LastIndexByte(asked, '/')+1:]
	for name, ok := range names {
		own := name[strings.LastIndexByte(name, '/')+1:]
		d := levenshtein.ComputeDistance(own, last)
		switch {
		case !ok:
			continue
		case own == last:
			d = 0
		case last != "" && strings.Contains(own, last):
			d = 1
		case d > 2+len(last)/8:
			continue
		}
		out = append(out, scored{name, d})
	}
	slices.SortFunc(out, func(a, b scored) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.name, b.name))
	})
	found := make([]string, 0, mostNear)
	for _, s := range out[:min(len(out), mostNear)] {
		found = append(found, s.name)
	}
	return found
}
