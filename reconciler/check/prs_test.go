package check

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reeve-project/reeve/examples/prs"
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
