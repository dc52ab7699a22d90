package decision

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// idTime is the time part of an id. It sorts as time does.
	idTime = "20060102T150405.000Z"
	// idHash is the length of the hash part: 80 bits.
	idHash = 16
	// claimHash is the length of the hash in a NodeClaim's name: 40 bits.
	claimHash = 8
)

// base32 without padding in lower case is safe in names of Kubernetes objects,
// in paths and in branch names.
var lower32 = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// Digest is the SHA-256 of the bytes in the form that records use.
func Digest(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Milliseconds is the instant as records hold it: UTC, whole milliseconds.
func Milliseconds(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

// Seal fills in what follows from the rest (the version, the fingerprint, the
// id and the names of the claims) and makes the decision final. It fails only
// if the decision cannot be encoded.
func (d *Decision) Seal() error {
	d.Version = Version
	d.Time = Milliseconds(d.Time)
	d.Fingerprint = d.fingerprint()
	id, err := d.computeID()
	if err != nil {
		return err
	}
	d.ID = id
	for i := range d.Proposal.Claims {
		c := &d.Proposal.Claims[i]
		c.Name = ClaimName(c.NodePool, id, c.Index)
	}
	return nil
}

// computeID is the time and 16 base32 characters of the SHA-256 of the
// canonical decision without what follows from the id.
func (d *Decision) computeID() (string, error) {
	b, err := d.canonical()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	return d.Time.Format(idTime) + "-" + lower32.EncodeToString(sum[:])[:idHash], nil
}

// VerifyID says whether the id follows from the content.
func (d *Decision) VerifyID() error {
	want, err := d.computeID()
	if err != nil {
		return err
	}
	if d.ID != want {
		return fmt.Errorf("decision %s: its content has the id %s: the record was changed after it was written", d.ID, want)
	}
	for i := range d.Proposal.Claims {
		c := &d.Proposal.Claims[i]
		if name := ClaimName(c.NodePool, d.ID, c.Index); c.Name != name {
			return fmt.Errorf("decision %s: claim %d is named %q, want %q: the record was changed after it was written", d.ID, c.Index, c.Name, name)
		}
	}
	return nil
}

// ParseID splits an id into its time and hash.
func ParseID(id string) (time.Time, string, error) {
	stamp, hash, ok := strings.Cut(id, "-")
	if !ok || len(hash) != idHash || strings.Trim(hash, "abcdefghijklmnopqrstuvwxyz234567") != "" {
		return time.Time{}, "", fmt.Errorf("decision id %q: want TIME-HASH such as 20260406T122402.547Z-abcdefghijklmnop", id)
	}
	t, err := time.Parse(idTime, stamp)
	if err != nil {
		return time.Time{}, "", fmt.Errorf("decision id %q: time: %w", id, err)
	}
	return t, hash, nil
}

// ClaimName is the name of the NodeClaim for the claim of that index. It
// follows from the decision, so that creating it twice is creating it once.
func ClaimName(nodePool, id string, index int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d", id, index))
	return nodePool + "-" + lower32.EncodeToString(sum[:])[:claimHash]
}

// ClientToken is EC2's idempotency token for one attempt at launching one
// group of claims: the same attempt can be repeated without launching twice.
func ClientToken(id string, group, attempt int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d/%d", id, group, attempt))
	return hex.EncodeToString(sum[:])
}

// Subject is the name that stands for what the decision is about in paths and
// listings: the NodePool, the node, or the start of the commit.
func (d *Decision) Subject() string {
	p := &d.Proposal
	switch {
	case p.Spec != nil && p.Spec.Commit != "":
		return p.Spec.Commit[:min(8, len(p.Spec.Commit))]
	case p.Handover != nil:
		return fmt.Sprintf("epoch%d", p.Handover.Epoch)
	case len(p.Nodes) == 1:
		return cmp.Or(p.Nodes[0].Claim, p.Nodes[0].Name)
	case p.NodePool != "":
		return p.NodePool
	case len(p.Instances) == 1:
		return p.Instances[0].ID
	case len(p.Unplaced) > 0:
		return "pending"
	default:
		return string(d.Kind)
	}
}

// Subjects are the names that outcome steps of the decision are about. What is
// removed comes before what replaces it: the removal is what the decision is
// for.
func (d *Decision) Subjects() []string {
	var out []string
	for _, n := range d.Proposal.Nodes {
		out = append(out, cmp.Or(n.Claim, n.Name))
	}
	for i := range d.Proposal.Claims {
		out = append(out, d.Proposal.Claims[i].Name)
	}
	for _, in := range d.Proposal.Instances {
		out = append(out, in.ID)
	}
	return out
}

// fingerprint is equal for proposals of one kind about the same subjects that
// met the same rules under the same specs and policies.
func (d *Decision) fingerprint() string {
	var b strings.Builder
	p := &d.Proposal
	fmt.Fprintln(&b, d.Kind, p.NodePool, p.Method, d.Verdict.Allowed, d.Inputs.SpecCommit, d.Inputs.Policies)
	if p.Spec != nil {
		fmt.Fprintln(&b, "commit", p.Spec.Commit)
	}
	if p.Handover != nil {
		fmt.Fprintln(&b, "epoch", p.Handover.Epoch)
	}
	for i := range p.Claims {
		fmt.Fprintln(&b, "claim", podNames(p.Claims[i].Pods))
	}
	for _, n := range p.Nodes {
		fmt.Fprintln(&b, "node", n.Claim, n.Name, n.Detail)
	}
	for _, u := range p.Unplaced {
		fmt.Fprintln(&b, "unplaced", u.Reason, u.Rules, podNames(u.Pods))
	}
	for _, in := range p.Instances {
		fmt.Fprintln(&b, "instance", in.ID)
	}
	rules := map[string]bool{}
	for _, f := range d.Verdict.Violations {
		rules[f.Rule+" "+f.Resource] = true
	}
	for _, r := range sortedKeys(rules) {
		fmt.Fprintln(&b, "rule", r)
	}
	sum := sha256.Sum256([]byte(b.String()))
	return lower32.EncodeToString(sum[:])[:idHash]
}

func podNames(groups []PodGroup) []string {
	var out []string
	for _, g := range groups {
		for _, n := range g.Names {
			out = append(out, g.Namespace+"/"+n)
		}
	}
	slices.Sort(out)
	return out
}

func sortedKeys(m map[string]bool) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
