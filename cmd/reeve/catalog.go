package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/report"
)

func catalogCommand() *cobra.Command {
	var region, output string
	cmd := &cobra.Command{
		Use:   "catalog [TYPE...]",
		Short: "Show instance types with what a node of each offers and costs",
		Long: `Show instance types as the engine sees them for AL2023 with default settings:
allocatable cpu, memory and pods, and the offerings in the region. Without TYPE
all types that the region offers are listed; types may contain "*".`,
		Example: `  reeve catalog c5a.2xlarge --region ap-northeast-2
  reeve catalog 'm7g.*'
  reeve catalog -o json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			types, err := catalog.List(region, args)
			if err != nil {
				return err
			}
			if output == "json" {
				return report.CatalogJSON(cmd.OutOrStdout(), types)
			}
			return report.CatalogText(cmd.OutOrStdout(), types)
		},
	}
	cmd.Flags().StringVar(&region, "region", "us-east-1", "AWS region: "+fmt.Sprint(catalog.Regions()))
	outputFlag(cmd, &output)
	return cmd
}
