package gitrepo

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

// FS is a tree as a read-only file system.
//
// Symbolic links and submodules are listed with their type and cannot be
// opened. A directory with a name that is not portable cannot be listed at
// all: leaving such a file out silently could loosen a policy. Errors are
// *fs.PathError and name the path. An FS may be used by many goroutines.
type FS struct {
	repo *Repo
	root Hash

	mu      sync.Mutex
	dirs    map[string][]Entry // listed directories by path
	entries int                // in all of dirs
}

var (
	_ fs.ReadDirFS  = (*FS)(nil)
	_ fs.ReadFileFS = (*FS)(nil)
	_ fs.StatFS     = (*FS)(nil)
)

// Tree is the tree of a commit as a file system.
func (r *Repo) Tree(commit Hash) (*FS, error) {
	h, err := r.TreeID(commit)
	if err != nil {
		return nil, err
	}
	return r.FS(h), nil
}

// FS is a tree given by its own id as a file system.
func (r *Repo) FS(tree Hash) *FS {
	return &FS{repo: r, root: tree, dirs: map[string][]Entry{}}
}

// TreeID is the id of the tree that the file system shows.
func (f *FS) TreeID() Hash { return f.root }

// Open implements fs.FS.
func (f *FS) Open(name string) (fs.File, error) {
	e, err := f.lookup("open", name)
	if err != nil {
		return nil, err
	}
	if e.Kind == Dir {
		entries, err := f.list("open", name, e.Hash)
		if err != nil {
			return nil, err
		}
		return &openDir{fs: f, path: name, info: info{fs: f, e: e}, entries: entries}, nil
	}
	b, err := f.read("open", name, e)
	if err != nil {
		return nil, err
	}
	return &openFile{Reader: bytes.NewReader(b), info: info{fs: f, e: e, size: int64(len(b))}}, nil
}

// ReadFile implements fs.ReadFileFS.
func (f *FS) ReadFile(name string) ([]byte, error) {
	e, err := f.lookup("read", name)
	if err != nil {
		return nil, err
	}
	return f.read("read", name, e)
}

// ReadDir implements fs.ReadDirFS.
func (f *FS) ReadDir(name string) ([]fs.DirEntry, error) {
	e, err := f.lookup("readdir", name)
	if err != nil {
		return nil, err
	}
	if e.Kind != Dir {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: errors.New("not a directory")}
	}
	entries, err := f.list("readdir", name, e.Hash)
	if err != nil {
		return nil, err
	}
	return f.dirEntries(name, entries), nil
}

// Stat implements fs.StatFS. Symbolic links and submodules are described, not
// followed.
func (f *FS) Stat(name string) (fs.FileInfo, error) {
	e, err := f.lookup("stat", name)
	if err != nil {
		return nil, err
	}
	return f.stat(name, e)
}

// Irregular lists the symbolic links and submodules below a directory,
// sorted. Readers that skip what they cannot open use it to say so.
func (f *FS) Irregular(dir string) ([]string, error) {
	var out []string
	err := fs.WalkDir(f, dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !d.IsDir() && !d.Type().IsRegular() {
			out = append(out, path)
		}
		return nil
	})
	slices.Sort(out)
	return out, err
}

