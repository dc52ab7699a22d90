package policy

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/fleet"
)

// The operations of a change.
const (
	opAdd    = "add"
	opRemove = "remove"
	opChange = "change"
)

// Diff is what differs between two fleets and the policies that judge them.
type Diff struct {
	// Resources are the objects and settings that differ: "NodePool/default",
	// "EC2NodeClass/default", "Cluster/myeks".
	Resources []decision.Change `json:"resources"`
	// Policies are the rules, settings and exceptions that differ:
	// "Rule/REEVE-AMI-001", "Rego/lib.teams.owners" (a document that rules use),
	// "Policy/amiPinning" (a member of data.policy),
	// "Exception/REEVE-AMI-001/EC2NodeClass/default", "Judge/failOpen",
	// "Judge/environment" (cluster.environment, by which rules choose).
	Policies []PolicyChange `json:"policies"`
}

// PolicyChange is a difference of policies.
type PolicyChange struct {
	// Op is "add", "remove" or "change".
	Op string `json:"op"`
	// Resource is what differs, as Diff.Policies names it.
	Resource string `json:"resource"`
	// Fields are what differs of it.
	Fields []string `json:"fields,omitempty"`
	// Loosened says that what was refused before may pass now. It is true where
	// that cannot be ruled out: of a changed body nobody can tell.
	Loosened bool `json:"loosened"`
}

// PolicyChanges are the changes of policies as a decision records them.
func (d Diff) PolicyChanges() []decision.Change {
	var out []decision.Change
	for _, c := range d.Policies {
		out = append(out, decision.Change{Op: c.Op, Resource: c.Resource, Fields: c.Fields})
	}
	return out
}

// NewDiff compares a fleet with the one before, which is nil for the first. The
// bundles are those that the fleets bring along; of the first fleet only the
// exceptions count as a change of policies. It fails when a document is no JSON
// or a file of policies does not parse.
func NewDiff(previous, next *fleet.Fleet, before, after Bundle) (Diff, error) {
	d := Diff{Resources: []decision.Change{}, Policies: []PolicyChange{}}
	old := &fleet.Fleet{}
	if previous != nil {
		old = previous
	}
	var err error
	if d.Resources, err = resourceChanges(old, next); err != nil {
		return Diff{}, err
	}
	if previous != nil {
		if d.Policies, err = ruleChanges(before, after); err != nil {
			return Diff{}, err
		}
		data, err := dataChanges(before.data, after.data)
		if err != nil {
			return Diff{}, err
		}
		d.Policies = append(d.Policies, data...)
		d.Policies = append(d.Policies, judgeChanges(old.Cluster.Judge, next.Cluster.Judge)...)
		d.Policies = append(d.Policies, environmentChanges(old.Cluster, next.Cluster)...)
	}
	d.Policies = append(d.Policies, exceptionChanges(old.Exceptions, next.Exceptions)...)
	slices.SortStableFunc(d.Policies, func(a, b PolicyChange) int { return cmp.Compare(a.Resource, b.Resource) })
	return d, nil
}

// resourceChanges compares settings, NodePools and EC2NodeClasses.
func resourceChanges(old, next *fleet.Fleet) ([]decision.Change, error) {
	a, err := decodeObject(old.Document)
	if err != nil {
		return nil, fmt.Errorf("document of the previous fleet: %w", err)
	}
	b, err := decodeObject(next.Document)
	if err != nil {
		return nil, fmt.Errorf("document of the fleet: %w", err)
	}
	out := []decision.Change{}
	if f := fields(a["cluster"], b["cluster"]); len(f) > 0 {
		c := decision.Change{Op: opChange, Resource: "Cluster/" + cmp.Or(next.Cluster.Name, old.Cluster.Name), Fields: f}
		if a["cluster"] == nil {
			c.Op, c.Fields = opAdd, nil
		}
		out = append(out, c)
	}
	for _, field := range []string{"nodePools", "nodeClasses"} {
		x, _ := a[field].(map[string]any)
		y, _ := b[field].(map[string]any)
		out = append(out, memberChanges(x, y, specKinds[field]+"/")...)
	}
	return out, nil
}

// memberChanges compares the members of two objects by name.
func memberChanges(a, b map[string]any, prefix string) []decision.Change {
	all := map[string]bool{}
	for name := range a {
		all[name] = true
	}
	for name := range b {
		all[name] = true
	}
	var out []decision.Change
	for _, name := range sortedKeys(all) {
		x, before := a[name]
		y, after := b[name]
		c := decision.Change{Op: opChange, Resource: prefix + name}
		switch {
		case !before:
			c.Op = opAdd
		case !after:
			c.Op = opRemove
		default:
			if c.Fields = fields(x, y); len(c.Fields) == 0 {
				continue
			}
		}
		out = append(out, c)
	}
	return out
}

func decodeObject(raw json.RawMessage) (map[string]any, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return map[string]any{}, nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var out map[string]any
	if err := dec.Decode(&out); err != nil {
		return nil, err
	}
	return out, nil
}

// fields are the paths at which two values differ, sorted. Lists of different
// length differ as a whole.
func fields(a, b any) []string {
	var out []string
	walkFields(a, b, nil, func(p fleet.Path) { out = append(out, p.String()) })
	slices.Sort(out)
	return out
}

func walkFields(a, b any, at fleet.Path, differ func(fleet.Path)) {
	switch x := a.(type) {
	case map[string]any:
		if y, ok := b.(map[string]any); ok {
			for _, c := range sortedKeys(union(x, y)) {
				walkFields(x[c], y[c], append(slices.Clone(at), c), differ)
			}
			return
		}
	case []any:
		if y, ok := b.([]any); ok && len(x) == len(y) {
			for i := range x {
				walkFields(x[i], y[i], append(slices.Clone(at), fmt.Sprint(i)), differ)
			}
			return
		}
	}
	if !reflect.DeepEqual(a, b) {
		differ(at)
	}
}

func union(a, b map[string]any) map[string]bool {
	out := map[string]bool{}
	for k := range a {
		out[k] = true
	}
	for k := range b {
		out[k] = true
	}
	return out
}
