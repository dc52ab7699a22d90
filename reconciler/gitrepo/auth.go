package gitrepo

import (
	"context"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
	gitssh "github.com/go-git/go-git/v5/plumbing/transport/ssh"
)

// Auth is a credential for one connection.
type Auth = transport.AuthMethod

// Static answers with the same credential for every connection.
func Static(a Auth) func(context.Context) (Auth, error) {
	return func(context.Context) (Auth, error) { return a, nil }
}

// Token is an access token for https. Git hosts take it as a password; most
// ignore the user, and an empty one becomes "git".
func Token(user, token string) Auth {
	if user == "" {
		user = "git"
	}
	return &githttp.BasicAuth{Username: user, Password: token}
}

// SSHKey is a private key in PEM for ssh. The host must be in one of the
// known_hosts files; without files those of the user and the system are read.
func SSHKey(user string, pem []byte, passphrase string, knownHosts ...string) (Auth, error) {
	if user == "" {
		user = "git"
	}
	keys, err := gitssh.NewPublicKeys(user, pem, passphrase)
	if err != nil {
		return nil, fmt.Errorf("ssh key: %w", err)
	}
	keys.HostKeyCallback, err = gitssh.NewKnownHostsCallback(knownHosts...)
	if err != nil {
		return nil, fmt.Errorf("known hosts: %w", err)
	}
	return keys, nil
}
