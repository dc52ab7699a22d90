package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/reeve-project/reeve/reconciler/kube/dump"
	"github.com/reeve-project/reeve/reconciler/plan"
	"github.com/reeve-project/reeve/reconciler/report"
)

func planCommand() *cobra.Command {
	var o plan.Options
	var files []string
	var output, now string
	cmd := &cobra.Command{
		Use:   "plan [PATH] -f FILE...",
		Short: "Say what would be launched and removed now, and for how much",
		Long: `Work out what a fleet would do to a cluster as it stands, from what kubectl get
prints: which nodes it would launch for pending pods, which it would remove or
replace, what policy says, and what the nodes cost before and after. Nothing is
asked of the cluster or of AWS, and nothing is done.

The files hold pods, nodes, nodeclaims, daemonsets, poddisruptionbudgets,
priorityclasses and ec2nodeclasses as YAML or JSON; other kinds are counted and
left aside. PATH is the fleet repository; --repo and --rev name a commit of one.
What was not given is assumed, and the plan says so.

Exits with 0 if nothing is denied and no pod stays pending, 1 if something is or
one does, and 2 if there could be no plan.`,
		Example: `  reeve plan . -f pods.yaml -f nodes.yaml
  kubectl get pods,nodes,nodeclaims,ec2nodeclasses,pdb,ds -A -o json | reeve plan . -f -
  reeve plan --repo . --rev HEAD --cluster myeks -f cluster.json -o markdown`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				o.Target.Path = args[0]
			}
			if now != "" {
				var err error
				if o.Now, err = instant(now); err != nil {
					return err
				}
			}
			o.Present = time.Now()
			p, err := readAndPlan(cmd, o, files)
			if err != nil {
				return err
			}
			if err := printPlan(cmd.OutOrStdout(), output, p); err != nil {
				return err
			}
			if !p.OK() {
				return exitCode(exitFindings)
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringArrayVarP(&files, "filename", "f", nil, "file with objects of the cluster, or - for standard input; may be repeated")
	f.StringVar(&o.Target.Repo, "repo", "", "repository with the fleet: a path or URL")
	f.StringVar(&o.Target.Rev, "rev", "", "revision of --repo: a branch, tag or commit (default HEAD)")
	f.StringVar(&o.Target.Cluster, "cluster", "", "the cluster, if the fleet repository has several")
	f.StringVar(&now, "now", "", "plan as at this instant, RFC 3339 (default: the present)")
	f.BoolVar(&o.AssumeIdle, "assume-idle", false, "take it that consolidateAfter has passed on every node")
	f.StringVarP(&output, "output", "o", "text", "text, json or markdown")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if len(files) == 0 {
			return errors.New("give the objects of the cluster with -f: what kubectl get pods,nodes,nodeclaims,pdb,ds -A -o json prints")
		}
		if output != "text" && output != "json" && output != "markdown" {
			return fmt.Errorf("--output %q: want text, json or markdown", output)
		}
		return nil
	}
	return cmd
}

// readAndPlan opens the files and plans.
func readAndPlan(cmd *cobra.Command, o plan.Options, files []string) (*report.Plan, error) {
	for _, name := range files {
		if name == "-" {
			o.Objects = append(o.Objects, dump.Source{Name: "standard input", Reader: cmd.InOrStdin()})
			continue
		}
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		o.Objects = append(o.Objects, dump.Source{Name: name, Reader: file})
	}
	return plan.Of(cmd.Context(), o)
}

func printPlan(w io.Writer, output string, p *report.Plan) error {
	switch output {
	case "json":
		return report.PlanJSON(w, p)
	case "markdown":
		return report.PlanMarkdown(w, p)
	default:
		return report.PlanText(w, p)
	}
}
