package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
)

// The parts of JUnit's form that GitLab, GitHub actions and Jenkins read.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Name     string       `xml:"name,attr"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Name      string        `xml:"name,attr"`
		Classname string        `xml:"classname,attr"`
		File      string        `xml:"file,attr,omitempty"`
		Line      int           `xml:"line,attr,omitempty"`
		Failure   *junitFailure `xml:"failure"`
		Skipped   *junitSkipped `xml:"skipped"`
		Out       string        `xml:"system-out,omitempty"`
	}
	junitFailure struct {
		Type    string `xml:"type,attr"`
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
	junitSkipped struct {
		Message string `xml:"message,attr"`
	}
)

// CheckJUnit writes the check as a JUnit report: a suite for each cluster and a
// case for each finding. What fails the check is a failure, a warning that does
// not passes with its text as output, and what an exception lets pass is
// skipped. A cluster without findings is one case that passes.
func CheckJUnit(w io.Writer, c *Check) error {
	out := junitSuites{Name: clean(c.title())}
	all := c.findings()
	for i := range c.Clusters {
		s := junitSuite{Name: c.Clusters[i].Cluster}
		for k := range all {
			if all[k].cluster == s.Name {
				s.add(c, &all[k])
			}
		}
		if len(s.Cases) == 0 {
			s.Cases = []junitCase{{Name: "no findings", Classname: s.Name}}
		}
		s.Tests = len(s.Cases)
		out.Tests, out.Failures, out.Suites = out.Tests+s.Tests, out.Failures+s.Failures, append(out.Suites, s)
	}
	b, err := xml.MarshalIndent(out, "", "  ")
	if err != nil {
		return fmt.Errorf("junit: %w", err)
	}
	_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, b)
	return err
}

func (s *junitSuite) add(c *Check, f *found) {
	text := f.place() + f.text()
	body := strings.Join(append([]string{text}, f.lines()...), "\n")
	tc := junitCase{
		Name: clean(f.Rule + suffix(" ", f.Resource) + suffix(" ", f.Path.String())), Classname: f.cluster,
	}
	if f.placed() {
		tc.File, tc.Line = f.file, f.line
	}
	switch {
	case f.level == levelNote:
		tc.Skipped = &junitSkipped{body}
		s.Skipped++
	case f.level == levelError || c.fails(f.Finding):
		tc.Failure = &junitFailure{Type: clean(f.Rule), Message: f.text(), Text: body}
		s.Failures++
	default:
		tc.Out = body
	}
	s.Cases = append(s.Cases, tc)
}

// place is "file:line:column: " in the Git repository, or nothing.
func (f *found) place() string {
	if !f.placed() {
		return ""
	}
	return fmt.Sprintf("%s:%d:%d: ", f.file, f.line, f.column)
}
