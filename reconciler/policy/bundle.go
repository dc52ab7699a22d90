package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/reeve-project/reeve/policies"
)

// The folders of a bundle.
const (
	// ShippedDir holds the policies that come with Reeve.
	ShippedDir = "shipped/"
	// FleetDir holds the policies of the fleet repository; what follows it is
	// the path there.
	FleetDir = "fleet/"
)

const (
	regoSuffix = ".rego"
	testSuffix = "_test.rego"

	// maxBundle and maxFiles bound what one fleet can make the compiler chew.
	maxBundle = 4 << 20
	maxFiles  = 2000
)

// Bundle is all Rego that judges, with its data. It is immutable.
type Bundle struct {
	files map[string][]byte
	data  json.RawMessage
}

// NewBundle is the shipped policies with those of a fleet repository, which are
// given by their path there. Files other than Rego, and tests, are left out.
// The data is what policies see as data.policy: fleet.Fleet.Policy.
func NewBundle(files map[string][]byte, data json.RawMessage) Bundle {
	all := map[string][]byte{}
	for name, content := range policies.Files() {
		all[ShippedDir+name] = content
	}
	for name, content := range files {
		if strings.HasSuffix(name, regoSuffix) && !strings.HasSuffix(name, testSuffix) {
			all[FleetDir+name] = content
		}
	}
	return Bundle{files: all, data: data}
}

// RecordedBundle is a bundle as the ledger holds it: the shipped policies are
// those that were in force then, not those of this release. The files are named
// as Files names them.
func RecordedBundle(files map[string][]byte, data json.RawMessage) Bundle {
	return Bundle{files: maps.Clone(files), data: data}
}

// Files are the files by path: "shipped/ami_pinning.rego",
// "fleet/policies/cost.rego". The contents must not be changed.
func (b Bundle) Files() map[string][]byte { return maps.Clone(b.files) }

// Data is what policies see as data.policy.
func (b Bundle) Data() json.RawMessage { return b.data }

// Digest is the SHA-256 over all paths and contents in the order of the paths,
// and over the data.
func (b Bundle) Digest() string {
	h := sha256.New()
	for _, name := range b.names() {
		fmt.Fprintf(h, "%d %s %d\n", len(name), name, len(b.files[name]))
		h.Write(b.files[name])
	}
	fmt.Fprintf(h, "data %d\n", len(b.data))
	h.Write(b.data)
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

func (b Bundle) names() []string { return slices.Sorted(maps.Keys(b.files)) }

// size is the number of bytes in all files.
func (b Bundle) size() int {
	n := len(b.data)
	for _, content := range b.files {
		n += len(content)
	}
	return n
}
