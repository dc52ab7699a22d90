package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/reeve-project/reeve/reconciler/explain"
	"github.com/reeve-project/reeve/reconciler/ledger"
	"github.com/reeve-project/reeve/reconciler/report"
)

func explainCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain",
		Short: "Explain why a node came or went, or where a pod stands",
		Long: `Read the decision branch and tell the story of a pod, a node or one decision.
Which instance types a choice left out, and why, is worked out again from the
inputs beside the record, and shown only where it agrees with the record. No
access to the cluster or to AWS is needed.`,
		Example: `  reeve explain pod kube-system/coredns-7c9f --repo build/demo/fleet.git
  reeve explain node i-0c46c751a7d42416b
  reeve explain decision latest`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(explainPodCommand(), explainNodeCommand(), explainDecisionCommand())
	return cmd
}

func explainPodCommand() *cobra.Command {
	return story(explain.Pod, report.ExplainPod, &cobra.Command{
		Use:   "pod [NAMESPACE/]NAME",
		Short: "Explain where a pod stands, and what has to change if it is pending",
		Long: `Explain where a pod stands: since when it is there, each decision that planned a
node for it, left it pending or removed its node, and what became of the nodes.
For a pod that is pending, also what would have to change. Without NAMESPACE the
pod is in default.`,
		Example: `  reeve explain pod inflate-8llhpbtrzc-2bqxw --repo build/demo/fleet.git
  reeve explain pod kube-system/coredns-7c9f -o json`,
	})
}

func explainNodeCommand() *cobra.Command {
	return story(explain.Node, report.ExplainNode, &cobra.Command{
		Use:   "node NODE|CLAIM|INSTANCE",
		Short: "Explain why a node came, why this one, and why it went",
		Long: `Explain a node: the decision that made it, how the catalog of instance types
became the one that was chosen, which cheaper types each step removed, what EC2
launched, and the decisions that removed it or tried to. It is named by its node,
its NodeClaim or its EC2 instance.`,
		Example: `  reeve explain node default-t7fgk7lw --repo build/demo/fleet.git
  reeve explain node i-0c46c751a7d42416b
  reeve explain node ip-10-0-0-6.ap-northeast-2.compute.internal -o json`,
	})
}

func explainDecisionCommand() *cobra.Command {
	return story(explain.Decision, report.ExplainDecision, &cobra.Command{
		Use:   "decision DECISION",
		Short: "Explain one decision",
		Long: `Explain one decision: its nodes, the choice of each, verdicts, outcome, and what
would have to change for pods that it leaves pending. DECISION is an id, any part
of one that names just one decision, or "latest".`,
		Example: `  reeve explain decision latest --repo build/demo/fleet.git
  reeve explain decision k3x5 -o json`,
	})
}

// story completes a command that looks something up by name and prints it.
func story[T any](look func(context.Context, ledger.Source, string) (*T, error), text func(io.Writer, *T) error, cmd *cobra.Command) *cobra.Command {
	var s ledger.Source
	var output string
	cmd.Args = cobra.ExactArgs(1)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		found, err := look(cmd.Context(), s, args[0])
		if err != nil {
			return err
		}
		if output == "json" {
			return report.ExplainJSON(cmd.OutOrStdout(), found)
		}
		return text(cmd.OutOrStdout(), found)
	}
	ledgerFlags(cmd, &s)
	outputFlag(cmd, &output)
	return cmd
}
