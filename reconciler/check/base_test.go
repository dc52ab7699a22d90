package check

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reeve-project/reeve/reconciler/report"
)

// repository makes the directory a repository with all of it in a commit.
func repository(t *testing.T, dir string) (commit string) {
	t.Helper()
	git(t, dir, "init", "-q", "-b", "main")
	return commitAll(t, dir, "Describe the fleet")
}

func commitAll(t *testing.T, dir, message string) string {
	t.Helper()
	git(t, dir, "add", ".")
	git(t, dir, "commit", "-q", "-m", message)
	return git(t, dir, "rev-parse", "HEAD")
}

// ruleOfTheBase denies what may not be loosened: it needs the previous fleet.
const ruleOfTheBase = `# METADATA
# title: Limits are not raised
# custom:
#   id: X-LIMIT
package reeve.spec.own

deny contains {"msg": "the limit is raised", "resource": "NodePool/default", "path": ["nodePools", "default", "spec", "limits", "cpu"]} if {
	input.previous.nodePools["default"].spec.limits.cpu != input.fleet.nodePools["default"].spec.limits.cpu
}
`

func TestThePoliciesOfTheBaseJudgeToo(t *testing.T) {
	dir := newFleet(t)
	write(t, dir, "policies/own.rego", ruleOfTheBase)
	commit := repository(t, dir)
	change(t, dir, pools, `cpu: "1000"`, `cpu: "2000"`)
	if err := os.Remove(filepath.Join(dir, "policies/own.rego")); err != nil {
		t.Fatal(err)
	}
	if res := open(t, Target{Path: dir}); !res.OK() {
		t.Errorf("without a base the rule is gone, and yet: %+v", res.Clusters[0].Violations)
	}
	want := seen{"X-LIMIT", "NodePool/default", pools, line(t, dir, pools, "limits:")}
	head := commitAll(t, dir, "Raise the limit and remove the rule")
	for _, target := range []Target{
		{Path: dir, Base: commit},
		{Repo: dir, Base: "main~1"},
		{Repo: dir, Rev: head[:10], Base: commit[:10]},
	} {
		res := open(t, target)
		cc := res.Clusters[0]
		wantSeen(t, "violations", cc.Violations, want)
		if res.OK() || res.Base == nil || res.Base.Commit != commit {
			t.Errorf("%+v: base %+v", target, res.Base)
		}
		if len(cc.Change.Policies) != 1 || cc.Change.Policies[0].Resource != "Rule/X-LIMIT" || !cc.Change.Policies[0].Loosened {
			t.Errorf("policies that change: %+v", cc.Change.Policies)
		}
		if len(res.Rules) != 1 || res.Rules[0].Title != "Limits are not raised" {
			t.Errorf("the rule of the base is not described: %+v", res.Rules)
		}
	}
}

func TestOnlyNewFindingsAreReported(t *testing.T) {
	dir := newFleet(t)
	change(t, dir, "clusters/blue/nodeclasses.cue", "al2023@v20260318", "al2023@latest")
	repository(t, dir)
	steps := []struct {
		name          string
		change        func()
		new           []seen
		known, fixed  int
		withoutBaseOK bool
	}{
		{"none of a base that is the same", func() {}, nil, 1, 0, false},
		{"none when lines before it move", func() {
			change(t, dir, "clusters/blue/nodeclasses.cue", "package fleet", "// A comment.\n\npackage fleet")
		}, nil, 1, 0, false},
		{"another text of the same rule is new, and the old one fixed", func() {
			change(t, dir, "clusters/blue/nodeclasses.cue", "al2023@latest", "bottlerocket@latest")
		}, []seen{{"REEVE-AMI-001", "EC2NodeClass/default", "clusters/blue/nodeclasses.cue", 15}}, 0, 1, false},
		{"a finding that is mended", func() {
			change(t, dir, "clusters/blue/nodeclasses.cue", "bottlerocket@latest", "al2023@v20260318")
		}, nil, 0, 1, true},
	}
	for _, step := range steps {
		step.change()
		res := open(t, Target{Path: dir, Base: "main"})
		cc := res.Clusters[0]
		wantSeen(t, step.name, cc.Violations, step.new...)
		if res.OK() != (len(step.new) == 0) || cc.Change.Known != step.known || len(cc.Change.Fixed) != step.fixed {
			t.Errorf("%s: ok %v, known %d, fixed %d", step.name, res.OK(), cc.Change.Known, len(cc.Change.Fixed))
		}
		if got := open(t, Target{Path: dir}).OK(); got != step.withoutBaseOK {
			t.Errorf("%s: without a base OK is %v", step.name, got)
		}
	}
}

