package explain

import (
	"cmp"
	"context"
	"slices"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/ledger"
	"github.com/reeve-project/reeve/reconciler/port"
	"github.com/reeve-project/reeve/reconciler/report"
)

// Node explains a node by the name of the node, of its NodeClaim, or by the id
// of its instance. A name that nobody knows is an Unknown error.
func Node(ctx context.Context, src ledger.Source, name string) (*report.NodeStory, error) {
	h, err := open(ctx, src)
	if err != nil {
		return nil, err
	}
	id, others, ok, err := h.resolve(ctx, name)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, h.unknownNode(ctx, name)
	}
	records, id, err := h.about(ctx, id)
	if err != nil {
		return nil, err
	}
	out := &report.NodeStory{Claim: id.claim, Name: id.node, Instance: id.instance, Others: others}
	if err := h.locate(ctx, concerned(records, id)...); err != nil {
		return nil, err
	}
	for _, r := range records {
		if err := h.tellNode(ctx, out, id, r); err != nil {
			return nil, err
		}
	}
	h.place(out, id)
	out.Searched = h.searched
	return out, nil
}

// concerned are the ids of the decisions that make the node or are about it.
func concerned(records []port.Record, id identity) []string {
	var out []string
	for _, r := range records {
		if slices.ContainsFunc(identities(r), id.is) {
			out = append(out, r.Decision.ID)
		}
	}
	return out
}

// tellNode adds what one decision has to do with the node.
func (h *history) tellNode(ctx context.Context, out *report.NodeStory, id identity, r port.Record) error {
	p := &r.Decision.Proposal
	for i := range p.Claims {
		if p.Claims[i].Name != id.claim || id.claim == "" {
			continue
		}
		a, err := h.arrival(r, i, h.chooser(ctx, r.Decision))
		if err != nil {
			return err
		}
		out.Came, out.NodePool, out.Offering = a, a.Claim.NodePool, offering(&a.Claim)
	}
	for _, n := range p.Nodes {
		if !id.is(identity{n.Claim, n.Name, instanceID(n.ProviderID)}) {
			continue
		}
		d, err := h.departure(r, n)
		if err != nil {
			return err
		}
		out.Decisions = append(out.Decisions, *d)
	}
	for _, in := range p.Instances {
		if !id.is(identity{claim: in.Claim, instance: in.ID}) {
			continue
		}
		d, err := h.departure(r, reclaimed(in))
		if err != nil {
			return err
		}
		out.Decisions = append(out.Decisions, *d)
	}
	for _, pl := range p.Placements {
		if pl.Node == id.key() {
			a, err := h.act(r.Decision, r.Outcome)
			if err != nil {
				return err
			}
			out.Joined = append(out.Joined, report.Joined{Act: a, Pods: pl.Pods})
		}
	}
	return nil
}

// reclaimed is an instance as a node to remove.
func reclaimed(in decision.Instance) decision.Node {
	return decision.Node{Claim: in.Claim, InstanceType: in.InstanceType, Zone: in.Zone, CapacityType: in.CapacityType, ProviderID: in.ID}
}

func offering(c *decision.Claim) decision.Offering {
	return decision.Offering{InstanceType: c.InstanceType, Zone: c.Zone, CapacityType: c.CapacityType, Price: c.Price}
}

// arrival explains a claim of a decision.
func (h *history) arrival(r port.Record, index int, ch *chooser) (*report.Arrival, error) {
	d := r.Decision
	c := d.Proposal.Claims[index]
	act, err := h.actOf(d, r.Outcome, c.Name)
	if err != nil {
		return nil, err
	}
	out := &report.Arrival{Act: act, Claim: c, Choice: ch.choice(&c), Warnings: d.Verdict.Warnings, Rounds: d.Rounds, Steps: steps(r.Outcome, c.Name)}
	for _, n := range d.Proposal.Nodes {
		out.Replaces = append(out.Replaces, cmp.Or(n.Claim, n.Name))
	}
	return out, nil
}

