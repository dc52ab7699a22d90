package policy

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/resources"
)

// DecisionInput is what policies of package reeve.decision see as input: what
// the engine wants to do, before it is done.
type DecisionInput struct {
	Kind decision.Kind `json:"kind"`
	// Now is the time of the pass, RFC 3339 in UTC.
	Now time.Time `json:"now"`
	// Cluster is the settings of the fleet in force.
	Cluster fleet.Cluster `json:"cluster"`
	// Proposal is what is to be done. The launchable types of its claims are
	// given by name.
	Proposal decision.Proposal `json:"proposal"`
	// Nodes are the nodes of the cluster that the proposal removes or places
	// pods on, with labels, taints and claim.
	Nodes []*cluster.Node `json:"nodes"`
	// Shapes are the pods of the proposal by the shape that its pod groups
	// name: labels, owner, requests and whatever else placement depends on.
	Shapes map[string]*cluster.Shape `json:"shapes"`
	// Prices are USD per hour by instance type, zone and capacity type, for the
	// launchable types of the claims. Policies always see an object.
	Prices Prices `json:"prices,omitempty"`
	// Costs is what the nodes that Reeve manages cost before the proposal.
	Costs Costs `json:"costs"`
	// Controller is where Reeve itself runs, if that is known.
	Controller cluster.Controller `json:"controller"`
	// Recent are the decisions of the last hour, oldest first.
	Recent []cluster.Recent `json:"recent"`
}

// Prices are USD per hour by instance type, zone and capacity type.
type Prices map[string]map[string]map[string]resources.Price

// Costs are what nodes cost, in USD per hour, at the prices of their offerings.
// A NodeClaim counts from its launch until a decision removes it or it is
// deleted.
type Costs struct {
	// Fleet is the sum over all NodePools.
	Fleet resources.Price `json:"fleet"`
	// NodePools are the sums by NodePool; one without nodes is not in it.
	NodePools map[string]resources.Price `json:"nodePools"`
}

// costs adds up what there is. Where the offering of a node is not among the
// types, such as when there are none, it costs what it did at its launch.
func costs(s *cluster.Snapshot, types *Types) Costs {
	out := Costs{NodePools: map[string]resources.Price{}}
	for _, n := range s.Nodes {
		if n.Claim == nil || n.Deleting || n.Removing != "" {
			continue
		}
		price, ok := types.price(n.Claim.InstanceType, n.Claim.Zone, n.Claim.CapacityType)
		if !ok {
			price = n.Claim.Price
		}
		if price > 0 {
			out.Fleet += price
			out.NodePools[n.Claim.NodePool] += price
		}
	}
	return out
}

// DecisionParts are the values that a decision depends on as far as policies see
// them.
type DecisionParts struct {
	Kind     decision.Kind
	Proposal decision.Proposal
	Fleet    *fleet.Fleet
	Snapshot *cluster.Snapshot
	// Types give the prices of the launchable types. May be nil when the
	// proposal has no claims.
	Types *Types
}

// DecisionQuery is a proposal to be judged.
type DecisionQuery struct {
	// in lacks the prices, which Types converts better.
	in    DecisionInput
	names []string
	types *Types
}

// NewDecisionQuery takes from a fleet and a snapshot what policies see of a
// proposal. It fails when the proposal refers to a list of types that it does
// not hold.
func NewDecisionQuery(p DecisionParts) (DecisionQuery, error) {
	q := DecisionQuery{types: p.Types, in: DecisionInput{
		Kind: p.Kind, Now: decision.Milliseconds(p.Snapshot.Time), Cluster: p.Fleet.Cluster,
		Proposal: p.Proposal, Costs: costs(p.Snapshot, p.Types), Controller: p.Snapshot.Controller,
		Nodes: []*cluster.Node{}, Shapes: map[string]*cluster.Shape{},
		Recent: append([]cluster.Recent{}, p.Snapshot.Recent...),
	}}
	q.in.Proposal.Claims = slices.Clone(p.Proposal.Claims)
	for i := range q.in.Proposal.Claims {
		c := &q.in.Proposal.Claims[i]
		names, err := c.Launchable.Resolve(p.Proposal.Lists)
		if err != nil {
			return DecisionQuery{}, fmt.Errorf("claim %d: %w", c.Index, err)
		}
		c.Launchable = decision.TypeSet{Count: len(names), Names: names}
		q.names = append(q.names, names...)
	}
	slices.Sort(q.names)
	q.names = slices.Compact(q.names)
	q.in.addNodes(p.Snapshot)
	q.in.addShapes(p.Snapshot)
	return q, nil
}

