package decision

import (
	"os"
	"strings"
	"testing"
)

func TestVersionsAreThoseOfGoMod(t *testing.T) {
	b, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for module, version := range map[string]string{"github.com/open-policy-agent/opa": OPAVersion, "cuelang.org/go": CUEVersion} {
		if !strings.Contains(string(b), "\t"+module+" "+version+"\n") {
			t.Errorf("go.mod does not require %s %s: say so here, and raise EngineVersion if an answer may change", module, version)
		}
	}
}
