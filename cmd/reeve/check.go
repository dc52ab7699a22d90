package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reeve-project/reeve/reconciler/check"
	"github.com/reeve-project/reeve/reconciler/report"
)

func checkCommand() *cobra.Command {
	var o check.Target
	var outputs []string
	var now string
	var to []destination
	cmd := &cobra.Command{
		Use:   "check [PATH]",
		Short: "Judge a fleet repository as the reconciler would",
		Long: `Evaluate the CUE of a fleet, run its policies, and say what they find, with
file, line and column. PATH is a directory; --repo and --rev name a commit of a
repository, which is read without checking it out.

With --base the fleet is compared with the one of another revision, whose
policies judge too: only findings that are new are listed, with what each
changed field does to nodes, what NodePools can choose from, and the disruption
budgets that differ.

With --ledger the fleet is held against the cluster as its decision branch last
recorded it: which nodes drift and why, what would be launched and removed, and
what the nodes cost before and after. This fails no check.

Exits with 0 if nothing is wrong, 1 if something is, and 2 if the check could not
be made or there was nothing to check.`,
		Example: `  reeve check .
  reeve check . --base origin/main -o text -o sarif=check.sarif -o markdown=check.md
  reeve check . --base origin/main --ledger origin/reeve/myeks
  reeve check --repo . --rev HEAD --fail-on-warn
  reeve check --repo https://example.com/fleet.git --rev main --cluster myeks -o json`,
		Args: cobra.MaximumNArgs(1),
		PreRunE: func(*cobra.Command, []string) (err error) {
			to, err = destinations(outputs, report.CheckFormats())
			return err
		},
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
			err = write(cmd.OutOrStdout(), to, func(w io.Writer, format string) error { return report.WriteCheck(w, format, res) })
			if err != nil {
				return err
			}
			if !res.OK() {
				return exitCode(exitFindings)
			}
			return nil
		},
	}
	f := cmd.Flags()
	targetFlags(cmd, &o)
	f.StringVar(&o.Base, "base", "", "revision to compare with: only what is new is reported")
	f.StringVar(&o.Ledger, "ledger", "", "decision branch of a cluster, such as origin/reeve/<cluster>: say what the fleet does to its nodes")
	f.BoolVar(&o.FailOnWarn, "fail-on-warn", false, "take warnings for errors, but for those that an exception lets pass")
	f.StringArrayVarP(&outputs, "output", "o", nil, "format or format=file, may be repeated: "+strings.Join(report.CheckFormats(), ", ")+` (default "text")`)
	f.StringVar(&now, "now", "", "judge as at this instant, RFC 3339 (default: the present)")
	return cmd
}

// targetFlags adds the flags that say which fleets are read.
func targetFlags(cmd *cobra.Command, t *check.Target) {
	f := cmd.Flags()
	f.StringVar(&t.Repo, "repo", "", "repository to read: a path or URL")
	f.StringVar(&t.Rev, "rev", "", "revision of --repo: a branch, tag or commit (default HEAD)")
	f.StringSliceVar(&t.Clusters, "cluster", nil, "only these clusters")
}

// destination is where a format is written; an empty file is standard output.
type destination struct{ format, file string }

// destinations reads the values of --output: "format" or "format=file". What
// does not fit is found before a command does any work.
func destinations(outputs, formats []string) ([]destination, error) {
	if len(outputs) == 0 {
		outputs = formats[:1]
	}
	var out []destination
	used := map[string]string{}
	for _, o := range outputs {
		format, file, named := strings.Cut(o, "=")
		if !slices.Contains(formats, format) {
			return nil, fmt.Errorf("--output %q: want one of %s", o, strings.Join(formats, ", "))
		}
		if named && file == "" {
			return nil, fmt.Errorf("--output %q: name a file behind the equals sign", o)
		}
		if other, ok := used[file]; ok {
			where := "standard output"
			if file != "" {
				where = file
			}
			return nil, fmt.Errorf("--output %q: %s goes to %s already; write one of them to a file of its own: %s=FILE", o, other, where, format)
		}
		used[file] = format
		out = append(out, destination{format, file})
	}
	return out, nil
}

// write renders every format before it writes any, so that one that fails
// leaves no half of another behind.
func write(stdout io.Writer, to []destination, render func(io.Writer, string) error) error {
	texts := make([]bytes.Buffer, len(to))
	for i, d := range to {
		if err := render(&texts[i], d.format); err != nil {
			return fmt.Errorf("write %s: %w", d.format, err)
		}
	}
	for i, d := range to {
		if d.file != "" {
			if err := os.WriteFile(d.file, texts[i].Bytes(), 0o644); err != nil {
				return fmt.Errorf("write %s: %w", d.format, err)
			}
			continue
		}
		if _, err := texts[i].WriteTo(stdout); err != nil {
			return fmt.Errorf("write %s: %w", d.format, err)
		}
	}
	return nil
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
	if !countable(t) {
		return time.Time{}, fmt.Errorf("--now %q: want a year from %d to %d", s, firstYear, lastYear)
	}
	return t, nil
}

// Policies count nanoseconds since 1970 in 64 bits, which are enough for these
// years and some before and after them.
const (
	firstYear = 1700
	lastYear  = 2200
)

// countable says whether policies and records can hold the time.
func countable(t time.Time) bool {
	year := t.UTC().Year()
	return year >= firstYear && year <= lastYear
}
