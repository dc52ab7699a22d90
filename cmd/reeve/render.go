package main

import (
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reeve-project/reeve/reconciler/importer"
	"github.com/reeve-project/reeve/reconciler/spec"
)

func renderCommand() *cobra.Command {
	var cluster, output string
	var kinds []string
	cmd := &cobra.Command{
		Use:   "render [PATH]",
		Short: "Print a fleet as the YAML that Karpenter takes",
		Long: `Evaluate the CUE of one cluster and print its EC2NodeClasses and NodePools as
YAML documents, with defaults filled in, sorted by kind and name. The output is
what the reconciler works with; kubectl apply takes it, so the way back to plain
Karpenter is open. PATH is the fleet repository, the present directory unless
given.`,
		Example: `  reeve render . --cluster myeks
  reeve render . --kind NodePool`,
		Args: cobra.MaximumNArgs(1),
		PreRunE: func(*cobra.Command, []string) error {
			if output != "yaml" && output != "json" {
				return fmt.Errorf("--output %q: want yaml or json", output)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := "."
			if len(args) == 1 {
				dir = args[0]
			}
			text, err := renderFleet(cmd, os.DirFS(dir), cluster, kinds, output)
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(text)
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&cluster, "cluster", "", "name of the cluster (default: the only one)")
	f.StringSliceVar(&kinds, "kind", nil, "print only these kinds: NodePool, EC2NodeClass")
	f.StringVarP(&output, "output", "o", "yaml", "yaml or json")
	return cmd
}

func renderFleet(cmd *cobra.Command, tree fs.FS, cluster string, kinds []string, output string) ([]byte, error) {
	if cluster == "" {
		names, err := spec.Clusters(tree)
		if err != nil {
			return nil, err
		}
		if len(names) != 1 {
			return nil, fmt.Errorf("render: there are %d clusters here (%s): say which one with --cluster", len(names), strings.Join(names, ", "))
		}
		cluster = names[0]
	}
	f, err := spec.Load(cmd.Context(), tree, spec.Options{Cluster: cluster})
	if err != nil {
		return nil, err
	}
	if output == "json" {
		return importer.RenderJSON(f, kinds)
	}
	return importer.Render(f, kinds)
}
