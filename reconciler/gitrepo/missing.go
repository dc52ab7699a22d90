package gitrepo

import (
	"errors"
	"fmt"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
)

// collector lists the objects that a push has to send.
type collector struct {
	r    *Repo
	seen map[Hash]bool
	list []Hash
	old  Hash          // the commit that the remote surely has, or zero
	has  map[Hash]bool // everything below old; made only when it is asked
}

// missing lists the objects reachable from new and from no commit of theirs.
// The lock must be held. Trees are compared with the trees at the same path of
// the parents and of old, so that an unchanged directory costs nothing.
func (r *Repo) missing(theirs map[Hash]bool, old, new Hash) ([]Hash, error) {
	commits, err := r.chain(theirs, new)
	if err != nil {
		return nil, err
	}
	c := &collector{r: r, seen: map[Hash]bool{}, old: old}
	var ground []Hash
	if !old.IsZero() {
		oc, err := r.readCommit(old)
		if err != nil {
			return nil, fmt.Errorf("%w: the commit that the branch is at: %w", ErrIncomplete, err)
		}
		ground = append(ground, oc.Tree)
	}
	for _, commit := range slices.Backward(commits) {
		bases := slices.Clone(ground)
		for _, p := range commit.Parents {
			if pc, err := r.readCommit(p); err == nil {
				bases = append(bases, pc.Tree)
			}
		}
		c.list = append(c.list, commit.Hash)
		if err := c.tree(commit.Tree, bases, 0); err != nil {
			return nil, fmt.Errorf("commit %s: %w", commit.Hash, err)
		}
	}
	return c.list, nil
}

// chain lists the commits to send, newest first: every parent stands behind
// its children.
func (r *Repo) chain(theirs map[Hash]bool, new Hash) ([]Commit, error) {
	var out []Commit
	queue, seen := []Hash{new}, map[Hash]bool{}
	for len(queue) > 0 {
		h := queue[0]
		queue = queue[1:]
		if seen[h] || theirs[h] {
			continue
		}
		seen[h] = true
		c, err := r.readCommit(h)
		if errors.Is(err, ErrNotFound) {
			return nil, fmt.Errorf("%w: parent %s was never fetched and the remote does not have it", ErrIncomplete, h)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, c)
		queue = append(queue, c.Parents...)
	}
	return out, nil
}

func (c *collector) tree(h Hash, bases []Hash, depth int) error {
	if c.seen[h] || slices.Contains(bases, h) {
		return nil
	}
	if depth > maxDepth {
		return fmt.Errorf("tree %s: %w: more than %d directories below one another", h, ErrTooLarge, maxDepth)
	}
	c.seen[h] = true
	if c.r.st.HasEncodedObject(h) != nil {
		return c.known(h)
	}
	entries, err := c.r.tree(h)
	if err != nil {
		return err
	}
	c.list = append(c.list, h)
	known := make([][]Entry, 0, len(bases))
	for _, b := range bases {
		if e, err := c.r.tree(b); err == nil {
			known = append(known, e)
		}
	}
	for _, e := range entries {
		if err := c.entry(e, known, depth); err != nil {
			return err
		}
	}
	return nil
}

func (c *collector) entry(e Entry, known [][]Entry, depth int) error {
	if e.Kind == Submodule || c.seen[e.Hash] {
		return nil
	}
	var below []Hash
	for _, entries := range known {
		i, ok := findEntry(entries, e.Name)
		if !ok {
			continue
		}
		if entries[i].Hash == e.Hash {
			return nil
		}
		if entries[i].Kind == Dir {
			below = append(below, entries[i].Hash)
		}
	}
	if e.Kind == Dir {
		return c.tree(e.Hash, below, depth+1)
	}
	c.seen[e.Hash] = true
	if c.r.st.HasEncodedObject(e.Hash) != nil {
		return c.known(e.Hash)
	}
	c.list = append(c.list, e.Hash)
	return nil
}

// known accepts an object that is not here when the remote has it at another
// path: Forget keeps trees without their files.
func (c *collector) known(h Hash) error {
	if c.has == nil {
		c.has = map[Hash]bool{}
		if !c.old.IsZero() {
			oc, err := c.r.readCommit(c.old)
			if err != nil {
				return err
			}
			if err := c.r.reach(oc.Tree, c.has, 0); err != nil {
				return err
			}
		}
	}
	if !c.has[h] {
		return fmt.Errorf("object %s: %w", h, ErrNotFound)
	}
	return nil
}

// reach adds every object below a tree. Files need not be here.
func (r *Repo) reach(tree Hash, set map[Hash]bool, depth int) error {
	if set[tree] {
		return nil
	}
	if depth > maxDepth {
		return fmt.Errorf("tree %s: %w: more than %d directories below one another", tree, ErrTooLarge, maxDepth)
	}
	set[tree] = true
	entries, err := r.tree(tree)
	if err != nil {
		return err
	}
	for _, e := range entries {
		switch e.Kind {
		case Dir:
			if err := r.reach(e.Hash, set, depth+1); err != nil {
				return err
			}
		case Submodule:
		default:
			set[e.Hash] = true
		}
	}
	return nil
}

// Copy stores the objects below a tree or blob of another repository that are
// not here, and answers how many those were.
func (r *Repo) Copy(from *Repo, root Hash) (int, error) {
	if from == r {
		if !r.Has(root) {
			return 0, fmt.Errorf("object %s: %w", root, ErrNotFound)
		}
		return 0, nil
	}
	n, err := r.copyBelow(from, root, map[Hash]bool{}, 0)
	if err != nil {
		return n, fmt.Errorf("copy %s from %s: %w", root, from.name, err)
	}
	return n, nil
}

func (r *Repo) copyBelow(from *Repo, h Hash, seen map[Hash]bool, depth int) (int, error) {
	if seen[h] {
		return 0, nil
	}
	seen[h] = true
	if depth > maxDepth || len(seen) > from.opts.MaxFiles {
		return 0, fmt.Errorf("%w: more than %d directories below one another or %d objects", ErrTooLarge, maxDepth, from.opts.MaxFiles)
	}
	t, b, err := from.raw(h)
	if err != nil {
		return 0, err
	}
	n := 0
	if t == plumbing.TreeObject {
		entries, err := decodeTree(b)
		if err != nil {
			return 0, fmt.Errorf("tree %s: %w", h, err)
		}
		for _, e := range entries {
			if e.Kind == Submodule {
				continue
			}
			m, err := r.copyBelow(from, e.Hash, seen, depth+1)
			if n += m; err != nil {
				return n, err
			}
		}
	}
	if r.Has(h) {
		return n, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	_, err = r.store(t, b)
	return n + 1, err
}

func (r *Repo) raw(h Hash) (plumbing.ObjectType, []byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o, err := r.st.EncodedObject(plumbing.AnyObject, h)
	if err != nil {
		return 0, nil, fmt.Errorf("object %s: %w", h, ErrNotFound)
	}
	b, err := r.load(o.Type(), h, 0)
	return o.Type(), b, err
}
