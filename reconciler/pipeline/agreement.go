package pipeline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/resources"
	"github.com/reeve-project/reeve/reconciler/scheduling"
)

// decisions are what is left when the rounds are over.
func (n *negotiation) decisions() ([]*decision.Decision, error) {
	var out []*decision.Decision
	for _, pool := range n.pools {
		d := n.proposals[pool]
		if err := n.settle(d); err != nil {
			return nil, err
		}
		if len(d.Proposal.Claims) == 0 {
			continue
		}
		rounds, evaluations := n.others(pool)
		d.Rounds, d.Evaluations = append(rounds, n.rounds[pool]...), append(evaluations, n.evaluations[pool]...)
		d.Verdict.Exclusions = n.exclusions[pool]
		d.Verdict.Warnings = append(slices.Clone(n.warnings[pool]), d.Verdict.Warnings...)
		d.Verdict.Allowed = len(d.Verdict.Violations) == 0
		d.Summary = summarizeProvision(d)
		d, err := n.w.finish(d)
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	if len(n.plan.Unplaced) > 0 {
		d, err := n.unplaced()
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}

// others is what other NodePools had a part in a decision with: the rounds of
// those whose nodes were all talked out of the plan, which have no decision of
// their own, and evaluations that only hold as they were recorded.
func (n *negotiation) others(pool string) (rounds []decision.Round, evaluations []decision.Evaluation) {
	for _, np := range n.w.Fleet.ByWeight() {
		if np.Name == pool {
			continue
		}
		gone := len(n.rounds[np.Name]) > 0 && !slices.Contains(n.pools, np.Name)
		for _, r := range n.rounds[np.Name] {
			if gone {
				rounds = append(rounds, r)
			}
		}
		for _, ev := range n.evaluations[np.Name] {
			if gone || !ev.Custom.Cause.Reproducible() {
				evaluations = append(evaluations, ev)
			}
		}
	}
	return rounds, evaluations
}

// settle takes out of a proposal what was still objected to when the rounds
// were over. Only what nobody objects to goes ahead.
func (n *negotiation) settle(d *decision.Decision) error {
	p := &d.Proposal
	targets := make([]target, len(d.Verdict.Violations))
	for i, f := range d.Verdict.Violations {
		targets[i] = targetOf(f, p.Claims)
	}
	kept := p.Claims[:0]
	renamed := map[string]string{}
	p.Cost = 0
	for _, c := range p.Claims {
		if ids := append(objecting(d.Verdict.Violations, targets, &c), n.excludedBy(&c)...); len(ids) > 0 {
			n.plan.Unplaced = append(n.plan.Unplaced, n.left(&c, ids))
			continue
		}
		renamed[fmt.Sprintf("NodeClaim/%d", c.Index)] = fmt.Sprintf("NodeClaim/%d", len(kept))
		c.Index = len(kept)
		kept = append(kept, c)
		p.Cost += c.Price
	}
	p.Claims = kept
	d.Verdict.Violations = nil
	d.Verdict.Warnings = slices.Clone(d.Verdict.Warnings)
	for i := range d.Verdict.Warnings {
		f := &d.Verdict.Warnings[i]
		f.Resource = cmp.Or(renamed[f.Resource], f.Resource)
	}
	return group(p.Claims)
}

// excludedBy are the rules that exclude the offering that a claim counts on. The
// engine respects exclusions, so only one of the last round can be met here.
func (n *negotiation) excludedBy(c *decision.Claim) []string {
	for _, x := range n.excluded.Offerings[c.NodePool] {
		if x.Type == c.InstanceType && (x.Zone == "" || x.Zone == c.Zone) && (x.CapacityType == "" || x.CapacityType == c.CapacityType) {
			return []string{x.Rule}
		}
	}
	return nil
}

// objecting are the rules that object to a claim.
func objecting(fs []decision.Finding, targets []target, c *decision.Claim) []string {
	var hit []decision.Finding
	for i, f := range fs {
		if targets[i].hits(c) {
			hit = append(hit, f)
		}
	}
	return rules(hit)
}

// left are the pods of a claim that policy did not let go ahead.
func (n *negotiation) left(c *decision.Claim, ids []string) scheduling.Unplaced {
	keys := map[string]bool{}
	for _, k := range podKeys(c.Pods) {
		keys[k] = true
	}
	var pods []*cluster.Pod
	for _, p := range n.snap.Pending {
		if keys[p.Key()] {
			pods = append(pods, p)
		}
	}
	return scheduling.Unplaced{
		Reason: scheduling.ReasonPolicy, Rules: ids, Pods: pods,
		Message: fmt.Sprintf("after %d rounds policy still denies the node for them: %s", maxRounds, strings.Join(ids, ", ")),
	}
}

// unplaced is the decision about the pods that stay pending. It denies: there
// is nothing to do about them.
func (n *negotiation) unplaced() (*decision.Decision, error) {
	d := &decision.Decision{Kind: decision.Provision, Proposal: decision.Proposal{Lists: n.lists, Cost: resources.Price(0)}}
	for _, u := range n.plan.Unplaced {
		d.Proposal.Unplaced = append(d.Proposal.Unplaced, decision.Unplaced{
			Reason: u.Reason, Message: u.Message, Rules: u.Rules, Pods: podGroups(u.Pods),
		})
	}
	d.Proposal.Reason = plural(len(n.snap.Pending), "pending pod")
	d.Verdict.Violations = distinct(n.denials)
	for _, pool := range n.w.Fleet.ByWeight() {
		d.Verdict.Exclusions = append(d.Verdict.Exclusions, n.exclusions[pool.Name]...)
		for _, ev := range n.evaluations[pool.Name] {
			if n.denying[pool.Name] != "" || !ev.Custom.Cause.Reproducible() {
				d.Evaluations = append(d.Evaluations, ev)
			}
		}
	}
	d.Summary = summarizeProvision(d)
	return n.w.finish(d)
}

// distinct are the findings without those that say the same of the same.
func distinct(fs []decision.Finding) []decision.Finding {
	type key struct{ rule, resource, message string }
	seen := map[key]bool{}
	var out []decision.Finding
	for _, f := range fs {
		k := key{f.Rule, f.Resource, f.Message}
		if !seen[k] {
			seen[k] = true
			out = append(out, f)
		}
	}
	return out
}
