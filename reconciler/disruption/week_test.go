package disruption

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

var monday = time.Date(2026, 4, 6, 0, 0, 0, 0, time.UTC)

func budgetPool(budgets ...karpv1.Budget) *karpv1.NodePool {
	return &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: karpv1.NodePoolSpec{Disruption: karpv1.Disruption{Budgets: budgets}}}
}

func TestBudgetsChangeWhereTheirWindowsBeginAndEnd(t *testing.T) {
	tests := []struct {
		name    string
		budgets []karpv1.Budget
		want    []string
	}{
		{"never without a schedule", []karpv1.Budget{budget("1", "", "", 0)}, []string{"Mon 00:00"}},
		{"at both ends of a window", []karpv1.Budget{budget("0", "", "50 14 * * 4", 90*time.Minute)}, []string{"Mon 00:00", "Thu 14:50", "Thu 16:20"}},
		{"at the end of one that began the week before", []karpv1.Budget{budget("0", "", "0 22 * * 0", 4*time.Hour)}, []string{"Mon 00:00", "Mon 02:00", "Sun 22:00"}},
		{"not where windows meet the ends of the week", []karpv1.Budget{budget("0", "", "0 0 * * 1", 7*24*time.Hour)}, []string{"Mon 00:00"}},
		{"once where two windows begin", []karpv1.Budget{budget("0", "", "0 9 * * 2", time.Hour), budget("1", "E", "0 9 * * 2", 2*time.Hour)}, []string{"Mon 00:00", "Tue 09:00", "Tue 10:00", "Tue 11:00"}},
		{"never by a date that never comes", []karpv1.Budget{budget("0", "", "0 0 30 2 *", time.Hour)}, []string{"Mon 00:00"}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			got, err := BudgetChanges(budgetPool(tc.budgets...), monday, monday.AddDate(0, 0, 7))
			if err != nil {
				t.Fatal(err)
			}
			var text []string
			for _, at := range got {
				text = append(text, at.Format("Mon 15:04"))
			}
			if diff := cmp.Diff(tc.want, text); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		})
	}
	if _, err := BudgetChanges(budgetPool(budget("0", "", "every day", time.Hour)), monday, monday.AddDate(0, 0, 7)); err == nil {
		t.Error("a schedule that cannot be read is no error")
	}
}

// TestBetweenChangesTheAnswerIsTheSame compares with every minute of a week.
func TestBetweenChangesTheAnswerIsTheSame(t *testing.T) {
	pool := budgetPool(
		budget("10%", "", "", 0), budget("0", "D", "*/37 9-17 * * 1-5", 11*time.Minute),
		budget("0", "EU", "30 23 * * *", 100*time.Minute), budget("3", "E", "0 0 1,8 * *", 26*time.Hour+7*time.Minute),
	)
	changes, err := BudgetChanges(pool, monday, monday.AddDate(0, 0, 7))
	if err != nil {
		t.Fatal(err)
	}
	last := ""
	for at := monday; at.Before(monday.AddDate(0, 0, 7)); at = at.Add(time.Minute) {
		now := allowances(pool, 50, at)
		if len(changes) > 0 && changes[0].Equal(at) {
			changes, last = changes[1:], now
		}
		if now != last {
			t.Fatalf("at %s it is %q and before %q, and no change is named", at, now, last)
		}
	}
	if len(changes) > 0 {
		t.Errorf("left: %v", changes)
	}
}
