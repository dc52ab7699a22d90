package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheCommittedFilesAreWhatTheCRDsGive(t *testing.T) {
	if err := run("../..", true); err != nil {
		t.Error(err)
	}
}

func TestWritingThenCheckingAgrees(t *testing.T) {
	dir := t.TempDir()
	if err := run(dir, false); err != nil {
		t.Fatal(err)
	}
	if err := run(dir, true); err != nil {
		t.Error(err)
	}
	path := filepath.Join(dir, targets[0].file)
	if err := os.WriteFile(path, []byte("package fleet\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := run(dir, true); err == nil || !strings.Contains(err.Error(), "commit the result") {
		t.Errorf("check of a changed file: %v", err)
	}
}

func TestADocumentThatIsNoCRDIsRefused(t *testing.T) {
	for _, doc := range []string{"}", "kind: ConfigMap", "kind: CustomResourceDefinition\nspec: {versions: [{name: v1}]}"} {
		if src, err := generate("fleet", "#X", []byte(doc)); err == nil {
			t.Errorf("%q gave %s", doc, src)
		}
	}
}
