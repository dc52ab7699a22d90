package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

func packageName(dir string) string { return path.Base(dir) }

// failure is what is wrong with a result.
type failure struct {
	text string
	// goal says that the code may be as fast as ever, and falls short of a goal.
	goal bool
}

// report prints the results and says what is wrong with them.
func report(w io.Writer, results []result, limit float64) (failures []failure) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "BENCHMARK\tTIME\tBASE\tRATIO\tMORE")
	for _, r := range results {
		before, ratio := "-", "new"
		if r.base != nil {
			before, ratio = duration(r.base[perOp]), fmt.Sprintf("%.2f", r.ratio())
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", r.name, duration(r.head[perOp]), before, ratio, more(r.head))
		if r.ratio() > limit {
			text := fmt.Sprintf("%s takes %.2f times as long as in the base, at most %.2f is allowed", r.name, r.ratio(), limit)
			failures = append(failures, failure{text: text})
		}
		for _, g := range r.goals {
			if bad := g.missed(r.head); bad != "" {
				failures = append(failures, failure{r.name + ": " + bad, true})
			}
		}
	}
	t.Flush()
	return failures
}

// missed says how the sample misses the goal, or "".
func (g goal) missed(s sample) string {
	v, ok := s[g.unit]
	switch {
	case !ok:
		return fmt.Sprintf("it does not report %s, which has a goal", g.unit)
	case g.atLeast > 0 && v < g.atLeast:
		return fmt.Sprintf("%s %s, at least %s is the goal", number(v), g.unit, number(g.atLeast))
	case g.atMost > 0 && v > g.atMost:
		return fmt.Sprintf("%s %s, at most %s is the goal", number(v), g.unit, number(g.atMost))
	}
	return ""
}

func duration(ns float64) string {
	d := time.Duration(ns)
	for _, unit := range []time.Duration{time.Second, time.Millisecond, time.Microsecond} {
		if d >= unit {
			return d.Round(unit / 100).String()
		}
	}
	return number(ns) + "ns"
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

// more is what the sample shows besides the time.
func more(s sample) string {
	var out []string
	for _, unit := range slices.Sorted(maps.Keys(s)) {
		if unit != perOp {
			out = append(out, number(s[unit])+" "+unit)
		}
	}
	return strings.Join(out, ", ")
}

// figure is one number for whoever draws the trend.
type figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
}

// figures are all numbers; a name stands for one number only.
func figures(results []result) []figure {
	out := []figure{}
	for _, r := range results {
		out = append(out, figure{r.name, r.head[perOp], perOp})
		for _, unit := range slices.Sorted(maps.Keys(r.head)) {
			if unit != perOp {
				out = append(out, figure{r.name + " " + unit, r.head[unit], unit})
			}
		}
		if r.base != nil {
			out = append(out, figure{r.name + " ratio to base", r.ratio(), "x"})
		}
	}
	return out
}

func encodeFigures(results []result) ([]byte, error) {
	b, err := json.MarshalIndent(figures(results), "", "  ")
	return append(b, '\n'), err
}
