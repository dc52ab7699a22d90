// Command schemagen writes the JSON schemas of what Reeve records and of what
// policies see, from the Go types that hold them. The words in the schemas are
// the doc comments of the types and fields, so there is one place to keep right.
//
// It is run by "make generate":
//
//	go run ./test/tools/schemagen -out docs/reference
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

//go:generate go run . -root ../../.. -out ../../../docs/reference

func main() {
	root := flag.String("root", ".", "directory of the module")
	out := flag.String("out", "docs/reference", "directory to write the schemas to")
	flag.Parse()
	if err := run(*root, *out); err != nil {
		fmt.Fprintln(os.Stderr, "schemagen:", err)
		os.Exit(1)
	}
}

func run(root, out string) error {
	files, err := generate(root, published)
	if err != nil {
		return err
	}
	for name, content := range files {
		path := filepath.Join(out, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
