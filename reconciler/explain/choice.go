package explain

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/pipeline"
	"github.com/reeve-project/reeve/reconciler/report"
	"github.com/reeve-project/reeve/reconciler/requirements"
	"github.com/reeve-project/reeve/reconciler/resources"
	"github.com/reeve-project/reeve/reconciler/scheduling"
)

// chooser explains the choices of one decision in the world it was made in.
type chooser struct {
	d     *decision.Decision
	world *pipeline.World
	// note is set when the world could not be read.
	note string
}

// chooser reads the world of a decision. That it cannot be read takes examples
// away and nothing else, so it is no error.
func (h *history) chooser(ctx context.Context, d *decision.Decision) *chooser {
	c := &chooser{d: d}
	if len(d.Proposal.Claims) == 0 {
		return c
	}
	e, ok := h.at[d.ID]
	if !ok {
		c.note = "the commit that records the decision is not in this clone"
		return c
	}
	w, err := h.replayer.World(ctx, e)
	if err != nil {
		c.note = "the inputs of the decision could not be read: " + err.Error()
	}
	c.world = w
	return c
}

// choice explains how the catalog became the choice of a claim.
func (c *chooser) choice(claim *decision.Claim) report.Choice {
	out := report.Choice{Steps: recorded(claim), Note: c.note}
	for _, o := range claim.Cheapest {
		if o.InstanceType != claim.InstanceType || o.Zone != claim.Zone || o.CapacityType != claim.CapacityType {
			out.Alternatives = append(out.Alternatives, report.Alternative{Offering: o, More: o.Price - claim.Price})
		}
	}
	if c.note != "" || len(claim.Filters) == 0 {
		return out
	}
	s, err := c.sieve(claim)
	if err == nil {
		err = s.run(out.Steps)
	}
	if err != nil {
		out.Note = err.Error()
	}
	return out
}

// recorded are the steps as the record has them.
func recorded(claim *decision.Claim) []report.ChoiceStep {
	var out []report.ChoiceStep
	for i, f := range claim.Filters {
		s := report.ChoiceStep{By: f.By, Left: f.Left}
		if i > 0 {
			s.Removed = claim.Filters[i-1].Left - f.Left
		}
		out = append(out, s)
	}
	return out
}

// sieve takes the types of a class through the steps of a claim again.
type sieve struct {
	c          *chooser
	claim      *decision.Claim
	pool       requirements.Set
	launchable map[string]bool
	excluded   map[string][]decision.Exclusion
	left       []option
}

// option is a type with those of its offerings that the claim may use.
type option struct {
	*catalog.InstanceType
	offers []catalog.Offering
	// why it leaves, when it does, and by which rules.
	why   string
	rules []string
}

func (c *chooser) sieve(claim *decision.Claim) (*sieve, error) {
	np := c.world.Fleet.NodePool(claim.NodePool)
	if np == nil {
		return nil, fmt.Errorf("NodePool %s is not in the fleet of the record", claim.NodePool)
	}
	types, err := c.world.InstanceTypes(claim.NodeClass)
	if err != nil {
		return nil, err
	}
	reqs, err := requirements.FromKarpenter(np.Spec.Template.Spec.Requirements)
	if err != nil {
		return nil, fmt.Errorf("NodePool %s: %w", claim.NodePool, err)
	}
	names, err := claim.Launchable.Resolve(c.d.Proposal.Lists)
	if err != nil {
		return nil, fmt.Errorf("launchable types: %w", err)
	}
	s := &sieve{c: c, claim: claim, launchable: map[string]bool{}, excluded: map[string][]decision.Exclusion{}}
	s.pool = reqs.Merge(requirements.FromLabels(np.Spec.Template.Labels))
	for _, n := range names {
		s.launchable[n] = true
	}
	for _, x := range c.d.Verdict.Exclusions {
		names, err := x.Types.Resolve(c.d.Proposal.Lists)
		if err != nil {
			return nil, fmt.Errorf("exclusion by %s: %w", x.Rule, err)
		}
		for _, n := range names {
			if x.NodePool == "" || x.NodePool == claim.NodePool {
				s.excluded[n] = append(s.excluded[n], x)
			}
		}
	}
	for _, t := range types {
		s.left = append(s.left, option{InstanceType: t})
	}
	return s, nil
}

// run fills in what each step removed. A step that comes out otherwise than it
// is recorded ends it: what cannot be shown to be true is not said.
func (s *sieve) run(steps []report.ChoiceStep) error {
	for i := range steps {
		st := &steps[i]
		kept, gone, err := s.apply(st)
		if err != nil {
			return err
		}
		if len(kept) != st.Left {
			return fmt.Errorf("the step %q leaves %d types in the record and %d when worked out again, so what it and later steps removed is not shown", st.By, st.Left, len(kept))
		}
		s.left, st.Known = kept, true
		s.tell(st, gone)
	}
	return nil
}

