package gitrepo

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/memory"
)

// History walks the first parents from a commit, newest first, until fn fails
// or the history ends here: at the first commit or at a shallow border. fn
// ends the walk without an error by fs.SkipAll.
func (r *Repo) History(from Hash, fn func(Commit) error) error {
	for h := from; ; {
		c, err := r.ReadCommit(h)
		if err != nil {
			return err
		}
		if err := fn(c); errors.Is(err, fs.SkipAll) {
			return nil
		} else if err != nil {
			return err
		}
		if len(c.Parents) == 0 || !r.Has(c.Parents[0]) {
			return nil
		}
		h = c.Parents[0]
	}
}

// Contains says whether a commit is in the history of another, as far as that
// history is here. A commit contains itself.
func (r *Repo) Contains(head, commit Hash) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	queue, seen := []Hash{head}, map[Hash]bool{}
	for len(queue) > 0 {
		h := queue[0]
		queue = queue[1:]
		if h == commit {
			return true, nil
		}
		if seen[h] {
			continue
		}
		seen[h] = true
		c, err := r.readCommit(h)
		if errors.Is(err, ErrNotFound) && h != head {
			continue // behind a shallow border
		}
		if err != nil {
			return false, err
		}
		queue = append(queue, c.Parents...)
	}
	return false, nil
}

// Change is a path whose entry differs between two trees. A zero Hash in From
// or To says that the path is not in that tree.
type Change struct {
	Path string
	From Entry
	To   Entry
}

