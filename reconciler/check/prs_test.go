package check

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reeve-project/reeve/examples/prs"
	"github.com/reeve-project/reeve/policies"
	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/pipeline"
	"github.com/reeve-project/reeve/reconciler/port"
	"github.com/reeve-project/reeve/reconciler/report"
	"github.com/reeve-project/reeve/reconciler/spec"
)

func judgeTree(t *testing.T, pr *prs.PR, c pipeline.Candidate) *pipeline.Judgement {
	t.Helper()
	c.Cluster, c.Now = pr.Cluster, pr.Now
	c.Load = func(ctx context.Context, src *port.Source) (*fleet.Fleet, error) {
		return spec.Load(ctx, src.Files, spec.Options{Cluster: pr.Cluster})
	}
	j, err := pipeline.JudgeCommit(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func lines(fs []decision.Finding) []string {
	var out []string
	for _, f := range fs {
		out = append(out, f.Position.String()+" "+f.Rule)
	}
	return slices.Compact(out)
}

// With UPDATE=1 in the environment the test writes where the finding is.
func TestTheShippedPoliciesStopTheChangesOfTheExamples(t *testing.T) {
	all, err := prs.All()
	if err != nil || len(all) < 15 {
		t.Fatalf("%d examples, %v", len(all), err)
	}
	for _, pr := range all {
		t.Run(pr.Name, func(t *testing.T) {
			base := judgeTree(t, &pr, pipeline.Candidate{Source: &port.Source{Files: pr.Base}})
			if v := base.Decision.Verdict; len(v.Violations)+len(v.Warnings) > 0 {
				t.Fatalf("before the change: %+v", v)
			}
			got := findings(t, &pr, base)
			if os.Getenv("UPDATE") == "1" && len(got) == 1 {
				at, _, _ := strings.Cut(got[0], " ")
				if err := os.WriteFile(filepath.Join("../../examples/prs", pr.Name, "at"), []byte(at+"\n"), 0o644); err != nil {
					t.Fatal(err)
				}
				pr.At = at
			}
			if diff := cmp.Diff([]string{pr.At + " " + pr.Rule}, got); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

// findings are what stops the change: what policies in force and those of the
// change say, or what is left to choose from.
func findings(t *testing.T, pr *prs.PR, base *pipeline.Judgement) []string {
	t.Helper()
	head := judgeTree(t, pr, pipeline.Candidate{Source: &port.Source{Files: pr.Head}, Previous: base.Fleet, Judge: base.Judge})
	if pr.NeedsBase {
		return lines(head.Decision.Verdict.Violations)
	}
	res := runTree(t, pr, pr.Head)
	if pr.Excludes != "" {
		if before := runTree(t, pr, pr.Base); !before.OK() {
			t.Errorf("before the change: %+v", before)
		}
	}
	if pr.Excludes != "" && !slices.ContainsFunc(res.Clusters[0].Exclusions, func(x decision.Exclusion) bool { return x.Rule == pr.Excludes }) {
		t.Errorf("%s excludes nothing: %+v", pr.Excludes, res.Clusters[0].Exclusions)
	}
	if pr.Excludes == "" && len(head.Decision.Verdict.Violations) == 0 {
		t.Error("the reconciler would take the change")
	}
	return lines(res.Clusters[0].Violations)
}

func runTree(t *testing.T, pr *prs.PR, files fs.FS) *report.Check {
	t.Helper()
	res, err := Run(ctx, Options{Source: pr.Name, Files: files, Now: pr.Now})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestTheChangesOfTheExamplesInEveryFormat(t *testing.T) {
	all, err := prs.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, pr := range all {
		t.Run(pr.Name, func(t *testing.T) {
			if !pr.Now.Equal(noon) {
				t.Fatalf("it is judged at %s, and the formats at %s", pr.Now, noon)
			}
			res := wantGolden(t, filepath.Join("examples", pr.Name), pr.Base, pr.Head)
			if got := lines(res.Clusters[0].Violations); !slices.Contains(got, pr.At+" "+pr.Rule) {
				t.Errorf("%s at %s is not among %v", pr.Rule, pr.At, got)
			}
		})
	}
}

var (
	ruleID    = regexp.MustCompile(`(?m)^#   id: (REEVE-[A-Z0-9-]+)$`)
	policyKey = regexp.MustCompile(`data\.policy\.([A-Za-z]+)`)
)

// TestEveryShippedPolicyHasAnExample takes the part of a fleet's policy data that
// switches files on for the policy. One that judges only decisions cannot be
// broken by a file, so its example is one of its name that changes it.
func TestEveryShippedPolicyHasAnExample(t *testing.T) {
	all, err := prs.All()
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	for _, pr := range all {
		shown[pr.Rule], shown[pr.Excludes] = true, true
	}
	has, decides := map[string]bool{}, map[string]bool{}
	for name, text := range policies.Files() {
		key := policyKey.FindSubmatch(text)
		if key == nil {
			t.Errorf("%s is not switched on by the policy data of a fleet", name)
			continue
		}
		k := string(key[1])
		has[k] = has[k] || slices.ContainsFunc(ruleID.FindAllSubmatch(text, -1), func(m [][]byte) bool { return shown[string(m[1])] })
		if _, seen := decides[k]; !seen {
			decides[k] = true
		}
		decides[k] = decides[k] && bytes.Contains(text, []byte("\npackage reeve.decision."))
	}
	if len(has) < 15 {
		t.Fatalf("only %d policies: %v", len(has), has)
	}
	for _, k := range slices.Sorted(maps.Keys(has)) {
		if !has[k] && !(decides[k] && changesItself(t, all, k)) {
			t.Errorf("policy %s has no example in examples/prs that it stops", k)
		}
	}
}

// changesItself says whether an example has the name of the policy and changes
// its data.
func changesItself(t *testing.T, all []prs.PR, key string) bool {
	name := regexp.MustCompile(`[A-Z]`).ReplaceAllStringFunc(key, func(s string) string { return "-" + strings.ToLower(s) })
	i := slices.IndexFunc(all, func(pr prs.PR) bool { return pr.Name == name })
	if i < 0 {
		return false
	}
	var data [2]any
	for j, files := range []fs.FS{all[i].Base, all[i].Head} {
		f, err := spec.Load(ctx, files, spec.Options{Cluster: all[i].Cluster})
		if err != nil {
			t.Fatal(err)
		}
		var all map[string]any
		if err := json.Unmarshal(f.Policy, &all); err != nil {
			t.Fatal(err)
		}
		data[j] = all[key]
	}
	return !cmp.Equal(data[0], data[1])
}
