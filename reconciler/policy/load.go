package policy

import (
	"cmp"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/fleet"
)

// loaded is a bundle that has been compiled.
type loaded struct {
	compiler *ast.Compiler
	groups   []*group
	// warnings are what is odd but does not keep the policies from judging.
	warnings []decision.Finding
}

// load parses and compiles all files of a bundle. All faults of one step are
// reported together.
func load(b Bundle) (*loaded, error) {
	if err := b.bounded(); err != nil {
		return nil, err
	}
	modules, warnings, faults := parse(b)
	if len(faults) == 0 {
		faults = checkPackages(modules)
	}
	if len(faults) > 0 {
		return nil, newLoadError(faults)
	}
	spaces := namespacesOf(b.data)
	warnings = append(warnings, spaces.missing(modules)...)
	declareSchemas(modules)
	groups, faults := collect(modules, spaces)
	if len(faults) > 0 {
		return nil, newLoadError(faults)
	}
	for _, g := range groups {
		name := findingsPackage + "/" + g.name + regoSuffix
		m, err := ast.ParseModuleWithOpts(name, g.gather(), ast.ParserOptions{RegoVersion: ast.RegoV1})
		if err != nil {
			return nil, newLoadError(fromAST(err))
		}
		modules[name] = m
	}
	compiler, loose, err := compile(modules, false)
	if err != nil {
		return nil, err
	}
	warnings = append(warnings, loose...)
	if faults := checkTime(compiler, groups); len(faults) > 0 {
		return nil, newLoadError(faults)
	}
	return &loaded{compiler: compiler, groups: groups, warnings: warnings}, nil
}

// bounded refuses a bundle that is too large to be read.
func (b Bundle) bounded() error {
	if n, files := b.size(), len(b.files); n > maxBundle || files > maxFiles {
		return newLoadError([]decision.Finding{loadFinding(nil,
			"%d files with %d bytes: at most %d files and %d bytes of policies and their data are read", files, n, maxFiles, maxBundle)})
	}
	return nil
}

// compile checks and compiles the modules in strict mode, without the builtins
// that reach out. Print statements are dropped unless they are asked for. What
// strict mode refuses in files that are written for conftest or before Rego v1
// is a warning: they run as they are.
func compile(modules map[string]*ast.Module, prints bool) (*ast.Compiler, []decision.Finding, error) {
	schemas, err := schemaSet()
	if err != nil {
		return nil, nil, err
	}
	try := func(strict bool) *ast.Compiler {
		c := ast.NewCompiler().SetErrorLimit(0).WithStrict(strict).WithCapabilities(capabilities()).
			WithSchemas(schemas).WithUseTypeCheckAnnotations(true).WithEnablePrintStatements(prints)
		c.Compile(modules)
		return c
	}
	c := try(true)
	if !c.Failed() {
		return c, nil, nil
	}
	errs := inFiles(c.Errors)
	grave := slices.DeleteFunc(slices.Clone(errs), func(e *ast.Error) bool {
		return e.Location != nil && modules[e.Location.File] != nil && loose(e.Location.File, modules[e.Location.File])
	})
	if len(grave) > 0 {
		return nil, nil, newLoadError(fromAST(grave))
	}
	if c = try(false); c.Failed() {
		return nil, nil, newLoadError(fromAST(inFiles(c.Errors)))
	}
	return c, strictWarnings(errs), nil
}

// loose says whether a file of the fleet may be written as strict mode would
// not have it: one in a package that Reeve gives no meaning to, such as main
// and the libraries of conftest, or one in the syntax before Rego v1.
func loose(name string, m *ast.Module) bool {
	words := refWords(m.Package.Path)
	return strings.HasPrefix(name, FleetDir) && (len(words) == 0 || words[0] != "reeve" || m.RegoVersionSpan() == ast.RegoVersionSpanOf(ast.RegoV0))
}

func strictWarnings(errs ast.Errors) []decision.Finding {
	out := fromAST(errs)
	for i := range out {
		out[i].Rule, out[i].Severity, out[i].Title = RuleStrict, severityWarning, "Rules for conftest are written loosely"
		out[i].Remediation = "Nothing has to be done; `opa check --strict` names the same."
	}
	slices.SortStableFunc(out, compareFindings)
	return slices.CompactFunc(out, func(a, b decision.Finding) bool { return compareFindings(a, b) == 0 })
}

// inFiles leaves out errors that name a generated rule: the rule in the file
// has the same.
func inFiles(errs ast.Errors) ast.Errors {
	own := slices.DeleteFunc(slices.Clone(errs), func(e *ast.Error) bool { return strings.Contains(e.Message, generatedRule) })
	if len(own) == 0 {
		return errs
	}
	return own
}

// parse reads each file as Rego v1 and, where only that works, as v0.
func parse(b Bundle) (map[string]*ast.Module, []decision.Finding, []decision.Finding) {
	modules := map[string]*ast.Module{}
	var warnings, faults []decision.Finding
	for _, name := range b.names() {
		m, old, err := parseFile(name, string(b.files[name]))
		if err != nil {
			faults = append(faults, fromAST(err)...)
			continue
		}
		modules[name] = m
		if old {
			warnings = append(warnings, versionWarning(m))
		}
	}
	return modules, warnings, faults
}

