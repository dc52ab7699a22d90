package authoring

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/policy"
)

const (
	rule = `# METADATA
# title: Teams
# description: About teams.
package reeve.spec.teams

# METADATA
# title: A NodePool names its team
# custom:
#   id: ACME-1
#   remediation: Name it.
deny contains "no team" if count(input.fleet.nodePools) > 1

warn contains "late" if {
	input.now == "never"
	input.previous == null
}
`
	test = `package reeve.spec.teams_test

import data.reeve.spec.teams

test_good if count(teams.deny) == 1 with input.fleet.nodePools as {"a": 1, "b": 2}

test_bad if {
	print("seen")
	count(teams.deny) == 7
}

todo_test_later if false
`
)

// repository is a directory with those files.
func repository(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestTestsSayWhatFailedWhere(t *testing.T) {
	dir := repository(t, map[string]string{"policies/teams.rego": rule, "policies/deep/teams_test.rego": test})
	got, err := RunTests(context.Background(), TestOptions{Path: dir, Coverage: true, Threshold: 50})
	if err != nil {
		t.Fatal(err)
	}
	at := func(line, column int) fleet.Position {
		return fleet.Position{File: "policies/deep/teams_test.rego", Line: line, Column: column}
	}
	failed := at(9, 2)
	want := &TestRun{
		Tests: []Test{
			{Name: "reeve.spec.teams_test.test_good", Position: at(5, 1), Result: "pass"},
			{Name: "reeve.spec.teams_test.test_bad", Position: at(7, 1), Result: "fail", FailedAt: &failed, Output: "seen\n"},
			{Name: "reeve.spec.teams_test.todo_test_later", Position: at(12, 1), Result: "skip"},
		},
		Coverage: []Coverage{{File: "policies/teams.rego", Covered: 1, Missed: 3, Lines: []int{13, 14, 15}}},
		Passed:   1, Failed: 1, Skipped: 1, Covered: 25, Threshold: 50,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("run (-want +got):\n%s", diff)
	}
	if got.OK() {
		t.Error("a failure passes")
	}
	var b bytes.Buffer
	if err := TestsText(&b, got); err != nil {
		t.Fatal(err)
	}
	const text = `policies/deep/teams_test.rego:5:1: pass: reeve.spec.teams_test.test_good
policies/deep/teams_test.rego:7:1: fail: reeve.spec.teams_test.test_bad: policies/deep/teams_test.rego:9:2 does not hold
    seen
policies/deep/teams_test.rego:12:1: skip: reeve.spec.teams_test.todo_test_later
policies/teams.rego: 1 of 4 lines covered, not 13-15
1 passed, 1 failed, 1 skipped; 25 % of the lines covered, less than the 50 % asked for
`
	if diff := cmp.Diff(text, b.String()); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
	b.Reset()
	var again TestRun
	if err := errors.Join(TestsJSON(&b, got), json.Unmarshal(b.Bytes(), &again)); err != nil || cmp.Diff(got, &again) != "" {
		t.Errorf("JSON %s, %v", b.String(), err)
	}
}

func TestNothingToDoIsNoSuccess(t *testing.T) {
	empty, untested := t.TempDir(), repository(t, map[string]string{"policies/teams.rego": rule})
	for name, run := range map[string]func() error{
		"no Rego":     func() error { _, err := RunTests(context.Background(), TestOptions{Path: empty}); return err },
		"no tests":    func() error { _, err := RunTests(context.Background(), TestOptions{Path: untested}); return err },
		"no files":    func() error { _, err := Format(FormatOptions{Paths: []string{empty}}); return err },
		"no own rule": func() error { _, err := Docs(DocsOptions{Path: empty, Own: true}); return err },
	} {
		if err := run(); !errors.Is(err, ErrNothing) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := RunTests(context.Background(), TestOptions{Path: filepath.Join(empty, "none")}); err == nil || errors.Is(err, ErrNothing) {
		t.Errorf("no directory: %v", err)
	}
	broken := repository(t, map[string]string{"policies/a.rego": "package a\n\nx if {\n"})
	var le *policy.LoadError
	if _, err := Docs(DocsOptions{Path: broken}); !errors.As(err, &le) || le.Findings()[0].Position.String() != "policies/a.rego:4:1" {
		t.Errorf("Rego that does not parse: %v", err)
	}
}

func TestFormatKeepsTheSyntaxUnlessItIsToGo(t *testing.T) {
	const old, upgraded = "package main\n\ndeny[msg] {\n\tmsg := \"x\"\n}\n", "package main\n\ndeny contains msg if {\n\tmsg := \"x\"\n}\n"
	dir := repository(t, map[string]string{"a.rego": "package a\nx:=1", "sub/old.rego": old, "good.rego": "package b\n", "bad.rego": "package", "README.md": "package a\nx:=1"})
	in := func(name string) string { return filepath.Join(dir, name) }
	text := func(name string) string {
		b, err := os.ReadFile(in(name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	changed, err := Format(FormatOptions{Paths: []string{dir}, Check: true})
	if diff := cmp.Diff([]string{in("a.rego")}, changed); diff != "" || err == nil || !strings.Contains(err.Error(), in("bad.rego")) || text("a.rego") != "package a\nx:=1" {
		t.Errorf("check: %v %s", err, diff)
	}
	if changed, err = Format(FormatOptions{Paths: []string{in("a.rego"), in("sub")}}); err != nil || len(changed) != 1 || text("a.rego") != "package a\n\nx := 1\n" || text("sub/old.rego") != old {
		t.Errorf("format: %v %v %q %q", changed, err, text("a.rego"), text("sub/old.rego"))
	}
	if changed, err = Format(FormatOptions{Paths: []string{in("sub")}, Upgrade: true}); err != nil || len(changed) != 1 || text("sub/old.rego") != upgraded {
		t.Errorf("upgrade: %v %v %q", changed, err, text("sub/old.rego"))
	}
	if _, err := Format(FormatOptions{Paths: []string{in("none")}}); err == nil || errors.Is(err, ErrNothing) {
		t.Errorf("no such path: %v", err)
	}
}

func TestDocsDescribeShippedAndOwnRules(t *testing.T) {
	dir := repository(t, map[string]string{"policies/teams.rego": rule})
	all, err := Docs(DocsOptions{Path: dir})
	if err != nil {
		t.Fatal(err)
	}
	own, err := Docs(DocsOptions{Path: dir, Own: true})
	if err != nil || len(own) != 1 || len(all) <= len(own) || own[0].Shipped() || !all[1].Shipped() {
		t.Fatalf("own %v, %d in all, %v", own, len(all), err)
	}
	var md, js bytes.Buffer
	if err := errors.Join(DocsMarkdown(&md, "Rules", own), DocsJSON(&js, own)); err != nil {
		t.Fatal(err)
	}
	const want = `# Rules

| rule | stage | says | title |
| --- | --- | --- | --- |
| [ACME-1](#acme-1) | spec | deny | A NodePool names its team |
| [reeve.spec.teams.warn](#reevespecteamswarn) | spec | warn | Teams |

## Teams

About teams.

Package ` + "`reeve.spec.teams`, file `policies/teams.rego`" + `.

### ACME-1

A NodePool names its team. Stage ` + "`spec`, `deny`" + `, severity error.

What to do: Name it.

### reeve.spec.teams.warn

Teams. Stage ` + "`spec`, `warn`" + `, severity warning.
`
	if diff := cmp.Diff(want, md.String()); diff != "" {
		t.Errorf("Markdown (-want +got):\n%s", diff)
	}
	if !strings.Contains(js.String(), `"id": "ACME-1"`) || !json.Valid(js.Bytes()) {
		t.Errorf("JSON:\n%s", js.String())
	}
}
