package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/fleet"
)

// hostile is a check whose texts try to be something else in each format.
func hostile() *Check {
	return &Check{
		Source: "a\n::error::forged", Dir: "in fra/ä",
		Clusters: []ClusterCheck{{
			Cluster: "blue",
			Violations: []decision.Finding{{
				Rule: "X,1", Title: "a: b, c", Resource: "Pod/<b>",
				Message:     "50% no\x1b[2J\r\n::error::forged ]]> <!-- x --> | `code` @team [l](javascript:x) </details>",
				Remediation: "do\n::set-output name=x::y",
				Position:    &fleet.Position{File: "clusters/blue/a,b:c.cue", Line: 3, Column: 7},
			}, {Rule: "X-2", Message: "without a place"}},
			Warnings: []decision.Finding{
				{Rule: "X-3", Message: "so so"},
				{Rule: "X-4", Message: "let pass", Exception: &fleet.Exception{Reason: "r", Owner: "o", Expires: time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)}},
			},
		}},
	}
}

func written(t *testing.T, format string, c *Check) string {
	t.Helper()
	var b strings.Builder
	if err := WriteCheck(&b, format, c); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestTextsForgeNoCommandOfGitHub(t *testing.T) {
	want := "::error file=in fra/ä/clusters/blue/a%2Cb%3Ac.cue,line=3,col=7,title=X%2C1%3A a%3A b%2C c::" +
		"50%25 no\ufffd[2J\ufffd%0A::error::forged ]]> <!-- x --> | `code` @team [l](javascript:x) </details> (Pod/<b>)%0Ado%0A::set-output name=x::y\n" +
		"::error title=X-2::without a place\n" +
		"::warning title=X-3::so so\n" +
		"::notice title=X-4::let pass%0Aexcepted until 2026-05-01 by o: r\n" +
		"reeve check: a%0A::error::forged: 2 errors, 2 warnings\n"
	if diff := cmp.Diff(want, written(t, "github", hostile())); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
}

func TestSARIFOfHostileTextsIsValid(t *testing.T) {
	log, err := sarif.FromBytes([]byte(written(t, "sarif", hostile())))
	if err != nil {
		t.Fatal(err)
	}
	run := log.Runs[0]
	run.NewlineSequences = []string{"\n"} // the reader's empty list is not allowed
	if err := log.Validate(); err != nil {
		t.Error(err)
	}
	var got []string
	for _, r := range run.Results {
		place := r.Locations[0].PhysicalLocation
		got = append(got, fmt.Sprintf("%s %s %s:%d", *r.RuleID, *run.Tool.Driver.Rules[r.RuleIndex].ID, *place.ArtifactLocation.URI, *place.Region.StartLine))
	}
	want := []string{
		"X,1 X,1 in%20fra/%C3%A4/clusters/blue/a,b:c.cue:3", "X-2 X-2 in%20fra/%C3%A4/clusters/blue:1",
		"X-3 X-3 in%20fra/%C3%A4/clusters/blue:1", "X-4 X-4 in%20fra/%C3%A4/clusters/blue:1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	if len(run.Results[3].Suppressions) != 1 || len(run.Results[2].Suppressions) != 0 {
		t.Error("what an exception lets pass is not suppressed, or something else is")
	}
}

func TestJUnitCountsWhatFails(t *testing.T) {
	tests := []struct {
		name     string
		change   func(*Check)
		failures int
		skipped  int
		passing  int
	}{
		{"errors", func(*Check) {}, 2, 1, 1},
		{"warnings too when they fail, but for what is excepted", func(c *Check) { c.FailOnWarn = true }, 3, 1, 0},
		{"nothing, which is one case that passes", func(c *Check) { c.Clusters[0].Violations, c.Clusters[0].Warnings = nil, nil }, 0, 0, 1},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			c := hostile()
			tc.change(c)
			var got junitSuites
			if err := xml.Unmarshal([]byte(written(t, "junit", c)), &got); err != nil {
				t.Fatal(err)
			}
			s := got.Suites[0]
			passing := 0
			for _, k := range s.Cases {
				if k.Failure == nil && k.Skipped == nil {
					passing++
				}
			}
			if got.Failures != tc.failures || s.Failures != tc.failures || s.Skipped != tc.skipped || passing != tc.passing || s.Tests != len(s.Cases) {
				t.Errorf("%+v", got)
			}
			if c.OK() != (tc.failures == 0) {
				t.Errorf("OK is %v", c.OK())
			}
		})
	}
}

