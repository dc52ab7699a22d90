package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/reeve-project/reeve/reconciler/check"
	"github.com/reeve-project/reeve/reconciler/report"
)

func checkCommand() *cobra.Command {
	var o check.Target
	var output, now string
	cmd := &cobra.Command{
		Use:   "check [PATH]",
		Short: "Judge a fleet repository as the reconciler would",
		Long: `Evaluate the CUE of a fleet, run its policies, and say what they find, with
file, line and column. PATH is a directory; --repo and --rev name a commit of a
repository, which is read without checking it out.

Exits with 0 if nothing is wrong, 1 if something is, and 2 if the check could not
be made or there was nothing to check.`,
		Example: `  reeve check .
  reeve check --repo . --rev HEAD
  reeve check --repo https://example.com/fleet.git --rev main --cluster myeks -o json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				o.Path = args[0]
			}
			at, err := instant(now)
			if err != nil {
				return err
			}
			res, err := check.Open(cmd.Context(), o, at)
			if err != nil {
				return err
			}
			if err := printCheck(cmd, output, res); err != nil {
				return err
			}
			if !res.OK() {
				return exitCode(exitFindings)
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Repo, "repo", "", "repository to read: a path or URL")
	f.StringVar(&o.Rev, "rev", "", "revision of --repo: a branch, tag or commit (default HEAD)")
	f.StringSliceVar(&o.Clusters, "cluster", nil, "check only these clusters")
	outputFlag(cmd, &output)
	f.StringVar(&now, "now", "", "judge as at this instant, RFC 3339 (default: the present)")
	return cmd
}

func printCheck(cmd *cobra.Command, output string, res *report.Check) error {
	if output == "json" {
		return report.CheckJSON(cmd.OutOrStdout(), res)
	}
	return report.CheckText(cmd.OutOrStdout(), res)
}

// instant reads an RFC 3339 time; empty is the present.
func instant(s string) (time.Time, error) {
	if s == "" {
		return time.Now(), nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}, fmt.Errorf("--now %q: want an instant such as 2026-04-06T12:00:00Z", s)
	}
	return t, nil
}
