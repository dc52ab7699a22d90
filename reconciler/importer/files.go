package importer

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxInput bounds a file: a manifest is far smaller.
const maxInput = 16 << 20

// ErrNothing says that there was nothing to import.
var ErrNothing = errors.New("nothing to import")

// Read reads what the arguments of reeve import name: files, directories with
// all YAML and JSON files below them, and "-" for standard input. Hidden
// directories and symbolic links below a directory are left alone.
func Read(args []string, stdin io.Reader) ([]Input, error) {
	var out []Input
	for _, arg := range args {
		if arg == "-" {
			in, err := readAll("-", stdin)
			if err != nil {
				return nil, err
			}
			out = append(out, in)
			continue
		}
		names, err := below(arg)
		if err != nil {
			return nil, fmt.Errorf("import: %w", err)
		}
		for _, name := range names {
			in, err := readFile(name)
			if err != nil {
				return nil, err
			}
			out = append(out, in)
		}
	}
	return out, nil
}

func readFile(name string) (Input, error) {
	f, err := os.Open(name)
	if err != nil {
		return Input{}, fmt.Errorf("import: %w", err)
	}
	defer f.Close()
	return readAll(filepath.ToSlash(name), f)
}

func readAll(name string, r io.Reader) (Input, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxInput+1))
	if err != nil {
		return Input{}, fmt.Errorf("import: read %s: %w", name, err)
	}
	if len(data) > maxInput {
		return Input{}, fmt.Errorf("import: %s is larger than %d MiB: that is no manifest", name, maxInput>>20)
	}
	return Input{Name: name, Data: data}, nil
}

// below is the file itself, or the manifests below a directory in order.
func below(arg string) ([]string, error) {
	info, err := os.Stat(arg)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{arg}, nil
	}
	var out []string
	err = filepath.WalkDir(arg, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != arg && strings.HasPrefix(d.Name(), "."):
			return filepath.SkipDir
		case d.Type().IsRegular() && slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(name))):
			out = append(out, name)
		}
		return nil
	})
	if err == nil && len(out) == 0 {
		return nil, fmt.Errorf("%s: %w: there is no .yaml, .yml or .json file below it", arg, ErrNothing)
	}
	return out, err
}
