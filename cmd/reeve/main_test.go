package main

import (
	"errors"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"reeve": main})
}

// TestScripts runs the scripts below testdata/script with the real command.
// With UPDATE=1 in the environment it writes what the command prints into
// them.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       os.Getenv("UPDATE") == "1",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Vars = append(env.Vars, gitEnvironment()...)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code": code, "mask": mask, "sub": sub,
		},
	})
}

// gitEnvironment makes Git the same for everybody: commits that a script makes
// have the same id each time.
func gitEnvironment() []string {
	const date = "2026-04-06T12:30:00Z"
	return []string{
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=true", "GIT_TERMINAL_PROMPT=0",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=init.defaultBranch", "GIT_CONFIG_VALUE_0=main",
		"GIT_AUTHOR_NAME=You", "GIT_AUTHOR_EMAIL=you@example.com", "GIT_AUTHOR_DATE=" + date,
		"GIT_COMMITTER_NAME=You", "GIT_COMMITTER_EMAIL=you@example.com", "GIT_COMMITTER_DATE=" + date,
	}
}

// code runs a command that must end with an exit code: "code 2 reeve show x".
func code(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N COMMAND [ARG...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		got = exit.ExitCode()
	default:
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("%s ended with exit code %d, want %d; it printed:\n%s%s",
			strings.Join(args[1:], " "), got, want, ts.ReadFile("stdout"), ts.ReadFile("stderr"))
	}
}

// masks are what changes with every policy that is shipped, and what stands for
// each: their number, and what depends on digests.
var masks = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`(\d{8}T\d{6}\.\d{3}Z)-[a-z2-7]{16}`), "$1-ID"},
	{regexp.MustCompile(`\b(default|graviton)-[a-z2-7]{8}\b`), "$1-NAME"},
	{regexp.MustCompile(`\bsha256:[0-9a-f]{64}\b`), "sha256:DIGEST"},
	{regexp.MustCompile(`\bi-0[0-9a-f]{16}\b`), "i-ID"},
	{regexp.MustCompile(`\b\d+ policies\b`), "N policies"},
	{regexp.MustCompile(`"policies": \d+`), `"policies": N`},
	{regexp.MustCompile(`\b([0-9a-f]{40}|[0-9a-f]{12}|[0-9a-f]{8})\b`), "COMMIT"},
}

// mask writes a file, or stdout, to another one with its masks on:
// "mask stdout log.got".
func mask(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: mask FILE MASKED")
	}
	text := ts.ReadFile(args[0])
	for _, m := range masks {
		text = m.pattern.ReplaceAllString(text, m.with)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(text), 0o644))
}

// sub replaces a text in a file, where it has to be: "sub FILE OLD NEW".
func sub(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: sub FILE OLD NEW")
	}
	text := ts.ReadFile(args[0])
	if !strings.Contains(text, args[1]) {
		ts.Fatalf("%s does not contain %q", args[0], args[1])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.ReplaceAll(text, args[1], args[2])), 0o644))
}

// TestEveryCommandHasExamplesThatParse holds that what help shows can be
// typed in.
func TestEveryCommandHasExamplesThatParse(t *testing.T) {
	for _, cmd := range root().Commands() {
		t.Run(cmd.Name(), func(t *testing.T) {
			if cmd.Short == "" || cmd.Example == "" {
				t.Fatalf("Short is %q and Example is %q", cmd.Short, cmd.Example)
			}
			own := false
			for line := range strings.Lines(cmd.Example) {
				words := strings.Fields(strings.ReplaceAll(line, "'", ""))
				if len(words) == 0 || words[0] != "reeve" {
					continue // of another tool
				}
				own = own || slices.Contains(words, cmd.Name())
				if err := parse(words[1:]); err != nil {
					t.Errorf("%s: %v", strings.TrimSpace(line), err)
				}
			}
			if !own {
				t.Errorf("no example uses %q:\n%s", cmd.Name(), cmd.Example)
			}
		})
	}
}

// parse reads flags and arguments as the command would, and runs nothing.
func parse(words []string) error {
	var cmd *cobra.Command
	cmd, rest, err := root().Find(words)
	if err != nil {
		return err
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	return cmd.ValidateArgs(cmd.Flags().Args())
}
