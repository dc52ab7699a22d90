package importer

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// Target is a cluster of a fleet repository on disk.
type Target struct {
	// Dir is the root of the repository.
	Dir string
	// Cluster is the name of the directory below clusters/.
	Cluster string
	// Force overwrites files that somebody has written.
	Force bool
	// Fresh are the files of the cluster as reeve init writes them, by name. An
	// example that nobody has touched is replaced without Force.
	Fresh map[string][]byte
}

// ErrExists says that Write would have overwritten somebody's work.
var ErrExists = errors.New("the file exists")

// Write writes the imported objects into the files of the cluster and returns
// their names. Examples of the other kind that reeve init has left go as well:
// a fleet of imported NodePools has no example among its classes. Files of the
// cluster that do not exist at all, settings for one, are written as Fresh has
// them. Nothing is written if one of the files would be refused.
func (res *Result) Write(t Target) ([]string, error) {
	files, err := res.Files(t.Cluster)
	if err != nil {
		return nil, err
	}
	dir := path.Join("clusters", t.Cluster)
	todo := map[string]string{}
	for name, text := range t.Fresh {
		if path.Dir(name) == dir {
			todo[name] = string(text)
		}
	}
	made := map[string]bool{}
	for _, f := range files {
		todo[f.Name], made[f.Name] = f.Text, true
	}
	var names []string
	for _, base := range []string{"cluster.cue", classFile, poolFile, "policy.cue"} {
		name := path.Join(dir, base)
		text, ok := todo[name]
		if !ok {
			continue
		}
		if !made[name] && empties[base] != "" {
			text = empties[base]
		}
		write, err := t.decide(name, made[name])
		if err != nil {
			return nil, err
		}
		if write {
			names = append(names, name)
			todo[name] = text
		}
	}
	for _, name := range names {
		if err := t.write(name, todo[name]); err != nil {
			return nil, fmt.Errorf("import: %w", err)
		}
	}
	return names, nil
}

// empties are files without objects.
var empties = map[string]string{
	poolFile:  "package fleet\n\nimport \"reeve.dev/fleet\"\n\nnodePools: fleet.#NodePools\n",
	classFile: "package fleet\n\nimport \"reeve.dev/fleet\"\n\nnodeClasses: fleet.#NodeClasses\n",
}

// decide says whether a file is written. One that exists is written over if it
// is an example, and otherwise only if it has something new and Force is on.
func (t Target) decide(name string, imported bool) (bool, error) {
	old, err := os.ReadFile(t.path(name))
	base := path.Base(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("import: %w", err)
	case empties[base] != "" && (bytes.Equal(old, t.Fresh[name]) || string(old) == empties[base]):
		return imported || string(old) != empties[base], nil
	case !imported:
		return false, nil
	case t.Force:
		return true, nil
	}
	return false, fmt.Errorf("import: %w: %s has been edited or imported before; move what is in it to another file of the directory, or overwrite it with --force", ErrExists, t.path(name))
}

func (t Target) write(name, text string) error {
	if err := t.checkLinks(name); err != nil {
		return err
	}
	file := t.path(name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(text), 0o644)
}

// checkLinks refuses a file behind a symbolic link of the repository: it might
// lead out of it, and what reads a fleet does not follow links.
func (t Target) checkLinks(name string) error {
	for at := name; at != "."; at = path.Dir(at) {
		info, err := os.Lstat(t.path(at))
		if err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return fmt.Errorf("%s is a symbolic link, which no fleet may have: put a plain file or directory there", t.path(at))
		}
	}
	return nil
}

func (t Target) path(name string) string { return filepath.Join(t.Dir, filepath.FromSlash(name)) }

// Taken says which hidden fields the other files of the cluster use, for
// Options.Taken. A cluster that does not exist has none.
func (t Target) Taken() (func(string) bool, error) {
	dir := t.path(path.Join("clusters", t.Cluster))
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("import: %w", err)
	}
	used := map[string]bool{}
	for _, e := range entries {
		if e.IsDir() || filepath.Ext(e.Name()) != ".cue" || empties[e.Name()] != "" {
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, fmt.Errorf("import: %w", err)
		}
		for _, w := range hidden.FindAllString(string(b), -1) {
			used[strings.TrimSpace(w)] = true
		}
	}
	return func(name string) bool { return used[name] }, nil
}

var hidden = regexp.MustCompile(`\b_[A-Za-z0-9_]+`)
