package gitrepo

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// Kind is what a tree entry is.
type Kind uint8

// The kinds of tree entries.
const (
	File Kind = iota
	Executable
	Dir
	Symlink
	Submodule
)

// Entry is one line of a tree.
type Entry struct {
	Name string
	Kind Kind
	Hash Hash
}

const (
	maxName  = 255
	maxDepth = 128 // directories below one another; a walk must end
)

// key is the name as Git sorts it: directories as if they ended in a slash.
func (e Entry) key() string {
	if e.Kind == Dir {
		return e.Name + "/"
	}
	return e.Name
}

func (k Kind) mode() string {
	switch k {
	case Executable:
		return "100755"
	case Dir:
		return "40000"
	case Symlink:
		return "120000"
	case Submodule:
		return "160000"
	default:
		return "100644"
	}
}

func kindOf(mode string) (Kind, error) {
	m, err := filemode.New(mode)
	if err != nil {
		return 0, err
	}
	switch m {
	case filemode.Regular, filemode.Deprecated:
		return File, nil
	case filemode.Executable:
		return Executable, nil
	case filemode.Dir:
		return Dir, nil
	case filemode.Symlink:
		return Symlink, nil
	case filemode.Submodule:
		return Submodule, nil
	}
	return 0, fmt.Errorf("mode %s", mode)
}

// decodeTree reads a tree object. It accepts any name, since the reader of a
// path decides what to refuse, but nothing that is not a tree.
func decodeTree(b []byte) ([]Entry, error) {
	var out []Entry
	for len(b) > 0 {
		sp := bytes.IndexByte(b, ' ')
		nul := bytes.IndexByte(b, 0)
		if sp < 0 || nul < sp || len(b) < nul+1+len(Hash{}) {
			return nil, errors.New("tree object is broken")
		}
		kind, err := kindOf(string(b[:sp]))
		if err != nil {
			return nil, fmt.Errorf("tree object is broken: %w", err)
		}
		e := Entry{Name: string(b[sp+1 : nul]), Kind: kind}
		b = b[nul+1:]
		copy(e.Hash[:], b)
		b = b[len(e.Hash):]
		out = append(out, e)
	}
	return out, nil
}

func encodeTree(entries []Entry) []byte {
	n := 0
	for _, e := range entries {
		n += len(e.Name) + 8 + len(e.Hash)
	}
	b := make([]byte, 0, n)
	for _, e := range entries {
		b = append(b, e.Kind.mode()...)
		b = append(b, ' ')
		b = append(b, e.Name...)
		b = append(b, 0)
		b = append(b, e.Hash[:]...)
	}
	return b
}

// findEntry looks a name up in entries that stand in Git's order.
func findEntry(entries []Entry, name string) (int, bool) {
	for _, key := range []string{name, name + "/"} {
		i, ok := slices.BinarySearchFunc(entries, key, func(e Entry, k string) int { return strings.Compare(e.key(), k) })
		if ok {
			return i, true
		}
	}
	return 0, false
}

