package pipeline

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/port"
)

var t0 = time.Date(2026, 4, 6, 12, 0, 0, 0, time.UTC)

func podsNamed(uids ...string) []*cluster.Pod {
	var out []*cluster.Pod
	for _, u := range uids {
		out = append(out, &cluster.Pod{Namespace: "default", Name: u, UID: u})
	}
	return out
}

func TestABatchClosesWhenNoPodComesOrTheTimeIsUp(t *testing.T) {
	type look struct {
		at   time.Duration
		uids []string
		want bool
	}
	second := time.Second
	tests := []struct {
		name  string
		looks []look
	}{
		{"one pod waits for the idle time", []look{{0, []string{"a"}, false}, {second, []string{"a"}, true}}},
		{"a second pod extends it", []look{{0, []string{"a"}, false}, {second / 2, []string{"a", "b"}, false}, {second, []string{"a", "b"}, false}, {3 * second / 2, []string{"a", "b"}, true}}},
		{"no pods close nothing", []look{{0, nil, false}, {10 * second, nil, false}}},
		{"pods that are still there are planned again without waiting", []look{{0, []string{"a"}, false}, {second, []string{"a"}, true}, {2 * second, []string{"a"}, true}}},
		{"a pod that went away leaves no batch open", []look{{0, []string{"a"}, false}, {second / 2, nil, false}, {5 * second, []string{"b"}, false}, {6 * second, []string{"b"}, true}}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			var b batch
			for i, l := range tc.looks {
				if got := b.closed(t0.Add(l.at), podsNamed(l.uids...), second, 10*second); got != l.want {
					t.Errorf("look %d at %s: %v, want %v", i, l.at, got, l.want)
				}
			}
		})
	}
	var b batch
	var uids []string
	for i := range 30 {
		uids = append(uids, fmt.Sprint(i))
		at := time.Duration(i) * second / 2
		if got := b.closed(t0.Add(at), podsNamed(uids...), second, 10*second); got != (at == 10*second) {
			t.Fatalf("a stream of pods at %s: %v", at, got)
		}
		if at == 10*second {
			return
		}
	}
}

