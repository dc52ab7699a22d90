package policy

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/fleet"
)

// namespaces are the Rego packages that are run as conftest would run them.
type namespaces map[string]bool

// namespacesOf are main and those that data.policy.conftest.namespaces lists.
// The schema of fleets says what they may be called; data that is otherwise
// lists none.
func namespacesOf(data json.RawMessage) namespaces {
	out := namespaces{conftestPackage: true}
	var settings struct {
		Conftest struct {
			Namespaces []string `json:"namespaces"`
		} `json:"conftest"`
	}
	if json.Unmarshal(data, &settings) == nil {
		for _, name := range settings.Conftest.Namespaces {
			out[name] = true
		}
	}
	return out
}

// missing are warnings about namespaces of which there is no file: a name that
// is misspelled would switch its rules off without a word.
func (s namespaces) missing(modules map[string]*ast.Module) []decision.Finding {
	found := map[string]bool{conftestPackage: true}
	for _, m := range modules {
		found[strings.Join(refWords(m.Package.Path), ".")] = true
	}
	var out []decision.Finding
	for _, name := range sortedKeys(s) {
		if found[name] {
			continue
		}
		out = append(out, decision.Finding{
			Rule: RuleNamespace, Severity: severityWarning, Title: "A namespace of conftest has no rules",
			Message:     fmt.Sprintf("no file below policies/ is of package %s", name),
			Path:        fleet.Path{"policy", "conftest", "namespaces"},
			Remediation: "Name a package that there is, or take it out of policy.conftest.namespaces.",
		})
	}
	return out
}

// conftest runs package main, and those of policy.conftest.namespaces, once for
// each rendered object, in the order of kinds and names.
func (e *Engine) conftest(ctx context.Context, in SpecInput, now time.Time) ([]element, error) {
	if e.groups[conftestPackage] == nil {
		return nil, nil
	}
	docs, err := parseDocuments(&fleet.Fleet{Document: json.RawMessage(in.Fleet)})
	if err != nil {
		return nil, err
	}
	var out []element
	for _, part := range []struct {
		field   string
		objects map[string]json.RawMessage
	}{{"nodePools", docs.NodePools}, {"nodeClasses", docs.NodeClasses}} {
		for _, name := range sortedKeys(part.objects) {
			els, err := e.conftestObject(ctx, part.objects[name], fleet.Path{part.field, name}, now)
			if err != nil {
				return nil, fmt.Errorf("%s/%s: %w", specKinds[part.field], name, err)
			}
			out = append(out, els...)
		}
	}
	return out, nil
}

// conftestObject judges one object. Paths in its findings begin at the object.
func (e *Engine) conftestObject(ctx context.Context, doc json.RawMessage, at fleet.Path, now time.Time) ([]element, error) {
	input, err := toValue(doc)
	if err != nil {
		return nil, err
	}
	results, err := e.run(ctx, conftestPackage, input, now)
	if err != nil {
		return nil, err
	}
	excepted := map[exceptedRule]bool{}
	for _, f := range results {
		if f.body.Kind == kindException {
			if err := exceptedRules(f, excepted); err != nil {
				return nil, err
			}
		}
	}
	var out []element
	for _, f := range results {
		if f.body.Kind == kindException {
			continue
		}
		els, err := elements(f)
		if err != nil {
			return nil, err
		}
		for _, el := range els {
			el.path = append(append(fleet.Path{}, at...), el.path...)
			if el.resource == "" {
				el.resource = resourceOf(at)
			}
			el.excepted = f.body.exceptedBy(excepted)
			out = append(out, el)
		}
	}
	return out, nil
}

// exceptedRule is a word of conftest's rule exception in one namespace.
type exceptedRule struct{ namespace, word string }

// exceptedBy says whether the words name the rule: by what follows deny_,
// violation_ or warn_, and a rule without that by "" or by its name, as conftest
// documents the one and does the other.
func (b *body) exceptedBy(words map[exceptedRule]bool) bool {
	return words[exceptedRule{b.Package, b.suffix}] || (b.suffix == "" && words[exceptedRule{b.Package, b.head}])
}

// exceptedRules reads conftest's exception rule, a set of lists of words.
func exceptedRules(f found, into map[exceptedRule]bool) error {
	lists, err := members(f.value)
	if err != nil {
		return fmt.Errorf("%s: rule exception is %w: write it as a set of lists of rule names", f.body.source(), err)
	}
	for _, list := range lists {
		names, err := members(list.Value)
		if err != nil {
			return fmt.Errorf("%s: rule exception has %w in it, which is no list of rule names", f.body.source(), err)
		}
		for _, n := range names {
			if s, ok := n.Value.(ast.String); ok {
				into[exceptedRule{f.body.Package, string(s)}] = true
			}
		}
	}
	return nil
}
