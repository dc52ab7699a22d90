package gitrepo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/plumbing/transport/client"
)

// Heads is where a branch was at the fetch before and where it is now. When
// New does not descend from Old (see Repo.Contains) the branch was rewritten.
type Heads struct {
	Old Hash // zero at the first fetch
	New Hash
}

// AllNew as a depth brings every commit that is not here yet, back to what is
// here already. In an empty storage that is the full history.
const AllNew = 0

// Fetch brings a branch of the remote into the local storage and answers where
// it was and is. A depth of n brings at most the last n commits, and AllNew all
// that are missing. A shallow history is never deepened.
//
// Errors: ErrBranchMissing, ErrUnreachable, ErrAuth, ErrRepositoryMissing,
// ErrTooLarge (Options.MaxPack), or the context's.
func (r *Repo) Fetch(ctx context.Context, branch string, depth int) (Heads, error) {
	if err := checkBranch(branch); err != nil {
		return Heads{}, err
	}
	what := "fetch branch " + branch + " of"
	s, adv, err := r.uploadSession(ctx)
	if err != nil {
		return Heads{}, r.classify(what, err)
	}
	defer s.Close()
	heads := Heads{Old: r.tracked(branch)}
	if heads.New = adv.References[string(plumbing.NewBranchReferenceName(branch))]; heads.New.IsZero() {
		return heads, fmt.Errorf("%s %s: %w", what, r.name, ErrBranchMissing)
	}
	if err := r.want(ctx, s, adv, []Hash{heads.New}, depth); err != nil {
		return heads, r.classify(what, err)
	}
	return heads, r.track(plumbing.NewRemoteReferenceName("origin", branch), heads.New)
}

// FetchAll brings every branch and tag of the remote with full history, for
// Resolve. Errors are those of Fetch; a remote without branches is no error.
func (r *Repo) FetchAll(ctx context.Context) error {
	s, adv, err := r.uploadSession(ctx)
	if err != nil {
		return r.classify("fetch", err)
	}
	defer s.Close()
	refs := map[plumbing.ReferenceName]Hash{}
	var wants []Hash
	for name, h := range adv.References {
		ref := plumbing.ReferenceName(name)
		switch {
		case ref.IsBranch():
			refs[plumbing.NewRemoteReferenceName("origin", ref.Short())] = h
		case ref.IsTag():
			refs[ref] = h
		default:
			continue
		}
		wants = append(wants, h)
	}
	if err := r.want(ctx, s, adv, wants, AllNew); err != nil {
		return r.classify("fetch", err)
	}
	for ref, h := range refs {
		if err := r.track(ref, h); err != nil {
			return err
		}
	}
	return nil
}

// Heads lists the branches of the remote. An empty repository has none.
func (r *Repo) Heads(ctx context.Context) (map[string]Hash, error) {
	s, adv, err := r.uploadSession(ctx)
	if err != nil {
		return nil, r.classify("list branches of", err)
	}
	defer s.Close()
	out := map[string]Hash{}
	for name, h := range adv.References {
		if ref := plumbing.ReferenceName(name); ref.IsBranch() {
			out[ref.Short()] = h
		}
	}
	return out, nil
}

// uploadSession connects for reading.
func (r *Repo) uploadSession(ctx context.Context) (transport.UploadPackSession, *packp.AdvRefs, error) {
	t, auth, err := r.dial(ctx)
	if err != nil {
		return nil, nil, err
	}
	s, err := t.NewUploadPackSession(r.ep, auth)
	if err != nil {
		return nil, nil, err
	}
	adv, err := advertised(ctx, s)
	return s, adv, err
}

// advertised are the references that the server offers, none for an empty
// repository. A session that cannot be used is closed.
func advertised(ctx context.Context, s transport.Session) (*packp.AdvRefs, error) {
	adv, err := s.AdvertisedReferencesContext(ctx)
	if errors.Is(err, transport.ErrEmptyRemoteRepository) {
		return packp.NewAdvRefs(), nil
	}
	if err != nil {
		_ = s.Close()
		return nil, err
	}
	return adv, nil
}

func (r *Repo) dial(ctx context.Context) (transport.Transport, Auth, error) {
	if r.ep == nil {
		return nil, nil, ErrNoRemote
	}
	t, err := client.NewClient(r.ep)
	if err != nil {
		return nil, nil, err
	}
	if r.opts.Auth == nil {
		return t, nil, nil
	}
	auth, err := r.opts.Auth(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrAuth, err)
	}
	return t, auth, nil
}

