package eval

import (
	"bytes"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/reeve-project/reeve/schemas"
)

// memFS is a read-only file system in memory.
type memFS struct {
	nodes map[string]*memNode // by path; the root is "."
}

// memNode is a file or, with children, a directory.
type memNode struct {
	name     string
	data     []byte
	refused  string
	dir      bool
	children []string // sorted once all files are in
}

// newTreeFS is the files of a tree, with the schemas of this binary as the
// vendored module: what the repository holds there has no effect.
func newTreeFS(files []File) (*memFS, error) {
	m := &memFS{nodes: map[string]*memNode{".": {name: ".", dir: true}}}
	for _, f := range files {
		if inDir(f.Name, schemas.VendorDir) {
			continue
		}
		m.add(f)
	}
	err := fs.WalkDir(schemas.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(schemas.FS(), name)
		if err != nil {
			return err
		}
		m.add(File{Name: path.Join(schemas.VendorDir, name), Data: data})
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, n := range m.nodes {
		slices.Sort(n.children)
	}
	return m, nil
}

// inDir says whether a slash-separated path is the directory or lies below it.
func inDir(name, dir string) bool {
	return name == dir || strings.HasPrefix(name, dir+"/")
}

func (m *memFS) add(f File) {
	name := path.Clean(f.Name)
	if !fs.ValidPath(name) || m.nodes[name] != nil {
		return
	}
	m.nodes[name] = &memNode{name: path.Base(name), data: f.Data, refused: f.Refused}
	for child := name; child != "."; child = path.Dir(child) {
		dir := path.Dir(child)
		parent := m.nodes[dir]
		known := parent != nil
		if !known {
			parent = &memNode{name: path.Base(dir), dir: true}
			m.nodes[dir] = parent
		}
		parent.children = append(parent.children, path.Base(child))
		if known {
			break
		}
	}
}

func (m *memFS) find(op, name string) (*memNode, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	n := m.nodes[name]
	if n == nil {
		return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
	}
	if n.refused != "" {
		return nil, &fs.PathError{Op: op, Path: name, Err: errors.New(n.refused)}
	}
	return n, nil
}

// Open is fs.FS.
func (m *memFS) Open(name string) (fs.File, error) {
	n, err := m.find("open", name)
	if err != nil {
		return nil, err
	}
	return &memFile{node: n, Reader: bytes.NewReader(n.data)}, nil
}

// Stat is fs.StatFS.
func (m *memFS) Stat(name string) (fs.FileInfo, error) {
	n, err := m.find("stat", name)
	if err != nil {
		return nil, err
	}
	return n, nil
}

// ReadDir is fs.ReadDirFS.
func (m *memFS) ReadDir(name string) ([]fs.DirEntry, error) {
	n, err := m.find("readdir", name)
	if err != nil {
		return nil, err
	}
	if !n.dir {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: errors.New("not a directory")}
	}
	entries := make([]fs.DirEntry, len(n.children))
	for i, c := range n.children {
		entries[i] = fs.FileInfoToDirEntry(m.nodes[path.Join(name, c)])
	}
	return entries, nil
}

// memNode is its own fs.FileInfo.

func (n *memNode) Name() string       { return n.name }
func (n *memNode) Size() int64        { return int64(len(n.data)) }
func (n *memNode) ModTime() time.Time { return time.Time{} }
func (n *memNode) IsDir() bool        { return n.dir }
func (n *memNode) Sys() any           { return nil }
func (n *memNode) Mode() fs.FileMode {
	if n.dir {
		return fs.ModeDir | 0o555
	}
	return 0o444
}

// memFile is an open file. Directories are listed by memFS.ReadDir only, which
// is all that fs.ReadDir asks for.
type memFile struct {
	node *memNode
	*bytes.Reader
}

// Stat is fs.File.
func (f *memFile) Stat() (fs.FileInfo, error) { return f.node, nil }

// Close is fs.File.
func (f *memFile) Close() error { return nil }
