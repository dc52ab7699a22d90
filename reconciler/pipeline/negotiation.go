package pipeline

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/policy"
	"github.com/reeve-project/reeve/reconciler/requirements"
	"github.com/reeve-project/reeve/reconciler/scheduling"
)

// negotiation is propose and judge going back and forth over one snapshot.
type negotiation struct {
	w *World
	// snap is the snapshot that is planned on.
	snap     *cluster.Snapshot
	types    map[string]*resolvedTypes
	notReady map[string]string
	excluded scheduling.Exclusions
	round    int
	plan     *scheduling.Plan
	// proposals of this round by NodePool, and the NodePools in order.
	proposals map[string]*decision.Decision
	pools     []string
	lists     map[string][]string
	// exclusions, warnings, evaluations and rounds by NodePool.
	exclusions  map[string][]decision.Exclusion
	warnings    map[string][]decision.Finding
	evaluations map[string][]decision.Evaluation
	rounds      map[string][]decision.Round
	// denials are all objections that pods were kept pending for.
	denials []decision.Finding
	// denying is by NodePool the rule that objected first.
	denying map[string]string
	// admitted are the types that a NodePool could use but for policies.
	admitted map[string]map[string]bool
	// asked is what admitted was worked out for.
	asked []askedTypes
}

func newNegotiation(w *World, snap *cluster.Snapshot, types map[string]*resolvedTypes, notReady map[string]string) *negotiation {
	return &negotiation{
		w: w, snap: snap, types: types, notReady: notReady,
		excluded: scheduling.Exclusions{
			Offerings: map[string][]scheduling.OfferingExclusion{},
			Pods:      map[string]map[string]string{},
		},
		lists:      map[string][]string{},
		exclusions: map[string][]decision.Exclusion{}, warnings: map[string][]decision.Finding{},
		evaluations: map[string][]decision.Evaluation{}, rounds: map[string][]decision.Round{},
		denying: map[string]string{}, admitted: map[string]map[string]bool{},
	}
}

func (n *negotiation) input() scheduling.Input {
	types := make(map[string][]*catalog.InstanceType, len(n.types))
	for class, t := range n.types {
		types[class] = t.types
	}
	return scheduling.Input{Snapshot: n.snap, Fleet: n.w.Fleet, Types: types, NotReady: n.notReady, Exclusions: n.excluded}
}

// offerings asks the offering stage of each NodePool what must not be chosen
// from. It comes before solving, so that an excluded type never strands a pod
// that another type fits.
func (n *negotiation) offerings(ctx context.Context) error {
	for _, pool := range n.w.Fleet.ByWeight() {
		class := pool.Spec.Template.Spec.NodeClassRef.Name
		if n.types[class] == nil {
			continue
		}
		res, err := n.w.judgeOffering(ctx, pool, n.types[class])
		if err != nil {
			return fmt.Errorf("NodePool %s: %w", pool.Name, err)
		}
		n.evaluations[pool.Name] = append(n.evaluations[pool.Name], res.Evaluation)
		n.warnings[pool.Name] = append(n.warnings[pool.Name], res.Warnings...)
		if _, err := n.exclude(pool.Name, res); err != nil {
			return err
		}
		if len(res.Violations) > 0 {
			n.shut(pool.Name, res.Violations)
		}
	}
	return nil
}

// shut keeps every pending pod off a NodePool that policy gave no usable word
// on: the stage fails closed.
func (n *negotiation) shut(pool string, findings []decision.Finding) {
	for _, pod := range n.snap.Pending {
		n.keepOff(pool, pod.Key(), findings[0].Rule)
	}
	n.deny(pool, findings)
}

