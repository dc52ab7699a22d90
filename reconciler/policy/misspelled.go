package policy

import (
	"github.com/agnivade/levenshtein"
	"github.com/open-policy-agent/opa/v1/ast"
)

// farthestMisspelling is how many letters a misspelled rule may differ in: two,
// for two that changed places count as two.
const farthestMisspelling = 2

// mentions are the words that the bodies and heads of all modules refer to: the
// rules by these names are used by somebody.
func mentions(modules map[string]*ast.Module) map[string]bool {
	out := map[string]bool{}
	for _, m := range modules {
		for _, r := range m.Rules {
			ast.WalkRefs(r, func(ref ast.Ref) bool {
				if !ref.Equal(r.Head.Ref()) {
					mention(out, ref)
				}
				return false
			})
			ast.WalkVars(r.Body, func(v ast.Var) bool {
				out[string(v)] = true
				return false
			})
		}
	}
	return out
}

func mention(words map[string]bool, ref ast.Ref) {
	for _, t := range ref {
		switch v := t.Value.(type) {
		case ast.Var:
			words[string(v)] = true
		case ast.String:
			words[string(v)] = true
		}
	}
}

// misspelling is the rule of the stage that was probably meant by a set that
// nothing refers to, or "". Left alone it would never be evaluated.
func (c *collector) misspelling(stage Stage, head string, r *ast.Rule) string {
	if stage == "" || !isSet(r) || c.mentioned[head] {
		return ""
	}
	for _, kind := range stageKinds[stage] {
		if levenshtein.ComputeDistance(head, kind) <= farthestMisspelling {
			return kind
		}
	}
	return ""
}
