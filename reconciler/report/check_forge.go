package report

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// githubData and githubProperty escape what a workflow command would take for
// its own (github.com/actions/toolkit, packages/core/src/command.ts).
var (
	githubData     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	githubProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

// githubLevel are the commands of each level.
var githubLevel = map[level]string{levelError: "error", levelWarning: "warning", levelNote: "notice"}

// CheckGitHub writes the findings as workflow commands of GitHub Actions, which
// become annotations of a pull request, and the verdict as a line for the log.
func CheckGitHub(w io.Writer, c *Check) error {
	for _, f := range c.findings() {
		var properties []string
		if f.placed() {
			properties = append(properties, "file="+githubProperty.Replace(f.file), fmt.Sprintf("line=%d", f.line))
			if f.column > 0 {
				properties = append(properties, fmt.Sprintf("col=%d", f.column))
			}
		}
		title := clean(f.Rule + suffix(": ", c.ruleOf(f.Finding).Title))
		properties = append(properties, "title="+githubProperty.Replace(title))
		text := strings.Join(append([]string{f.text()}, f.lines()...), "\n")
		if _, err := fmt.Fprintf(w, "::%s %s::%s\n", githubLevel[f.level], strings.Join(properties, ","), githubData.Replace(text)); err != nil {
			return err
		}
	}
	// The name of a source must not begin a command of its own.
	_, err := fmt.Fprintf(w, "reeve check: %s\n", githubData.Replace(clean(c.title()+": "+c.verdict())))
	return err
}

// codeQuality is a finding in the form of GitLab's Code Quality report.
type codeQuality struct {
	Description string              `json:"description"`
	CheckName   string              `json:"check_name"`
	Fingerprint string              `json:"fingerprint"`
	Severity    string              `json:"severity"`
	Location    codeQualityLocation `json:"location"`
}

type codeQualityLocation struct {
	Path  string           `json:"path"`
	Lines codeQualityLines `json:"lines"`
}

type codeQualityLines struct {
	Begin int `json:"begin"`
}

// gitlabSeverity are GitLab's words for each level.
var gitlabSeverity = map[level]string{levelError: "major", levelWarning: "minor", levelNote: "info"}

// CheckGitLab writes the findings as a Code Quality report of GitLab.
func CheckGitLab(w io.Writer, c *Check) error {
	out := []codeQuality{}
	for _, f := range c.findings() {
		out = append(out, codeQuality{
			Description: strings.Join(append([]string{f.Rule + ": " + f.text()}, f.lines()...), "\n"),
			CheckName:   f.Rule, Fingerprint: Fingerprint(f.cluster, f.Finding), Severity: gitlabSeverity[f.level],
			Location: codeQualityLocation{Path: f.file, Lines: codeQualityLines{f.line}},
		})
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(out)
}
