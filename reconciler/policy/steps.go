package policy

import (
	"fmt"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// mostText is how many bytes a builtin may write in one step. OPA looks at the
// deadline between steps only, and one step can ask for more memory than any
// machine has, which ends the process: concat of a long text with itself, a
// million times, is a single step.
const mostText = 32 << 20

// textSizes says of builtins that write texts in one step, without looking at the
// deadline, how many bytes that may be at most. Others that could are forbidden
// (see capabilities) or look at it themselves.
var textSizes = map[string]func(operands []*ast.Term) int{
	"concat":                    writtenByConcat,
	"sprintf":                   writtenBySprintf,
	"json.marshal":              writtenByMarshal,
	"json.marshal_with_options": writtenByMarshal,
	"yaml.marshal":              writtenByMarshal,
}

// OPA has one table of builtins for the process. Its own names always come from
// there, so this is the only place to put a bound on one.
func init() {
	for name, size := range textSizes {
		topdown.RegisterBuiltinFunc(name, bounded(topdown.GetBuiltin(name), size))
	}
}

func bounded(builtin topdown.BuiltinFunc, size func([]*ast.Term) int) topdown.BuiltinFunc {
	return func(c topdown.BuiltinContext, operands []*ast.Term, iter func(*ast.Term) error) error {
		if size(operands) > mostText {
			return fmt.Errorf("more than %d MiB of text in one step", mostText>>20)
		}
		return builtin(c, operands, iter)
	}
}

func writtenByConcat(operands []*ast.Term) int {
	if len(operands) < 2 {
		return 0
	}
	elements := 0
	switch v := operands[1].Value.(type) {
	case *ast.Array:
		elements = v.Len()
	case ast.Set:
		elements = v.Len()
	}
	return times(textOf(operands[0]), elements) + textOf(operands[1])
}

// writtenBySprintf takes it that each verb names the longest value.
func writtenBySprintf(operands []*ast.Term) int {
	if len(operands) < 2 {
		return 0
	}
	format, _ := operands[0].Value.(ast.String)
	longest := 0
	if values, ok := operands[1].Value.(*ast.Array); ok {
		for i := range values.Len() {
			longest = max(longest, textOf(values.Elem(i)))
		}
	}
	return len(format) + times(longest, strings.Count(string(format), "%"))
}

func writtenByMarshal(operands []*ast.Term) int {
	if len(operands) == 0 {
		return 0
	}
	return textOf(operands[0])
}

// times is the product of numbers up to a little more than mostText.
func times(a, b int) int {
	if a > 0 && b > mostText/a {
		return mostText + 1
	}
	return a * b
}

// textOf is about how long a value is as text. It stops counting above mostText:
// a value that holds the same one many times is longer than the memory it takes.
func textOf(t *ast.Term) int {
	left := mostText + 1
	spend(t, &left)
	return mostText + 1 - max(left, 0)
}

// spend takes the length of a value from what is left and says whether nothing
// is any more.
func spend(t *ast.Term, left *int) bool {
	*left--
	switch v := t.Value.(type) {
	case ast.String:
		*left -= len(v)
	case ast.Number:
		*left -= len(v)
	case *ast.Array:
		v.Until(func(e *ast.Term) bool { return spend(e, left) })
	case ast.Set:
		v.Until(func(e *ast.Term) bool { return spend(e, left) })
	case ast.Object:
		v.Until(func(k, e *ast.Term) bool { return spend(k, left) || spend(e, left) })
	}
	return *left <= 0
}
