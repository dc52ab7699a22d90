// Package gitrepo reads and writes Git repositories without a work tree.
//
// A tree at a commit is an fs.FS; a change is an edit of a tree in memory that
// becomes a commit; a push is a compare-and-swap of one branch. Nothing is
// ever forced, nothing is ever checked out, and the only program that may be
// started is git itself, by go-git, to talk to a repository on the same disk.
//
// A Repo may be used by many goroutines: one lock guards its objects, and it
// is not held while the network is waited for. An Editor belongs to one
// goroutine.
package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/go-git/go-billy/v5/osfs"
	git "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/storage"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/go-git/go-git/v5/storage/memory"
)

// Hash is the id of a Git object. The zero Hash stands for "no object".
type Hash = plumbing.Hash

// ParseHash reads 40 hexadecimal digits.
func ParseHash(s string) (Hash, error) {
	if !plumbing.IsHash(s) {
		return Hash{}, fmt.Errorf("%q is not a Git object id of 40 hexadecimal digits", s)
	}
	return plumbing.NewHash(s), nil
}

// Bounds of a Repo whose Options leave them at zero.
const (
	DefaultMaxFileSize = 8 << 20
	DefaultMaxFiles    = 50_000
	DefaultMaxPack     = 512 << 20
)

// Options are the optional settings of a Repo.
type Options struct {
	// Dir keeps the objects in a bare repository in this directory, which is
	// made when missing and reused when present. Empty keeps them in memory.
	Dir string
	// Auth is asked for the credential before every connection, so that short-lived
	// tokens can be renewed. Nil means none beyond what the URL holds.
	Auth func(context.Context) (Auth, error)
	// CABundle holds additional certificate authorities in PEM for https.
	CABundle []byte
	// MaxFileSize bounds the bytes of one file read through an FS.
	MaxFileSize int64
	// MaxFiles bounds the entries of all directories read through one FS.
	MaxFiles int
	// MaxPack bounds the bytes of one fetched pack.
	MaxPack int64
}

// Repo is a local set of Git objects, with a remote when Open made it.
type Repo struct {
	opts Options
	ep   *transport.Endpoint // nil without a remote
	name string              // the remote without its password, or the directory

	mu sync.Mutex
	st storage.Storer
}

// Open prepares the repository at a URL (https, http, ssh, the scp form) or a
// path on disk. It does not connect; that is left to Fetch, Heads and Push.
func Open(remote string, opts Options) (*Repo, error) {
	ep, err := transport.NewEndpoint(remote)
	if err != nil {
		// The cause is left out: it would repeat the URL with its password.
		return nil, fmt.Errorf("repository %q is neither a URL nor a path that Git understands", redact(remote))
	}
	ep.CaBundle = opts.CABundle
	st, err := openStorage(opts.Dir)
	if err != nil {
		return nil, err
	}
	return &Repo{opts: withDefaults(opts), ep: ep, name: redact(remote), st: st}, nil
}

// OpenDir uses the objects of an existing repository on disk in place: a bare
// one, a clone, or any directory inside a clone. It has no remote, so Fetch
// and Push fail with ErrNoRemote.
func OpenDir(dir string, opts Options) (*Repo, error) {
	g, err := git.PlainOpenWithOptions(dir, &git.PlainOpenOptions{EnableDotGitCommonDir: true})
	if errors.Is(err, git.ErrRepositoryNotExists) {
		// Looking upwards for a .git does not recognise a bare repository.
		g, err = git.PlainOpenWithOptions(dir, &git.PlainOpenOptions{DetectDotGit: true, EnableDotGitCommonDir: true})
	}
	if errors.Is(err, git.ErrRepositoryNotExists) {
		return nil, fmt.Errorf("%s: %w", dir, ErrRepositoryMissing)
	}
	if err != nil {
		return nil, fmt.Errorf("open repository %s: %w", dir, err)
	}
	return &Repo{opts: withDefaults(opts), name: dir, st: g.Storer}, nil
}

// InitBare makes an empty bare repository in dir whose HEAD is the given
// branch. It fails when dir already holds a repository.
func InitBare(dir, branch string) error {
	if err := checkBranch(branch); err != nil {
		return err
	}
	_, err := git.PlainInitWithOptions(dir, &git.PlainInitOptions{
		Bare:        true,
		InitOptions: git.InitOptions{DefaultBranch: plumbing.NewBranchReferenceName(branch)},
	})
	if err != nil {
		return fmt.Errorf("make repository %s: %w", dir, err)
	}
	return nil
}

// Unsynced has Git write to the bare repository in dir without waiting for the
// disk: for demos and tests, whose repositories nobody needs after a power cut.
func Unsynced(dir string) error {
	f, err := os.OpenFile(filepath.Join(dir, "config"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("configure repository %s: %w", dir, err)
	}
	_, err = f.WriteString("[core]\n\tfsync = none\n")
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("configure repository %s: %w", dir, err)
	}
	return nil
}

// Name is the remote as given, without a password, or the directory.
func (r *Repo) Name() string { return r.name }

func withDefaults(o Options) Options {
	if o.MaxFileSize <= 0 {
		o.MaxFileSize = DefaultMaxFileSize
	}
	if o.MaxFiles <= 0 {
		o.MaxFiles = DefaultMaxFiles
	}
	if o.MaxPack <= 0 {
		o.MaxPack = DefaultMaxPack
	}
	return o
}

func openStorage(dir string) (storage.Storer, error) {
	if dir == "" {
		return memory.NewStorage(), nil
	}
	if _, err := os.Stat(filepath.Join(dir, "HEAD")); errors.Is(err, os.ErrNotExist) {
		if err := InitBare(dir, "main"); err != nil {
			return nil, err
		}
	} else if err != nil {
		return nil, fmt.Errorf("open repository %s: %w", dir, err)
	}
	return filesystem.NewStorage(osfs.New(dir), cache.NewObjectLRUDefault()), nil
}

// redact removes user and password of a URL, also of one that cannot be
// parsed.
func redact(remote string) string {
	scheme, rest, ok := strings.Cut(remote, "://")
	if !ok {
		return remote
	}
	host, path, _ := strings.Cut(rest, "/")
	if i := strings.LastIndex(rest, "@"); i >= len(host) {
		return scheme + "://" + rest[i+1:] // a slash in the password
	} else if i >= 0 {
		host = host[i+1:]
	}
	if path == "" {
		return scheme + "://" + host
	}
	return scheme + "://" + host + "/" + path
}

func checkBranch(branch string) error {
	if err := plumbing.NewBranchReferenceName(branch).Validate(); err != nil || branch == "" {
		return fmt.Errorf("branch name %q is not one that Git accepts", branch)
	}
	return nil
}
