package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/resources"
)

// FleetChange is how a fleet differs from the one of the base.
type FleetChange struct {
	// Known is how many findings the base has as well: they are not listed.
	Known int `json:"known"`
	// Fixed are the findings of the base that are gone.
	Fixed []decision.Finding `json:"fixed"`
	// Fields are the fields that differ, and what that does to nodes.
	Fields []FieldChange `json:"fields"`
	// Policies are the rules, policy data and exceptions that differ.
	Policies []PolicyChange `json:"policies"`
	// Choices are what each NodePool can launch before and after, by name;
	// empty when the catalog of the region is not known.
	Choices []ChoiceChange `json:"choices"`
	// Budgets are the weeks of the NodePools whose disruption budgets differ.
	Budgets []BudgetWeek `json:"budgets"`
}

// Effect is what a changed field does to the nodes that are there.
type Effect string

// The effects, from the smallest to the largest.
const (
	// InPlace changes no node: it takes effect as it is read.
	InPlace Effect = "in place"
	// NewNodesOnly changes only nodes that are made afterwards.
	NewNodesOnly Effect = "new nodes only"
	// ReplacesOutside replaces, by drift, the nodes that the new value does not
	// cover.
	ReplacesOutside Effect = "replaces nodes that no longer match"
	// Replaces replaces all nodes by drift, or removes them.
	Replaces Effect = "replaces nodes"
)

// FieldChange is a field that differs, or an object that was added or removed.
type FieldChange struct {
	// Op is "add", "remove" or "change".
	Op string `json:"op"`
	// Resource is "NodePool/default", "EC2NodeClass/default" or
	// "Cluster/myeks".
	Resource string `json:"resource"`
	// Field is the path below the resource, empty for the whole object. An
	// element of a list that has a key is named by it:
	// spec.template.spec.requirements["kubernetes.io/arch"].values.
	Field string `json:"field,omitempty"`
	// From and To are the values as JSON, nil where there is none.
	From json.RawMessage `json:"from,omitempty"`
	To   json.RawMessage `json:"to,omitempty"`
	// Effect is what becomes of nodes, Why is what decides it.
	Effect Effect `json:"effect"`
	Why    string `json:"why"`
	// Position of the field, or of its nearest parent that is still there.
	Position *fleet.Position `json:"position,omitempty"`
}

// values are what it was and what it is, for a reader. Of lists of words that
// are too long to be shown only the words that differ are.
func (f *FieldChange) values() (from, to string) {
	var before, after []string
	long := len([]rune(string(f.From))) > maxValue || len([]rune(string(f.To))) > maxValue
	if !long || json.Unmarshal(f.From, &before) != nil || json.Unmarshal(f.To, &after) != nil {
		return value(f.From), value(f.To)
	}
	return differing(before, after), differing(after, before)
}

// differing are the words that the other list lacks, and how many it has too.
func differing(words, others []string) string {
	const most = 8
	var own []string
	for _, w := range words {
		if !slices.Contains(others, w) {
			own = append(own, strconv.Quote(w))
		}
	}
	same := len(words) - len(own)
	switch {
	case len(own) == 0:
		return fmt.Sprintf("[%d words]", len(words))
	case len(own) > most:
		own = append(own[:most], fmt.Sprintf("%d more", len(own)-most))
	}
	return fmt.Sprintf("[%s and %d in both]", strings.Join(own, ","), same)
}

// maxValue is how many characters of a value are shown.
const maxValue = 160

func value(raw json.RawMessage) string {
	if raw == nil {
		return "(none)"
	}
	if text := []rune(string(raw)); len(text) > maxValue {
		return string(text[:maxValue]) + "…"
	}
	return string(raw)
}

// PolicyChange is a difference of policies.
type PolicyChange struct {
	// Op is "add", "remove" or "change".
	Op string `json:"op"`
	// Resource is "Rule/REEVE-AMI-001", "Policy/amiPinning", "Exception/…".
	Resource string   `json:"resource"`
	Fields   []string `json:"fields,omitempty"`
	// Loosened says that what was refused before may pass now.
	Loosened bool `json:"loosened"`
}

// ChoiceChange is what a NodePool can launch before and after. One of them is
// nil for a NodePool that is only in one of the fleets.
type ChoiceChange struct {
	NodePool string      `json:"nodePool"`
	Before   *PoolChoice `json:"before,omitempty"`
	After    *PoolChoice `json:"after,omitempty"`
	// Gained and Lost are the names of the types that differ, sorted.
	Gained []string `json:"gained,omitempty"`
	Lost   []string `json:"lost,omitempty"`
}

