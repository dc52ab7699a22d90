package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEachCommandHasASection(t *testing.T) {
	ask := func(args ...string) (string, error) {
		switch strings.Join(args, " ") {
		case "help":
			return "Nodes\n\nUsage:\n  reeve [command]\n\nAvailable Commands:\n  check       Judge \n  help        Help about any command\n  log         List\n\nFlags:\n  -h, --help   help\n\n", nil
		case "help check":
			return "Judge a fleet\n", nil
		case "help log":
			return "List decisions\n\nAvailable Commands:\n  short       List few\n\n", nil
		case "help log short":
			return "List few\n", nil
		}
		return "", errors.New("not asked for")
	}
	got, err := document(ask)
	if err != nil {
		t.Fatal(err)
	}
	want := head + "## reeve\n\n```text\nNodes\n\nUsage:\n  reeve [command]\n\nAvailable Commands:\n  check       Judge\n  help        Help about any command\n  log         List\n\nFlags:\n  -h, --help   help\n```\n\n" +
		"## reeve check\n\n```text\nJudge a fleet\n```\n\n## reeve log\n\n```text\nList decisions\n\nAvailable Commands:\n  short       List few\n```\n\n## reeve log short\n\n```text\nList few\n```\n"
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestACommandThatFailsFailsThePage(t *testing.T) {
	broken := errors.New("broken")
	for name, ask := range map[string]func(...string) (string, error){
		"no help":     func(...string) (string, error) { return "", broken },
		"no commands": func(...string) (string, error) { return "Usage\n", nil },
		"no help of command": func(a ...string) (string, error) {
			if len(a) > 1 {
				return "", broken
			}
			return "x\n\nAvailable Commands:\n  check  Judge\n\n", nil
		},
	} {
		if _, err := document(ask); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
