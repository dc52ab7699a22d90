package eval

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue"
	cueerrors "cuelang.org/go/cue/errors"
)

// diagnostics turns an error of the CUE library into diagnostics: one for each
// field, placed in the user's files.
func (e *evaluation) diagnostics(err error) []Diagnostic {
	if strings.Contains(err.Error(), "cannot embed files") {
		return []Diagnostic{{Position: e.find("@extern(embed)"), Message: "files cannot be embedded", Hint: "Reeve reads CUE only: write the value in CUE"}}
	}
	var order []string
	byPath := map[string][]cueerrors.Error{}
	for _, ce := range cueErrors(err) {
		key := strings.Join(ce.Path(), "\x00")
		if len(ce.Path()) == 0 {
			key = fmt.Sprint(len(order)) // faults of files are never merged
		}
		if byPath[key] == nil {
			order = append(order, key)
		}
		byPath[key] = append(byPath[key], ce)
	}
	var ds []Diagnostic
	for _, key := range order {
		group := byPath[key]
		at := unquote(group[0].Path())
		for _, m := range plainMessages(group) {
			ds = append(ds, Diagnostic{
				Position: e.locate(at, m.text, group),
				Path:     at,
				Message:  m.text,
				Hint:     e.hint(at, m.text),
			})
		}
	}
	ds = append(ds, e.typos(e.user, e.schemaValue, nil)...)
	return sorted(withoutFollowUps(ds))
}

// sorted puts diagnostics in order and removes repeated ones.
func sorted(ds []Diagnostic) []Diagnostic {
	slices.SortStableFunc(ds, func(a, b Diagnostic) int {
		return cmp.Or(comparePositions(a.Position, b.Position), slices.Compare(a.Path, b.Path), cmp.Compare(a.Message, b.Message))
	})
	return slices.CompactFunc(ds, func(a, b Diagnostic) bool {
		return a.Position == b.Position && slices.Equal(a.Path, b.Path) && a.Message == b.Message
	})
}

// withoutFollowUps removes what is said about fields below one that is not
// allowed anyway.
func withoutFollowUps(ds []Diagnostic) []Diagnostic {
	refused := map[string]bool{}
	for _, d := range ds {
		if d.Message == notAllowed {
			refused[strings.Join(d.Path, "\x00")] = true
		}
	}
	return slices.DeleteFunc(ds, func(d Diagnostic) bool {
		for n := 1; n < len(d.Path); n++ {
			if refused[strings.Join(d.Path[:n], "\x00")] {
				return true
			}
		}
		return false
	})
}

// loadDiagnostics is for errors of syntax and imports: they belong to files,
// not to fields.
func (e *evaluation) loadDiagnostics(err error) []Diagnostic {
	var ds []Diagnostic
	for _, ce := range cueErrors(err) {
		d := Diagnostic{Message: filePosition.ReplaceAllString(ce.Error(), "")}
		d.Position = e.locate(nil, d.Message, []cueerrors.Error{ce})
		if strings.Contains(d.Message, "cannot find package") {
			d.Hint = "packages come from this repository or from CUE itself; Reeve downloads none"
		}
		ds = append(ds, d)
	}
	return sorted(ds)
}

// typos finds fields that the schema does not know. CUE says so itself, but not
// in a struct that has another fault.
func (e *evaluation) typos(user, schema cue.Value, at Path) []Diagnostic {
	fields, err := user.Fields()
	if err != nil {
		return nil
	}
	var ds []Diagnostic
	for fields.Next() {
		sel := fields.Selector()
		if sel.LabelType() != cue.StringLabel {
			continue
		}
		path := append(slices.Clip(at), sel.Unquoted())
		if !schema.Allows(sel) {
			ds = append(ds, Diagnostic{
				Position: e.locate(path, notAllowed, nil), Path: path, Message: notAllowed, Hint: e.hint(path, notAllowed),
			})
			continue
		}
		if next, ok := step(schema, sel.Unquoted()); ok {
			ds = append(ds, e.typos(fields.Value(), next, path)...)
		}
	}
	return ds
}

const notAllowed = "field not allowed"

