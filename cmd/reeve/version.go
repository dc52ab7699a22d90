package main

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/reeve-project/reeve/reconciler/decision"
)

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version and the formats it reads and writes",
		Example: `  reeve version`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := "(devel)"
			if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
				v = info.Main.Version
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "reeve %s\nengine %d\nledger %s\nopa %s\ncue %s\n",
				v, decision.EngineVersion, decision.Version, decision.OPAVersion, decision.CUEVersion)
			return err
		},
	}
}
