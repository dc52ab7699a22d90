package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/reeve-project/reeve/reconciler/spec"
)

func initCommand() *cobra.Command {
	var o spec.InitOptions
	cmd := &cobra.Command{
		Use:   "init DIR",
		Short: "Write a new fleet repository",
		Long: `Write a fleet repository with one cluster, one NodePool, one EC2NodeClass and
the settings of the shipped policies, ready to be committed. The directory must
be empty or not exist; nothing is overwritten.`,
		Example: `  reeve init fleet --cluster blue --region eu-central-1
  reeve check fleet`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			files, err := spec.Init(args[0], o)
			if err != nil {
				return err
			}
			for _, f := range files {
				fmt.Fprintln(cmd.OutOrStdout(), f)
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Cluster, "cluster", "demo", "name of the EKS cluster")
	f.StringVar(&o.Region, "region", "us-east-1", "AWS region of the cluster")
	f.StringVar(&o.KubernetesVersion, "kubernetes-version", "1.34", "minor version of the control plane")
	return cmd
}
