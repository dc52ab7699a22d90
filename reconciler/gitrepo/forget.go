package gitrepo

import (
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/storage/memory"
)

// Forget frees memory: of all objects it keeps the given commits, their
// trees, and those files of the trees whose path keep wants. The kept commits
// become the border of the history here, so a Repo that only appends stays
// small. Pushing still works, since nothing that the remote has is sent again.
// A Repo on disk forgets nothing.
func (r *Repo) Forget(commits []Hash, keep func(path string) bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	st, ok := r.st.(*memory.Storage)
	if !ok {
		return nil
	}
	f := &forgetter{from: st, to: memory.NewStorage(), r: r, keep: keep, trees: map[string]bool{}}
	for _, h := range commits {
		c, err := r.readCommit(h)
		if err != nil {
			return fmt.Errorf("forget all but %s: %w", h, err)
		}
		if err := f.move(h); err != nil {
			return err
		}
		if err := f.tree(".", c.Tree); err != nil {
			return fmt.Errorf("forget all but %s: %w", h, err)
		}
	}
	shallow := map[Hash]bool{}
	for _, h := range commits {
		c, err := r.readCommit(h)
		if err != nil {
			return err
		}
		for _, p := range c.Parents {
			if f.to.HasEncodedObject(p) != nil {
				shallow[h] = true
			}
		}
	}
	f.to.ReferenceStorage = st.ReferenceStorage
	if err := f.to.SetShallow(sortedHashes(shallow)); err != nil {
		return err
	}
	r.st = f.to
	return nil
}

type forgetter struct {
	r        *Repo
	from, to *memory.Storage
	keep     func(string) bool
	trees    map[string]bool // path and id of the trees done
}

func (f *forgetter) move(h Hash) error {
	o, err := f.from.EncodedObject(plumbing.AnyObject, h)
	if err != nil {
		return fmt.Errorf("object %s: %w", h, ErrNotFound)
	}
	_, err = f.to.SetEncodedObject(o)
	return err
}

func (f *forgetter) tree(path string, h Hash) error {
	if key := path + "\x00" + h.String(); f.trees[key] {
		return nil
	} else {
		f.trees[key] = true
	}
	if err := f.move(h); err != nil {
		return err
	}
	entries, err := f.r.tree(h)
	if err != nil {
		return err
	}
	for _, e := range entries {
		below := join(path, e.Name)
		switch {
		case e.Kind == Submodule:
		case e.Kind == Dir:
			err = f.tree(below, e.Hash)
		case f.keep(below) && f.from.HasEncodedObject(e.Hash) == nil:
			err = f.move(e.Hash)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