func TestAWarningThatBecomesAnErrorIsNew(t *testing.T) {
	dir := newFleet(t)
	const rego = "package reeve.spec.own\n\n%s contains {\"msg\": \"m\", \"resource\": \"NodePool/default\"} if true\n"
	write(t, dir, "policies/own.rego", "# METADATA\n# custom:\n#   id: X-1\n"+strings.Replace(rego, "%s", "warn", 1))
	repository(t, dir)
	write(t, dir, "policies/own.rego", "# METADATA\n# custom:\n#   id: X-1\n"+strings.Replace(rego, "%s", "deny", 1))
	cc := open(t, Target{Path: dir, Base: "main"}).Clusters[0]
	wantSeen(t, "violations", cc.Violations, seen{Rule: "X-1", Resource: "NodePool/default", File: pools, Line: line(t, dir, pools, "default: spec")})
	if cc.Change.Known != 1 || len(cc.Change.Fixed) != 0 {
		// The warning of the base's own policy is known.
		t.Errorf("known %d, fixed %+v", cc.Change.Known, cc.Change.Fixed)
	}
}

func TestAFleetBelowTheRootOfItsRepository(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "infra", "fleet")
	copyTree(t, newFleet(t), dir)
	repository(t, top)
	change(t, dir, pools, `cpu: "1000"`, `cpu: "2000"`)
	res := open(t, Target{Path: dir, Base: "main"})
	if res.Dir != "infra/fleet" || !res.OK() || len(res.Clusters[0].Change.Fields) != 1 {
		t.Errorf("dir %q, fields %+v", res.Dir, res.Clusters[0].Change.Fields)
	}
	// Where the base has no such directory, everything is new.
	git(t, top, "mv", "infra", "moved")
	res = open(t, Target{Path: filepath.Join(top, "moved", "fleet"), Base: "main"})
	want := []report.FieldChange{{Op: "add", Resource: "Cluster/blue", Effect: report.InPlace, Why: "the cluster is new"}}
	if got := res.Clusters[0].Change.Fields; len(got) != 1 || got[0].Resource != want[0].Resource || got[0].Op != "add" {
		t.Errorf("fields %+v", got)
	}
}

func copyTree(t *testing.T, from, to string) {
	t.Helper()
	for name, f := range treeOf(t, from) {
		write(t, to, name, string(f.Data))
	}
}

func TestClustersThatAreNewOrGone(t *testing.T) {
	dir := newFleet(t)
	repository(t, dir)
	copyTree(t, filepath.Join(dir, "clusters/blue"), filepath.Join(dir, "clusters/red"))
	if err := os.RemoveAll(filepath.Join(dir, "clusters/blue")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"cluster.cue"} {
		change(t, dir, "clusters/red/"+name, `"blue"`, `"red"`)
	}
	res := open(t, Target{Path: dir, Base: "main"})
	if len(res.Removed) != 1 || res.Removed[0] != "blue" || len(res.Clusters) != 1 || res.Clusters[0].Cluster != "red" {
		t.Errorf("removed %v, clusters %+v", res.Removed, res.Clusters)
	}
	if res := open(t, Target{Path: dir, Base: "main", Clusters: []string{"red"}}); len(res.Removed) != 0 {
		t.Errorf("removed %v, and it was not asked for", res.Removed)
	}
}

func TestNodePoolsThatAreAddedAndRemoved(t *testing.T) {
	dir := newFleet(t)
	repository(t, dir)
	change(t, dir, pools, "nodePools: default: spec:", "nodePools: other: spec:")
	cc := open(t, Target{Path: dir, Base: "main"}).Clusters[0]
	var got []string
	for _, f := range cc.Change.Fields {
		got = append(got, f.Op+" "+f.Resource+": "+string(f.Effect))
	}
	want := "remove NodePool/default: replaces nodes; add NodePool/other: new nodes only"
	if text := strings.Join(got, "; "); text != want {
		t.Errorf("fields %q, want %q", text, want)
	}
	c := cc.Change.Choices
	if len(c) != 2 || c[0].NodePool != "default" || c[0].After != nil || c[1].NodePool != "other" || c[1].Before != nil || c[0].Before.Types != c[1].After.Types {
		t.Errorf("choices %+v", c)
	}
}

func TestABaseThatCannotBeHadIsAnError(t *testing.T) {
	plain := newFleet(t)
	dir := newFleet(t)
	repository(t, dir)
	tests := []struct {
		name   string
		target Target
		want   string
	}{
		{"a revision that is not there", Target{Path: dir, Base: "v9"}, "base v9: "},
		{"a revision of another clone", Target{Repo: dir, Base: strings.Repeat("1", 40)}, "in CI, fetch all history"},
		{"a directory outside of any work tree", Target{Path: plain, Base: "main"}, "so there is no base and no ledger to read from it; give --repo"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := Open(ctx, tc.target, noon); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

func TestWarningsFailOnlyWhenAsked(t *testing.T) {
	dir := newFleet(t)
	change(t, dir, "clusters/blue/cluster.cue", `"ap-northeast-2"`, `"eu-north-1"`)
	if !open(t, Target{Path: dir}).OK() {
		t.Error("a warning fails")
	}
	if open(t, Target{Path: dir, FailOnWarn: true}).OK() {
		t.Error("a warning passes with FailOnWarn")
	}
}
