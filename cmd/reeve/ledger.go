package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/reeve-project/reeve/reconciler/ledger"
	"github.com/reeve-project/reeve/reconciler/replay"
	"github.com/reeve-project/reeve/reconciler/report"
)

// ledgerFlags add the flags by which a decision branch is found.
func ledgerFlags(cmd *cobra.Command, s *ledger.Source) {
	cmd.Flags().StringVar(&s.Repo, "repo", ".", "repository with the decision branch: a path or URL")
	cmd.Flags().StringVar(&s.Branch, "branch", "", "decision branch (default: the only branch below reeve/)")
}

func logCommand() *cobra.Command {
	var s ledger.Source
	var q ledger.Query
	cmd := &cobra.Command{
		Use:   "log",
		Short: "List decisions, newest first",
		Example: `  reeve log --repo build/demo/fleet.git
  reeve log --kind provision --limit 20`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if q.Limit < 0 {
				return fmt.Errorf("--limit %d: want a number that is not negative", q.Limit)
			}
			return ledger.Log(cmd.Context(), s, q, func(e ledger.Entry) error {
				return report.Log(cmd.OutOrStdout(), e.Decision, e.Outcome)
			})
		},
	}
	ledgerFlags(cmd, &s)
	cmd.Flags().StringSliceVar(&q.Kinds, "kind", nil, "only decisions of these kinds")
	cmd.Flags().IntVar(&q.Limit, "limit", 0, "at most that many")
	return cmd
}

func showCommand() *cobra.Command {
	var s ledger.Source
	var output string
	cmd := &cobra.Command{
		Use:   "show DECISION",
		Short: "Show one decision in full",
		Long:  "Show one decision in full. DECISION is an id or any part of one that names just one decision.",
		Example: `  reeve show 20260406T120001.000Z-k3x5 --repo build/demo/fleet.git
  reeve show k3x5 -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			e, err := ledger.Find(cmd.Context(), s, args[0])
			if err != nil {
				return err
			}
			if output == "json" {
				return report.JSON(cmd.OutOrStdout(), e.Decision, e.Outcome)
			}
			return report.Decision(cmd.OutOrStdout(), e.Decision, e.Outcome)
		},
	}
	ledgerFlags(cmd, &s)
	outputFlag(cmd, &output)
	return cmd
}

func replayCommand() *cobra.Command {
	var s ledger.Source
	var all bool
	cmd := &cobra.Command{
		Use:   "replay [DECISION]",
		Short: "Make a decision again from the record and compare it byte for byte",
		Long: `Read the cluster state, fleet, policies and prices of a decision from the commit
that records it, run engine and policies again, and compare the result with the
record. No access to the cluster or to AWS is needed.`,
		Example: `  reeve replay --all --repo build/demo/fleet.git
  reeve replay k3x5`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if all == (len(args) == 1) {
				return fmt.Errorf("give either a DECISION or --all")
			}
			sum, err := replay.Run(cmd.Context(), s, args, func(r replay.Result) error {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), r)
				return err
			})
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), sum)
			if !sum.OK() {
				return exitCode(exitFindings)
			}
			return nil
		},
	}
	ledgerFlags(cmd, &s)
	cmd.Flags().BoolVar(&all, "all", false, "replay every decision of the branch")
	return cmd
}

func verifyCommand() *cobra.Command {
	var s ledger.Source
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Prove that a decision branch is whole and unchanged",
		Long: `Walk every commit of the decision branch and check the chain of commits and
leaders, every digest, that every action has a decision recorded before it, and
that open decisions are exactly those without a final outcome.`,
		Example: `  reeve verify --repo build/demo/fleet.git`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			res, err := replay.Verify(cmd.Context(), s)
			if err != nil {
				return err
			}
			for _, p := range res.Problems {
				fmt.Fprintln(cmd.OutOrStdout(), p)
			}
			fmt.Fprintln(cmd.OutOrStdout(), res)
			if len(res.Problems) > 0 {
				return exitCode(exitFindings)
			}
			return nil
		},
	}
	ledgerFlags(cmd, &s)
	return cmd
}
