package policy

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/reeve-project/reeve/reconciler/fleet"
)

// definition is what a bundle defines under one name: a rule that finds things, or
// one that others use.
type definition struct {
	kinds  []string
	bodies []string
	// severity, title and so on of the rule.
	notes []string
}

// definitions are those of a bundle: "Rule/<id>" for what finds things,
// "Rego/<package>.<name>" for the rest.
func definitions(b Bundle) (map[string]*definition, error) {
	modules, _, faults := parse(b)
	if len(faults) > 0 {
		return nil, newLoadError(faults)
	}
	list := make([]*ast.Module, 0, len(modules))
	for _, name := range sortedKeys(modules) {
		list = append(list, modules[name])
	}
	annotations, errs := ast.BuildAnnotationSet(list)
	if len(errs) > 0 {
		return nil, newLoadError(fromAST(errs))
	}
	c := &collector{annotations: annotations, spaces: namespacesOf(b.data), groups: map[string]*group{}}
	out := map[string]*definition{}
	for _, m := range list {
		for _, r := range m.Rules {
			c.define(m, r, out)
		}
	}
	return out, nil
}

// define adds one body to the definitions.
func (c *collector) define(m *ast.Module, r *ast.Rule, out map[string]*definition) {
	name := "Rego/" + packageName(m) + "." + headName(r)
	group, stage := c.spaces.groupOf(m.Package.Path)
	kind, _, found := "", "", false
	var notes []string
	if group != "" {
		if kind, _, found = c.kind(group, stage, headName(r), r); found {
			d := c.describe(m, r, stage, kind)
			name = "Rule/" + d.ID
			notes = []string{d.Severity, d.Title, d.Remediation}
		}
	}
	d := out[name]
	if d == nil {
		d = &definition{}
		out[name] = d
	}
	d.kinds = append(d.kinds, kind)
	bare := *r
	bare.Annotations = nil
	d.bodies = append(d.bodies, packageName(m)+"\n"+bare.String())
	d.notes = append(d.notes, strings.Join(notes, "\n"))
}

// ruleChanges compares the Rego of two bundles.
func ruleChanges(before, after Bundle) ([]PolicyChange, error) {
	a, err := definitions(before)
	if err != nil {
		return nil, err
	}
	b, err := definitions(after)
	if err != nil {
		return nil, err
	}
	all := maps.Clone(a)
	maps.Copy(all, b)
	out := []PolicyChange{}
	for _, name := range sortedKeys(all) {
		if c := definitionChange(name, a[name], b[name]); c != nil {
			out = append(out, *c)
		}
	}
	return out, nil
}

// definitionChange is nil when nothing differs.
func definitionChange(name string, a, b *definition) *PolicyChange {
	switch {
	case a == nil:
		return &PolicyChange{Op: opAdd, Resource: name, Loosened: slices.Contains(b.kinds, kindException)}
	case b == nil:
		return &PolicyChange{Op: opRemove, Resource: name, Loosened: !slices.Contains(a.kinds, kindException)}
	}
	c := &PolicyChange{Op: opChange, Resource: name}
	if !sameWords(a.bodies, b.bodies) {
		c.Fields = append(c.Fields, "body")
		// A rule that only finds more is no looser; a document that others use
		// may be, whatever was added to it.
		more := containsAll(b.bodies, a.bodies) && !slices.Contains(b.kinds, "") && !slices.Contains(b.kinds, kindException)
		c.Loosened = !more
	}
	if !sameWords(a.kinds, b.kinds) {
		c.Fields = append(c.Fields, "kind")
	}
	if !sameWords(a.notes, b.notes) {
		c.Fields = append(c.Fields, "annotations")
	}
	if len(c.Fields) == 0 {
		return nil
	}
	return c
}

func sameWords(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

func containsAll(have, want []string) bool {
	return !slices.ContainsFunc(want, func(w string) bool { return !slices.Contains(have, w) })
}

// dataChanges compares the members of data.policy.
func dataChanges(before, after json.RawMessage) ([]PolicyChange, error) {
	a, err := decodeObject(before)
	if err != nil {
		return nil, fmt.Errorf("previous policy data: %w", err)
	}
	b, err := decodeObject(after)
	if err != nil {
		return nil, fmt.Errorf("policy data: %w", err)
	}
	var out []PolicyChange
	for _, c := range memberChanges(a, b, "") {
		x, _ := a[c.Resource].(map[string]any)
		y, _ := b[c.Resource].(map[string]any)
		out = append(out, PolicyChange{Op: c.Op, Resource: "Policy/" + c.Resource, Fields: c.Fields, Loosened: c.Op != opAdd && dataLoosened(c.Resource, x, y)})
	}
	return out, nil
}

// dataLoosened says whether any setting of a member became looser. What is not
// known may have.
func dataLoosened(member string, a, b map[string]any) bool {
	if b == nil {
		return true
	}
	for _, key := range sortedKeys(union(a, b)) {
		if len(fields(a[key], b[key])) == 0 {
			continue
		}
		looser := directions[member][key]
		if looser == nil || looser(a[key], b[key]) {
			return true
		}
	}
	return false
}

// judgeChanges finds kinds that newly go ahead without a verdict.
func judgeChanges(a, b fleet.JudgeSettings) []PolicyChange {
	if sameWords(a.FailOpen, b.FailOpen) {
		return nil
	}
	return []PolicyChange{{Op: opChange, Resource: "Judge/failOpen", Loosened: !containsAll(a.FailOpen, b.FailOpen)}}
}

// environmentChanges finds that the fleet calls itself otherwise: rules and their
// settings choose by the environment, so another one may be judged by fewer.
func environmentChanges(a, b fleet.Cluster) []PolicyChange {
	if a.Environment == b.Environment {
		return nil
	}
	return []PolicyChange{{Op: opChange, Resource: "Judge/environment", Loosened: true}}
}

// exceptionChanges compares exceptions by rule and resource. To prolong one is
// to loosen.
func exceptionChanges(a, b []fleet.Exception) []PolicyChange {
	before, after := exceptionsByName(a), exceptionsByName(b)
	all := maps.Clone(before)
	maps.Copy(all, after)
	var out []PolicyChange
	for _, name := range sortedKeys(all) {
		x, had := before[name]
		y, has := after[name]
		switch {
		case !had:
			out = append(out, PolicyChange{Op: opAdd, Resource: name, Loosened: true})
		case !has:
			out = append(out, PolicyChange{Op: opRemove, Resource: name})
		case x != y:
			out = append(out, PolicyChange{Op: opChange, Resource: name, Loosened: y.Expires.After(x.Expires)})
		}
	}
	return out
}

func exceptionsByName(list []fleet.Exception) map[string]fleet.Exception {
	out := map[string]fleet.Exception{}
	for _, e := range list {
		name := "Exception/" + e.Rule + "/" + e.Resource
		if was, twice := out[name]; !twice || e.Expires.After(was.Expires) {
			e.Expires = e.Expires.UTC()
			out[name] = e
		}
	}
	return out
}
