package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/reeve-project/reeve/reconciler/check"
	"github.com/reeve-project/reeve/reconciler/report"
)

// budgetFormats are the forms of budgets, the default first.
var budgetFormats = []string{"text", "markdown", "json"}

func budgetsCommand() *cobra.Command {
	var o check.BudgetOptions
	var outputs []string
	var date string
	var to []destination
	cmd := &cobra.Command{
		Use:   "budgets [PATH]",
		Short: "Show how many nodes may be disrupted, by reason, day and hour",
		Long: `Show for one week what the disruption budgets of each NodePool allow, for each
reason, with equal days and hours told once, and the times in which a reason is
unlimited: budgets only ever restrict, so a reason that no active budget covers
is not restricted at all. All times are UTC, as those of schedules are.

Percentages stay percentages unless --nodes says what they are taken of.`,
		Example: `  reeve budgets .
  reeve budgets . --nodepool default --week 2026-04-06 --nodes 40
  reeve budgets --repo . --rev HEAD -o markdown`,
		Args: cobra.MaximumNArgs(1),
		PreRunE: func(*cobra.Command, []string) (err error) {
			to, err = destinations(outputs, budgetFormats)
			return err
		},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if len(args) == 1 {
				o.Path = args[0]
			}
			if o.Nodes < 0 {
				return errors.New("--nodes: want a number of nodes, or none to see percentages")
			}
			if o.Week, err = day(date); err != nil {
				return err
			}
			weeks, err := check.Budgets(cmd.Context(), o)
			if err != nil {
				return err
			}
			return write(cmd.OutOrStdout(), to, func(w io.Writer, format string) error { return report.WriteBudgets(w, format, weeks) })
		},
	}
	targetFlags(cmd, &o.Target)
	f := cmd.Flags()
	f.StringSliceVar(&o.NodePools, "nodepool", nil, "only these NodePools")
	f.StringVar(&date, "week", "", "a day of the week to show, such as 2026-04-06 (default: this week)")
	f.IntVar(&o.Nodes, "nodes", 0, "number of nodes to take percentages of")
	f.StringArrayVarP(&outputs, "output", "o", nil, `format or format=file, may be repeated: text, markdown or json (default "text")`)
	return cmd
}

// day reads a date; empty is today.
func day(s string) (time.Time, error) {
	if s == "" {
		return time.Now(), nil
	}
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		return time.Time{}, fmt.Errorf("--week %q: want a date such as 2026-04-06", s)
	}
	if !countable(t) {
		return time.Time{}, fmt.Errorf("--week %q: want a year from %d to %d", s, firstYear, lastYear)
	}
	return t, nil
}
