package policy

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
)

// part is the offering rules of one Rego package. Each part is evaluated by
// itself, and only once for all NodePools that look the same to it: the shipped
// rules read a few fields, and a hundred NodePools often agree in those.
type part struct {
	bodies []*body
	query  rego.PreparedEvalQuery
	// reads are the places in input that the rules can look at, sorted. A rule
	// that takes the whole input reads the empty path.
	reads []string
	paths []ast.Ref

	mu      sync.Mutex
	answers map[string][]element
}

// offeringParts prepares the bodies of the offering stage, by package.
func offeringParts(l *loaded, g *group, options ...func(*rego.Rego)) ([]*part, error) {
	var parts []*part
	byPackage := map[string]*part{}
	for _, b := range g.bodies {
		p := byPackage[b.Package]
		if p == nil {
			p = &part{}
			byPackage[b.Package], parts = p, append(parts, p)
		}
		p.bodies = append(p.bodies, b)
	}
	for _, p := range parts {
		keys := make([]string, 0, len(p.bodies))
		for _, b := range p.bodies {
			keys = append(keys, fmt.Sprintf("%q", b.key))
			p.read(l.compiler, b)
		}
		query := fmt.Sprintf("{key: value | some key in [%s]; value := %s[key]}", strings.Join(keys, ", "), g.query())
		var err error
		p.query, err = rego.New(append(slices.Clip(options), rego.Query(query))...).PrepareForEval(context.Background())
		if err != nil {
			return nil, newLoadError(fromAST(err))
		}
	}
	return parts, nil
}

// read adds what a body can look at: the references to input in its rules and
// in all that those depend on, up to the first element that is not a fixed
// name.
func (p *part) read(c *ast.Compiler, b *body) {
	seen := map[*ast.Rule]bool{}
	var visit func(*ast.Rule)
	visit = func(r *ast.Rule) {
		if seen[r] {
			return
		}
		seen[r] = true
		ast.WalkRefs(r, func(ref ast.Ref) bool {
			if ref.HasPrefix(ast.InputRootRef) {
				p.add(ref)
			}
			return false
		})
		for other := range c.Graph.Dependencies(r) {
			if rule, ok := other.(*ast.Rule); ok {
				visit(rule)
			}
		}
	}
	for _, r := range c.GetRulesExact(b.target) {
		visit(r)
	}
}

func (p *part) add(ref ast.Ref) {
	path := ref[1:]
	for i, t := range path {
		if _, fixed := t.Value.(ast.String); !fixed {
			path = path[:i]
			break
		}
	}
	name := path.String()
	if i, found := slices.BinarySearch(p.reads, name); !found {
		p.reads = slices.Insert(p.reads, i, name)
		p.paths = slices.Insert(p.paths, i, path)
	}
}

// key is the same for two inputs when the part cannot tell them apart. What is
// large has a digest already.
func (p *part) key(input ast.Object, large map[string]string) string {
	texts := make([]string, 0, 2*len(p.paths))
	for i, path := range p.paths {
		text := "absent"
		if len(path) > 0 {
			if digest, ok := large[string(path[0].Value.(ast.String))]; ok {
				texts = append(texts, p.reads[i], digest)
				continue
			}
		}
		if v, err := input.Find(path); err == nil {
			text = v.String()
		}
		texts = append(texts, p.reads[i], text)
	}
	return digests(texts...)
}

// ask evaluates the part, or takes the answer to an input that it cannot tell
// from this one.
func (p *part) ask(ctx context.Context, input ast.Object, large map[string]string) ([]element, error) {
	key := p.key(input, large)
	p.mu.Lock()
	els, ok := p.answers[key]
	p.mu.Unlock()
	if ok {
		return els, nil
	}
	rs, err := p.query.Eval(ctx, rego.EvalParsedInput(input), rego.EvalTime(time.Unix(0, 0).UTC()))
	if err != nil {
		return nil, err
	}
	results, err := foundBy(rs, p.bodies)
	if err != nil {
		return nil, err
	}
	if els, err = allElements(results); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.answers == nil || len(p.answers) >= maxCached {
		p.answers = map[string][]element{}
	}
	p.answers[key] = els
	return els, nil
}
