package gitrepo

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing/transport"
)

// What can be wrong with a remote or a revision. Test with errors.Is.
var (
	// ErrBranchMissing says that the remote answered and has no such branch.
	ErrBranchMissing = errors.New("branch does not exist")
	// ErrUnreachable says that the remote did not answer or broke off: try again.
	ErrUnreachable = errors.New("remote not reachable")
	// ErrAuth says that the remote refused the credential.
	ErrAuth = errors.New("credential refused")
	// ErrRepositoryMissing says that there is no repository, or none that the
	// credential may see.
	ErrRepositoryMissing = errors.New("repository does not exist")
	// ErrNoRemote says that a repository opened by OpenDir was asked to connect.
	ErrNoRemote = errors.New("repository has no remote")
	// ErrNotFound says that an object or a revision is not in the repository.
	ErrNotFound = errors.New("not found in the repository")
	// ErrIncomplete says that a push would need history which a shallow
	// repository does not have.
	ErrIncomplete = errors.New("history is not complete here")
	// ErrTooLarge says that a bound of Options was reached.
	ErrTooLarge = errors.New("too large")
)

// What an FS refuses to read. Test with errors.Is.
var (
	// ErrSymlink says that a path is a symbolic link.
	ErrSymlink = errors.New("symbolic links are not read")
	// ErrSubmodule says that a path is a submodule.
	ErrSubmodule = errors.New("submodules are not read")
	// ErrName says that a name could be understood as another path or is not
	// printable.
	ErrName = errors.New("name is not portable")
)

// MovedError says that a branch is not where a push expected it. Nothing was
// written. The caller fetches, decides, and pushes again.
type MovedError struct {
	Branch string
	Want   Hash // where the branch was expected; zero: not to exist
	At     Hash // where it is; zero: it does not exist
}

// Error implements error.
func (e *MovedError) Error() string {
	return fmt.Sprintf("branch %s is %s, expected %s", e.Branch, place(e.At), place(e.Want))
}

func place(h Hash) string {
	if h.IsZero() {
		return "missing"
	}
	return "at " + h.String()
}

// classify turns an error of a connection into one of the sentinels above.
func (r *Repo) classify(what string, err error) error {
	kind := ErrUnreachable
	switch {
	case errors.Is(err, transport.ErrAuthenticationRequired),
		errors.Is(err, transport.ErrAuthorizationFailed),
		errors.Is(err, transport.ErrInvalidAuthMethod):
		kind = ErrAuth
	case errors.Is(err, transport.ErrRepositoryNotFound):
		kind = ErrRepositoryMissing
	case errors.Is(err, ErrNoRemote), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.Is(err, ErrTooLarge):
		return fmt.Errorf("%s %s: %w", what, r.name, err)
	}
	return fmt.Errorf("%s %s: %w: %w", what, r.name, kind, err)
}