// want asks for commits and stores what comes.
func (r *Repo) want(ctx context.Context, s transport.UploadPackSession, adv *packp.AdvRefs, wants []Hash, depth int) error {
	req := packp.NewUploadPackRequestFromCapabilities(adv.Capabilities)
	have, shallow, err := r.haves()
	if err != nil {
		return err
	}
	known := map[Hash]bool{}
	for _, h := range have {
		known[h] = true
	}
	for _, h := range wants {
		// What is here is complete: packs are stored as a whole, and a shallow
		// border is never asked to be deepened.
		if !known[h] && !r.Has(h) {
			req.Wants = append(req.Wants, h)
		}
	}
	if len(req.Wants) == 0 {
		return nil
	}
	req.Haves = have
	req.Depth = packp.DepthCommits(depth)
	if req.Shallows = shallow; len(shallow) > 0 || depth > 0 {
		if !adv.Capabilities.Supports(capability.Shallow) {
			return errors.New("the remote cannot fetch from or to a shallow history")
		}
		if err := req.Capabilities.Set(capability.Shallow); err != nil {
			return err
		}
	}
	resp, err := s.UploadPack(ctx, req)
	if errors.Is(err, transport.ErrEmptyUploadPackRequest) {
		return nil
	}
	if err != nil {
		return err
	}
	defer resp.Close()
	return r.receive(ctx, req, resp)
}

// receive reads the whole pack before it takes the lock, so that readers never
// wait for the network.
func (r *Repo) receive(ctx context.Context, req *packp.UploadPackRequest, resp *packp.UploadPackResponse) error {
	var in io.Reader = resp
	if req.Capabilities.Supports(capability.Sideband64k) {
		in = sideband.NewDemuxer(sideband.Sideband64k, resp)
	} else if req.Capabilities.Supports(capability.Sideband) {
		in = sideband.NewDemuxer(sideband.Sideband, resp)
	}
	spool, done, err := r.spool()
	if err != nil {
		return err
	}
	defer done()
	n, err := io.Copy(spool, io.LimitReader(in, r.opts.MaxPack+1))
	if err != nil {
		return err
	}
	if n > r.opts.MaxPack {
		return fmt.Errorf("%w: the pack has more than %d bytes", ErrTooLarge, r.opts.MaxPack)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if f, ok := spool.(io.Seeker); ok {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	// The border first: a border without its commits does no harm, commits
	// without their border would look like a broken history.
	if err := r.updateShallow(resp); err != nil {
		return fmt.Errorf("shallow border: %w", err)
	}
	if err := packfile.UpdateObjectStorage(r.st, spool); err != nil && !errors.Is(err, packfile.ErrEmptyPackfile) {
		return fmt.Errorf("pack: %w", err)
	}
	return nil
}

// spool is where a pack waits: memory for a Repo in memory, else a file.
func (r *Repo) spool() (io.ReadWriter, func(), error) {
	if r.opts.Dir == "" {
		return &bytes.Buffer{}, func() {}, nil
	}
	f, err := os.CreateTemp(r.opts.Dir, "incoming-*.pack")
	if err != nil {
		return nil, nil, fmt.Errorf("spool the pack: %w", err)
	}
	return f, func() { _ = f.Close(); _ = os.Remove(f.Name()) }, nil
}

func (r *Repo) updateShallow(resp *packp.UploadPackResponse) error {
	if len(resp.Shallows)+len(resp.Unshallows) == 0 {
		return nil
	}
	old, err := r.st.Shallow()
	if err != nil {
		return err
	}
	set := map[Hash]bool{}
	for _, h := range append(old, resp.Shallows...) {
		set[h] = true
	}
	for _, h := range resp.Unshallows {
		delete(set, h)
	}
	return r.st.SetShallow(sortedHashes(set))
}

// haves are the commits that the remote may build on, and the shallow border.
func (r *Repo) haves() (have, shallow []Hash, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if shallow, err = r.st.Shallow(); err != nil {
		return nil, nil, err
	}
	refs, err := r.st.IterReferences()
	if err != nil {
		return nil, nil, err
	}
	set := map[Hash]bool{}
	err = refs.ForEach(func(ref *plumbing.Reference) error {
		if ref.Type() == plumbing.HashReference && r.st.HasEncodedObject(ref.Hash()) == nil {
			set[ref.Hash()] = true
		}
		return nil
	})
	return sortedHashes(set), append([]Hash(nil), shallow...), err
}

func sortedHashes(set map[Hash]bool) []Hash {
	out := make([]Hash, 0, len(set))
	for h := range set {
		out = append(out, h)
	}
	plumbing.HashesSort(out)
	return out
}

// tracked is where the branch was at the last fetch.
func (r *Repo) tracked(branch string) Hash {
	r.mu.Lock()
	defer r.mu.Unlock()
	ref, err := r.st.Reference(plumbing.NewRemoteReferenceName("origin", branch))
	if err != nil {
		return Hash{}
	}
	return ref.Hash()
}

func (r *Repo) track(name plumbing.ReferenceName, h Hash) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.st.SetReference(plumbing.NewHashReference(name, h)); err != nil {
		return fmt.Errorf("remember %s: %w", strings.TrimPrefix(string(name), "refs/"), err)
	}
	return nil
}
