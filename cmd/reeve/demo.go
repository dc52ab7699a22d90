package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reeve-project/reeve/reconciler/demo"
)

func demoCommand() *cobra.Command {
	o := demo.Options{Dir: "build/demo"}
	if dir := os.Getenv("DEMO_DIR"); dir != "" {
		o.Dir = dir
	}
	var replicas []string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Watch a fleet in Git become decisions in Git",
		Long: `Play a story on a simulated cluster in virtual time: a fleet is pushed, pods go
pending, policies judge, nodes appear, are repacked and go, and every decision
is a commit on the branch reeve/myeks of a bare repository. Labs follow, each
with its example of a fleet and a repository of its own: consolidation, spot
instances that are replaced and interrupted, Graviton beside a managed node
group, placeholders that keep a node warm. It fails if anything does not come
out as it should.

Everything but the cluster and AWS is the code that runs in production, the
client of AWS included. The directory is replaced.`,
		Example: `  reeve demo
  reeve demo --only spot-to-spot
  reeve demo --replicas 7,41,3 --dir /tmp/reeve-demo
  git -C build/demo/fleet.git log reeve/myeks`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Out = cmd.OutOrStdout()
			for _, text := range replicas {
				n, err := strconv.Atoi(text)
				if err != nil {
					return fmt.Errorf("--replicas %q: want numbers of pods with commas between them, such as 7,41,3", text)
				}
				o.Replicas = append(o.Replicas, n)
			}
			return demo.Run(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.Dir, "dir", o.Dir, "directory to write the repositories to ($DEMO_DIR)")
	cmd.Flags().StringSliceVar(&replicas, "replicas", nil, "scale inflate through these instead of playing the story")
	cmd.Flags().StringVar(&o.Only, "only", "", "play one scene: "+strings.Join(demo.Scenes(), ", "))
	cmd.MarkFlagsMutuallyExclusive("replicas", "only")
	return cmd
}