// parseFile says whether the file is in the syntax before v1. When it is
// neither, the error is that of v1.
func parseFile(name, text string) (m *ast.Module, old bool, err error) {
	m, err = ast.ParseModuleWithOpts(name, text, ast.ParserOptions{RegoVersion: ast.RegoV1, ProcessAnnotation: true})
	if err == nil {
		return m, false, nil
	}
	if m, err0 := ast.ParseModuleWithOpts(name, text, ast.ParserOptions{RegoVersion: ast.RegoV0, ProcessAnnotation: true}); err0 == nil {
		return m, true, nil
	}
	return nil, false, err
}

func versionWarning(m *ast.Module) decision.Finding {
	at := position(m.Package.Location)
	return decision.Finding{
		Rule:        RuleVersion,
		Severity:    severityWarning,
		Title:       "The file is in the syntax before Rego v1",
		Message:     "the file parses only in the syntax before Rego v1 and is taken as that",
		Position:    at,
		Remediation: "Run `reeve policy fmt --upgrade " + at.File + "`.",
		Source:      at.String(),
	}
}

// checkPackages refuses files of the fleet that would be evaluated by nobody or
// would change what shipped policies say.
func checkPackages(modules map[string]*ast.Module) []decision.Finding {
	reserved := map[string]ast.Ref{}
	for name, m := range modules {
		if strings.HasPrefix(name, ShippedDir) {
			reserved[m.Package.Path.String()] = m.Package.Path
		}
	}
	var faults []decision.Finding
	for _, name := range sortedKeys(modules) {
		m := modules[name]
		if why := badPackage(m.Package.Path); why != "" {
			faults = append(faults, loadFinding(position(m.Package.Location), "package %s: %s", packageName(m), why))
		}
		if !strings.HasPrefix(name, ShippedDir) {
			faults = append(faults, intrusions(m, reserved)...)
		}
	}
	return faults
}

func packageName(m *ast.Module) string { return strings.TrimPrefix(m.Package.Path.String(), "data.") }

func badPackage(path ast.Ref) string {
	words := refWords(path)
	if len(words) == 0 {
		return "it has no name"
	}
	switch words[0] {
	case "policy":
		return "the name is taken by the policy data of the fleet"
	case "system", findingsPackage:
		return "the name is reserved"
	case "reeve":
		if stageNamed(words) == "" {
			return "nothing below reeve is evaluated but reeve.spec, reeve.offering and reeve.decision"
		}
	}
	return ""
}

// intrusions are rules that would add to a shipped package: by its name, or by
// a head that leads into it.
func intrusions(m *ast.Module, reserved map[string]ast.Ref) []decision.Finding {
	var faults []decision.Finding
	for _, r := range m.Rules {
		full := r.Ref()
		ground := full.GroundPrefix()
		for _, key := range sortedKeys(reserved) {
			if ground.HasPrefix(reserved[key]) || (len(ground) < len(full) && reserved[key].HasPrefix(ground)) {
				faults = append(faults, loadFinding(position(r.Location), "rule %s would change the shipped package %s: move it to a package of your own",
					r.Head.Ref(), strings.TrimPrefix(key, "data.")))
			}
		}
		if strings.HasPrefix(headName(r), generatedRule) {
			faults = append(faults, loadFinding(position(r.Location), "rule %s: names that begin with %s are reserved", headName(r), generatedRule))
		}
	}
	return faults
}

// checkTime refuses rules of the offering stage that reach a time builtin: its
// results are kept until an input changes, and time is none of its inputs.
func checkTime(c *ast.Compiler, groups []*group) []decision.Finding {
	var faults []decision.Finding
	for _, g := range groups {
		if g.name != string(StageOffering) {
			continue
		}
		for _, b := range g.bodies {
			for _, r := range c.GetRulesExact(b.target) {
				faults = append(faults, timeUses(c, r, &b.Rule)...)
			}
		}
	}
	return faults
}

// timeUses are the uses of time builtins that a rule can reach.
func timeUses(c *ast.Compiler, from *ast.Rule, rule *Rule) []decision.Finding {
	var faults []decision.Finding
	seen := map[*ast.Rule]bool{from: true}
	for todo := []*ast.Rule{from}; len(todo) > 0; {
		r := todo[0]
		todo = todo[1:]
		ast.WalkRefs(r, func(ref ast.Ref) bool {
			if v, ok := ref[0].Value.(ast.Var); ok && v == "time" {
				faults = append(faults, loadFinding(timePosition(ref, r), "%s may not be used by rule %s: the offering stage has no time, since its results are kept", ref, rule.ID))
			}
			return false
		})
		for dep := range c.Graph.Dependencies(r) {
			if next, ok := dep.(*ast.Rule); ok && !seen[next] {
				seen[next] = true
				todo = append(todo, next)
			}
		}
	}
	return faults
}

func timePosition(ref ast.Ref, r *ast.Rule) *fleet.Position {
	return position(cmp.Or(ref[0].Location, r.Location))
}

func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
