package spec

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/test/fixtures/validation"
)

// judgeCase judges a fixture, or its second document after the first.
func judgeCase(t *testing.T, c validation.Case) []decision.Finding {
	t.Helper()
	docs, previous := []Source{{Name: c.Name, Data: c.Data}}, []Source(nil)
	if c.Layer == "update" {
		stored, next := c.Update()
		docs, previous = []Source{{Name: c.Name, Data: next}}, []Source{{Name: c.Name, Data: stored}}
	}
	found, err := JudgeDocuments(context.Background(), docs, previous)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestFixturesAreJudgedAsTheySay(t *testing.T) {
	cases, err := validation.Cases()
	if err != nil {
		t.Fatal(err)
	}
	count := map[bool]int{}
	for _, c := range cases {
		count[c.Invalid]++
		t.Run(c.Name, func(t *testing.T) { compareCase(t, c, judgeCase(t, c)) })
	}
	if count[true] < 125 || count[false] < 43 {
		t.Errorf("%d invalid and %d valid cases: some are missing", count[true], count[false])
	}
}

// compareCase holds that there is a finding where the fixture says, in its
// words, and none that it does not know of.
func compareCase(t *testing.T, c validation.Case, found []decision.Finding) {
	t.Helper()
	severity, matched := "warning", c.At == ""
	if c.Invalid {
		severity = "error"
	}
	var got []string
	for _, f := range found {
		text := fmt.Sprintf("%d:%d %s", f.Position.Line, f.Position.Column, f.Path)
		got = append(got, fmt.Sprintf("%s %s: %s (%s)", f.Severity, text, f.Message, f.Remediation))
		if f.Severity != severity || f.Position.File != c.Name {
			t.Errorf("a finding of severity %s in %s", f.Severity, f.Position.File)
		}
		ok := strings.TrimSpace(text) == c.At
		for _, words := range c.Says {
			ok = ok && strings.Contains(f.Message+" ("+f.Remediation+")", words)
		}
		matched = matched || ok
	}
	if !matched || (c.At == "" && len(found) > 0) {
		t.Errorf("%s\nwant %s, saying %q; found\n%s", c.Title, c.At, c.Says, strings.Join(got, "\n"))
	}
}