func TestSummariesSayWhatHappensInOneLine(t *testing.T) {
	claim := func(typ, zone string, pods int) decision.Claim {
		var names []string
		for i := range pods {
			names = append(names, fmt.Sprint(i))
		}
		return decision.Claim{InstanceType: typ, Zone: zone, Pods: []decision.PodGroup{{Names: names}}}
	}
	provision := func(_ int64, allowed bool, claims ...decision.Claim) *decision.Decision {
		return &decision.Decision{Kind: decision.Provision, Verdict: decision.Verdict{Allowed: allowed},
			Proposal: decision.Proposal{NodePool: "default", Claims: claims, Cost: 344_000_000}}
	}
	denied := provision(1, false, claim("c5a.large", "a", 1))
	denied.Verdict.Violations = []decision.Finding{{Rule: "R2"}, {Rule: "R1"}, {Rule: "R2"}}
	tests := []struct {
		name string
		d    *decision.Decision
		want string
	}{
		{"one node", provision(1, true, claim("c5a.2xlarge", "ap-northeast-2a", 5)), "provision(default): 1 × c5a.2xlarge ap-northeast-2a for 5 pods, $0.344/h"},
		{"nodes of two types in one zone", provision(1, true, claim("b", "a", 1), claim("a", "a", 0), claim("b", "a", 0)), "provision(default): 2 × b, 1 × a a for 1 pod, $0.344/h"},
		{"nodes in two zones", provision(1, true, claim("b", "z", 1), claim("b", "y", 1)), "provision(default): 1 × b y, 1 × b z for 2 pods, $0.344/h"},
		{"many types", provision(1, true, claim("a", "z", 1), claim("b", "z", 1), claim("c", "z", 1), claim("d", "z", 1), claim("e", "z", 1), claim("f", "z", 1)),
			"provision(default): 1 × a, 1 × b, 1 × c, 1 × d, 2 more kinds z for 6 pods, $0.344/h"},
		{"a denied one", denied, "provision(default): 1 × c5a.large a for 1 pod, $0.344/h, denied by R1, R2"},
		{"pods that stay pending", &decision.Decision{Kind: decision.Provision, Proposal: decision.Proposal{Unplaced: []decision.Unplaced{
			{Reason: "policy", Rules: []string{"REEVE-CTRL-001"}, Pods: []decision.PodGroup{{Names: []string{"a"}}}}}}},
			"provision: 1 pod stays pending: REEVE-CTRL-001"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if got := summarizeProvision(tc.d); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
	spec := &decision.Decision{Kind: decision.Reject,
		Proposal: decision.Proposal{Spec: &decision.SpecChange{Commit: "0123456789abcdef"}},
		Verdict: decision.Verdict{Violations: []decision.Finding{
			{Rule: "R1", Message: "moving image\nmore", Position: &fleet.Position{File: "a.cue", Line: 3, Column: 7}}, {Rule: "R2"}}}}
	if got, want := summarizeSpec(spec), "reject(01234567): R1: moving image (a.cue:3:7) and 1 more"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := oneLine(strings.Repeat("x", 300)); len([]rune(got)) != 120 || !strings.HasSuffix(got, "…") {
		t.Errorf("a long line became %d runes", len([]rune(got)))
	}
}

func TestClaimsWithTheSameLaunchInputAreOneGroup(t *testing.T) {
	claims := []decision.Claim{
		{NodePool: "a", CapacityType: "spot"},
		{NodePool: "a", CapacityType: "on-demand"},
		{NodePool: "a", CapacityType: "spot", InstanceType: "another cheapest type is the same input"},
		{NodePool: "b", CapacityType: "spot"},
	}
	if err := group(claims); err != nil {
		t.Fatal(err)
	}
	var got []int
	for _, c := range claims {
		got = append(got, c.Group)
	}
	if diff := cmp.Diff([]int{0, 1, 0, 2}, got); diff != "" {
		t.Error(diff)
	}
}

func TestActionsWaitForThePushAsTheDurabilitySays(t *testing.T) {
	tests := []struct {
		durability fleet.Durability
		wait, go_  []decision.Kind
	}{
		{fleet.Ahead, []decision.Kind{decision.Consolidate, decision.Liveness, decision.Drift}, []decision.Kind{decision.Provision, decision.Interrupt, decision.Reclaim}},
		{fleet.Strict, []decision.Kind{decision.Provision, decision.Reclaim, decision.Consolidate}, []decision.Kind{decision.Interrupt}},
		{fleet.Async, nil, []decision.Kind{decision.Provision, decision.Consolidate, decision.Interrupt}},
	}
	for _, tc := range tests {
		for _, k := range tc.wait {
			if !waitsForPush(k, tc.durability) {
				t.Errorf("%s: %s does not wait", tc.durability, k)
			}
		}
		for _, k := range tc.go_ {
			if waitsForPush(k, tc.durability) {
				t.Errorf("%s: %s waits", tc.durability, k)
			}
		}
	}
}

func TestPoliciesAreOfPlainFilesOnly(t *testing.T) {
	const file = "policies/a.rego"
	big := make([]byte, maxPolicyFile+1)
	for name, tree := range map[string]fstest.MapFS{
		"a link to a folder":     {"policies/shared": {Mode: fs.ModeSymlink}},
		"a link to a file":       {file: {Mode: fs.ModeSymlink}},
		"a named pipe":           {file: {Mode: fs.ModeNamedPipe}},
		"a device":               {file: {Mode: fs.ModeDevice}},
		"a name that is no text": {"policies/\x1b[2J.rego": {Data: []byte("package a")}},
		"a file without end":     {file: {Data: big}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := PolicyFiles(tree)
			if err == nil || len(port.Findings(err)) != 1 {
				t.Errorf("read %d files, %v; want one finding", len(got), err)
			}
		})
	}
}
