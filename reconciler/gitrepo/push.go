package gitrepo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/transport"
)

// Objects that the encoder compares for deltas, as git's own default.
const packWindow = 10

// Push moves a branch of the remote from old to new, or makes it when old is
// zero, and sends every object that new needs and old lacks. It is a
// compare-and-swap: the server checks old, and nothing is ever forced. It does
// not need the history before old, so it works from a shallow repository.
//
// *MovedError says that the branch is elsewhere and nothing was written. A
// branch that is found at new counts as pushed, also after a lost answer.
// Other errors mean that the branch was still at old when asked afterwards, or
// could not be asked (ErrUnreachable): the push may be repeated.
func (r *Repo) Push(ctx context.Context, branch string, old, new Hash) error {
	if err := checkBranch(branch); err != nil {
		return err
	}
	what := "push branch " + branch + " to"
	ref := plumbing.NewBranchReferenceName(branch)
	s, adv, err := r.receiveSession(ctx)
	if err != nil {
		return r.classify(what, err)
	}
	defer s.Close()
	switch at := adv.References[string(ref)]; at {
	case new:
		return r.track(plumbing.NewRemoteReferenceName("origin", branch), new)
	case old:
	default:
		return &MovedError{Branch: branch, Want: old, At: at}
	}
	pack, err := r.packFor(adv, old, new)
	if err != nil {
		return fmt.Errorf("%s %s: %w", what, r.name, err)
	}
	if err := send(ctx, s, adv, &packp.Command{Name: ref, Old: old, New: new}, pack); err != nil {
		return r.afterRefusal(ctx, branch, old, new, err)
	}
	return r.track(plumbing.NewRemoteReferenceName("origin", branch), new)
}

// receiveSession connects for writing.
func (r *Repo) receiveSession(ctx context.Context) (transport.ReceivePackSession, *packp.AdvRefs, error) {
	t, auth, err := r.dial(ctx)
	if err != nil {
		return nil, nil, err
	}
	s, err := t.NewReceivePackSession(r.ep, auth)
	if err != nil {
		return nil, nil, err
	}
	adv, err := advertised(ctx, s)
	return s, adv, err
}

// send gives the command and the pack to the server and reads its report.
func send(ctx context.Context, s transport.ReceivePackSession, adv *packp.AdvRefs, cmd *packp.Command, pack []byte) error {
	req := packp.NewReferenceUpdateRequestFromCapabilities(adv.Capabilities)
	said := &remarks{}
	if err := req.Capabilities.Set(capability.ReportStatus); err != nil {
		return err
	}
	if adv.Capabilities.Supports(capability.Sideband64k) {
		if err := req.Capabilities.Set(capability.Sideband64k); err != nil {
			return err
		}
		req.Progress = said
	}
	req.Commands = []*packp.Command{cmd}
	req.Packfile = io.NopCloser(bytes.NewReader(pack))
	report, err := s.ReceivePack(ctx, req)
	if err == nil && report == nil {
		err = errors.New("the server gave no report")
	}
	if err != nil {
		return said.with(err)
	}
	for _, c := range report.CommandStatuses {
		if c.ReferenceName == cmd.Name {
			return nil
		}
	}
	return said.with(errors.New("the server's report leaves the branch out"))
}

// afterRefusal looks where the branch is. What the server said is never
// interpreted: hosts word it differently, and a lost answer says nothing.
func (r *Repo) afterRefusal(ctx context.Context, branch string, old, new Hash, cause error) error {
	what := "push branch " + branch + " to"
	heads, err := r.Heads(ctx)
	if err != nil {
		return fmt.Errorf("%w (%w)", r.classify(what, cause), err)
	}
	switch at := heads[branch]; at {
	case new:
		return r.track(plumbing.NewRemoteReferenceName("origin", branch), new)
	case old:
		return r.classify(what, cause)
	default:
		return &MovedError{Branch: branch, Want: old, At: at}
	}
}

// packFor encodes the objects of a push. The pack is made under the lock and
// sent without it.
func (r *Repo) packFor(adv *packp.AdvRefs, old, new Hash) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	theirs := map[Hash]bool{}
	for _, h := range adv.References {
		theirs[h] = true
	}
	if !old.IsZero() {
		theirs[old] = true
	}
	list, err := r.missing(theirs, old, new)
	if err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	refDeltas := !adv.Capabilities.Supports(capability.OFSDelta)
	if _, err := packfile.NewEncoder(&buf, r.st, refDeltas).Encode(list, packWindow); err != nil {
		return nil, fmt.Errorf("encode pack: %w", err)
	}
	return buf.Bytes(), nil
}

// remarks keeps the end of what a server says beside its report, such as the
// reason of a hook.
type remarks struct{ text []byte }

const maxRemarks = 2048

func (m *remarks) Write(p []byte) (int, error) {
	m.text = append(m.text, p...)
	if over := len(m.text) - maxRemarks; over > 0 {
		m.text = append(m.text[:0], m.text[over:]...)
	}
	return len(p), nil
}

func (m *remarks) with(err error) error {
	text := strings.Join(strings.Fields(string(m.text)), " ")
	if text == "" {
		return err
	}
	return fmt.Errorf("%w (the server says: %q)", err, text)
}
