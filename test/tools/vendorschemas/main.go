// Command vendorschemas copies the CUE schemas into every example, so that an
// example is complete for those who copy it and for plain `cue vet`.
package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/reeve-project/reeve/schemas"
)

//go:generate go run . ../../../examples

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: vendorschemas EXAMPLES")
		os.Exit(2)
	}
	if err := vendor(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "vendorschemas:", err)
		os.Exit(1)
	}
}

func vendor(examples string) error {
	modules, err := filepath.Glob(filepath.Join(examples, "*", "cue.mod", "module.cue"))
	if err != nil {
		return err
	}
	if len(modules) == 0 {
		return fmt.Errorf("%s holds no CUE module", examples)
	}
	for _, m := range modules {
		dir := filepath.Join(filepath.Dir(m), filepath.Base(schemas.VendorDir))
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
		if err := os.CopyFS(dir, schemas.FS()); err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
	}
	return readable(examples)
}

// readable gives copied files the mode of all others: those of an embedded
// file system are read-only.
func readable(root string) error {
	return filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		return os.Chmod(path, 0o644)
	})
}
