package report

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/reeve-project/reeve/reconciler/decision"
)

// Check is what a check of a fleet repository found.
type Check struct {
	// Source is what was checked: a directory, or a repository at a commit.
	Source string `json:"source"`
	// Commit is set when a revision was checked.
	Commit   string         `json:"commit,omitempty"`
	Clusters []ClusterCheck `json:"clusters"`
}

// ClusterCheck is what was found in one cluster's fleet.
type ClusterCheck struct {
	Cluster     string             `json:"cluster"`
	NodePools   int                `json:"nodePools"`
	NodeClasses int                `json:"nodeClasses"`
	Policies    int                `json:"policies"`
	Violations  []decision.Finding `json:"violations"`
	Warnings    []decision.Finding `json:"warnings"`
	// Exclusions are the instance types that policy keeps out, per NodePool.
	Exclusions []decision.Exclusion `json:"exclusions"`
}

// OK says whether nothing is wrong; warnings are not.
func (c *Check) OK() bool {
	for i := range c.Clusters {
		if len(c.Clusters[i].Violations) > 0 {
			return false
		}
	}
	return true
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
	violations, warnings := 0, 0
	for i := range c.Clusters {
		cc := &c.Clusters[i]
		for _, f := range cc.Violations {
			p.diagnostic("error", f)
		}
		for _, f := range cc.Warnings {
			p.diagnostic("warning", f)
		}
		for _, x := range cc.Exclusions {
			p.line("%s: NodePool %s: excluded by %s: %s: %s", cc.Cluster, x.NodePool, x.Rule, choices(x), x.Message)
		}
		violations += len(cc.Violations)
		warnings += len(cc.Warnings)
		p.line("%s: %s, %s, %s", cc.Cluster, count(cc.NodePools, "NodePool", "NodePools"),
			count(cc.NodeClasses, "EC2NodeClass", "EC2NodeClasses"), count(cc.Policies, "policy", "policies"))
	}
	p.line("%s: %s", c.Source, verdictLine(violations, warnings))
	return p.err
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
