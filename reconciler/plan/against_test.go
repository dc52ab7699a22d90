package plan

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/reeve-project/reeve/reconciler/disruption"
	"github.com/reeve-project/reeve/reconciler/gitrepo"
	"github.com/reeve-project/reeve/reconciler/pipeline"
	"github.com/reeve-project/reeve/reconciler/report"
	"github.com/reeve-project/reeve/reconciler/resources"
	"github.com/reeve-project/reeve/reconciler/spec"
)

const (
	poolsFile   = "clusters/myeks/nodepools.cue"
	classesFile = "clusters/myeks/nodeclasses.cue"
)

// revision is the fleet with the changes, which are not pushed.
func (r *rig) revision(changes ...string) *Revision {
	r.t.Helper()
	files := fstest.MapFS{}
	for name, b := range r.files {
		files[name] = &fstest.MapFile{Data: b}
	}
	for i := 0; i+1 < len(changes); i += 2 {
		files[changes[i]] = &fstest.MapFile{Data: []byte(changes[i+1])}
	}
	f, err := spec.Load(ctx, files, spec.Options{Cluster: "myeks", Commit: "head"})
	must(r.t, err)
	rego, err := pipeline.PolicyFiles(files)
	must(r.t, err)
	rev, err := NewRevision(f, rego)
	must(r.t, err)
	return rev
}

// state is the state at the tip of the decision branch.
func (r *rig) state() *State {
	r.t.Helper()
	must(r.t, r.pipeline.Stop(ctx))
	repo, err := gitrepo.OpenDir(r.repo, gitrepo.Options{})
	must(r.t, err)
	st, err := ReadState(ctx, repo, "reeve/myeks", "myeks")
	must(r.t, err)
	return st
}

func TestAChangeIsHeldAgainstTheRecordedCluster(t *testing.T) {
	r := newRig(t)
	r.scale(5)
	st := r.state()
	tests := []struct {
		name    string
		changes []string
		cause   string
		// first is how the first step begins, and head what the nodes then cost.
		first   string
		head    resources.Price
		assumed string
		denied  bool
	}{
		{name: "nothing changes", head: 344 * resources.USD / 1000},
		{
			name:    "a label of the template replaces nodes by the same",
			changes: []string{poolsFile, r.changed(poolsFile, "nodePools: default: spec: {\n", "nodePools: default: spec: {\n\ttemplate: metadata: labels: team: \"a\"\n")},
			cause:   string(disruption.NodePoolDrifted), first: "provision(default): 1 × c5a.2xlarge", head: 344 * resources.USD / 1000,
		},
		{
			name:    "requirements that the node does not meet replace it by what does",
			changes: []string{poolsFile, r.changed(poolsFile, "\t\t\t{key: \"kubernetes.io/arch\", operator: \"In\", values: [\"amd64\"]},\n", "\t\t\t{key: \"karpenter.k8s.aws/instance-family\", operator: \"In\", values: [\"m5\"]},\n")},
			cause:   string(disruption.RequirementsDrifted), first: "provision(default): 1 × m5.2xlarge", head: 472 * resources.USD / 1000,
		},
		{
			name:    "tags of the class replace nodes",
			changes: []string{classesFile, r.changed(classesFile, "nodeClasses: default: spec: {\n", "nodeClasses: default: spec: {\n\ttags: team: \"a\"\n")},
			cause:   string(disruption.NodeClassDrift), first: "provision(default): 1 × c5a.2xlarge", head: 344 * resources.USD / 1000,
		},
		{
			name:    "a NodePool that goes takes its nodes along, and their pods stay pending",
			changes: []string{poolsFile, strings.Replace(string(r.files[poolsFile]), "nodePools: default:", "nodePools: other: spec: weight: 7\nnodePools: other:", 1)},
			cause:   NodePoolRemoved, first: "provision(other): 1 × c5a.2xlarge", head: 344 * resources.USD / 1000,
		},
		{
			name:    "an image that is not resolved yet is said to be unknown",
			changes: []string{classesFile, r.changed(classesFile, "al2023@v20260318", "al2023@v20260402")},
			head:    344 * resources.USD / 1000, assumed: "its amiSelectorTerms changed",
		},
		{
			name: "policy denies what would replace the nodes",
			changes: []string{
				classesFile, r.changed(classesFile, "nodeClasses: default: spec: {\n", "nodeClasses: default: spec: {\n\ttags: team: \"a\"\n"),
				"policies/freeze.rego", "package reeve.decision.quiet\n\ndeny contains {\"msg\": \"not now\"} if input.kind == \"provision\"\n",
			},
			cause: string(disruption.NodeClassDrift), first: "provision: 5 pods stay pending", head: 0, denied: true,
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			got, err := Against(ctx, st, nil, r.revision(tc.changes...))
			must(t, err)
			var want []report.PlanDrift
			if tc.cause != "" {
				want = []report.PlanDrift{{NodePool: "default", InstanceType: "c5a.2xlarge", Price: 344 * resources.USD / 1000, Cause: tc.cause, New: true}}
			}
			if diff := cmp.Diff(want, got.Drift, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(report.PlanDrift{}, "Node", "Detail")); diff != "" {
				t.Errorf("drift (-want +got):\n%s", diff)
			}
			if first := ""; len(got.Steps) > 0 || tc.first != "" {
				if len(got.Steps) > 0 {
					first = got.Steps[0].Summary
				}
				if tc.first == "" || !strings.HasPrefix(first, tc.first) {
					t.Errorf("the first step is %q, want %q", first, tc.first)
				}
			}
			if all := strings.Join(got.Assumptions, "\n"); (all == "") != (tc.assumed == "") || !strings.Contains(all, tc.assumed) {
				t.Errorf("assumptions %q, want %q", all, tc.assumed)
			}
			if got.OK() == tc.denied {
				t.Errorf("OK is %v", got.OK())
			}
			if got.Now != 344*resources.USD/1000 || got.Base != got.Now || got.Head != tc.head {
				t.Errorf("now %s, without the change %s, with it %s; want with it %s", got.Now, got.Base, got.Head, tc.head)
			}
		})
	}
}

func TestWhatDriftsAlreadyIsNotNew(t *testing.T) {
	r := newRig(t)
	r.scale(1)
	st := r.state()
	changed := r.revision(classesFile, r.changed(classesFile, "nodeClasses: default: spec: {\n", "nodeClasses: default: spec: {\n\ttags: team: \"a\"\n"))
	got, err := Against(ctx, st, changed, changed)
	must(t, err)
	if len(got.Drift) != 1 || got.Drift[0].New || got.Base != got.Head {
		t.Errorf("%+v", got)
	}
}

func TestAStateIsOnlyReadFromTheBranchOfTheCluster(t *testing.T) {
	r := newRig(t)
	repo, err := gitrepo.OpenDir(r.repo, gitrepo.Options{})
	must(t, err)
	tests := []struct{ name, ref, cluster, want string }{
		{"the spec branch holds no state", "main", "myeks", "is no decision branch"},
		{"a branch that is not there", "reeve/none", "myeks", "not found"},
		{"another cluster", "reeve/myeks", "blue", `it is the decision branch of cluster "myeks", and not of "blue"`},
		{"no decision about the cluster yet", "reeve/myeks", "myeks", "no decision about nodes is recorded there yet"},
	}
	must(t, r.pipeline.Stop(ctx))
	for _, tc := range tests {
		if _, err := ReadState(ctx, repo, tc.ref, tc.cluster); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.want)
		}
	}
}
