package bootstrap

import (
	"math/rand/v2"
	"testing"

	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
)

var hostileSeeds = []string{
	"", "#!/bin/sh", "a: b", "a: &a [*a]", "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=B\n\n--B\n\nx\n--B--", "Content-Type: multipart/mixed; boundary=\"\"\n\n",
	"[settings]\n", "settings = 3", "--//\n", "\r--//", "\x00\xff", "Content-Type: multipart/mixed; boundary=B\n\n--B\nA: b\n c\n\n--B--\n", "[settings.kubernetes.node-labels]\na='b'\n",
}

// mutated is one of the seeds with some insertions and deletions.
func mutated(r *rand.Rand) string {
	pieces := []string{
		"\n", "\r", "-", "/", "B", ":", " ", "--B", "--//", "\x00", "\xff", "'", "[", "]", "=", "A: b\n", "é", "--B\n", "\n\n", "*", "&", "{", "}", "\t", "multipart/", "boundary", "Content-Type: ",
	}
	s := hostileSeeds[r.IntN(len(hostileSeeds))]
	for range r.IntN(6) {
		i := r.IntN(len(s) + 1)
		if r.IntN(3) == 0 && i < len(s) {
			s = s[:i] + s[i+1:]
			continue
		}
		s = s[:i] + pieces[r.IntN(len(pieces))] + s[i:]
	}
	return s
}

// TestHostileUserDataNeverHidesHowTheNodeJoins holds that whatever the user's
// data is, the last part of the document is ours and whole, or there is an
// error.
func TestHostileUserDataNeverHidesHowTheNodeJoins(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		user := mutated(r)
		if got, err := decoded(t, ec2v1.AMIFamilyAL2023, userDataOf(user)); err == nil {
			parts := readParts(t, got)
			if last := parts[len(parts)-1]; last[0] != nodeConfigType || last[1] != plainNodeConfig {
				t.Fatalf("user data %q: the last part is %q in %q", user, last, got)
			}
		}
		// No panic is all that is asked for here.
		_, _ = decoded(t, ec2v1.AMIFamilyBottlerocket, userDataOf(user))
	}
}