func (s *sieve) apply(st *report.ChoiceStep) (kept, gone []option, err error) {
	switch st.By {
	case scheduling.FilterCatalog:
		return s.left, nil, nil
	case scheduling.FilterRequirements:
		return s.split(s.meets(s.pool, false))
	case scheduling.FilterPolicy:
		return s.split(s.allowed)
	case scheduling.FilterOfferings:
		return s.split(s.offered)
	case scheduling.FilterLimits:
		return s.limited(st)
	case scheduling.FilterPods:
		return s.split(s.meets(s.claim.Requirements, true))
	case scheduling.FilterResources:
		return s.split(s.holds)
	case scheduling.FilterExotic:
		return s.plain()
	case scheduling.FilterSpotPrice:
		return s.notDear()
	case scheduling.FilterCheapest:
		// This step keeps the cheapest, with the variety that minValues ask
		// for: what it kept is in the record.
		return s.split(func(o *option) bool {
			o.why = "not among the cheapest that EC2 may choose from"
			return s.launchable[o.Name]
		})
	}
	if kept, gone, err, ok := s.replacing(st); ok {
		return kept, gone, err
	}
	if len(s.left) == st.Left {
		return s.left, nil, nil
	}
	return nil, nil, fmt.Errorf("the step %q is not worked out again, so what it and later steps removed is not shown", st.By)
}

func (s *sieve) split(keep func(*option) bool) (kept, gone []option, err error) {
	for _, o := range s.left {
		if keep(&o) {
			o.why, o.rules = "", nil
			kept = append(kept, o)
		} else {
			gone = append(gone, o)
		}
	}
	return kept, gone, nil
}

// meets keeps the types that meet the requirements, and with narrow only their
// offerings that do.
func (s *sieve) meets(reqs requirements.Set, narrow bool) func(*option) bool {
	return func(o *option) bool {
		for r := range reqs.All() {
			if has, ok := o.Requirements.Lookup(r.Key()); ok && !has.Meets(r) {
				o.why = fmt.Sprintf("%s, wanted %s", values(has), strings.TrimPrefix(r.String(), r.Key()+" "))
				return false
			}
		}
		if narrow {
			o.offers = slices.DeleteFunc(slices.Clone(o.offers), func(f catalog.Offering) bool { return !admits(reqs, f) })
			o.why = "no offering that meets them"
			return len(o.offers) > 0
		}
		return true
	}
}

// values are what a type has for a label.
func values(r requirements.Requirement) string {
	if len(r.Values()) == 0 {
		return r.String()
	}
	return r.Key() + " is " + strings.Join(r.Values(), ", ")
}

// admits says whether the requirements take the zone and capacity type.
func admits(reqs requirements.Set, o catalog.Offering) bool {
	return reqs.Get(karpv1.CapacityTypeLabelKey).Has(o.CapacityType) && reqs.Get(corev1.LabelTopologyZone).Has(o.Zone) &&
		(o.ZoneID == "" || reqs.Get(awsv1.LabelTopologyZoneID).Has(o.ZoneID))
}

// allowed keeps the types of which policy leaves an offering, and those that
// have none to begin with.
func (s *sieve) allowed(o *option) bool {
	had := false
	for _, f := range o.Offerings {
		if !admits(s.pool, f) {
			continue
		}
		had = true
		rule := s.excludedBy(o, f)
		if rule == "" {
			return true
		}
		if !slices.Contains(o.rules, rule) {
			o.rules = append(o.rules, rule)
		}
	}
	o.why = "excluded by " + strings.Join(o.rules, ", ")
	return !had
}

func (s *sieve) excludedBy(o *option, f catalog.Offering) string {
	for _, x := range s.excluded[o.Name] {
		if (x.Zone == "" || x.Zone == f.Zone) && (x.CapacityType == "" || x.CapacityType == f.CapacityType) {
			return x.Rule
		}
	}
	return ""
}

// offered keeps the types with an offering that could be launched.
func (s *sieve) offered(o *option) bool {
	o.why = "no offering in the zones and capacity types asked for"
	for _, f := range o.Offerings {
		switch {
		case !admits(s.pool, f) || s.excludedBy(o, f) != "":
		case !f.Available:
			o.why = cmp.Or(f.Reason, o.why)
		case s.c.world.Snapshot.IsUnavailable(o.Name, f.Zone, f.CapacityType):
			o.why = "EC2 had no capacity a short while before"
		default:
			o.offers = append(o.offers, f)
		}
	}
	return len(o.offers) > 0
}

// holds keeps the types with room for the pods and daemons.
func (s *sieve) holds(o *option) bool {
	lacking := s.claim.Requests.Lacking(o.Allocatable)
	if len(lacking) > 0 {
		n := lacking[0]
		have, want := resources.Quantity(n, o.Allocatable[n]), resources.Quantity(n, s.claim.Requests[n])
		o.why = fmt.Sprintf("%s %s, wanted %s", n, have.String(), want.String())
	}
	return len(lacking) == 0
}
