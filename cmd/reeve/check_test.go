package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestTemplatesForCICallWhatIsThere holds the commands in deploy/ci to the flags
// and formats that check has.
func TestTemplatesForCICallWhatIsThere(t *testing.T) {
	files, err := filepath.Glob("../../deploy/ci/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v %v", files, err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for line := range strings.Lines(string(b)) {
			_, command, ok := strings.Cut(line, " reeve check .")
			if !ok || strings.HasPrefix(strings.TrimSpace(line), "#") {
				continue
			}
			found = true
			var cmd *cobra.Command
			cmd, rest, err := root().Find(append([]string{"check"}, strings.Fields("."+command)...))
			if err == nil {
				err = cmd.ParseFlags(rest)
			}
			if err == nil {
				err = cmd.ValidateArgs(cmd.Flags().Args())
			}
			if err == nil {
				err = cmd.PreRunE(cmd, nil)
			}
			if err != nil {
				t.Errorf("%s: %s: %v", file, strings.TrimSpace(line), err)
			}
		}
		if !found {
			t.Errorf("%s has no command", file)
		}
	}
}
