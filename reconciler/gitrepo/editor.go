package gitrepo

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// Editor changes a tree in memory. A directory is read when something below
// it is asked or changed; all others are kept by their id alone, so an edit
// costs what it touches, whatever the size of the tree. The same edits of the
// same tree give the same ids. An Editor is for one goroutine.
type Editor struct {
	repo  *Repo
	root  *folder
	round int
}

// folder is an opened directory.
type folder struct {
	entries []Entry
	open    map[string]*folder // opened directories below, by name
	hash    Hash               // valid while not dirty
	dirty   bool               // it or something below it has changed
	used    int                // the round of the last use
}

// A folder that was not used for this many rounds of Write is closed again.
const keepRounds = 4

// Edit starts from a tree; a zero Hash is an empty one.
func (r *Repo) Edit(tree Hash) (*Editor, error) {
	ed := &Editor{repo: r}
	root, err := ed.read(tree)
	ed.root = root
	return ed, err
}

// Set puts a file at a slash-separated path and makes the directories above
// it. It fails when a directory stands there or a file stands above.
func (ed *Editor) Set(path string, content []byte) error {
	ed.repo.mu.Lock()
	h, err := ed.repo.store(plumbing.BlobObject, content)
	ed.repo.mu.Unlock()
	if err != nil {
		return err
	}
	return ed.put(path, Entry{Kind: File, Hash: h})
}

// Graft puts an existing tree at a path, in place of any directory there.
func (ed *Editor) Graft(path string, tree Hash) error {
	return ed.put(path, Entry{Kind: Dir, Hash: tree})
}

// Place puts an entry of another tree at a path, in place of one of the same
// kind there. The name of the entry is that of the path.
func (ed *Editor) Place(path string, e Entry) error { return ed.put(path, e) }

// Remove takes away a file, or a directory with all below it, and the
// directories above that become empty. What is not there needs no removal.
func (ed *Editor) Remove(path string) error {
	names, err := split(path)
	if err != nil {
		return err
	}
	return ed.remove(ed.root, names)
}

// List is what a directory holds, in Git's order; a missing one holds nothing.
func (ed *Editor) List(dir string) ([]Entry, error) {
	at := ed.root
	if dir != "." && dir != "" {
		names, err := split(dir)
		if err != nil {
			return nil, err
		}
		if at, err = ed.walk(names, false); err != nil || at == nil {
			return nil, err
		}
	}
	return slices.Clone(at.entries), nil
}

// Read is the content of a file; ok is false when no file stands there.
func (ed *Editor) Read(path string) (content []byte, ok bool, err error) {
	names, err := split(path)
	if err != nil {
		return nil, false, err
	}
	last := len(names) - 1
	at, err := ed.walk(names[:last], false)
	if err != nil || at == nil {
		return nil, false, err
	}
	i, found := findEntry(at.entries, names[last])
	if !found || at.entries[i].Kind == Dir {
		return nil, false, nil
	}
	content, err = ed.repo.Blob(at.entries[i].Hash)
	return content, err == nil, err
}

// Write stores the changed directories and answers the id of the tree. The
// Editor can be used on from there.
func (ed *Editor) Write() (Hash, error) {
	ed.round++
	ed.repo.mu.Lock()
	defer ed.repo.mu.Unlock()
	return ed.write(ed.root)
}

func (ed *Editor) write(d *folder) (Hash, error) {
	for name, below := range d.open {
		h, err := ed.write(below)
		if err != nil {
			return Hash{}, err
		}
		if i, ok := findEntry(d.entries, name); ok {
			d.entries[i].Hash = h
		}
		if ed.round-below.used > keepRounds {
			delete(d.open, name)
		}
	}
	if !d.dirty {
		return d.hash, nil
	}
	h, err := ed.repo.store(plumbing.TreeObject, encodeTree(d.entries))
	if err == nil {
		d.hash, d.dirty = h, false
	}
	return h, err
}

func (ed *Editor) read(tree Hash) (*folder, error) {
	d := &folder{open: map[string]*folder{}, hash: tree, used: ed.round, dirty: tree.IsZero()}
	if tree.IsZero() {
		return d, nil
	}
	entries, err := ed.repo.Entries(tree)
	d.entries = entries
	return d, err
}

func (ed *Editor) put(path string, e Entry) error {
	names, err := split(path)
	if err != nil {
		return err
	}
	last := len(names) - 1
	d, err := ed.walk(names[:last], true)
	if err != nil {
		return fmt.Errorf("set %s: %w", path, err)
	}
	e.Name = names[last]
	i, found := findEntry(d.entries, e.Name)
	if found && (d.entries[i].Kind == Dir) != (e.Kind == Dir) {
		return fmt.Errorf("set %s: a file and a directory cannot have the same name", path)
	}
	if found && d.entries[i] == e && d.open[e.Name] == nil {
		return nil
	}
	d.dirty = true
	delete(d.open, e.Name)
	if found {
		d.entries[i] = e
		return nil
	}
	d.insert(e)
	return nil
}

func (d *folder) insert(e Entry) {
	i, _ := slices.BinarySearchFunc(d.entries, e.key(), func(a Entry, k string) int { return strings.Compare(a.key(), k) })
	d.entries = slices.Insert(d.entries, i, e)
}

// walk opens the directories of a path. A missing one is made when asked,
// otherwise the answer is nil.
func (ed *Editor) walk(names []string, make bool) (*folder, error) {
	d := ed.root
	d.used = ed.round
	for _, name := range names {
		below, err := ed.child(d, name, make)
		if err != nil || below == nil {
			return nil, err
		}
		if make {
			d.dirty = true
		}
		d = below
	}
	return d, nil
}

func (ed *Editor) child(d *folder, name string, make bool) (*folder, error) {
	if below := d.open[name]; below != nil {
		below.used = ed.round
		return below, nil
	}
	i, found := findEntry(d.entries, name)
	var h Hash
	switch {
	case found && d.entries[i].Kind == Dir:
		h = d.entries[i].Hash
	case found && make:
		return nil, fmt.Errorf("%q is a file, not a directory", name)
	case !make:
		return nil, nil
	default:
		d.insert(Entry{Name: name, Kind: Dir})
	}
	below, err := ed.read(h)
	if err != nil {
		return nil, err
	}
	d.open[name] = below
	return below, nil
}

func (ed *Editor) remove(d *folder, names []string) error {
	d.used = ed.round
	i, found := findEntry(d.entries, names[0])
	if !found {
		return nil
	}
	if len(names) > 1 {
		below, err := ed.child(d, names[0], false)
		if err != nil || below == nil {
			return err
		}
		if err := ed.remove(below, names[1:]); err != nil {
			return err
		}
		d.dirty = d.dirty || below.dirty
		if len(below.entries) > 0 {
			return nil
		}
	}
	d.dirty = true
	delete(d.open, names[0])
	d.entries = slices.Delete(d.entries, i, i+1)
	return nil
}

func split(path string) ([]string, error) {
	names := strings.Split(path, "/")
	for _, n := range names {
		if err := checkName(n); err != nil {
			return nil, fmt.Errorf("path %q: %w", path, err)
		}
	}
	if len(names) > maxDepth {
		return nil, fmt.Errorf("path %q: %w: more than %d directories below one another", path, ErrTooLarge, maxDepth)
	}
	return names, nil
}
