package check

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/report"
	"github.com/reeve-project/reeve/reconciler/spec"
)

var (
	ctx  = context.Background()
	noon = time.Date(2026, 4, 6, 12, 0, 0, 0, time.UTC)
)

const (
	pools      = "clusters/blue/nodepools.cue"
	policyFile = "clusters/blue/policy.cue"
)

// newFleet is the directory of a new fleet of the cluster blue.
func newFleet(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if _, err := spec.Init(dir, spec.InitOptions{Cluster: "blue", Region: "ap-northeast-2"}); err != nil {
		t.Fatal(err)
	}
	return dir
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// change replaces a text that has to be in the file.
func change(t *testing.T, dir, name, from, to string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), from) {
		t.Fatalf("%s has no %q:\n%s", name, from, b)
	}
	write(t, dir, name, strings.Replace(string(b), from, to, 1))
}

// line is the line of a file, counted from one, that holds the text.
func line(t *testing.T, dir, name, text string) int {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	before, _, ok := strings.Cut(string(b), text)
	if !ok {
		t.Fatalf("%s has no %q:\n%s", name, text, b)
	}
	return strings.Count(before, "\n") + 1
}

func open(t *testing.T, target Target) *report.Check {
	t.Helper()
	res, err := Open(ctx, target, noon)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// checkOne checks the directory, which has one cluster.
func checkOne(t *testing.T, dir string) report.ClusterCheck {
	t.Helper()
	res := open(t, Target{Path: dir})
	if len(res.Clusters) != 1 {
		t.Fatalf("%d clusters", len(res.Clusters))
	}
	return res.Clusters[0]
}

// seen is what of a finding matters here.
type seen struct {
	Rule, Resource, File string
	Line                 int
}

func seenOf(fs []decision.Finding) []seen {
	var out []seen
	for _, f := range fs {
		s := seen{Rule: f.Rule, Resource: f.Resource}
		if f.Position != nil {
			s.File, s.Line = f.Position.File, f.Position.Line
		}
		out = append(out, s)
	}
	return out
}

func wantSeen(t *testing.T, what string, got []decision.Finding, want ...seen) {
	t.Helper()
	if diff := cmp.Diff(want, seenOf(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s\n%+v", what, diff, got)
	}
}

func TestAGoodFleetHasNoFindings(t *testing.T) {
	dir := newFleet(t)
	got := open(t, Target{Path: dir})
	policies := got.Clusters[0].Policies
	want := &report.Check{Source: dir, Clusters: []report.ClusterCheck{{
		Cluster: "blue", NodePools: 1, NodeClasses: 1, Policies: policies,
		Violations: []decision.Finding{}, Warnings: []decision.Finding{}, Exclusions: []decision.Exclusion{},
	}}}
	if diff := cmp.Diff(want, got); diff != "" || policies == 0 {
		t.Errorf("check with %d policies (-want +got):\n%s", policies, diff)
	}
	if !got.OK() {
		t.Error("it is not OK")
	}
}

func TestClustersAreThoseAskedFor(t *testing.T) {
	dir := newFleet(t)
	for _, name := range []string{"cluster", "nodeclasses", "nodepools", "policy"} {
		b, err := os.ReadFile(filepath.Join(dir, "clusters/blue", name+".cue"))
		if err != nil {
			t.Fatal(err)
		}
		write(t, dir, "clusters/red/"+name+".cue", strings.ReplaceAll(string(b), `"blue"`, `"red"`))
	}
	tests := []struct {
		name  string
		asked []string
		want  []string
		err   string
	}{
		{name: "all, sorted, when none is named", want: []string{"blue", "red"}},
		{name: "only the one that is named", asked: []string{"red"}, want: []string{"red"}},
		{name: "in the order in which they are named", asked: []string{"red", "blue"}, want: []string{"red", "blue"}},
		{name: "one that is not there fails even beside one that is", asked: []string{"blue", "green"}, err: `there is no cluster "green"; there are blue, red`},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			res, err := Open(ctx, Target{Path: dir, Clusters: tc.asked}, noon)
			if tc.err != "" {
				if !errors.Is(err, ErrNothing) || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("error %v, want ErrNothing with %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range res.Clusters {
				got = append(got, c.Cluster)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("clusters (-want +got):\n%s", diff)
			}
		})
	}
}

func TestATargetThatCannotBeReadIsAnError(t *testing.T) {
	empty := t.TempDir()
	file := filepath.Join(empty, "file")
	write(t, empty, "file", "x")
	tests := []struct {
		name   string
		target Target
		want   string
		is     error
	}{
		{"a directory without clusters", Target{Path: empty}, "there is no directory below clusters/", ErrNothing},
		{"a directory that does not exist", Target{Path: filepath.Join(empty, "no")}, "give the root directory of a fleet repository", fs.ErrNotExist},
		{"a file", Target{Path: file}, "not a directory: give the root directory of a fleet repository", nil},
		{"a path and a repository", Target{Path: empty, Repo: empty}, "give either a PATH or --repo, not both", nil},
		{"a revision without a repository", Target{Rev: "main"}, "--rev needs --repo", nil},
		{"a directory that is no repository", Target{Repo: empty}, "is given as PATH, without --repo", nil},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Open(ctx, tc.target, noon)
			if err == nil || !strings.Contains(err.Error(), tc.want) || tc.is != nil && !errors.Is(err, tc.is) {
				t.Errorf("error %v, want %q (%v)", err, tc.want, tc.is)
			}
		})
	}
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=true",
		"GIT_AUTHOR_NAME=You", "GIT_AUTHOR_EMAIL=you@example.com", "GIT_COMMITTER_NAME=You", "GIT_COMMITTER_EMAIL=you@example.com")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func TestARevisionIsReadFromTheRepositoryAndNotTheWorkTree(t *testing.T) {
	dir := newFleet(t)
	git(t, dir, "init", "-q", "-b", "main")
	git(t, dir, "add", ".")
	git(t, dir, "commit", "-q", "-m", "Describe the fleet")
	commit := git(t, dir, "rev-parse", "HEAD")
	write(t, dir, pools, "broken")
	for _, rev := range []string{"", "main", commit, commit[:10]} {
		res := open(t, Target{Repo: dir, Rev: rev})
		if res.Commit != commit || res.Source != dir+"@"+commit[:12] || !res.OK() {
			t.Errorf("revision %q: %+v", rev, res)
		}
	}
	if res := open(t, Target{Path: dir}); res.OK() {
		t.Error("the broken work tree passes")
	}
	if res := open(t, Target{Repo: "file://" + dir, Rev: "main"}); res.Commit != commit {
		t.Errorf("by URL: %+v", res)
	}
	if _, err := Open(ctx, Target{Repo: dir, Rev: "v9"}, noon); err == nil || !strings.Contains(err.Error(), "revision v9") {
		t.Errorf("a revision that is not there: %v", err)
	}
}

