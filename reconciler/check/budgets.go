package check

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/disruption"
	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/report"
	"github.com/reeve-project/reeve/reconciler/spec"
)

// BudgetOptions say which weeks of which NodePools to tell.
type BudgetOptions struct {
	Target
	// NodePools by name; all when empty.
	NodePools []string
	// Week is any instant of it.
	Week time.Time
	// Nodes is the number of nodes to take percentages of; zero leaves them as
	// they are.
	Nodes int
}

// Budgets tells what disruption budgets allow hour by hour. It fails when the
// fleet cannot be read, and with ErrNothing when no NodePool is asked for.
func Budgets(ctx context.Context, o BudgetOptions) ([]report.BudgetWeek, error) {
	opened, err := openTarget(ctx, o.Target)
	if err != nil {
		return nil, err
	}
	defer opened.close()
	names, err := clusters(opened.Options)
	if err != nil {
		return nil, err
	}
	var out []report.BudgetWeek
	missing := slices.Clone(o.NodePools)
	for _, name := range names {
		f, err := spec.Load(ctx, opened.Files, spec.Options{Cluster: name, Commit: opened.Commit})
		if err != nil {
			return nil, fmt.Errorf("cluster %s: %w", name, err)
		}
		for _, np := range f.NodePools {
			if len(o.NodePools) > 0 && !slices.Contains(o.NodePools, np.Name) {
				continue
			}
			missing = slices.DeleteFunc(missing, func(s string) bool { return s == np.Name })
			w, err := week(f, np, o.Week, o.Nodes)
			if err != nil {
				return nil, fmt.Errorf("cluster %s: %w", name, err)
			}
			out = append(out, *w)
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("%s: %w: there is no NodePool %s", opened.Source, ErrNothing, strings.Join(missing, ", "))
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: %w: the fleet has no NodePool", opened.Source, ErrNothing)
	}
	return out, nil
}

// changedBudgets are the weeks of NodePools whose budgets are not those of the
// base, as they will be. Of a new NodePool they are told when they leave a
// reason unlimited.
func changedBudgets(base, head *fleet.Fleet, now time.Time) ([]report.BudgetWeek, error) {
	out := []report.BudgetWeek{}
	for _, np := range head.NodePools {
		was := base.NodePool(np.Name)
		if was != nil && equality.Semantic.DeepEqual(was.Spec.Disruption.Budgets, np.Spec.Disruption.Budgets) {
			continue
		}
		w, err := week(head, np, now, 0)
		if err != nil {
			return nil, err
		}
		if was != nil || len(w.Gaps()) > 0 {
			out = append(out, *w)
		}
	}
	return out, nil
}

// mondayOf is the beginning of the week that the instant is in, in UTC.
func mondayOf(t time.Time) time.Time {
	t = t.UTC()
	day := time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC)
	return day.AddDate(0, 0, -(int(day.Weekday())+6)%7)
}

func week(f *fleet.Fleet, pool *karpv1.NodePool, at time.Time, nodes int) (*report.BudgetWeek, error) {
	from := mondayOf(at)
	to := from.AddDate(0, 0, 7)
	changes, err := disruption.BudgetChanges(pool, from, to)
	if err != nil {
		return nil, err
	}
	out := &report.BudgetWeek{Cluster: f.Cluster.Name, NodePool: pool.Name, From: from, Nodes: nodes}
	for _, reason := range disruption.Reasons() {
		r := report.BudgetReason{Reason: reason}
		for i, begin := range changes {
			end := to
			if i+1 < len(changes) {
				end = changes[i+1]
			}
			run, err := allowed(pool, reason, nodes, begin)
			if err != nil {
				return nil, err
			}
			run.From, run.To = begin, end
			if n := len(r.Runs); n > 0 && r.Runs[n-1].Allowed == run.Allowed {
				r.Runs[n-1].To = end
				continue
			}
			r.Runs = append(r.Runs, run)
		}
		out.Reasons = append(out.Reasons, r)
	}
	return out, nil
}

// allowed is what the engine's budgets say at an instant, as a number of nodes
// or, when their number is not given, in the words of the active budgets.
func allowed(pool *karpv1.NodePool, reason string, nodes int, at time.Time) (report.BudgetRun, error) {
	b, err := disruption.Allowed(pool, reason, nodes, at)
	switch {
	case err != nil:
		return report.BudgetRun{}, err
	case b.Unlimited:
		return report.BudgetRun{Allowed: "unlimited", Unlimited: true}, nil
	case nodes > 0:
		return report.BudgetRun{Allowed: strconv.Itoa(b.Allowed)}, nil
	}
	active, err := activeBudgets(pool, reason, at)
	return report.BudgetRun{Allowed: least(active)}, err
}

// activeBudgets are the nodes of the budgets that restrict the reason now. Each
// is asked about by itself, so that the engine alone says which are active.
func activeBudgets(pool *karpv1.NodePool, reason string, at time.Time) ([]string, error) {
	var out []string
	for _, b := range pool.Spec.Disruption.Budgets {
		single := &karpv1.NodePool{ObjectMeta: pool.ObjectMeta}
		single.Spec.Disruption.Budgets = []karpv1.Budget{b}
		got, err := disruption.Allowed(single, reason, 1, at)
		if err != nil {
			return nil, err
		}
		if !got.Unlimited {
			out = append(out, b.Nodes)
		}
	}
	return out, nil
}

// least is the smallest percentage and the smallest number: which of them is
// less depends on how many nodes there are.
func least(nodes []string) string {
	number, percent := -1, -1
	for _, s := range nodes {
		text, isPercent := strings.CutSuffix(s, "%")
		n, err := strconv.Atoi(text)
		if err != nil {
			continue // Allowed has refused it already
		}
		if isPercent {
			percent = smaller(percent, n)
		} else {
			number = smaller(number, n)
		}
	}
	switch {
	case number == 0 || percent == 0:
		return "0"
	case percent < 0:
		return strconv.Itoa(number)
	case number < 0:
		return fmt.Sprintf("%d%%", percent)
	default:
		return fmt.Sprintf("%d%%, at most %d", percent, number)
	}
}

// smaller is the smaller number, where a is less than zero if there is none yet.
func smaller(a, b int) int {
	if a < 0 {
		return b
	}
	return min(a, b)
}
