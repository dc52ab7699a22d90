package eval

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue"
	cueerrors "cuelang.org/go/cue/errors"

	"github.com/reeve-project/reeve/schemas"
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
		at := e.pathOf(group[0])
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
	return named(sorted(withoutFollowUps(ds)))
}

// named puts the name of the field into messages that CUE words without.
func named(ds []Diagnostic) []Diagnostic {
	for i, d := range ds {
		if len(d.Path) == 0 {
			continue
		}
		field := strconv.Quote(d.Path[len(d.Path)-1])
		switch {
		case d.Message == notAllowed:
			ds[i].Message = "field " + field + " is not allowed"
		case strings.HasPrefix(d.Message, "field is required"):
			ds[i].Message = "field " + field + " is required"
		}
	}
	return ds
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
		ds = append(ds, e.explainLoading(d))
	}
	return sorted(ds)
}

// explainLoading adds what CUE's loader does not know.
func (e *evaluation) explainLoading(d Diagnostic) Diagnostic {
	if m := opening.FindStringSubmatch(d.Message); m != nil {
		if _, known := e.files[m[1]]; known {
			d.Position, d.Message = Position{File: m[1], Line: 1, Column: 1}, m[2]
		}
	}
	prefix, _, _ := strings.Cut(schemas.Module, "@")
	switch {
	case strings.Contains(d.Message, `cannot find package "`+prefix):
		d.Hint = "cue.mod/local-module.cue must say where it is: " + schemas.LocalModule
	case strings.Contains(d.Message, "cannot find package"):
		d.Hint = "packages come from this repository or from CUE itself; Reeve downloads none"
	case strings.HasSuffix(d.Message, " in module.cue"):
		d.Position = Position{File: "cue.mod/module.cue", Line: 1, Column: 1}
	}
	return d
}

// strays are files of the cluster's directory that CUE leaves out without a
// word, because they are of another package or of none.
func (e *evaluation) strays() []Diagnostic {
	taken := map[string]bool{}
	for _, f := range e.inst.BuildFiles {
		taken[strings.TrimPrefix(f.Filename, "/")] = true
	}
	var ds []Diagnostic
	for name := range e.files {
		base := path.Base(name)
		if path.Dir(name) != e.dir || taken[name] || !strings.HasSuffix(base, ".cue") || strings.HasPrefix(base, "_") ||
			strings.HasSuffix(base, "_tool.cue") || strings.HasSuffix(base, "_test.cue") {
			continue
		}
		ds = append(ds, Diagnostic{
			Position: Position{File: name, Line: 1, Column: 1},
			Message:  "this file is not part of package fleet, so nothing in it has any effect",
			Hint:     "start it with: package fleet",
		})
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

// pathOf is the path of the field that an error is about.
func (e *evaluation) pathOf(err cueerrors.Error) Path {
	parts := err.Path()
	if e.data && len(parts) > 0 && strings.HasPrefix(parts[0], "#") {
		parts = parts[1:] // the definition of the kind
	}
	return unquote(parts)
}

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
	return e.start
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
	case e.data:
		return cue.Str(name)
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
	opening          = regexp.MustCompile(`^open (\S+): (.*)$`)
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

func messages(texts []string) []message {
	for i, t := range texts {
		texts[i] = plainer(t)
	}
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