// Changes lists the files that differ between two trees, sorted by path. A
// zero tree is an empty one. Equal subtrees are not read.
func (r *Repo) Changes(from, to Hash) ([]Change, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := differ{r: r, left: maxDiffEntries}
	err := d.dirs(".", from, to)
	slices.SortFunc(d.out, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return d.out, err
}

// maxDiffEntries bounds the entries that one comparison reads, where opening a
// directory counts as dirCost of them: a tree that repeats one subtree would
// never end.
const (
	maxDiffEntries = 1 << 20
	dirCost        = 64
)

type differ struct {
	r    *Repo
	left int
	out  []Change
}

func (d *differ) dirs(dir string, from, to Hash) error {
	if from == to {
		return nil
	}
	if strings.Count(dir, "/") >= maxDepth {
		return fmt.Errorf("path %s: %w: more than %d directories below one another", dir, ErrTooLarge, maxDepth)
	}
	pairs := map[string]*Change{}
	for side, tree := range []Hash{from, to} {
		if tree.IsZero() {
			continue
		}
		entries, err := d.r.tree(tree)
		if err != nil {
			return err
		}
		if d.left -= len(entries) + dirCost; d.left < 0 {
			return fmt.Errorf("path %s: %w: too many entries to compare", dir, ErrTooLarge)
		}
		for _, e := range entries {
			c := pairs[e.Name]
			if c == nil {
				c = &Change{Path: join(dir, e.Name)}
				pairs[e.Name] = c
			}
			if side == 0 {
				c.From = e
			} else {
				c.To = e
			}
		}
	}
	for _, c := range pairs {
		if err := d.pair(*c); err != nil {
			return err
		}
	}
	return nil
}

// pair reports a pair of entries, and looks below when one is a directory.
func (d *differ) pair(c Change) error {
	if c.From == c.To {
		return nil
	}
	var from, to Hash
	if c.From.Kind == Dir {
		from, c.From = c.From.Hash, Entry{}
	}
	if c.To.Kind == Dir {
		to, c.To = c.To.Hash, Entry{}
	}
	if !c.From.Hash.IsZero() || !c.To.Hash.IsZero() {
		d.out = append(d.out, c)
	}
	return d.dirs(c.Path, from, to)
}

// Branches are the branches known here, by their name without "refs/heads/" or
// "refs/remotes/<remote>/". Where both are there, the local one counts.
func (r *Repo) Branches() (map[string]Hash, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	refs, err := r.st.IterReferences()
	if err != nil {
		return nil, fmt.Errorf("branches of %s: %w", r.name, err)
	}
	out, local := map[string]Hash{}, map[string]bool{}
	err = refs.ForEach(func(ref *plumbing.Reference) error {
		name := ref.Name().Short()
		if ref.Name().IsRemote() {
			_, name, _ = strings.Cut(name, "/")
		}
		if ref.Type() != plumbing.HashReference || !ref.Name().IsBranch() && (!ref.Name().IsRemote() || local[name]) {
			return nil
		}
		out[name] = ref.Hash()
		local[name] = local[name] || ref.Name().IsBranch()
		return nil
	})
	return out, err
}

// Resolve finds the commit that a revision names: "HEAD", a branch, a remote
// branch, a tag, a full ref, an id or at least four digits of one, each with
// any number of "^" and "~N" behind it.
func (r *Repo) Resolve(rev string) (Hash, error) {
	base, back, err := ancestry(rev)
	if err != nil {
		return Hash{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	h, err := r.base(base)
	if err != nil {
		return Hash{}, fmt.Errorf("revision %q in %s: %w", rev, r.name, err)
	}
	for range back {
		c, err := r.readCommit(h)
		if err != nil {
			return Hash{}, fmt.Errorf("revision %q in %s: %w", rev, r.name, err)
		}
		if len(c.Parents) == 0 {
			return Hash{}, fmt.Errorf("revision %q in %s: commit %s has no parent: %w", rev, r.name, h, ErrNotFound)
		}
		h = c.Parents[0]
	}
	if _, err := r.readCommit(h); err != nil {
		return Hash{}, fmt.Errorf("revision %q in %s: %w", rev, r.name, err)
	}
	return h, nil
}

const maxBack = 1_000_000

// ancestry takes the "^" and "~N" off a revision and counts them.
func ancestry(rev string) (base string, back int, err error) {
	i := strings.IndexAny(rev, "^~")
	if i < 0 {
		return rev, 0, nil
	}
	base, rest := rev[:i], rev[i:]
	for rest != "" {
		op := rest[0]
		rest = rest[1:]
		j := strings.IndexAny(rest, "^~")
		if j < 0 {
			j = len(rest)
		}
		n := 1
		if number := rest[:j]; number != "" {
			n, err = strconv.Atoi(number)
		}
		if err != nil || n < 0 || n > maxBack || op == '^' && n != 1 || op != '^' && op != '~' {
			return "", 0, fmt.Errorf("revision %q: only first parents are understood, as in HEAD^ or main~3", rev)
		}
		back, rest = back+n, rest[j:]
	}
	return base, back, nil
}

func (r *Repo) base(name string) (Hash, error) {
	if name == "" {
		return Hash{}, errors.New("the name is empty")
	}
	for _, ref := range []string{name, "refs/" + name, "refs/tags/" + name, "refs/heads/" + name, "refs/remotes/" + name, "refs/remotes/origin/" + name} {
		if h, ok := r.ref(plumbing.ReferenceName(ref)); ok {
			return r.peel(h)
		}
	}
	if plumbing.IsHash(name) {
		return r.peel(plumbing.NewHash(name))
	}
	return r.abbreviated(name)
}

// ref follows symbolic references. Only HEAD is looked for outside of refs/,
// since go-git would take any other name as a file of the directory.
func (r *Repo) ref(name plumbing.ReferenceName) (Hash, bool) {
	if name != plumbing.HEAD && (!strings.HasPrefix(string(name), "refs/") || name.Validate() != nil) {
		return Hash{}, false
	}
	for range 5 {
		ref, err := r.st.Reference(name)
		if err != nil {
			return Hash{}, false
		}
		if ref.Type() == plumbing.HashReference {
			return ref.Hash(), true
		}
		name = ref.Target()
	}
	return Hash{}, false
}

// peel follows annotated tags to what they name.
func (r *Repo) peel(h Hash) (Hash, error) {
	for range 10 {
		tag, err := object.GetTag(r.st, h)
		if errors.Is(err, plumbing.ErrObjectNotFound) {
			return h, nil
		}
		if err != nil {
			return Hash{}, fmt.Errorf("tag %s: %w", h, err)
		}
		h = tag.Target
	}
	return Hash{}, fmt.Errorf("tag %s names a tag that names a tag, and so on", h)
}

// abbreviated finds the only commit whose id starts with the digits.
func (r *Repo) abbreviated(digits string) (Hash, error) {
	digits = strings.ToLower(digits)
	if len(digits) < 4 || len(digits) >= 40 || strings.Trim(digits, "0123456789abcdef") != "" {
		return Hash{}, ErrNotFound
	}
	candidates, err := r.withPrefix(digits)
	if err != nil {
		return Hash{}, err
	}
	var found []Hash
	for _, h := range candidates {
		h, err := r.peel(h)
		if err != nil {
			return Hash{}, err
		}
		if r.isCommit(h) && !slices.Contains(found, h) {
			found = append(found, h)
		}
	}
	switch len(found) {
	case 0:
		return Hash{}, ErrNotFound
	case 1:
		return found[0], nil
	}
	return Hash{}, fmt.Errorf("%d commits start with these digits; give more of them", len(found))
}

func (r *Repo) isCommit(h Hash) bool {
	_, err := r.st.EncodedObject(plumbing.CommitObject, h)
	return err == nil
}

func (r *Repo) withPrefix(digits string) ([]Hash, error) {
	type prefixer interface {
		HashesWithPrefix(prefix []byte) ([]Hash, error)
	}
	var all []Hash
	switch st := r.st.(type) {
	case *memory.Storage:
		for h := range st.Commits {
			all = append(all, h)
		}
	case prefixer:
		even := digits[:len(digits)/2*2]
		b := make([]byte, len(even)/2)
		for i := range b {
			v, err := strconv.ParseUint(even[2*i:2*i+2], 16, 8)
			if err != nil {
				return nil, ErrNotFound
			}
			b[i] = byte(v)
		}
		var err error
		if all, err = st.HashesWithPrefix(b); err != nil {
			return nil, err
		}
	}
	out := all[:0]
	for _, h := range all {
		if strings.HasPrefix(h.String(), digits) {
			out = append(out, h)
		}
	}
	return out, nil
}