func (f *FS) lookup(op, name string) (Entry, error) {
	if !fs.ValidPath(name) {
		return Entry{}, &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	at := Entry{Name: ".", Kind: Dir, Hash: f.root}
	if name == "." {
		return at, nil
	}
	dir := "."
	for part := range strings.SplitSeq(name, "/") {
		if at.Kind != Dir {
			return Entry{}, refusal(op, dir, at.Kind, fs.ErrNotExist)
		}
		entries, err := f.list(op, dir, at.Hash)
		if err != nil {
			return Entry{}, err
		}
		i, ok := findEntry(entries, part)
		if !ok {
			return Entry{}, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
		}
		at = entries[i]
		dir = join(dir, part)
	}
	return at, nil
}

// list reads a directory once, checks its names and counts its entries. The
// count goes by path, so that a tree that repeats one subtree is bounded too.
func (f *FS) list(op, path string, h Hash) ([]Entry, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if entries, ok := f.dirs[path]; ok {
		return entries, nil
	}
	fail := func(err error) ([]Entry, error) { return nil, &fs.PathError{Op: op, Path: path, Err: err} }
	if strings.Count(path, "/") >= maxDepth {
		return fail(fmt.Errorf("%w: more than %d directories below one another", ErrTooLarge, maxDepth))
	}
	entries, err := f.repo.Entries(h)
	if err != nil {
		return fail(err)
	}
	if f.entries += len(entries); f.entries > f.repo.opts.MaxFiles {
		return fail(fmt.Errorf("%w: more than %d files and directories", ErrTooLarge, f.repo.opts.MaxFiles))
	}
	seen := make(map[string]bool, len(entries))
	for i, e := range entries {
		if err := checkName(e.Name); err != nil {
			return fail(err)
		}
		if seen[e.Name] || i > 0 && entries[i-1].key() >= e.key() {
			return fail(fmt.Errorf("%w: tree %s has %q twice or out of order", ErrName, h, e.Name))
		}
		seen[e.Name] = true
	}
	f.dirs[path] = entries
	return entries, nil
}

func (f *FS) read(op, name string, e Entry) ([]byte, error) {
	if e.Kind != File && e.Kind != Executable {
		return nil, refusal(op, name, e.Kind, nil)
	}
	f.repo.mu.Lock()
	defer f.repo.mu.Unlock()
	b, err := f.repo.load(plumbing.BlobObject, e.Hash, f.repo.opts.MaxFileSize)
	if err != nil {
		return nil, &fs.PathError{Op: op, Path: name, Err: err}
	}
	return b, nil
}

func (f *FS) stat(name string, e Entry) (fs.FileInfo, error) {
	in := info{fs: f, e: e}
	if e.Kind == File || e.Kind == Executable {
		f.repo.mu.Lock()
		defer f.repo.mu.Unlock()
		size, err := f.repo.st.EncodedObjectSize(e.Hash)
		if err != nil {
			return nil, &fs.PathError{Op: "stat", Path: name, Err: err}
		}
		in.size = size
	}
	return in, nil
}

func (f *FS) dirEntries(dir string, entries []Entry) []fs.DirEntry {
	out := make([]fs.DirEntry, len(entries))
	for i, e := range entries {
		out[i] = dirEntry{info: info{fs: f, e: e}, path: join(dir, e.Name)}
	}
	slices.SortFunc(out, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return out
}

func refusal(op, path string, k Kind, otherwise error) error {
	switch k {
	case Symlink:
		otherwise = ErrSymlink
	case Submodule:
		otherwise = ErrSubmodule
	case Dir:
		otherwise = errors.New("is a directory")
	}
	return &fs.PathError{Op: op, Path: path, Err: otherwise}
}

func join(dir, name string) string {
	if dir == "." {
		return name
	}
	return dir + "/" + name
}

type info struct {
	fs   *FS
	e    Entry
	size int64
}

func (i info) Name() string       { return i.e.Name }
func (i info) Size() int64        { return i.size }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) IsDir() bool        { return i.e.Kind == Dir }
func (i info) Sys() any           { return i.e.Hash }
func (i info) Mode() fs.FileMode {
	switch i.e.Kind {
	case Dir:
		return fs.ModeDir | 0o555
	case Executable:
		return 0o555
	case Symlink:
		return fs.ModeSymlink | 0o444
	case Submodule:
		return fs.ModeIrregular | 0o444
	default:
		return 0o444
	}
}

type dirEntry struct {
	info
	path string
}

func (d dirEntry) Type() fs.FileMode          { return d.Mode().Type() }
func (d dirEntry) Info() (fs.FileInfo, error) { return d.fs.stat(d.path, d.e) }
func (d dirEntry) String() string             { return fs.FormatDirEntry(d) }

type openFile struct {
	*bytes.Reader
	info info
}

func (o *openFile) Stat() (fs.FileInfo, error) { return o.info, nil }
func (o *openFile) Close() error               { return nil }

type openDir struct {
	fs      *FS
	path    string
	info    info
	entries []Entry
	at      int
}

func (o *openDir) Stat() (fs.FileInfo, error) { return o.info, nil }
func (o *openDir) Close() error               { return nil }
func (o *openDir) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: o.path, Err: errors.New("is a directory")}
}

func (o *openDir) ReadDir(n int) ([]fs.DirEntry, error) {
	all := o.fs.dirEntries(o.path, o.entries)
	rest := all[o.at:]
	if n > 0 {
		if len(rest) == 0 {
			return nil, io.EOF
		}
		rest = rest[:min(n, len(rest))]
	}
	o.at += len(rest)
	return rest, nil
}