// checkName refuses a name that could be understood as another path on some
// system, or that a person could not read.
func checkName(name string) error {
	switch {
	case name == "" || name == "." || name == "..":
		return fmt.Errorf("%w: %q", ErrName, name)
	case strings.EqualFold(name, ".git"):
		return fmt.Errorf("%w: %q is Git's own", ErrName, name)
	case len(name) > maxName:
		return fmt.Errorf("%w: %q... has %d bytes, at most %d are taken", ErrName, name[:32], len(name), maxName)
	case !utf8.ValidString(name):
		return fmt.Errorf("%w: %q is not UTF-8", ErrName, name)
	case strings.ContainsAny(name, `/\`) || strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Errorf("%w: %q has a slash, a backslash or a control character", ErrName, name)
	}
	return nil
}

// load is the content of an object. The lock must be held.
func (r *Repo) load(t plumbing.ObjectType, h Hash, limit int64) ([]byte, error) {
	if limit > 0 {
		// Asked before the object is inflated.
		if size, err := r.st.EncodedObjectSize(h); err == nil && size > limit {
			return nil, fmt.Errorf("%s %s has %d bytes, at most %d are read: %w", t, h, size, limit, ErrTooLarge)
		}
	}
	o, err := r.st.EncodedObject(t, h)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return nil, fmt.Errorf("%s %s: %w", t, h, ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", t, h, err)
	}
	rd, err := o.Reader()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", t, h, err)
	}
	defer rd.Close()
	b := make([]byte, o.Size())
	if _, err := io.ReadFull(rd, b); err != nil {
		return nil, fmt.Errorf("%s %s: %w", t, h, err)
	}
	return b, nil
}

// store keeps an object and answers its id. The lock must be held.
func (r *Repo) store(t plumbing.ObjectType, b []byte) (Hash, error) {
	o := r.st.NewEncodedObject()
	o.SetType(t)
	o.SetSize(int64(len(b)))
	w, err := o.Writer()
	if err == nil {
		_, err = w.Write(b)
	}
	if err != nil {
		return Hash{}, fmt.Errorf("write %s: %w", t, err)
	}
	if err := w.Close(); err != nil {
		return Hash{}, fmt.Errorf("write %s: %w", t, err)
	}
	h := o.Hash()
	if r.st.HasEncodedObject(h) == nil {
		return h, nil
	}
	if h, err = r.st.SetEncodedObject(o); err != nil {
		return Hash{}, fmt.Errorf("write %s: %w", t, err)
	}
	return h, nil
}

// tree is a tree's entries. The lock must be held.
func (r *Repo) tree(h Hash) ([]Entry, error) {
	b, err := r.load(plumbing.TreeObject, h, 0)
	if err != nil {
		return nil, err
	}
	entries, err := decodeTree(b)
	if err != nil {
		return nil, fmt.Errorf("tree %s: %w", h, err)
	}
	return entries, nil
}

// Entries are the entries of a tree in Git's order, with any names.
func (r *Repo) Entries(tree Hash) ([]Entry, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tree(tree)
}

// Blob is the content of a blob of any size.
func (r *Repo) Blob(h Hash) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.load(plumbing.BlobObject, h, 0)
}

// BlobID is the id that a file of this content has.
func BlobID(content []byte) Hash { return plumbing.ComputeHash(plumbing.BlobObject, content) }

// Has says whether an object is in the local storage.
func (r *Repo) Has(h Hash) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.st.HasEncodedObject(h) == nil
}

// Entry is what stands at a slash-separated path below a tree; "." is the
// tree itself. It fails with ErrNotFound when nothing stands there.
func (r *Repo) Entry(tree Hash, path string) (Entry, error) {
	at := Entry{Name: ".", Kind: Dir, Hash: tree}
	if path == "." || path == "" {
		return at, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for name := range strings.SplitSeq(path, "/") {
		if at.Kind != Dir {
			return Entry{}, fmt.Errorf("path %s: %w", path, ErrNotFound)
		}
		entries, err := r.tree(at.Hash)
		if err != nil {
			return Entry{}, err
		}
		i, ok := findEntry(entries, name)
		if !ok {
			return Entry{}, fmt.Errorf("path %s: %w", path, ErrNotFound)
		}
		at = entries[i]
	}
	return at, nil
}

// Signature says who made a commit and when. Times are kept to the second in
// UTC, so that equal input gives equal commits.
type Signature struct {
	Name  string
	Email string
	When  time.Time
}

func (s Signature) object() object.Signature {
	clean := func(t string) string {
		return strings.TrimSpace(strings.Map(func(c rune) rune {
			if c == '<' || c == '>' || unicode.IsControl(c) {
				return -1
			}
			return c
		}, t))
	}
	return object.Signature{Name: clean(s.Name), Email: clean(s.Email), When: s.When.UTC().Truncate(time.Second)}
}

func signature(s object.Signature) Signature {
	return Signature{Name: s.Name, Email: s.Email, When: s.When.UTC()}
}

// Commit is a commit. Hash and Signed are set by reading only.
type Commit struct {
	Hash      Hash
	Tree      Hash
	Parents   []Hash
	Author    Signature
	Committer Signature
	Message   string
	Signed    string // the armoured signature, empty when unsigned
}

// Subject is the first line of the message.
func (c Commit) Subject() string {
	s, _, _ := strings.Cut(c.Message, "\n")
	return s
}

// Signer makes an armoured signature (OpenPGP or SSH) over a commit.
type Signer interface {
	Sign(message io.Reader) ([]byte, error)
}

// WriteCommit stores a commit and answers its id; a Signer, when given, signs
// it. Equal input gives an equal id when the signer is deterministic.
func (r *Repo) WriteCommit(c Commit, signer Signer) (Hash, error) {
	o := object.Commit{
		TreeHash: c.Tree, ParentHashes: c.Parents,
		Author: c.Author.object(), Committer: c.Committer.object(), Message: c.Message,
	}
	if signer != nil {
		mem := &plumbing.MemoryObject{}
		if err := o.EncodeWithoutSignature(mem); err != nil {
			return Hash{}, fmt.Errorf("encode commit: %w", err)
		}
		rd, err := mem.Reader()
		if err != nil {
			return Hash{}, fmt.Errorf("encode commit: %w", err)
		}
		sig, err := signer.Sign(rd)
		if err != nil {
			return Hash{}, fmt.Errorf("sign commit: %w", err)
		}
		o.PGPSignature = string(sig)
	}
	mem := &plumbing.MemoryObject{}
	if err := o.Encode(mem); err != nil {
		return Hash{}, fmt.Errorf("encode commit: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	h, err := r.st.SetEncodedObject(mem)
	if err != nil {
		return Hash{}, fmt.Errorf("write commit: %w", err)
	}
	return h, nil
}

// ReadCommit reads a commit.
func (r *Repo) ReadCommit(h Hash) (Commit, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.readCommit(h)
}

func (r *Repo) readCommit(h Hash) (Commit, error) {
	o, err := object.GetCommit(r.st, h)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return Commit{}, fmt.Errorf("commit %s: %w", h, ErrNotFound)
	}
	if err != nil {
		return Commit{}, fmt.Errorf("commit %s: %w", h, err)
	}
	return Commit{
		Hash: h, Tree: o.TreeHash, Parents: o.ParentHashes,
		Author: signature(o.Author), Committer: signature(o.Committer),
		Message: o.Message, Signed: o.PGPSignature,
	}, nil
}

// TreeID is the id of a commit's tree.
func (r *Repo) TreeID(commit Hash) (Hash, error) {
	c, err := r.ReadCommit(commit)
	return c.Tree, err
}
