package policy

import (
	"cmp"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// PackageDoc is what the annotations of a Rego package say of it and its rules.
type PackageDoc struct {
	// Name of the package: "reeve.spec.ami_pinning".
	Name string
	// Title and Description are those of the package's annotations; Title is
	// the name where there is none.
	Title       string
	Description string
	// File of the first rule: "shipped/ami_pinning.rego", or the path in the
	// fleet repository.
	File string
	// Rules are sorted by id; further bodies of one rule are left out.
	Rules []Rule
}

// Shipped says whether the package comes with Reeve.
func (d *PackageDoc) Shipped() bool { return strings.HasPrefix(d.File, ShippedDir) }

// Describe compiles a bundle and describes the packages that have rules, in the
// order of their first rule's id. When the policies cannot be used the error is
// a *LoadError.
func Describe(b Bundle) ([]PackageDoc, error) {
	e, err := New(b, Options{})
	if err != nil {
		return nil, err
	}
	modules, _, faults := parse(b)
	if len(faults) > 0 {
		return nil, newLoadError(faults)
	}
	notes := map[string]*ast.Annotations{}
	for _, name := range sortedKeys(modules) {
		for _, a := range modules[name].Annotations {
			if key := packageName(modules[name]); notes[key] == nil && (a.Scope == "package" || a.Scope == "subpackages") {
				notes[key] = a
			}
		}
	}
	var out []PackageDoc
	for _, r := range e.Rules() {
		if r.Kind == kindException {
			continue
		}
		i := slices.IndexFunc(out, func(d PackageDoc) bool { return d.Name == r.Package })
		if i < 0 {
			i = len(out)
			out = append(out, describePackage(&r, notes[r.Package]))
		}
		if d := &out[i]; len(d.Rules) == 0 || d.Rules[len(d.Rules)-1].ID != r.ID {
			d.Rules = append(d.Rules, r)
		}
	}
	return out, nil
}

func describePackage(first *Rule, a *ast.Annotations) PackageDoc {
	d := PackageDoc{Name: first.Package, Title: first.Package, File: first.Position.File}
	if a != nil {
		d.Title, d.Description = cmp.Or(strings.TrimSpace(a.Title), d.Title), strings.TrimSpace(a.Description)
	}
	return d
}
