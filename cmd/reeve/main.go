// Command reeve checks fleets, shows and verifies decisions, and plays the
// demo. Commands parse flags, call one function and print.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	// It comes before all others, and begins what a check waits for.
	_ "github.com/reeve-project/reeve/reconciler/spec/early"
)

// Exit codes of every command.
const (
	exitFindings = 1
	exitError    = 2
)

// exitCode is an error that ends the process with a code, after its message
// has been printed by the command itself.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit %d", int(e)) }

func main() {
	os.Exit(run(os.Args[1:]))
}

func run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cmd := root()
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(ctx)
	var code exitCode
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	default:
		fmt.Fprintln(os.Stderr, "reeve:", err)
		return exitError
	}
}

func root() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "reeve",
		Short: "Nodes for Kubernetes on AWS, with specs, rules and records in Git",
		Long: `Reeve turns a fleet that is written in CUE in a Git repository into EC2 nodes,
lets Rego policies judge every decision before it is acted on, and writes each
decision back as a commit.

Every command exits with 0 when all is well, 1 when something was found, and
2 when it could not do its work.`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	cmd.AddCommand(demoCommand(), initCommand(), importCommand(), renderCommand(),
		checkCommand(), planCommand(), budgetsCommand(), policyCommand(), catalogCommand(),
		logCommand(), showCommand(), explainCommand(), verifyCommand(), replayCommand(), versionCommand())
	return cmd
}
