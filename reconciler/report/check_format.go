package report

import (
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/reeve-project/reeve/reconciler/decision"
)

// checkFormats are the forms of a check, in the order in which help names them.
var checkFormats = []struct {
	name  string
	write func(io.Writer, *Check) error
}{
	{"text", CheckText},
	{"json", CheckJSON},
	{"sarif", CheckSARIF},
	{"junit", CheckJUnit},
	{"github", CheckGitHub},
	{"gitlab", CheckGitLab},
	{"markdown", CheckMarkdown},
}

// CheckFormats are the names of the forms that WriteCheck knows.
func CheckFormats() []string {
	var out []string
	for _, f := range checkFormats {
		out = append(out, f.name)
	}
	return out
}

// WriteCheck writes the check in the form of that name. It fails for a name
// that is not in CheckFormats and when w does.
func WriteCheck(w io.Writer, format string, c *Check) error {
	for _, f := range checkFormats {
		if f.name == format {
			return f.write(w, c)
		}
	}
	return fmt.Errorf("format %q: want one of %s", format, strings.Join(CheckFormats(), ", "))
}

// level is how bad a finding is, in the words of SARIF.
type level string

const (
	levelError   level = "error"
	levelWarning level = "warning"
	// levelNote is a finding that an exception lets pass.
	levelNote level = "note"
)

// found is a finding with what formats need to show it by itself.
type found struct {
	decision.Finding
	cluster string
	level   level
	// file is where it is shown: within the Git repository, the cluster's
	// directory if the finding has no position.
	file         string
	line, column int
}

// findings are all findings, clusters in order, errors first.
func (c *Check) findings() []found {
	var out []found
	for i := range c.Clusters {
		cc := &c.Clusters[i]
		for _, f := range cc.Violations {
			out = append(out, c.found(cc.Cluster, f, levelError))
		}
		for _, f := range cc.Warnings {
			l := levelWarning
			if f.Exception != nil {
				l = levelNote
			}
			out = append(out, c.found(cc.Cluster, f, l))
		}
	}
	return out
}

func (c *Check) found(cluster string, f decision.Finding, l level) found {
	out := found{Finding: f, cluster: cluster, level: l, file: path.Join(c.Dir, "clusters", cluster), line: 1}
	if f.Position != nil {
		out.file, out.line, out.column = path.Join(c.Dir, f.Position.File), max(f.Position.Line, 1), f.Position.Column
	}
	return out
}

// placed says whether the finding is about a line and not the cluster.
func (f *found) placed() bool { return f.Position != nil }

// text is the message with the resource, as every format shows it.
func (f *found) text() string { return clean(f.Message) + suffix(" ", parenthesis(clean(f.Resource))) }

// lines are what follows the message: what to do, and the exception.
func (f *found) lines() []string {
	var out []string
	if f.Remediation != "" {
		out = append(out, clean(f.Remediation))
	}
	if e := f.Exception; e != nil {
		out = append(out, clean(fmt.Sprintf("excepted until %s by %s: %s", e.Expires.Format("2006-01-02"), e.Owner, e.Reason)))
	}
	return out
}

// clean takes out what steers a terminal and what XML cannot hold.
func clean(s string) string {
	return strings.ReplaceAll(printable(s), "\n    ", "\n")
}

// ruleOf is what is known of a rule: its annotations, or what its finding says
// where Reeve itself made it.
func (c *Check) ruleOf(f decision.Finding) Rule {
	i := slices.IndexFunc(c.Rules, func(r Rule) bool { return r.ID == f.Rule })
	if i >= 0 {
		return c.Rules[i]
	}
	return Rule{ID: f.Rule, Title: f.Title, Severity: f.Severity}
}