// unquote makes a Path of the path of a CUE error.
func unquote(parts []string) Path {
	out := make(Path, 0, len(parts))
	for _, p := range parts {
		if s, err := strconv.Unquote(p); err == nil {
			p = s
		}
		if p != "#Fleet" {
			out = append(out, p)
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// locate finds the place in the user's files that a message is about.
func (e *evaluation) locate(at Path, message string, group []cueerrors.Error) Position {
	var named []place
	for _, ce := range group {
		for _, pos := range cueerrors.Positions(ce) {
			if p, ok := e.place(pos, false); ok {
				named = append(named, p)
			}
		}
	}
	fromError := sortPlaces(named)
	if places := e.lookup(at); len(places) > 0 {
		return firstIn(places, fromError)
	}
	if len(fromError) > 0 && !aboutAbsence(message) {
		return fromError[0]
	}
	for n := len(at) - 1; n > 0; n-- {
		if places := e.lookup(at[:n]); len(places) > 0 {
			return places[0]
		}
	}
	if len(fromError) > 0 {
		return fromError[0]
	}
	return Position{File: e.first, Line: 1, Column: 1}
}

// firstIn is the first of places that the error names too, or else the first.
func firstIn(places, named []Position) Position {
	for _, p := range places {
		if slices.Contains(named, p) {
			return p
		}
	}
	return places[0]
}

// aboutAbsence says whether a message is about a field that is not there: its
// positions then are those of the schema and of whatever refers to it.
func aboutAbsence(message string) bool {
	return strings.Contains(message, "required but not present") || strings.Contains(message, "incomplete")
}

// lookup are the places of a field, if it exists.
func (e *evaluation) lookup(at Path) []Position {
	if len(at) == 0 {
		return nil
	}
	v := e.user
	for _, p := range at {
		next := v.LookupPath(cue.MakePath(e.selector(p)))
		if i, err := strconv.Atoi(p); !next.Exists() && err == nil && i >= 0 {
			next = v.LookupPath(cue.MakePath(cue.Index(i)))
		}
		if v = next; !v.Exists() && v.Err() == nil {
			return nil
		}
	}
	return e.places(v)
}

// selector names a field as the paths of errors do.
func (e *evaluation) selector(name string) cue.Selector {
	switch {
	case definition.MatchString(name):
		return cue.Def(name)
	case hidden.MatchString(name):
		return cue.Hid(name, e.inst.ID())
	}
	return cue.Str(name)
}

// message is one thing that is wrong with a field.
type message struct{ text string }

var (
	definition       = regexp.MustCompile(`^#[A-Za-z_$][A-Za-z0-9_$]*$`)
	hidden           = regexp.MustCompile(`^_[A-Za-z0-9_$]+$`)
	packageSuffix    = regexp.MustCompile(`\b(_[A-Za-z0-9_$]+)\([^()\s]*\)`)
	longValue        = regexp.MustCompile(`(?s)^invalid value .{200,} \((?:does)`)
	filePosition     = regexp.MustCompile(`\S+\.cue:\d+:\d+: `)
	emptyDisjunction = regexp.MustCompile(`^\d+ errors in empty disjunction`)
	conflict         = regexp.MustCompile(`(?s)^conflicting values (.*?) and (.*?)( \(mismatched types .*\))?$`)
	outOfBound       = regexp.MustCompile(`(?s)^invalid value (.*) \(out of bound (.*)\)$`)
	derived          = regexp.MustCompile(`\(type _\|_\)`)
)

// plainMessages says what the errors of one field mean. CUE reports each
// alternative of a disjunction by itself, defaults included; what helps is the
// list of what would have been accepted.
func plainMessages(group []cueerrors.Error) []message {
	var bounds, others []string
	var wanted []string
	got := ""
	conflicts := 0
	for _, ce := range group {
		text := text(ce)
		switch m := conflict.FindStringSubmatch(text); {
		case emptyDisjunction.MatchString(text) || derived.MatchString(text):
		case m != nil && strings.HasPrefix(m[1], "=~"):
			bounds = append(bounds, misfit(m[2], m[1]))
		case m != nil && strings.HasPrefix(m[2], "=~"):
			bounds = append(bounds, misfit(m[1], m[2]))
		case m != nil:
			conflicts++
			wanted, got = append(wanted, m[1]), m[2]
			others = append(others, text)
		case outOfBound.MatchString(text):
			m := outOfBound.FindStringSubmatch(text)
			bounds = append(bounds, misfit(m[1], m[2]))
		default:
			others = append(others, text)
		}
	}
	switch {
	case len(bounds) > 0 && conflicts == len(others):
		return messages(bounds)
	case conflicts > 1 && conflicts == len(others):
		slices.Sort(wanted)
		if wanted = slices.Compact(wanted); len(wanted) > 1 {
			return messages([]string{fmt.Sprintf("%s is not one of %s", got, strings.Join(wanted, ", "))})
		}
	case len(others)+len(bounds) == 0:
		return messages([]string{strings.TrimSuffix(text(group[0]), ":")})
	}
	return messages(append(bounds, others...))
}

// misfit says that a value does not satisfy a bound.
func misfit(value, constraint string) string {
	return fmt.Sprintf("invalid value %s: %s", value, bound(constraint))
}

func messages(texts []string) []message {
	slices.Sort(texts)
	texts = slices.Compact(texts)
	out := make([]message, len(texts))
	for i, t := range texts {
		out[i] = message{t}
	}
	return out
}

// text is the message of an error with its causes, without path and without
// the package that CUE adds to the names of hidden fields.
func text(e cueerrors.Error) string {
	full := strings.TrimPrefix(e.Error(), strings.Join(e.Path(), ".")+": ")
	full = longValue.ReplaceAllString(full, "invalid value (does")
	return packageSuffix.ReplaceAllString(filePosition.ReplaceAllString(full, ""), "$1")
}

// bound says in words what CUE writes as an operator.
func bound(b string) string {
	if rest, ok := strings.CutPrefix(b, "=~"); ok {
		return "it must " + pattern(rest)
	}
	for _, op := range []struct{ sign, words string }{
		{"!~", "it must not match "}, {"!=", "it must not be "},
		{">=", "it must be at least "}, {"<=", "it must be at most "}, {">", "it must be more than "}, {"<", "it must be less than "},
	} {
		if rest, ok := strings.CutPrefix(b, op.sign); ok {
			return op.words + rest
		}
	}
	return "it must be " + b
}

// pattern says in words what a regular expression of the schemas accepts.
func pattern(quoted string) string {
	re, err := strconv.Unquote(quoted)
	if err != nil {
		return "match " + quoted
	}
	if words, ok := patterns[re]; ok {
		return "be " + words
	}
	return "match " + re
}

// patterns are the regular expressions of the schemas that people meet most.
var patterns = map[string]string{
	`^(([0-9]+(s|m|h))+|Never)$`:                                        `a duration such as "30s", "5m" or "720h", or "Never"`,
	`^([0-9]+(s|m|h))+$`:                                                `a duration such as "30s", "5m" or "720h"`,
	`^([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+$`:                            `a duration such as "250ms", "10s" or "168h"`,
	`^((([0-9]+(h|m))|([0-9]+h[0-9]+m))(0s)?)$`:                         `hours and minutes such as "8h" or "1h30m"`,
	`^((100|[0-9]{1,2})%|[0-9]+)$`:                                      `a whole number or a percentage such as "10%", in quotes`,
	`^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`:                     `a label value: letters, digits, "-", "_" and "."`,
	`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`: `a name in lower case: letters, digits, "-" and "."`,
	`^(@(annually|yearly|monthly|weekly|daily|midnight|hourly))|((.+)\s(.+)\s(.+)\s(.+)\s(.+))$`:                                                                                       `a cron line of five fields, or @daily and the like`,
	`^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$`:                                                                `a quantity such as "500m", "10Gi" or 1000`,
	`^((?:[1-9][0-9]{0,3}|[1-4][0-9]{4}|[5][0-8][0-9]{3}|59000)Gi|(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|[6][0-3][0-9]{3}|64000)G|([1-9]||[1-5][0-7]|58)Ti|([1-9]||[1-5][0-9]|6[0-3]|64)T)$`: `a size of a volume such as "100Gi", at most "64T"`,
}
