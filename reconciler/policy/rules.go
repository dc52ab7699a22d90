package policy

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/fleet"
)

// Rule is one body of a rule, with what its annotations say.
type Rule struct {
	// ID is custom.id of the annotations, or the Rego path: "reeve.spec.deny".
	ID string
	// Stage in which it is evaluated.
	Stage Stage
	// Kind is "deny", "warn", "exclude" or "exception".
	Kind string
	// Severity is custom.severity, "error" or "warning", or "error" for deny and exclude and
	// "warning" for warn.
	Severity    string
	Title       string
	Description string
	// Remediation is custom.remediation.
	Remediation string
	// Package is the Rego package: "reeve.spec.ami_pinning".
	Package string
	// Position of the body.
	Position fleet.Position
}

const (
	kindDeny      = "deny"
	kindWarn      = "warn"
	kindExclude   = "exclude"
	kindException = "exception"

	severityError   = "error"
	severityWarning = "warning"

	// conftestPackage is the namespace of conftest that is always read.
	conftestPackage = "main"
	// findingsPackage gathers the results of all rules; generatedRule is the
	// prefix of the names that bodies are evaluated under. Neither can be
	// declared by a file.
	findingsPackage = "reeve_findings"
	generatedRule   = "__reeve_"
)

// source is "file:line" of the rule.
func (r *Rule) source() string { return fmt.Sprintf("%s:%d", r.Position.File, r.Position.Line) }

// body is a rule to evaluate.
type body struct {
	Rule
	// head is the name of the rule in its file, key the one of its result in
	// the document of the group.
	head, key string
	// suffix is what follows deny_ or violation_, which exceptions of conftest
	// name.
	suffix string
	// target is the generated document.
	target ast.Ref
}

// group is the bodies that are evaluated by one query.
type group struct {
	name   string // a stage or "main"
	bodies []*body
}

var (
	conftestDeny = regexp.MustCompile(`^(deny|violation)(_[A-Za-z0-9]+)*$`)
	conftestWarn = regexp.MustCompile(`^warn(_[A-Za-z0-9]+)*$`)
	looksLike    = regexp.MustCompile(`^(deny|violation|warn|exclude)(_[A-Za-z0-9]+)*$`)
)

// kinds that each stage knows.
var stageKinds = map[Stage][]string{
	StageSpec:     {kindDeny, kindWarn},
	StageOffering: {kindDeny, kindWarn, kindExclude},
	StageDecision: {kindDeny, kindWarn, kindExclude},
}

// stageNamed is the stage of a package by the words of its path, or "".
func stageNamed(words []string) Stage {
	if len(words) >= 2 && words[0] == "reeve" && slices.Contains(stages, Stage(words[1])) {
		return Stage(words[1])
	}
	return ""
}

// groupOf is the group that a package belongs to: a stage, "main" for what is
// run as conftest would, or "".
func (s namespaces) groupOf(path ast.Ref) (string, Stage) {
	words := refWords(path)
	switch stage := stageNamed(words); {
	case stage != "":
		return string(stage), stage
	case s[strings.Join(words, ".")]:
		return conftestPackage, StageSpec
	default:
		return "", ""
	}
}

// refWords are the words of a package path without "data".
func refWords(path ast.Ref) []string {
	out := make([]string, 0, len(path))
	for _, t := range path[1:] {
		if s, ok := t.Value.(ast.String); ok {
			out = append(out, string(s))
		}
	}
	return out
}

// collector finds the rules of modules and gives each body its own name.
type collector struct {
	annotations *ast.AnnotationSet
	spaces      namespaces
	mentioned   map[string]bool
	groups      map[string]*group
	next        int
	faults      []decision.Finding
}

// collect adds to the modules a copy of each body under a generated name, and
// one module for each group that gathers their results.
func collect(modules map[string]*ast.Module, spaces namespaces) ([]*group, []decision.Finding) {
	c := &collector{spaces: spaces, mentioned: mentions(modules), groups: map[string]*group{}}
	list := make([]*ast.Module, 0, len(modules))
	for _, name := range sortedKeys(modules) {
		list = append(list, modules[name])
	}
	var errs ast.Errors
	if c.annotations, errs = ast.BuildAnnotationSet(list); len(errs) > 0 {
		return nil, fromAST(errs)
	}
	for _, m := range list {
		c.module(m)
	}
	groups := make([]*group, 0, len(c.groups))
	for _, name := range sortedKeys(c.groups) {
		groups = append(groups, c.groups[name])
	}
	return groups, c.faults
}

func (c *collector) module(m *ast.Module) {
	name, stage := c.spaces.groupOf(m.Package.Path)
	if name == "" {
		return
	}
	complete := map[string]*body{}
	for _, r := range slices.Clone(m.Rules) {
		head := headName(r)
		kind, suffix, ok := c.kind(name, stage, head, r)
		if !ok {
			continue
		}
		if r.Head.Key == nil {
			c.complete(m, r, complete, name, stage, kind, suffix)
			continue
		}
		b := c.add(m, r, name, stage, kind, suffix)
		m.Rules = append(m.Rules, renamed(r, b))
	}
}

// complete handles a rule that gives the whole set at once, deny := {...}. All
// its bodies make one value, so they keep one name.
func (c *collector) complete(m *ast.Module, r *ast.Rule, seen map[string]*body, name string, stage Stage, kind, suffix string) {
	head := headName(r)
	b := seen[head]
	if b == nil {
		b = c.add(m, r, name, stage, kind, suffix)
		seen[head] = b
	}
	m.Rules = append(m.Rules, renamed(r, b))
}

