package disruption

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/cluster"
)

// budget is "nodes", its reasons by first letter ("" for all, "-" for an empty
// list) and its window.
func budget(nodes, reasons, schedule string, duration time.Duration) karpv1.Budget {
	b := karpv1.Budget{Nodes: nodes}
	for _, r := range reasons {
		b.Reasons = append(b.Reasons, map[rune]karpv1.DisruptionReason{
			'E': karpv1.DisruptionReasonEmpty, 'U': karpv1.DisruptionReasonUnderutilized, 'D': karpv1.DisruptionReasonDrifted,
		}[r])
	}
	if reasons == "-" {
		b.Reasons = []karpv1.DisruptionReason{}
	}
	if schedule != "" {
		b.Schedule, b.Duration = &schedule, &metav1.Duration{Duration: duration}
	}
	return b
}

// allowances writes what is allowed for Empty, Drifted and Underutilized.
func allowances(pool *karpv1.NodePool, counted int, now time.Time) string {
	var out []string
	for _, reason := range []string{ReasonEmpty, ReasonDrifted, ReasonUnderutilized} {
		b, err := Allowed(pool, reason, counted, now)
		text := fmt.Sprint(b.Allowed)
		if b.Unlimited {
			text = "all"
		}
		if err != nil {
			text += "!"
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

func TestWhatBudgetsAllow(t *testing.T) {
	const h = time.Hour
	a7 := []karpv1.Budget{budget("2", "", "", 0), budget("1", "ED", "0 7 * * *", 20*h), budget("0", "U", "0 7 * * *", 20*h)}
	a2 := []karpv1.Budget{budget("20%", "E", "0 6 * * *", 20*h), budget("20%", "UE", "0 2 * * *", 4*h)}
	a5 := []karpv1.Budget{budget("35%", "", "0 1 * * mon", 4*h), budget("35%", "E", "", 0)}
	tests := []struct {
		name    string
		budgets []karpv1.Budget
		counted int
		at      string
		want    string // Empty, Drifted, Underutilized
	}{
		{"A1: a schedule that cannot be read closes the pool for all reasons", []karpv1.Budget{budget("0", "U", "0 0 * * sat-sun", 48*h), budget("100%", "", "", 0)}, 10, "2026-03-04T12:00:00Z", "0! 0! 0!"},
		{"A2: at noon only the first is active", a2, 10, "2026-03-04T12:00:00Z", "2 all all"},
		{"A2: at three only the second adds a reason", a2, 10, "2026-03-04T03:00:00Z", "2 all 2"},
		{"A2: windows are open at their end", a2, 10, "2026-03-04T06:00:00Z", "2 all all"},
		{"A2: a second before the second still is active", a2, 10, "2026-03-04T05:59:59Z", "2 all 2"},
		{"A3: Empty is not Underutilized", []karpv1.Budget{budget("0", "DU", "30 2 * * *", 12*h)}, 6, "2026-03-04T07:13:00Z", "all 0 0"},
		{"A5: a window does not block outside of it", a5, 20, "2026-03-05T14:50:00Z", "7 all all"},
		{"A5: and restricts inside", a5, 20, "2026-03-09T02:00:00Z", "7 7 7"},
		{"A7: the least of all that are active", a7, 40, "2026-03-04T08:00:00Z", "1 1 0"},
		{"A7: the general one alone", a7, 40, "2026-03-04T04:00:00Z", "2 2 2"},
		{"A9: ten percent of one", []karpv1.Budget{budget("10%", "", "", 0)}, 1, "2026-03-04T12:00:00Z", "1 1 1"},
		{"A9: of four", []karpv1.Budget{budget("10%", "", "", 0)}, 4, "2026-03-04T12:00:00Z", "1 1 1"},
		{"A9: of ten", []karpv1.Budget{budget("10%", "", "", 0)}, 10, "2026-03-04T12:00:00Z", "1 1 1"},
		{"A9: of eleven", []karpv1.Budget{budget("10%", "", "", 0)}, 11, "2026-03-04T12:00:00Z", "2 2 2"},
		{"A9: of twenty-one", []karpv1.Budget{budget("10%", "", "", 0)}, 21, "2026-03-04T12:00:00Z", "3 3 3"},
		{"A9: of none", []karpv1.Budget{budget("10%", "", "", 0)}, 0, "2026-03-04T12:00:00Z", "0 0 0"},
		{"A9: nothing", []karpv1.Budget{budget("0%", "", "", 0)}, 10, "2026-03-04T12:00:00Z", "0 0 0"},
		{"A10: an empty list of reasons restricts nothing", []karpv1.Budget{budget("0", "-", "", 0)}, 10, "2026-03-04T12:00:00Z", "all all all"},
		{"A12: a date that never comes is always there", []karpv1.Budget{budget("0", "", "0 0 31 2 *", 24*h)}, 10, "2026-03-04T12:00:00Z", "0 0 0"},
		{"no budget", nil, 10, "2026-03-04T12:00:00Z", "all all all"},
		{"a number below zero", []karpv1.Budget{budget("-1", "", "", 0)}, 10, "2026-03-04T12:00:00Z", "0! 0! 0!"},
		{"more than all", []karpv1.Budget{budget("101%", "", "", 0)}, 10, "2026-03-04T12:00:00Z", "0! 0! 0!"},
		{"no number", []karpv1.Budget{budget("some", "", "", 0)}, 10, "2026-03-04T12:00:00Z", "0! 0! 0!"},
		{"a duration without a schedule", []karpv1.Budget{{Nodes: "0", Duration: &metav1.Duration{Duration: h}}}, 10, "2026-03-04T12:00:00Z", "0! 0! 0!"},
	}
	for _, tc := range tests {
		at, err := time.Parse(time.RFC3339, tc.at)
		if err != nil {
			t.Fatal(err)
		}
		np := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
		np.Spec.Disruption.Budgets = tc.budgets
		// The zone of the clock must not matter.
		if got := allowances(np, tc.counted, at.In(time.FixedZone("KST", 9*3600))); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
}

func TestA13WhichSchedulesCanBeRead(t *testing.T) {
	good := []string{"0 0 * * sat,sun", "0 7 * * mon-fri", "@daily", "@weekly", "0 0 * * 6,0"}
	bad := []string{"0 0 * * sat-sun", "0 0 * * 7", "0 0 * * 6-7", "0 0 * * 6-0", "0 30 2 * * *", "TZ=Asia/Seoul 0 9 * * *", "", "TZ=x"}
	for _, s := range append(good, bad...) {
		np := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
		np.Spec.Disruption.Budgets = []karpv1.Budget{{Nodes: "0", Schedule: &s, Duration: &metav1.Duration{Duration: time.Hour}}}
		b, err := Allowed(np, ReasonEmpty, 10, t0)
		if (err != nil) != slices.Contains(bad, s) {
			t.Errorf("%q: %+v, %v", s, b, err)
		}
		if err != nil && (b.Left() != 0 || !strings.Contains(err.Error(), `NodePool "default": disruption budget 1: schedule "`+s)) {
			t.Errorf("%q: %+v, %v", s, b, err)
		}
	}
}

func TestWhichNodesCountForBudgets(t *testing.T) {
	np := nodePool("default", onDemand())
	np.Spec.Disruption.Budgets = []karpv1.Budget{budget("10%", "", "", 0), budget("3", "E", "", 0)}
	broken := nodePool("broken")
	broken.Spec.Disruption.Budgets = []karpv1.Budget{budget("0", "", "nonsense", time.Hour)}
	free := nodePool("free")
	var nodes []*cluster.Node
	change := func(name string, f func(*cluster.Node)) {
		n := nodeOf(name, np, commonTypes()[0], "a", "on-demand", nil)
		f(n)
		nodes = append(nodes, n)
	}
	for i := range 8 {
		change(fmt.Sprintf("n%d", i), func(*cluster.Node) {})
	}
	change("not-ready", func(n *cluster.Node) { n.Ready = false })
	change("deleting", func(n *cluster.Node) { n.Deleting = true })
	change("removing", func(n *cluster.Node) { n.Removing = "decision" })
	change("uninitialized", func(n *cluster.Node) { n.Claim.Conditions.Initialized = false })
	change("terminating", func(n *cluster.Node) { n.Claim.Conditions.InstanceTerminating, n.Deleting = true, true })
	nodes = append(nodes, &cluster.Node{Name: "theirs", Ready: true, Labels: map[string]string{karpv1.NodePoolLabelKey: "default"}})
	in := input(commonTypes(), nodes, broken, np, free)
	got := Budgets(in.Snapshot, in.Fleet, ReasonEmpty)
	for i := range got {
		if got[i].Invalid != "" {
			got[i].Invalid = "yes"
		}
	}
	want := []Budget{
		{NodePool: "broken", Reason: ReasonEmpty, Invalid: "yes"},
		{NodePool: "default", Reason: ReasonEmpty, Allowed: 2, InUse: 3},
		{NodePool: "free", Reason: ReasonEmpty, Unlimited: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("budgets (-want +got):\n%s", diff)
	}
	if got[1].Left() != 0 {
		t.Errorf("%d are left", got[1].Left())
	}
}
