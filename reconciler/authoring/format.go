package authoring

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	regoformat "github.com/open-policy-agent/opa/v1/format"
)

// FormatOptions say what to format and whether to write it.
type FormatOptions struct {
	// Paths are files and directories; "policies" when empty.
	Paths []string
	// Check leaves the files as they are.
	Check bool
	// Upgrade rewrites files in the syntax before Rego v1 to that of v1.
	// Without it they keep their syntax.
	Upgrade bool
}

// Format brings Rego files into the format of `opa fmt` and lists those that
// were not in it. The error names each file that cannot be read as Rego; the
// others are formatted all the same. It is ErrNothing when there is no file.
func Format(o FormatOptions) ([]string, error) {
	paths := o.Paths
	if len(paths) == 0 {
		paths = []string{"policies"}
	}
	var changed []string
	var faults []error
	seen := 0
	for _, path := range paths {
		files, err := regoFiles(path)
		if err != nil {
			return changed, err
		}
		for _, file := range files {
			seen++
			differs, err := formatFile(file, o)
			if err != nil {
				faults = append(faults, err)
			}
			if differs {
				changed = append(changed, file)
			}
		}
	}
	if seen == 0 {
		return nil, fmt.Errorf("%w: there is no Rego in %s", ErrNothing, strings.Join(paths, ", "))
	}
	return changed, errors.Join(faults...)
}

// regoFiles are the Rego files below a path, or the one that it is.
func regoFiles(path string) ([]string, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: no such file or directory", path)
	case err != nil:
		return nil, err
	case !info.IsDir():
		return []string{path}, nil
	}
	root, err := open(path)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	files, err := find(root, ".", func(name string) bool { return strings.HasSuffix(name, regoSuffix) })
	for i := range files {
		files[i] = filepath.Join(path, filepath.FromSlash(files[i]))
	}
	return files, err
}

// formatFile says whether the file was not in its format.
func formatFile(path string, o FormatOptions) (bool, error) {
	info, err := os.Stat(path)
	if err != nil {
		return false, err
	}
	if info.Size() > maxFile {
		return false, fmt.Errorf("%s: has more than %d bytes", path, maxFile)
	}
	src, err := os.ReadFile(path)
	if err != nil {
		return false, err
	}
	out, err := formatted(path, src, o.Upgrade)
	if err != nil || bytes.Equal(src, out) {
		return false, err
	}
	if o.Check {
		return true, nil
	}
	return true, os.WriteFile(path, out, info.Mode().Perm())
}

// formatted is the text in its format: v1 where it parses as that, else v0, or
// brought up to v1. An error of a text that is neither is that of v1.
func formatted(path string, src []byte, upgrade bool) ([]byte, error) {
	out, err := regoformat.SourceWithOpts(path, src, options(ast.RegoV1, ast.RegoV1))
	if err == nil {
		return out, nil
	}
	target := ast.RegoV0
	if upgrade {
		target = ast.RegoV1
	}
	if out, err0 := regoformat.SourceWithOpts(path, src, options(ast.RegoV0, target)); err0 == nil {
		return out, nil
	}
	return nil, placed(err)
}

// placed names each fault of Rego at its place, one a line, as the other
// commands do.
func placed(err error) error {
	var list ast.Errors
	if !errors.As(err, &list) {
		return err
	}
	lines := make([]error, 0, len(list))
	for _, e := range list {
		if e.Location == nil {
			lines = append(lines, errors.New(e.Message))
			continue
		}
		lines = append(lines, fmt.Errorf("%s:%d:%d: %s", e.Location.File, e.Location.Row, e.Location.Col, e.Message))
	}
	return errors.Join(lines...)
}

func options(from, to ast.RegoVersion) regoformat.Opts {
	return regoformat.Opts{
		RegoVersion:                   to,
		ParserOptions:                 &ast.ParserOptions{RegoVersion: from},
		DropRedundantDirectiveImports: from != to,
	}
}
