// Command lint checks what the general tools do not know of: the project's own
// rules on Go source, and the format of CUE and Rego files.
//
//	go run ./test/tools/lint         # report, exit 1 on findings
//	go run ./test/tools/lint -fix    # also rewrite CUE and Rego files in their format
//
// A line that has to break the rule on impure calls says why in a comment on
// it, above it, or last in the comment of its function:
//
//	//lint:impure the child must see PATH
package main

import (
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	root := flag.String("root", ".", "directory to check")
	fix := flag.Bool("fix", false, "rewrite CUE and Rego files in their format")
	flag.Parse()
	n, err := run(*root, *fix, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "lint:", err)
		os.Exit(2)
	}
	if n > 0 {
		fmt.Fprintf(os.Stderr, "lint: %d findings\n", n)
		os.Exit(1)
	}
}

// finding is one breach of a rule. Its text is what to do.
type finding struct {
	path string // slash-separated, below the root
	line int
	text string
}

// file is a source file below the root.
type file struct {
	path    string // slash-separated, below the root
	content []byte
}

func (f file) isTest() bool {
	return strings.HasSuffix(f.path, "_test.go") || strings.HasSuffix(f.path, "_test.rego") || strings.HasPrefix(f.path, "test/")
}

// run prints what it finds and says how much that was.
func run(root string, fix bool, w io.Writer) (int, error) {
	n := 0
	packages := map[string]*packageComment{}
	err := walk(root, func(f file) error {
		found, err := check(f, packages)
		if err != nil {
			return fmt.Errorf("%s: %w", f.path, err)
		}
		formatted, err := format(f)
		if err != nil {
			return fmt.Errorf("format %s: %w", f.path, err)
		}
		switch {
		case formatted == nil:
		case fix:
			if err := os.WriteFile(filepath.Join(root, filepath.FromSlash(f.path)), formatted, 0o644); err != nil {
				return err
			}
			fmt.Fprintf(w, "%s: rewritten\n", f.path)
		default:
			found = append(found, finding{f.path, 1, "is not in its format: run make fmt"})
		}
		n += report(w, found)
		return nil
	})
	if err != nil {
		return n, err
	}
	return n + report(w, missingPackageComments(packages)), nil
}

func report(w io.Writer, found []finding) int {
	for _, f := range found {
		fmt.Fprintf(w, "%s:%d: %s\n", f.path, f.line, f.text)
	}
	return len(found)
}

// walk visits the Go, CUE and Rego files below root in the order of their
// names. It leaves out hidden directories, what is built, and testdata.
func walk(root string, visit func(file) error) error {
	return filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if base := d.Name(); name != root && (strings.HasPrefix(base, ".") || base == "testdata" || base == "build" || base == "bin") {
				return fs.SkipDir
			}
			return nil
		}
		switch filepath.Ext(name) {
		case ".go", ".cue", ".rego":
		default:
			return nil
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		return visit(file{filepath.ToSlash(rel), content})
	})
}