// headName is the first word of a rule's head; heads such as deny.x have no
// Name.
func headName(r *ast.Rule) string {
	if v, ok := r.Head.Ref()[0].Value.(ast.Var); ok {
		return string(v)
	}
	return string(r.Head.Name)
}

// kind says what a rule is to its group. It reports rules that look like one
// but would never be evaluated: silence would be a hole.
func (c *collector) kind(name string, stage Stage, head string, r *ast.Rule) (kind, suffix string, ok bool) {
	switch {
	case name == conftestPackage && conftestDeny.MatchString(head):
		kind = kindDeny
	case name == conftestPackage && conftestWarn.MatchString(head):
		kind = kindWarn
	case name == conftestPackage && head == kindException:
		kind = kindException
	case name != conftestPackage && slices.Contains(stageKinds[stage], head):
		kind = head
	case name != conftestPackage && isSet(r) && looksLike.MatchString(head):
		c.fault(r, "rule %s would never be evaluated: package reeve.%s has the rules %s; names with a suffix are for package main",
			head, stage, strings.Join(stageKinds[stage], ", "))
		return "", "", false
	case name != conftestPackage && c.misspelling(stage, head, r) != "":
		c.fault(r, "rule %s would never be evaluated and nothing refers to it: did you mean %s?", head, c.misspelling(stage, head, r))
		return "", "", false
	default:
		return "", "", false
	}
	if why := notASet(r); why != "" {
		c.fault(r, "rule %s is %s: write it as a set, `%s contains finding if { ... }`", head, why, head)
		return "", "", false
	}
	_, suffix, _ = strings.Cut(head, "_")
	return kind, suffix, true
}

func isSet(r *ast.Rule) bool { return r.Head.Key != nil && r.Head.Value == nil }

// notASet says what else the head of a rule makes than a set, or "".
func notASet(r *ast.Rule) string {
	head := r.Head
	switch {
	case len(head.Args) > 0:
		return "a function"
	case len(head.Ref()) > 1:
		return "an object"
	case head.Key != nil && head.Value != nil:
		return "an object"
	case head.Key != nil:
		return ""
	}
	switch v := head.Value.Value.(type) {
	case ast.Boolean, ast.Number, ast.String, ast.Null, ast.Object:
		return "the " + ast.ValueName(v) + " " + v.String()
	default:
		return "" // known only when it is evaluated
	}
}

func (c *collector) fault(r *ast.Rule, format string, args ...any) {
	c.faults = append(c.faults, loadFinding(position(r.Location), format, args...))
}

// add makes the body and remembers it in its group.
func (c *collector) add(m *ast.Module, r *ast.Rule, name string, stage Stage, kind, suffix string) *body {
	key := fmt.Sprintf("%s%04d", generatedRule, c.next)
	c.next++
	b := &body{
		Rule:   c.describe(m, r, stage, kind),
		head:   headName(r),
		key:    key,
		suffix: suffix,
		target: m.Package.Path.Append(ast.StringTerm(key)),
	}
	g := c.groups[name]
	if g == nil {
		g = &group{name: name}
		c.groups[name] = g
	}
	g.bodies = append(g.bodies, b)
	return b
}

// describe merges the annotations of a rule, the nearest first.
func (c *collector) describe(m *ast.Module, r *ast.Rule, stage Stage, kind string) Rule {
	out := Rule{Stage: stage, Kind: kind, Package: strings.Join(refWords(m.Package.Path), "."), Position: *position(r.Location)}
	for _, ref := range c.annotations.Chain(r) {
		a := ref.Annotations
		if a == nil {
			continue
		}
		out.ID = cmp.Or(out.ID, custom(a, "id"))
		out.Severity = cmp.Or(out.Severity, custom(a, "severity"))
		out.Remediation = cmp.Or(out.Remediation, custom(a, "remediation"))
		out.Title = cmp.Or(out.Title, strings.TrimSpace(a.Title))
		out.Description = cmp.Or(out.Description, strings.TrimSpace(a.Description))
	}
	out.ID = cmp.Or(out.ID, out.Package+"."+headName(r))
	if out.Severity == "" {
		out.Severity = severityError
		if kind == kindWarn {
			out.Severity = severityWarning
		}
	}
	if out.Severity != severityError && out.Severity != severityWarning {
		c.fault(r, "severity %q of rule %s is not known: write error or warning", out.Severity, out.ID)
	}
	return out
}

func custom(a *ast.Annotations, key string) string {
	s, _ := a.Custom[key].(string)
	return strings.Join(strings.Fields(s), " ")
}

// renamed is a copy of the rule under the name of the body.
func renamed(r *ast.Rule, b *body) *ast.Rule {
	out := r.Copy()
	name := ast.Var(b.key)
	for e := out; e != nil; e = e.Else {
		e.Head.Name = name
		e.Head.Reference = ast.Ref{ast.VarTerm(b.key)}
		e.Annotations = nil
	}
	return out
}

// gather is the module that collects what the bodies of a group find. A body
// that is undefined has no entry.
func (g *group) gather() string {
	var b strings.Builder
	fmt.Fprintf(&b, "package %s.%s\n", findingsPackage, g.name)
	for _, r := range g.bodies {
		fmt.Fprintf(&b, "found[%q] := %s\n", r.key, r.target)
	}
	return b.String()
}

// query is the document that gather makes.
func (g *group) query() string { return fmt.Sprintf("data.%s.%s.found", findingsPackage, g.name) }
