package report

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/reeve-project/reeve/reconciler/decision"
)

// Check is what a check of a fleet repository found.
type Check struct {
	// Source is what was checked: a directory, or a repository at a commit.
	Source string `json:"source"`
	// Commit is set when a revision was checked.
	Commit string `json:"commit,omitempty"`
	// Base is what it was compared with, nil when with nothing.
	Base *Base `json:"base,omitempty"`
	// Dir is the directory of the fleet repository within its Git repository,
	// separated by slashes, empty for the root. Formats that a forge reads put
	// it before the files of findings.
	Dir string `json:"dir,omitempty"`
	// FailOnWarn says that a warning is as bad as an error; one that an
	// exception lets pass is not.
	FailOnWarn bool           `json:"failOnWarn,omitempty"`
	Clusters   []ClusterCheck `json:"clusters"`
	// Removed are the clusters of the base that are no longer there.
	Removed []string `json:"removed,omitempty"`
	// Rules are those of the findings that have annotations, by id.
	Rules []Rule `json:"-"`
}

// Base is the commit that a check compares with.
type Base struct {
	// Rev is how it was named.
	Rev    string `json:"rev"`
	Commit string `json:"commit"`
}

// Rule is what the annotations of a rule say.
type Rule struct {
	ID          string
	Title       string
	Description string
	Remediation string
	// Severity is "error" or "warning".
	Severity string
}

// ClusterCheck is what was found in one cluster's fleet. Against a base it
// holds what is new only.
type ClusterCheck struct {
	Cluster     string             `json:"cluster"`
	NodePools   int                `json:"nodePools"`
	NodeClasses int                `json:"nodeClasses"`
	Policies    int                `json:"policies"`
	Violations  []decision.Finding `json:"violations"`
	Warnings    []decision.Finding `json:"warnings"`
	// Exclusions are the instance types that policy keeps out, per NodePool.
	Exclusions []decision.Exclusion `json:"exclusions"`
	// Change is how the fleet differs from the base, nil without one.
	Change *FleetChange `json:"change,omitempty"`
	// Impact is what the fleet does to the cluster as its decision branch
	// recorded it, nil without one. It is no finding and fails no check.
	Impact *Impact `json:"impact,omitempty"`
}

// OK says whether nothing is wrong; warnings are not unless they are made so.
func (c *Check) OK() bool {
	for i := range c.Clusters {
		cc := &c.Clusters[i]
		if len(cc.Violations) > 0 || slices.ContainsFunc(cc.Warnings, c.fails) {
			return false
		}
	}
	return true
}

// fails says whether a warning fails the check.
func (c *Check) fails(f decision.Finding) bool { return c.FailOnWarn && f.Exception == nil }

// Fingerprint names a finding of a cluster among all others: by rule, resource,
// path and message and not by line, so that it stays the same when something
// else in the file changes. It is 64 hexadecimal digits.
func Fingerprint(cluster string, f decision.Finding) string {
	h := sha256.New()
	for _, s := range []string{cluster, f.Rule, f.Resource, f.Path.String(), f.Message} {
		fmt.Fprintf(h, "%d:%s;", len(s), s)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// CheckJSON writes the check as indented JSON.
func CheckJSON(w io.Writer, c *Check) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(c)
}

// CheckText writes the check as lines that editors and terminals can follow:
// findings begin with file:line:column.
func CheckText(w io.Writer, c *Check) error {
	p := &printer{w: w}
	for i := range c.Clusters {
		p.clusterCheck(&c.Clusters[i])
	}
	for _, name := range c.Removed {
		p.line("%s: the cluster is removed", name)
	}
	p.line("%s: %s", c.title(), c.verdict())
	return p.err
}

func (p *printer) clusterCheck(cc *ClusterCheck) {
	for _, f := range cc.Violations {
		p.diagnostic("error", f)
	}
	for _, f := range cc.Warnings {
		p.diagnostic("warning", f)
	}
	for _, x := range cc.Exclusions {
		p.line("%s: NodePool %s: excluded by %s: %s: %s", cc.Cluster, x.NodePool, x.Rule, choices(x), x.Message)
	}
	p.fleetChange(cc)
	if cc.Impact != nil && p.err == nil {
		p.err = ImpactText(p.w, cc.Impact)
	}
	p.line("%s: %s, %s, %s", cc.Cluster, count(cc.NodePools, "NodePool", "NodePools"),
		count(cc.NodeClasses, "EC2NodeClass", "EC2NodeClasses"), count(cc.Policies, "policy", "policies"))
}

// title is what was checked, and against what.
func (c *Check) title() string {
	if c.Base == nil {
		return c.Source
	}
	return fmt.Sprintf("%s against %s", c.Source, c.Base)
}

// String is the base as it was named, with its commit.
func (b *Base) String() string {
	short := b.Commit[:min(12, len(b.Commit))]
	if strings.HasPrefix(b.Commit, b.Rev) {
		return short
	}
	return b.Rev + "@" + short
}

// verdict is the check in a line: what was found, and what became of the
// findings of the base.
func (c *Check) verdict() string {
	violations, warnings, known, fixed := 0, 0, 0, 0
	for i := range c.Clusters {
		cc := &c.Clusters[i]
		violations, warnings = violations+len(cc.Violations), warnings+len(cc.Warnings)
		if cc.Change != nil {
			known, fixed = known+cc.Change.Known, fixed+len(cc.Change.Fixed)
		}
	}
	text := verdictLine(violations, warnings)
	if !c.OK() && violations == 0 {
		text = count(warnings, "warning", "warnings") + ", and warnings fail"
	}
	if c.Base != nil {
		text += fmt.Sprintf("; of the base %d still there, %d fixed", known, fixed)
	}
	return text
}

func verdictLine(violations, warnings int) string {
	switch {
	case violations == 0 && warnings == 0:
		return "ok"
	case violations == 0:
		return "ok, " + count(warnings, "warning", "warnings")
	default:
		return count(violations, "error", "errors") + ", " + count(warnings, "warning", "warnings")
	}
}

// count is a number of things.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func (p *printer) diagnostic(level string, f decision.Finding) {
	where := ""
	if f.Position != nil {
		where = f.Position.String() + ": "
	}
	p.line("%s%s: %s: %s%s", where, level, f.Rule, f.Message, suffix(" ", parenthesis(f.Resource)))
	if f.Remediation != "" {
		p.line("    %s", f.Remediation)
	}
	if e := f.Exception; e != nil {
		p.line("    excepted until %s by %s: %s", e.Expires.Format("2006-01-02"), e.Owner, e.Reason)
	}
}
