package main

import (
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reeve-project/reeve/reconciler/demo"
)

func demoCommand() *cobra.Command {
	o := demo.Options{Dir: "build/demo"}
	if dir := os.Getenv("DEMO_DIR"); dir != "" {
		o.Dir = dir
	}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Watch a fleet in Git become decisions in Git",
		Long: `Play a story on a simulated cluster in virtual time: a fleet is pushed, pods go
pending, policies judge, nodes appear, and every decision is a commit on the
branch reeve/myeks of a bare repository. Everything but the cluster and AWS is
the code that runs in production. The directory is replaced.`,
		Example: `  reeve demo
  reeve demo --replicas 7,41 --dir /tmp/reeve-demo
  git -C build/demo/fleet.git log reeve/myeks`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Out = cmd.OutOrStdout()
			return demo.Run(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.Dir, "dir", o.Dir, "directory to write fleet.git to ($DEMO_DIR)")
	cmd.Flags().IntSliceVar(&o.Replicas, "replicas", nil, "scale inflate through these instead of playing the story")
	cmd.Flags().StringVar(&o.Only, "only", "", "play one scene: "+strings.Join(demo.Scenes(), ", "))
	return cmd
}