func TestAnUnknownRegionIsAWarning(t *testing.T) {
	dir := newFleet(t)
	change(t, dir, "clusters/blue/cluster.cue", `"ap-northeast-2"`, `"eu-north-1"`)
	got := checkOne(t, dir)
	wantSeen(t, "violations", got.Violations)
	wantSeen(t, "warnings", got.Warnings, seen{RuleNotChecked, "Cluster/blue", "clusters/blue/cluster.cue", line(t, dir, "clusters/blue/cluster.cue", "region:")})
	if !strings.Contains(got.Warnings[0].Message, `no catalog of region "eu-north-1" is built in`) {
		t.Errorf("message %q", got.Warnings[0].Message)
	}
}

func TestFindingsNameTheField(t *testing.T) {
	t.Run("of a policy", func(t *testing.T) {
		dir := newFleet(t)
		change(t, dir, "clusters/blue/nodeclasses.cue", "al2023@v20260318", "al2023@latest")
		got := checkOne(t, dir)
		wantSeen(t, "violations", got.Violations, seen{"REEVE-AMI-001", "EC2NodeClass/default", "clusters/blue/nodeclasses.cue", line(t, dir, "clusters/blue/nodeclasses.cue", "al2023@latest")})
	})
	t.Run("of CUE, and nothing else is said then", func(t *testing.T) {
		dir := newFleet(t)
		change(t, dir, pools, `limits: cpu: "1000"`, `weight: "heavy"`)
		got := checkOne(t, dir)
		wantSeen(t, "violations", got.Violations, seen{spec.RuleSpec, "NodePool/default", pools, line(t, dir, pools, `"heavy"`)})
		wantSeen(t, "warnings", got.Warnings)
	})
	t.Run("of Rego that does not compile", func(t *testing.T) {
		dir := newFleet(t)
		write(t, dir, "policies/own.rego", "package reeve.spec\n\ndeny contains nonsense if true\n")
		got := checkOne(t, dir)
		wantSeen(t, "violations", got.Violations, seen{"REEVE-REGO-001", "", "policies/own.rego", 3})
	})
}

