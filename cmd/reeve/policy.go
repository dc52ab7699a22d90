package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reeve-project/reeve/reconciler/authoring"
	"github.com/reeve-project/reeve/reconciler/port"
)

func policyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Test, format and describe the Rego of a fleet repository",
		Long: `Work on the policies of a fleet repository: run their tests beside the shipped
policies, bring them into the format of opa fmt, and print what the annotations
say of every rule.`,
		Example: `  reeve policy test --coverage
  reeve policy fmt --check
  reeve policy docs`,
	}
	cmd.AddCommand(policyTestCommand(), policyFmtCommand(), policyDocsCommand())
	return cmd
}

// formatFlag adds --output with the formats of one command, the first of which
// is the default. One that is not known is found before any work is done.
func formatFlag(cmd *cobra.Command, output *string, formats ...string) {
	list := strings.Join(formats, " or ")
	cmd.Flags().StringVarP(output, "output", "o", formats[0], list)
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if !slices.Contains(formats, *output) {
			return fmt.Errorf("--output %q: want %s", *output, list)
		}
		return nil
	}
}

// pathOf is the argument PATH.
func pathOf(args []string) string {
	if len(args) == 0 {
		return "."
	}
	return args[0]
}

// inLines puts each fault of policies on a line of its own, with its place.
func inLines(err error) error {
	found := port.Findings(err)
	if len(found) == 0 {
		return err
	}
	lines := []string{"the policies cannot be used"}
	for _, f := range found {
		line := f.Message
		if f.Position != nil {
			line = f.Position.String() + ": " + line
		}
		lines = append(lines, line)
	}
	return errors.New(strings.Join(lines, "\n"))
}

func policyTestCommand() *cobra.Command {
	var o authoring.TestOptions
	var output string
	cmd := &cobra.Command{
		Use:   "test [PATH]",
		Short: "Run the tests of policies",
		Long: `Run the rules test_... in the files *_test.rego below policies/ of a fleet
repository, with its policies and the shipped ones at hand. PATH is its root
directory.

Exits with 0 if all tests pass, 1 if one fails or the coverage is below
--threshold, and 2 if the Rego does not compile or there are no tests.`,
		Example: `  reeve policy test
  reeve policy test --coverage --threshold 100
  reeve policy test --shipped -o json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Path = pathOf(args)
			run, err := authoring.RunTests(cmd.Context(), o)
			if err != nil {
				return inLines(err)
			}
			write := authoring.TestsText
			if output == "json" {
				write = authoring.TestsJSON
			}
			if err := write(cmd.OutOrStdout(), run); err != nil {
				return err
			}
			if !run.OK() {
				return exitCode(exitFindings)
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.Coverage, "coverage", false, "show which lines of the policies the tests ran through")
	f.IntVar(&o.Threshold, "threshold", 0, "fail if less than so many percent of the lines are covered")
	f.BoolVar(&o.Shipped, "shipped", false, "run the tests of the shipped policies instead")
	formatFlag(cmd, &output, "text", "json")
	return cmd
}

func policyFmtCommand() *cobra.Command {
	var o authoring.FormatOptions
	cmd := &cobra.Command{
		Use:   "fmt [PATH...]",
		Short: "Format Rego files",
		Long: `Bring Rego files into the format of opa fmt, and list those that were not in
it. PATH is a file or a directory, "policies" if there is none. Files in the
syntax before Rego v1 keep it, unless --upgrade is given.

Exits with 0 if all is well, 1 if --check finds a file that is not in its format,
and 2 if a file is no Rego or there is none.`,
		Example: `  reeve policy fmt
  reeve policy fmt --check policies
  reeve policy fmt --upgrade policies/old.rego`,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Paths = args
			changed, err := authoring.Format(o)
			for _, file := range changed {
				fmt.Fprintln(cmd.OutOrStdout(), file)
			}
			if err != nil {
				return err
			}
			if o.Check && len(changed) > 0 {
				return exitCode(exitFindings)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&o.Check, "check", false, "list the files and leave them as they are")
	cmd.Flags().BoolVar(&o.Upgrade, "upgrade", false, "rewrite the syntax before Rego v1 to that of v1")
	return cmd
}

func policyDocsCommand() *cobra.Command {
	var o authoring.DocsOptions
	var output string
	cmd := &cobra.Command{
		Use:   "docs [PATH]",
		Short: "Describe every rule, from its annotations",
		Long: `Print the reference of the rules that judge a fleet: the shipped ones and those
below policies/. PATH is the root directory of the fleet repository.

Exits with 0, or with 2 if the Rego does not compile or there are no rules.`,
		Example: `  reeve policy docs
  reeve policy docs --own .
  reeve policy docs -o json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Path = pathOf(args)
			docs, err := authoring.Docs(o)
			if err != nil {
				return inLines(err)
			}
			if output == "json" {
				return authoring.DocsJSON(cmd.OutOrStdout(), docs)
			}
			return authoring.DocsMarkdown(cmd.OutOrStdout(), "Rules", docs)
		},
	}
	cmd.Flags().BoolVar(&o.Own, "own", false, "leave the shipped policies out")
	formatFlag(cmd, &output, "markdown", "json")
	return cmd
}