// Input is what policies see.
func (q *DecisionQuery) Input() DecisionInput {
	in := q.in
	in.Prices = Prices{}
	if q.types != nil {
		in.Prices = q.types.Prices(q.names)
	}
	return in
}

// value is Input converted, with its digest. In the digest the prices stand by
// theirs.
func (q *DecisionQuery) value() (ast.Value, string, error) {
	v, digest, err := encodeInput(q.in)
	if err != nil {
		return nil, "", err
	}
	prices, of := ast.ObjectTerm(), ""
	if q.types != nil {
		prices, of = q.types.priceTerms(q.names), q.types.digest
	}
	obj, ok := v.(ast.Object)
	if !ok {
		return nil, "", fmt.Errorf("input is %s, not an object", ast.ValueName(v))
	}
	obj.Insert(ast.InternedTerm("prices"), prices)
	return obj, digests(digest, of), nil
}

// addNodes finds the nodes that the proposal touches.
func (in *DecisionInput) addNodes(s *cluster.Snapshot) {
	keys := map[string]bool{}
	for _, n := range in.Proposal.Nodes {
		if n.Claim != "" {
			keys[n.Claim] = true
		} else {
			keys[n.Name] = true
		}
	}
	for _, p := range in.Proposal.Placements {
		keys[p.Node] = true
	}
	for _, key := range sortedKeys(keys) {
		if n := s.Node(key); n != nil {
			in.Nodes = append(in.Nodes, n)
		}
	}
}

// addShapes finds the shapes that the pod groups of the proposal name.
func (in *DecisionInput) addShapes(s *cluster.Snapshot) {
	want := map[string]bool{}
	need := func(groups []decision.PodGroup) {
		for _, g := range groups {
			want[g.Shape] = true
		}
	}
	for i := range in.Proposal.Claims {
		need(in.Proposal.Claims[i].Pods)
	}
	for i := range in.Proposal.Nodes {
		need(in.Proposal.Nodes[i].Pods)
	}
	for _, p := range in.Proposal.Placements {
		need(p.Pods)
	}
	for _, u := range in.Proposal.Unplaced {
		need(u.Pods)
	}
	if len(want) == 0 {
		return
	}
	take := func(pods []*cluster.Pod) {
		for _, p := range pods {
			if want[p.Shape.ID] {
				in.Shapes[p.Shape.ID] = p.Shape
			}
		}
	}
	take(s.Pending)
	for _, n := range s.Nodes {
		take(n.Pods)
	}
}

// Decision judges a proposal before it is acted on. Exclusions are about the
// launchable types of its claims. The error is that of ctx.
func (e *Engine) Decision(ctx context.Context, c Case, dq DecisionQuery) (Result, error) {
	input, digest, err := dq.value()
	if err != nil {
		return Result{}, err
	}
	in := &dq.in
	q := &question{
		stage: StageDecision, kind: in.Kind, digest: digest,
		nodePool: in.Proposal.NodePool, scope: claimTypes(in.Proposal.Claims),
	}
	if q.nodePool != "" {
		q.resources = []string{"NodePool/" + q.nodePool}
	}
	q.ask = func(ctx context.Context) ([]element, error) {
		return e.elements(ctx, string(StageDecision), input, c.Now)
	}
	a, err := e.judge(ctx, c, q)
	if err != nil {
		return Result{}, err
	}
	return e.result(c, q, a), nil
}

// launchable are the launchable types of claims by NodePool.
type launchable map[string][]string

func claimTypes(claims []decision.Claim) launchable {
	out := launchable{}
	for i := range claims {
		out[claims[i].NodePool] = append(out[claims[i].NodePool], claims[i].Launchable.Names...)
	}
	for pool, names := range out {
		slices.Sort(names)
		out[pool] = slices.Compact(names)
	}
	return out
}

func (l launchable) all(nodePool, _, _ string) []string { return l[nodePool] }

func (l launchable) has(name, nodePool, _, _ string) bool {
	_, ok := slices.BinarySearch(l[nodePool], name)
	return ok
}
