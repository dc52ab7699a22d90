package spec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/reeve-project/reeve/reconciler/spec/eval"
	"github.com/reeve-project/reeve/schemas"
)

const (
	clustersDir     = "clusters"
	moduleFile      = "cue.mod/module.cue"
	localModuleFile = "cue.mod/local-module.cue"

	maxTreeDepth   = 64
	maxTreeEntries = 200_000
	maxTreeFiles   = 4096
)

// collector gathers the CUE files of a tree within bounds.
type collector struct {
	fsys     fs.FS
	maxBytes int64
	entries  int
	bytes    int64
	files    []eval.File
}

// collect reads all CUE files of the tree but the vendored schemas, which come
// from the binary. Directories whose name starts with a dot are left out.
func collect(ctx context.Context, fsys fs.FS, maxBytes int64) ([]eval.File, error) {
	c := &collector{fsys: fsys, maxBytes: maxBytes}
	if err := c.dir(ctx, ".", 0); err != nil {
		return nil, err
	}
	return c.files, nil
}

func (c *collector) dir(ctx context.Context, dir string, depth int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if depth > maxTreeDepth {
		return fileError(dir, fmt.Sprintf("directories are nested deeper than %d", maxTreeDepth), "")
	}
	entries, err := fs.ReadDir(c.fsys, dir)
	if err != nil {
		return fmt.Errorf("list %s: %w", dir, err)
	}
	if c.entries += len(entries); c.entries > maxTreeEntries {
		return &LimitError{Limit: LimitSize, Allowed: fmt.Sprintf("%d directory entries", maxTreeEntries), Where: dir}
	}
	for _, e := range entries {
		if err := c.entry(ctx, path.Join(dir, e.Name()), e, depth); err != nil {
			return err
		}
	}
	return nil
}

func (c *collector) entry(ctx context.Context, name string, e fs.DirEntry, depth int) error {
	isCUE := strings.HasSuffix(name, ".cue")
	switch {
	case name == schemas.VendorDir || strings.HasPrefix(e.Name(), "."):
		return nil
	case e.IsDir():
		if odd(name) {
			return nil // cannot be imported
		}
		return c.dir(ctx, name, depth+1)
	case isCUE && odd(name):
		return fileError(strconv.Quote(name), "the name of this file has characters that cannot be printed", "rename it")
	case e.Type()&fs.ModeType != 0:
		if !odd(name) {
			c.files = append(c.files, eval.File{Name: name, Refused: "it is a symbolic link or a submodule, which Reeve does not follow"})
		}
		return nil
	case isCUE:
		return c.file(name)
	}
	return nil
}

func (c *collector) file(name string) error {
	if len(c.files) >= maxTreeFiles {
		return &LimitError{Limit: LimitSize, Allowed: fmt.Sprintf("%d files", maxTreeFiles), Where: name}
	}
	f, err := c.fsys.Open(name)
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	defer f.Close()
	room := c.maxBytes - c.bytes
	data, err := io.ReadAll(io.LimitReader(f, room+1))
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	if int64(len(data)) > room {
		return &LimitError{Limit: LimitSize, Allowed: size(c.maxBytes), Where: name}
	}
	c.bytes += int64(len(data))
	c.files = append(c.files, eval.File{Name: name, Data: data})
	return nil
}

// odd says whether a path would be unsafe to print or ambiguous to load.
func odd(name string) bool {
	return !utf8.ValidString(name) || strings.ContainsRune(name, '\\') ||
		strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) })
}

// size is a number of bytes for people.
func size(n int64) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	default:
		return fmt.Sprintf("%d bytes", n)
	}
}

// checkLayout says what a tree lacks before anything is evaluated.
func checkLayout(files []eval.File, fsys fs.FS, cluster string) error {
	have := map[string]*eval.File{}
	dir := path.Join(clustersDir, cluster)
	found := false
	for i := range files {
		f := &files[i]
		have[f.Name] = f
		found = found || path.Dir(f.Name) == dir
	}
	for _, name := range []string{dir, clustersDir, "cue.mod", moduleFile, localModuleFile} {
		if f := have[name]; f != nil && f.Refused != "" {
			return fileError(name, "cannot be read: "+f.Refused, "replace it by the files themselves")
		}
	}
	switch {
	case have[moduleFile] == nil:
		return fileError(moduleFile, "this file is missing, so the tree is not a fleet repository",
			"reeve init writes a new one; check that the path points to the root of the repository")
	case have[localModuleFile] == nil:
		return fileError(localModuleFile, "this file is missing, so "+schemas.Module+" cannot be found",
			"restore it with: "+strings.TrimSpace(localModule))
	case !found:
		return missingCluster(fsys, cluster)
	}
	return nil
}

func missingCluster(fsys fs.FS, cluster string) error {
	dir := path.Join(clustersDir, cluster)
	names, err := Clusters(fsys)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return fileError(dir, "there is no such cluster, and none else", "add files of package fleet to "+dir)
	}
	return fileError(dir, "there is no such cluster", "clusters here: "+strings.Join(names, ", "))
}

// Clusters are the names of the clusters in a fleet repository: the
// directories below clusters/ that hold a CUE file, sorted. A repository
// without that directory has none.
func Clusters(fsys fs.FS) ([]string, error) {
	if _, err := fs.Stat(fsys, clustersDir); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return nil, fmt.Errorf("list clusters: %w", err)
	}
	dirs, err := fs.ReadDir(fsys, clustersDir)
	if err != nil {
		return nil, fmt.Errorf("list clusters: %w", err)
	}
	var names []string
	for _, d := range dirs {
		if !d.IsDir() || !clusterName.MatchString(d.Name()) {
			continue
		}
		files, err := fs.ReadDir(fsys, path.Join(clustersDir, d.Name()))
		if err != nil {
			return nil, fmt.Errorf("list clusters: %w", err)
		}
		for _, f := range files {
			if !f.IsDir() && strings.HasSuffix(f.Name(), ".cue") {
				names = append(names, d.Name())
				break
			}
		}
	}
	return names, nil // fs.ReadDir sorts
}
