package sim

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// The binder is a second opinion only as long as it shares no code with the
// engine that it judges.
func TestTheBinderSharesNothingWithTheEngine(t *testing.T) {
	files, err := filepath.Glob("filter*.go")
	check(t, err)
	for _, f := range append(files, "binder.go", "view.go", "requests.go") {
		parsed, err := parser.ParseFile(token.NewFileSet(), f, nil, parser.ImportsOnly)
		check(t, err)
		for _, i := range parsed.Imports {
			path := strings.Trim(i.Path.Value, `"`)
			ours := strings.HasPrefix(path, "github.com/reeve-project/")
			if ours && !strings.HasSuffix(path, "/reconciler/resources") || strings.Contains(path, "karpenter") {
				t.Errorf("%s imports %s", f, path)
			}
		}
	}
	if len(files) < 3 {
		t.Errorf("the filters are somewhere else: %v", files)
	}
}