// PoolChoice is what a NodePool can launch.
type PoolChoice struct {
	// Types is how many instance types, Spot how many of them as spot.
	Types int `json:"types"`
	Spot  int `json:"spot"`
	// OnDemand and SpotFrom are the cheapest offerings.
	OnDemand Offer `json:"onDemand,omitzero"`
	SpotFrom Offer `json:"spotFrom,omitzero"`
	// Short are the minValues that the types do not reach: "key: 2 of 3".
	Short []string `json:"short,omitempty"`
}

// Offer is the price of an instance type in a zone.
type Offer struct {
	InstanceType string          `json:"instanceType"`
	Zone         string          `json:"zone"`
	Price        resources.Price `json:"price"`
}

// String is the price and what it buys.
func (o Offer) String() string {
	if o == (Offer{}) {
		return "none"
	}
	return fmt.Sprintf("%s %s", o.InstanceType, o.Price)
}

// changed says whether something differs that a reader decides by.
func (c *ChoiceChange) changed() bool {
	if c.Before == nil || c.After == nil {
		return true
	}
	a, b := *c.Before, *c.After
	short := slices.Equal(a.Short, b.Short)
	return len(c.Gained)+len(c.Lost) > 0 || !short || a.Types != b.Types || a.Spot != b.Spot || a.OnDemand != b.OnDemand || a.SpotFrom != b.SpotFrom
}

// SpotTypes is how many instance types it takes to replace a spot node by a
// cheaper spot node (Karpenter: pkg/controllers/disruption,
// MinInstanceTypesForSpotToSpotConsolidation).
const SpotTypes = 15

func (c *PoolChoice) types() string {
	if c == nil {
		return "–"
	}
	return fmt.Sprint(c.Types)
}

func (c *PoolChoice) spot() string {
	switch {
	case c == nil:
		return "–"
	case c.Spot > 0 && c.Spot < SpotTypes:
		return fmt.Sprintf("%d (under %d)", c.Spot, SpotTypes)
	default:
		return fmt.Sprint(c.Spot)
	}
}

func (c *PoolChoice) onDemand() string {
	if c == nil {
		return "–"
	}
	return c.OnDemand.String()
}

func (c *PoolChoice) spotFrom() string {
	if c == nil {
		return "–"
	}
	return c.SpotFrom.String()
}

func (c *PoolChoice) minValues() string {
	switch {
	case c == nil:
		return "–"
	case len(c.Short) == 0:
		return "met"
	default:
		return strings.Join(c.Short, ", ")
	}
}

// arrow is a value that stayed, or the one before and the one after.
func arrow(before, after string) string {
	if before == after {
		return after
	}
	return before + " → " + after
}

// rows are the facts of the choice that a reader compares: a name, and what it
// was and is.
func (c *ChoiceChange) rows() [][2]string {
	return [][2]string{
		{"types", arrow(c.Before.types(), c.After.types())},
		{"spot types", arrow(c.Before.spot(), c.After.spot())},
		{"on-demand from", arrow(c.Before.onDemand(), c.After.onDemand())},
		{"spot from", arrow(c.Before.spotFrom(), c.After.spotFrom())},
		{"minValues", arrow(c.Before.minValues(), c.After.minValues())},
	}
}

func (p *printer) fleetChange(cc *ClusterCheck) {
	ch := cc.Change
	if ch == nil {
		return
	}
	for _, f := range ch.Fixed {
		p.line("%s: fixed: %s: %s%s", cc.Cluster, f.Rule, f.Message, suffix(" ", parenthesis(f.Resource)))
	}
	for i := range ch.Fields {
		p.fieldChange(cc.Cluster, &ch.Fields[i])
	}
	for _, c := range ch.Policies {
		loosened := ""
		if c.Loosened {
			loosened = " (may let pass what was refused before)"
		}
		p.line("%s: %s %s%s%s", cc.Cluster, c.Op, c.Resource, suffix(": ", strings.Join(c.Fields, ", ")), loosened)
	}
	for i := range ch.Choices {
		if c := &ch.Choices[i]; c.changed() {
			var facts []string
			for _, r := range c.rows() {
				facts = append(facts, r[0]+" "+r[1])
			}
			p.line("%s: NodePool %s: %s", cc.Cluster, c.NodePool, strings.Join(facts, "; "))
		}
	}
	for i := range ch.Budgets {
		p.week(&ch.Budgets[i])
	}
}

func (p *printer) fieldChange(cluster string, f *FieldChange) {
	where := cluster
	if f.Position != nil {
		where = f.Position.String()
	}
	what := f.Op + " " + f.Resource
	if f.Field != "" {
		from, to := f.values()
		what = fmt.Sprintf("change: %s %s: %s → %s", f.Resource, f.Field, from, to)
	}
	p.line("%s: %s: %s", where, what, f.Effect)
	p.line("    %s", cmp.Or(f.Why, "-"))
}
