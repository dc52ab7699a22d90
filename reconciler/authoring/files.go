// Package authoring is for those who write policies: it runs the tests of the
// Rego in a fleet repository, brings files into their format, and prints what
// the annotations say of each rule.
package authoring

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/reeve-project/reeve/reconciler/pipeline"
)

// ErrNothing says that there was nothing to do it on. It is no success: tests
// that do not exist must not pass.
var ErrNothing = errors.New("nothing to do")

const (
	regoSuffix = ".rego"
	testSuffix = "_test.rego"
	// maxFile bounds what is read of one file.
	maxFile = 8 << 20
)

// open is the directory of a fleet repository.
func open(path string) (*os.Root, error) {
	root, err := os.OpenRoot(path)
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w: give the root directory of a fleet repository", path, err)
	}
	return root, nil
}

// rules are the Rego files that judge, as the reconciler reads them, and with
// them the tests.
func rules(root *os.Root) (map[string][]byte, error) {
	files, err := pipeline.PolicyFiles(root.FS())
	if err != nil {
		return nil, err
	}
	tests, err := find(root, "policies", func(name string) bool { return strings.HasSuffix(name, testSuffix) })
	if err != nil {
		return nil, err
	}
	for _, name := range tests {
		if files[name], err = read(root, name); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// find lists the plain files below a directory whose name is wanted, sorted. A
// directory that is not there has none.
func find(root *os.Root, dir string, want func(name string) bool) ([]string, error) {
	var out []string
	err := fs.WalkDir(root.FS(), dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist) && path == dir:
			return fs.SkipAll
		case err != nil:
			return err
		case e.IsDir() && path != dir && strings.HasPrefix(e.Name(), "."):
			return fs.SkipDir
		case e.Type().IsRegular() && want(path):
			out = append(out, path)
		}
		return nil
	})
	slices.Sort(out)
	return out, err
}

func read(root *os.Root, name string) ([]byte, error) {
	info, err := root.Stat(name)
	if err == nil && info.Size() > maxFile {
		return nil, fmt.Errorf("%s: has more than %d bytes", name, maxFile)
	}
	if err != nil {
		return nil, err
	}
	return root.ReadFile(name)
}