func TestExclusionsNameTheirTypes(t *testing.T) {
	dir := newFleet(t)
	write(t, dir, policyFile, `package fleet

policy: instanceTypes: exclude: ["c7i.*", "m7i.large"]
`)
	got := checkOne(t, dir)
	wantSeen(t, "violations", got.Violations)
	if len(got.Exclusions) != 2 {
		t.Fatalf("exclusions %+v", got.Exclusions)
	}
	for _, x := range got.Exclusions {
		if x.Rule != "REEVE-TYPE-001" || x.NodePool != "default" || x.Types.List != "" || x.Types.Count != len(x.Types.Names) {
			t.Errorf("exclusion %+v", x)
		}
		if want := (fleet.Position{File: policyFile, Line: 3}); x.Position == nil || x.Position.File != want.File || x.Position.Line != want.Line {
			t.Errorf("position %v, want %v", x.Position, want)
		}
	}
	sizes := []int{got.Exclusions[0].Types.Count, got.Exclusions[1].Types.Count}
	slices.Sort(sizes)
	if sizes[0] != 1 || sizes[1] < 8 {
		t.Errorf("%v types are excluded", sizes)
	}
}

func TestSymlinksAreNotFollowed(t *testing.T) {
	outside := t.TempDir()
	write(t, outside, "secret.cue", "package fleet\n\nnodePools: default: spec: weight: 7\n")
	write(t, outside, "p/secret.rego", "package reeve.spec\n\ndeny contains \"secret\" if true\n")
	tests := []struct{ name, link, to, file string }{
		{"a CUE file out of the directory", "clusters/blue/extra.cue", outside + "/secret.cue", "clusters/blue/extra.cue"},
		{"a CUE file inside the directory", "clusters/blue/extra.cue", "nodepools.cue", "clusters/blue/extra.cue"},
		{"a policy out of the directory", "policies/extra.rego", outside + "/p/secret.rego", "policies/extra.rego"},
		{"a policy inside the directory", "policies/extra.rego", "../clusters/blue/nodepools.cue", "policies/extra.rego"},
		{"a directory of policies", "policies/shared", outside + "/p", "policies/shared"},
		{"all policies", "policies", outside + "/p", "policies"},
		{"all policies, inside the directory", "policies", "clusters", "policies"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			dir := newFleet(t)
			if tc.link == "policies" {
				if err := os.RemoveAll(filepath.Join(dir, "policies")); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Symlink(tc.to, filepath.Join(dir, tc.link)); err != nil {
				t.Fatal(err)
			}
			got := checkOne(t, dir)
			if len(got.Violations) == 0 || got.Violations[0].Position == nil || got.Violations[0].Position.File != tc.file {
				t.Fatalf("no violation at %s: %+v", tc.file, got.Violations)
			}
			for _, f := range got.Violations {
				if strings.Contains(f.Message, "secret\"") || f.Rule != spec.RuleSpec {
					t.Errorf("it was read: %+v", f)
				}
			}
		})
	}
}

func TestACheckThatIsBrokenOffIsAnError(t *testing.T) {
	over, cancel := context.WithCancel(ctx)
	cancel()
	_, err := Open(over, Target{Path: newFleet(t)}, noon)
	if !errors.Is(err, context.Canceled) || !strings.HasPrefix(err.Error(), "cluster blue: ") {
		t.Errorf("error %v", err)
	}
}
