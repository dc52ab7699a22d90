package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const root = "../../.."

func TestTheReferenceIsUpToDate(t *testing.T) {
	want, err := document()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(root, "docs/reference/policy-rules.md"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("run make generate (-want +got):\n%s", diff)
	}
}

// Ids are looked for in the sources and not in what a run happens to find, so
// that the reference cannot lack one.
func TestEveryRuleIsInTheReference(t *testing.T) {
	text, err := document()
	if err != nil {
		t.Fatal(err)
	}
	id := regexp.MustCompile(`"(REEVE-[A-Z]+(?:-[0-9]{3})?)"|^#   id: (REEVE-[A-Z]+-[0-9]{3})$`)
	found := 0
	for _, dir := range []string{"reconciler", "policies", "cmd"} {
		err := fs.WalkDir(os.DirFS(root), dir, func(name string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || strings.Contains(name, "_test.") || strings.Contains(name, "/testdata/") {
				return err
			}
			if ext := filepath.Ext(name); ext != ".go" && ext != ".rego" {
				return nil
			}
			src, err := os.ReadFile(filepath.Join(root, name))
			if err != nil {
				return err
			}
			for n, line := range strings.Split(string(src), "\n") {
				for _, m := range id.FindAllStringSubmatch(line, -1) {
					found++
					if rule := m[1] + m[2]; !strings.Contains(string(text), "\n### "+rule+"\n") {
						t.Errorf("%s:%d: rule %s is not in the reference: add it to own in own.go", name, n+1, rule)
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if found < 10 {
		t.Errorf("only %d ids were found in the sources: the test looks in the wrong place", found)
	}
}

func TestARuleWithoutADescriptionDoesNotRepeatItsPackage(t *testing.T) {
	text, err := document()
	if err != nil {
		t.Fatal(err)
	}
	const once = "Keeps instance types out of a NodePool before anything is planned"
	if n := strings.Count(string(text), once); n != 1 {
		t.Errorf("the description of a package stands %d times in the page, want once", n)
	}
}
