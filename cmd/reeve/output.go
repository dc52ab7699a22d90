package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

// outputFlag adds --output to a command that prints text or JSON. A format that
// is not known is found before the command does any work, so that no format
// changes what a command's exit code says.
func outputFlag(cmd *cobra.Command, output *string) {
	cmd.Flags().StringVarP(output, "output", "o", "text", "text or json")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if *output != "text" && *output != "json" {
			return fmt.Errorf("--output %q: want text or json", *output)
		}
		return nil
	}
}