// departure explains what a decision does to a node that exists.
func (h *history) departure(r port.Record, n decision.Node) (*report.Departure, error) {
	d := r.Decision
	p := &d.Proposal
	key := cmp.Or(n.Claim, n.Name, n.ProviderID)
	names := []string{key, n.Name, instanceID(n.ProviderID)}
	act, err := h.actOf(d, r.Outcome, names...)
	if err != nil {
		return nil, err
	}
	out := &report.Departure{
		Act: act, Node: n, Budgets: p.Budgets, Saving: -p.Cost, Moves: p.Placements, Interruption: p.Interruption,
		Verdict: d.Verdict, Second: second(r.Outcome, key), Steps: steps(r.Outcome, names...),
	}
	for _, o := range p.Nodes {
		if k := cmp.Or(o.Claim, o.Name); k != key {
			out.Together = append(out.Together, k)
		}
	}
	for i := range p.Claims {
		out.Replacements = append(out.Replacements, report.Replacement{Claim: p.Claims[i].Name, Offering: offering(&p.Claims[i])})
	}
	return out, nil
}

// steps are those about one of the names, and those about the whole.
func steps(o *decision.Outcome, names ...string) []decision.Step {
	if o == nil {
		return nil
	}
	var out []decision.Step
	for _, s := range o.Steps {
		if subject := cmp.Or(s.Claim, s.Node, s.Instance); subject == "" || slices.Contains(names, subject) {
			out = append(out, s)
		}
	}
	return out
}

// second is the judgement after the validation wait: of the node itself, of the
// whole, or of another node of the same command, which was judged as one.
func second(o *decision.Outcome, key string) *report.Judgement {
	if o == nil {
		return nil
	}
	var out *report.Judgement
	for _, s := range o.Steps {
		if s.Evaluation == nil && len(s.Violations) == 0 {
			continue
		}
		own := cmp.Or(s.Claim, s.Node, s.Instance) == key
		if out != nil && !own {
			continue
		}
		out = &report.Judgement{Time: s.Time, Allowed: len(s.Violations) == 0, Violations: s.Violations}
		if s.Evaluation != nil {
			out.Evaluation = s.Evaluation.DecisionID
		}
		if own {
			break
		}
	}
	return out
}

// place says where the node stands.
func (h *history) place(out *report.NodeStory, id identity) {
	launched := false
	if out.Came != nil {
		launched = launchedAs(out, out.Came.Steps)
	}
	removed := slices.ContainsFunc(out.Decisions, func(d report.Departure) bool {
		return slices.ContainsFunc(d.Steps, func(s decision.Step) bool { return s.State == decision.Terminated })
	})
	if n := len(out.Decisions); out.Offering.InstanceType == "" && n > 0 {
		d := &out.Decisions[n-1].Node
		out.NodePool = d.NodePool
		out.Offering = decision.Offering{InstanceType: d.InstanceType, Zone: d.Zone, CapacityType: d.CapacityType, Price: d.Price}
	}
	switch {
	case removed:
		out.State = "removed"
	case h.inTip(out, id):
	case out.Came != nil && !launched:
		out.State = "not launched"
	default:
		out.State = "unknown"
	}
}

// launchedAs takes over what was launched, and says whether anything was.
func launchedAs(out *report.NodeStory, steps []decision.Step) bool {
	for _, s := range steps {
		if s.State == decision.Launched {
			if s.Price != nil {
				out.Offering = decision.Offering{InstanceType: s.InstanceType, Zone: s.Zone, CapacityType: s.CapacityType, Price: *s.Price}
			}
			return true
		}
	}
	return false
}

// inTip says whether the node is in the last recorded state, and fills in what
// stands there.
func (h *history) inTip(out *report.NodeStory, id identity) bool {
	if h.tip == nil {
		return false
	}
	for _, n := range h.tip.Nodes {
		if !identityOf(n).is(id) {
			continue
		}
		out.State = "running"
		if n.Deleting || n.Removing != "" {
			out.State = "removing"
		}
		if c := n.Claim; c != nil && out.Offering.InstanceType == "" {
			out.NodePool = c.NodePool
			out.Offering = decision.Offering{InstanceType: c.InstanceType, Zone: c.Zone, CapacityType: c.CapacityType, Price: c.Price}
		}
		for _, p := range n.Pods {
			out.Pods = append(out.Pods, p.Key())
		}
		return true
	}
	return false
}