// exclude adds exclusions of offerings and says whether any is new.
func (n *negotiation) exclude(pool string, res policy.Result) (bool, error) {
	maps.Copy(n.lists, res.Lists)
	known := map[scheduling.OfferingExclusion]bool{}
	for _, x := range n.excluded.Offerings[pool] {
		known[x] = true
	}
	grew := false
	for _, x := range res.Exclusions {
		names, err := x.Types.Resolve(n.lists)
		if err != nil {
			return false, fmt.Errorf("exclusion by %s: %w", x.Rule, err)
		}
		fresh := false
		names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !n.admits(pool, name) })
		for _, name := range names {
			e := scheduling.OfferingExclusion{Type: name, Zone: x.Zone, CapacityType: x.CapacityType, Rule: x.Rule}
			if !known[e] {
				known[e], fresh = true, true
				n.excluded.Offerings[pool] = append(n.excluded.Offerings[pool], e)
			}
		}
		if fresh {
			x.NodePool, x.Types = pool, decision.NewTypeSet(names, n.lists)
			n.exclusions[pool] = append(n.exclusions[pool], x)
			grew = true
		}
	}
	return grew, nil
}

// admits says whether the NodePool could use the type but for policies. To say
// of a type that it is excluded where it never was a choice helps nobody.
func (n *negotiation) admits(pool, name string) bool {
	set, ok := n.admitted[pool]
	if !ok {
		set = n.admittedTypes(pool)
		n.admitted[pool] = set
	}
	return set[name]
}

// admittedTypes looks through the types of the NodePool's class, once for all
// NodePools of the class that ask for the same.
func (n *negotiation) admittedTypes(pool string) map[string]bool {
	np := n.w.Fleet.NodePool(pool)
	class := np.Spec.Template.Spec.NodeClassRef.Name
	reqs, err := requirements.FromKarpenter(np.Spec.Template.Spec.Requirements)
	types := n.types[class]
	if types == nil || err != nil {
		return nil
	}
	for _, a := range n.asked {
		if a.class == class && a.reqs.Equal(reqs) {
			return a.types
		}
	}
	set := map[string]bool{}
	for _, t := range types.types {
		set[t.Name] = t.Requirements.Overlaps(reqs)
	}
	n.asked = append(n.asked, askedTypes{class, reqs, set})
	return set
}

// askedTypes are the types of a class that meet requirements.
type askedTypes struct {
	class string
	reqs  requirements.Set
	types map[string]bool
}

// keepOff keeps a pod off a NodePool and says whether that is new.
func (n *negotiation) keepOff(pool, pod, rule string) bool {
	if n.excluded.Pods[pool] == nil {
		n.excluded.Pods[pool] = map[string]string{}
	}
	if _, ok := n.excluded.Pods[pool][pod]; ok {
		return false
	}
	n.excluded.Pods[pool][pod] = rule
	return true
}

func (n *negotiation) deny(pool string, findings []decision.Finding) {
	n.denials = append(n.denials, findings...)
	n.denying[pool] = cmp.Or(n.denying[pool], findings[0].Rule)
}

// withholdShut keeps every offering from the NodePools that were denied, in the
// name of the rule that denied each: they launch nothing.
func (n *negotiation) withholdShut() {
	for _, pool := range slices.Sorted(maps.Keys(n.denying)) {
		n.excluded.Offerings[pool] = append(n.excluded.Offerings[pool], scheduling.OfferingExclusion{Rule: n.denying[pool]})
	}
}

// propose makes one proposal for each NodePool that the plan gives nodes.
func (n *negotiation) propose() error {
	n.proposals, n.pools = map[string]*decision.Decision{}, nil
	for _, c := range n.plan.Claims {
		d := n.proposals[c.NodePool]
		if d == nil {
			d = &decision.Decision{Kind: decision.Provision, Proposal: decision.Proposal{NodePool: c.NodePool, Lists: n.lists}}
			n.proposals[c.NodePool] = d
			n.pools = append(n.pools, c.NodePool)
		}
		pc := planned(c, n.lists)
		pc.Index = len(d.Proposal.Claims)
		d.Proposal.Claims = append(d.Proposal.Claims, pc)
		d.Proposal.Cost += pc.Price
	}
	slices.Sort(n.pools)
	if len(n.pools) > 0 {
		// They belong to the pass; one decision has them.
		p := &n.proposals[n.pools[0]].Proposal
		for _, pl := range n.plan.Placements {
			p.Placements = append(p.Placements, decision.Placement{Node: pl.Node, Pods: podGroups(pl.Pods)})
		}
	}
	for _, pool := range n.pools {
		d := n.proposals[pool]
		p := &d.Proposal
		pods := 0
		for i := range p.Claims {
			pods += p.Claims[i].PodCount()
		}
		p.Reason = plural(pods, "pending pod")
		p.Search = &decision.Search{Steps: n.plan.Steps, Pods: len(n.snap.Pending), Shapes: n.plan.Shapes, Solver: n.plan.Solver}
		if err := group(p.Claims); err != nil {
			return err
		}
	}
	return nil
}

