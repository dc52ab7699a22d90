package check

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/report"
)

// window is a budget with reasons by first letter and a schedule.
func window(nodes, reasons, schedule string, d time.Duration) karpv1.Budget {
	b := karpv1.Budget{Nodes: nodes}
	for _, r := range reasons {
		b.Reasons = append(b.Reasons, map[rune]karpv1.DisruptionReason{
			'E': karpv1.DisruptionReasonEmpty, 'U': karpv1.DisruptionReasonUnderutilized, 'D': karpv1.DisruptionReasonDrifted,
		}[r])
	}
	if schedule != "" {
		b.Schedule, b.Duration = &schedule, &metav1.Duration{Duration: d}
	}
	return b
}

// weekText is the table and the gaps of the week that noon is in.
func weekText(t *testing.T, nodes int, budgets ...karpv1.Budget) string {
	t.Helper()
	np := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: karpv1.NodePoolSpec{Disruption: karpv1.Disruption{Budgets: budgets}}}
	w, err := week(&fleet.Fleet{Cluster: fleet.Cluster{Name: "blue"}}, np, noon.AddDate(0, 0, 3), nodes)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := report.BudgetsText(&b, []report.BudgetWeek{*w}); err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(b.String(), "ALLOWED\n")
	return text
}

func TestWeeksOfBudgets(t *testing.T) {
	const h = time.Hour
	tests := []struct {
		name    string
		nodes   int
		budgets []karpv1.Budget
		want    string
	}{
		{"one budget for all", 0, []karpv1.Budget{window("10%", "", "", 0)},
			"  Underutilized, Empty, Drifted  Mon–Sun  00:00–24:00  10%\n"},
		{"a percentage of a number of nodes is rounded up", 31, []karpv1.Budget{window("10%", "", "", 0)},
			"  Underutilized, Empty, Drifted  Mon–Sun  00:00–24:00  4\n"},
		{"the least of a percentage and a number depends on the nodes", 0, []karpv1.Budget{window("10%", "", "", 0), window("5", "", "", 0), window("20%", "", "", 0)},
			"  Underutilized, Empty, Drifted  Mon–Sun  00:00–24:00  10%, at most 5\n"},
		{"none is less than any percentage", 0, []karpv1.Budget{window("10%", "", "", 0), window("0", "", "", 0)},
			"  Underutilized, Empty, Drifted  Mon–Sun  00:00–24:00  0\n"},
		{"a night that crosses midnight and the week", 0, []karpv1.Budget{window("1", "", "", 0), window("0", "D", "0 22 * * *", 4*h)},
			"  Underutilized, Empty  Mon–Sun  00:00–24:00  1\n" +
				"  Drifted               Mon–Sun  00:00–02:00  0\n" +
				"                                 02:00–22:00  1\n" +
				"                                 22:00–24:00  0\n"},
		{"a reason that no budget names", 0, []karpv1.Budget{window("1", "UE", "", 0)},
			"  Underutilized, Empty  Mon–Sun  00:00–24:00  1\n" +
				"  Drifted               Mon–Sun  00:00–24:00  unlimited\n" +
				"  Drifted is unlimited all week: no active budget covers it\n"},
		{"a gap that ends at midnight", 0, []karpv1.Budget{window("1", "", "0 0 * * 5,6,0,1,2,3", 24*h), window("1", "", "0 0 * * 4", 14*h+50*time.Minute)},
			"  Underutilized, Empty, Drifted  Mon–Wed  00:00–24:00  1\n" +
				"                                 Thu      00:00–14:50  1\n" +
				"                                          14:50–24:00  unlimited\n" +
				"                                 Fri–Sun  00:00–24:00  1\n" +
				"  Underutilized is unlimited from Thursday 14:50 to Friday 00:00: no active budget covers it\n" +
				"  Empty is unlimited from Thursday 14:50 to Friday 00:00: no active budget covers it\n" +
				"  Drifted is unlimited from Thursday 14:50 to Friday 00:00: no active budget covers it\n"},
		{"no budget at all", 0, nil,
			"  Underutilized, Empty, Drifted  Mon–Sun  00:00–24:00  unlimited\n" +
				"  Underutilized is unlimited all week: no active budget covers it\n" +
				"  Empty is unlimited all week: no active budget covers it\n" +
				"  Drifted is unlimited all week: no active budget covers it\n"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, weekText(t, tc.nodes, tc.budgets...)); diff != "" {
				t.Errorf("week (-want +got):\n%s", diff)
			}
		})
	}
}

func TestManyGapsAreToldInShort(t *testing.T) {
	text := weekText(t, 0, window("1", "", "0 */2 * * *", time.Hour))
	if n := strings.Count(text, "Drifted is unlimited"); n != maxGapsTold {
		t.Errorf("%d sentences:\n%s", n, text)
	}
	if !strings.Contains(text, "Drifted is unlimited at 79 more times of this week\n") {
		t.Errorf("it does not say how many more:\n%s", text)
	}
}

// maxGapsTold are five times and one line for the rest.
const maxGapsTold = 6

func TestAWeekBeginsOnItsMonday(t *testing.T) {
	monday := time.Date(2026, 4, 6, 0, 0, 0, 0, time.UTC)
	for d := range 7 {
		at := monday.AddDate(0, 0, d).Add(23*time.Hour + 59*time.Minute)
		if got := mondayOf(at.In(time.FixedZone("east", 9*3600))); !got.Equal(monday) {
			t.Errorf("%s is in the week of %s", at, got)
		}
	}
}

func TestBudgetsOfAFleet(t *testing.T) {
	dir := newFleet(t)
	weeks, err := Budgets(ctx, BudgetOptions{Target: Target{Path: dir}, Week: noon, Nodes: 7})
	if err != nil {
		t.Fatal(err)
	}
	if len(weeks) != 1 || weeks[0].Cluster != "blue" || weeks[0].NodePool != "default" || weeks[0].Nodes != 7 || len(weeks[0].Reasons) != 3 {
		t.Errorf("weeks %+v", weeks)
	}
	tests := []struct {
		name string
		o    BudgetOptions
		want string
		is   error
	}{
		{"a NodePool that is not there", BudgetOptions{Target: Target{Path: dir}, NodePools: []string{"default", "other"}}, "there is no NodePool other", ErrNothing},
		{"a cluster that is not there", BudgetOptions{Target: Target{Path: dir, Clusters: []string{"red"}}}, `no cluster "red"`, ErrNothing},
		{"a directory that is not there", BudgetOptions{Target: Target{Path: dir + "/no"}}, "give the root directory", nil},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Budgets(ctx, tc.o)
			if err == nil || !strings.Contains(err.Error(), tc.want) || tc.is != nil && !errors.Is(err, tc.is) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
	change(t, dir, pools, "package fleet", "package other")
	if _, err := Budgets(ctx, BudgetOptions{Target: Target{Path: dir}}); err == nil || !strings.Contains(err.Error(), "cluster blue: ") {
		t.Errorf("a fleet that cannot be read: %v", err)
	}
}
