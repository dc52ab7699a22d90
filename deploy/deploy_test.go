// Package deploy holds what is deployed beside the commands.
package deploy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func TestTemplatesAreYAMLAndCheckTheFleet(t *testing.T) {
	files, err := filepath.Glob("ci/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v %v", files, err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := yaml.YAMLToJSONStrict(b); err != nil {
			t.Errorf("%s: %v", f, err)
		}
		if !strings.Contains(string(b), "reeve check .") {
			t.Errorf("%s checks nothing", f)
		}
	}
}