// judge lets the policies judge every proposal and says whether another has to
// be made.
func (n *negotiation) judge(ctx context.Context) (bool, error) {
	again := false
	for _, pool := range n.pools {
		d := n.proposals[pool]
		res, err := n.w.judgeDecision(ctx, d, n.judged(pool), n.round)
		if err != nil {
			return false, err
		}
		n.evaluations[pool] = append(n.evaluations[pool], res.Evaluation)
		d.Verdict.Warnings = res.Warnings
		d.Verdict.Violations = res.Violations
		before := len(n.exclusions[pool])
		grew, err := n.exclude(pool, res)
		if err != nil {
			return false, err
		}
		for _, f := range res.Violations {
			grew = n.refuse(pool, d, f) || grew
		}
		if len(res.Violations) > 0 {
			n.deny(pool, res.Violations)
		}
		if grew {
			n.rounds[pool] = append(n.rounds[pool], decision.Round{
				NodePool: pool,
				Summary:  strings.TrimPrefix(summarizeProvision(&decision.Decision{Kind: d.Kind, Proposal: d.Proposal, Verdict: decision.Verdict{Allowed: true}}), "provision("+pool+"): "),
				Denied:   res.Violations, Excluded: n.exclusions[pool][before:],
			})
			again = true
		}
	}
	return again, nil
}

// judged are the types that a NodePool chooses from, as policies see them.
func (n *negotiation) judged(pool string) *policy.Types {
	return n.types[n.w.Fleet.NodePool(pool).Spec.Template.Spec.NodeClassRef.Name].judged
}

// refuse keeps the pods that a finding is about off the NodePool: one pod, the
// pods of one claim, or all.
func (n *negotiation) refuse(pool string, d *decision.Decision, f decision.Finding) bool {
	t := targetOf(f, d.Proposal.Claims)
	if t.pod != "" {
		return n.keepOff(pool, t.pod, f.Rule)
	}
	grew := false
	for i := range d.Proposal.Claims {
		c := &d.Proposal.Claims[i]
		if t.hits(c) {
			for _, key := range podKeys(c.Pods) {
				grew = n.keepOff(pool, key, f.Rule) || grew
			}
		}
	}
	return grew
}

// target is what a finding about a provision objects to: a claim, a pod of it,
// or with a negative claim all of them.
type target struct {
	claim int
	pod   string
}

func (t target) hits(c *decision.Claim) bool { return t.claim < 0 || t.claim == c.Index }

// targetOf looks a finding's resource up. One that is not in the proposal hits
// all of it: a rule that misspells what it objects to still objects.
func targetOf(f decision.Finding, claims []decision.Claim) target {
	pod, isPod := strings.CutPrefix(f.Resource, "Pod/")
	for i := range claims {
		c := &claims[i]
		if f.Resource == fmt.Sprintf("NodeClaim/%d", c.Index) {
			return target{claim: c.Index}
		}
		if isPod && slices.Contains(podKeys(c.Pods), pod) {
			return target{claim: c.Index, pod: pod}
		}
	}
	return target{claim: -1}
}

func podKeys(groups []decision.PodGroup) []string {
	var out []string
	for _, g := range groups {
		for _, name := range g.Names {
			out = append(out, g.Namespace+"/"+name)
		}
	}
	return out
}
