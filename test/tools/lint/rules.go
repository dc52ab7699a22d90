package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// maxLines is how long a Go file may be. It is well above what most files are,
// so that only what has clearly become two things is found.
const maxLines = 600

// impure are the functions whose result depends on more than their arguments,
// by import path; nil means the whole package. They may be called by commands
// and tests only: everything else takes the time, the environment and chance
// as values, so that the same inputs give the same bytes. os.Exit is among
// them since it takes away the caller's say.
var impure = map[string][]string{
	"time":         {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"},
	"math/rand":    nil,
	"math/rand/v2": nil,
	"crypto/rand":  nil,
	"os":           {"Getenv", "LookupEnv", "Environ", "ExpandEnv", "Exit"},
}

// reminders are words that say a file is not finished.
var reminders = []string{"TO" + "DO", "FIX" + "ME", "XX" + "X"}

// packageComment is whether a directory's package says what it is.
type packageComment struct {
	first string // a file to point at
	found bool
}

// check applies the rules on Go files; it is empty for others but for the
// reminders.
func check(f file, packages map[string]*packageComment) ([]finding, error) {
	if path.Ext(f.path) != ".go" {
		return remindersIn(f, commentLines(f.content, "#", "//")), nil
	}
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, f.path, f.content, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	if ast.IsGenerated(parsed) {
		return nil, nil
	}
	var found []finding
	if n := bytes.Count(f.content, []byte("\n")); n > maxLines {
		found = append(found, finding{f.path, maxLines, fmt.Sprintf("the file has %d lines, at most %d: split it by what it does", n, maxLines)})
	}
	g := goFile{file: f, fset: fset, ast: parsed}
	found = append(found, remindersIn(f, g.comments())...)
	if !f.isTest() {
		found = append(found, g.undocumented()...)
		notePackage(f, parsed, packages)
		if !strings.HasPrefix(f.path, "cmd/") && !strings.Contains(f.path, "/internal/gen/") {
			found = append(found, g.impure()...)
		}
	}
	slices.SortStableFunc(found, func(a, b finding) int { return a.line - b.line })
	return found, nil
}

type goFile struct {
	file
	fset *token.FileSet
	ast  *ast.File
}

func (g goFile) at(p token.Pos) int { return g.fset.Position(p).Line }

// comments are the lines of comment by line number.
func (g goFile) comments() map[int]string {
	out := map[int]string{}
	for _, group := range g.ast.Comments {
		for _, c := range group.List {
			for i, text := range strings.Split(c.Text, "\n") {
				out[g.at(c.Pos())+i] += text
			}
		}
	}
	return out
}

// commentLines are the lines that hold a comment, for languages where that can
// be told without parsing.
func commentLines(content []byte, markers ...string) map[int]string {
	out := map[int]string{}
	for i, line := range strings.Split(string(content), "\n") {
		for _, m := range markers {
			if _, text, ok := strings.Cut(line, m); ok {
				out[i+1] += text
			}
		}
	}
	return out
}

func remindersIn(f file, comments map[int]string) []finding {
	if f.isTest() {
		return nil
	}
	var out []finding
	for _, line := range slices.Sorted(maps.Keys(comments)) {
		for _, word := range strings.FieldsFunc(comments[line], func(r rune) bool { return r < 'A' || r > 'Z' }) {
			if slices.Contains(reminders, word) {
				out = append(out, finding{f.path, line, word + " in a comment: finish it, or open an issue and say in words what is missing"})
			}
		}
	}
	return out
}

// impure finds calls and other uses of impure functions.
func (g goFile) impure() []finding {
	names := map[string]string{} // local name -> import path
	comments := g.comments()
	var out []finding
	for _, im := range g.ast.Imports {
		importPath, err := strconv.Unquote(im.Path.Value)
		if _, ok := impure[importPath]; !ok || err != nil {
			continue
		}
		name := path.Base(strings.TrimSuffix(importPath, "/v2"))
		if im.Name != nil {
			name = im.Name.Name
		}
		if name == "." {
			out = append(out, finding{g.path, g.at(im.Pos()), fmt.Sprintf("%s is imported with a dot: import it by name", importPath)})
		}
		names[name] = importPath
	}
	ast.Inspect(g.ast, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		pkg, ok := sel.X.(*ast.Ident)
		if !ok || names[pkg.Name] == "" {
			return true
		}
		functions := impure[names[pkg.Name]]
		line := g.at(sel.Pos())
		if functions != nil && !slices.Contains(functions, sel.Sel.Name) || excused(comments, line, g.function(sel.Pos())) {
			return true
		}
		out = append(out, finding{g.path, line, fmt.Sprintf("%s.%s outside of cmd and tests: take the value as an argument (time: a clock of k8s.io/utils/clock), "+
			"return an error instead of an exit, or give the reason in a comment //lint:impure", names[pkg.Name], sel.Sel.Name)})
		return true
	})
	return out
}

// function is the first line of the function around the position, or 0.
func (g goFile) function(at token.Pos) int {
	for _, d := range g.ast.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Pos() <= at && at < f.End() {
			return g.at(f.Pos())
		}
	}
	return 0
}

// excused says whether a comment on the line, above it, or above the function
// gives a reason for an impure call.
func excused(comments map[int]string, line, function int) bool {
	for _, l := range []int{line, line - 1, function - 1} {
		if _, why, ok := strings.Cut(comments[l], "lint:impure "); ok && strings.TrimSpace(why) != "" {
			return true
		}
	}
	return false
}