func TestCodeQualityHasAPlaceAndAFingerprintForEach(t *testing.T) {
	var got []codeQuality
	if err := json.Unmarshal([]byte(written(t, "gitlab", hostile())), &got); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	severities := ""
	for _, q := range got {
		seen[q.Fingerprint] = true
		severities += q.Severity + " "
		if q.Location.Path == "" || q.Location.Lines.Begin < 1 || q.Description == "" {
			t.Errorf("%+v", q)
		}
	}
	if len(seen) != 4 || severities != "major major minor info " {
		t.Errorf("%d fingerprints, severities %s", len(seen), severities)
	}
}

func TestAFingerprintIsNotOfTheLine(t *testing.T) {
	f := decision.Finding{Rule: "R", Resource: "NodePool/a", Path: fleet.Path{"a", "b"}, Message: "m", Position: &fleet.Position{File: "f", Line: 1}}
	same, others := f, []decision.Finding{f, f, f, f}
	same.Position, same.Remediation = &fleet.Position{File: "f", Line: 9}, "x"
	others[0].Rule, others[1].Resource, others[2].Path, others[3].Message = "S", "NodePool/b", fleet.Path{"a"}, "n"
	if Fingerprint("c", f) != Fingerprint("c", same) {
		t.Error("the line is part of it")
	}
	for i, o := range others {
		if Fingerprint("c", f) == Fingerprint("c", o) {
			t.Errorf("%d: it is the same for %+v", i, o)
		}
	}
	if Fingerprint("c", f) == Fingerprint("d", f) {
		t.Error("the cluster is no part of it")
	}
}

func TestMarkdownShowsTextsAsTheyAre(t *testing.T) {
	text := written(t, "markdown", hostile())
	for _, want := range []string{
		CheckMarker + "\n## Reeve check: 2 errors, 2 warnings\n",
		"- **error** `in fra/ä/clusters/blue/a,b:c.cue:3:7` **X,1** 50% no\ufffd\\[2J\ufffd<br>::error::forged \\]\\]&gt; &lt;\\!-- x --&gt; \\| \\`code\\` @<!-- -->team \\[l\\](javascript:x) &lt;/details&gt; (Pod/&lt;b&gt;)\n",
		"- **excepted** **X-4** let pass\n  <br>excepted until 2026-05-01 by o: r\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in\n%s", want, text)
		}
	}
}

func TestMarkdownIsCutAtWhatAForgeTakes(t *testing.T) {
	c := &Check{Source: "fleet", Clusters: []ClusterCheck{{Cluster: "blue"}}}
	for i := range 400 {
		c.Clusters[0].Violations = append(c.Clusters[0].Violations, decision.Finding{Rule: "X-1", Message: fmt.Sprintf("%d %s", i, strings.Repeat("ä", 100))})
	}
	if text := written(t, "markdown", c); strings.Contains(text, "left out") || utf8.RuneCountInString(text) > MaxMarkdown {
		t.Errorf("%d characters are cut, or too many", utf8.RuneCountInString(text))
	}
	for i := range 900 {
		c.Clusters[0].Exclusions = append(c.Clusters[0].Exclusions, decision.Exclusion{Rule: "X-2", NodePool: "p", Message: fmt.Sprintf("%d %s", i, strings.Repeat("ö", 100)), Types: decision.TypeSet{Count: 1, Names: []string{"m5.large"}}})
	}
	text := written(t, "markdown", c)
	n := utf8.RuneCountInString(text)
	if n > MaxMarkdown || n < MaxMarkdown-500 || !strings.HasPrefix(text, CheckMarker) || !strings.HasSuffix(text, "\n</details>\n\nThe rest is left out: the comment would be longer than 65536 characters. Run `reeve check` to see all.\n") {
		t.Errorf("%d characters, ending in %q", n, text[len(text)-300:])
	}
}

func TestAnUnknownFormatIsAnError(t *testing.T) {
	if err := WriteCheck(&bytes.Buffer{}, "yaml", hostile()); err == nil || !strings.Contains(err.Error(), "text, json, sarif, junit, github, gitlab, markdown") {
		t.Errorf("error %v", err)
	}
	if err := WriteBudgets(&bytes.Buffer{}, "sarif", nil); err == nil {
		t.Error("budgets as SARIF are no error")
	}
}

// full is a writer without room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, fmt.Errorf("no room") }

func TestAWriterWithoutRoomIsAnError(t *testing.T) {
	for _, format := range CheckFormats() {
		if err := WriteCheck(full{}, format, hostile()); err == nil {
			t.Errorf("%s: no error", format)
		}
	}
	for _, format := range []string{"text", "json", "markdown"} {
		if err := WriteBudgets(full{}, format, []BudgetWeek{{}}); err == nil {
			t.Errorf("%s of budgets: no error", format)
		}
	}
}
