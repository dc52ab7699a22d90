package importer_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reeve-project/reeve/reconciler/importer"
)

// TestTheReportAndTheFleetOfOlderVersions compares with golden files, which
// UPDATE=1 in the environment writes.
func TestTheReportAndTheFleetOfOlderVersions(t *testing.T) {
	tests := []struct {
		name, file string
		options    importer.Options
	}{
		{"v1beta1", "v1beta1", importer.Options{}},
		{"v1alpha5", "v1alpha5", importer.Options{}},
		{"what kubectl prints", "kubectl", importer.Options{}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join("testdata", tc.file+".yaml"))
			if err != nil {
				t.Fatal(err)
			}
			res := importer.Import([]importer.Input{{Name: tc.file + ".yaml", Data: data}}, tc.options)
			text, err := res.Single()
			if err != nil {
				t.Fatal(err)
			}
			var report bytes.Buffer
			if err := res.Report.Text(&report); err != nil {
				t.Fatal(err)
			}
			golden(t, tc.file+".cue.golden", text)
			golden(t, tc.file+".report.golden", report.String())
		})
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if os.Getenv("UPDATE") == "1" {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}
